/* Device memory: physical memory is parts of one memfd, mapped at real addresses, so that
 * two mappings of it show the same bytes and an address without access faults. */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ranges.h"
#include "results.h"

#define GRANULARITY ((uint64_t)2 << 20)
#define HOST_PAGE ((uint64_t)4096)
#define DEFAULT_MEMORY_LIMIT ((uint64_t)4 << 30)

typedef struct Physical {
  Object base; /* dead once released, though mappings may keep the memory */
  uint64_t size, offset;
  size_t mappings;
} Physical;

static RangeTable reservations; /* RANGE_RESERVATION */
static RangeTable device_memory; /* RANGE_MAPPING, RANGE_PLAIN and RANGE_POOLED */
static RangeTable pinned_memory; /* RANGE_PINNED */
static uint64_t memory_limit = DEFAULT_MEMORY_LIMIT, memory_used;

/* Offsets only grow: the file is sparse, and what is freed becomes a hole. */
static int physical_file = -1;
static uint64_t physical_end;

static uint64_t round_up(uint64_t size, uint64_t to) {
  return (size + to - 1) / to * to;
}

static bool memory_take(uint64_t size) {
  if (size > memory_limit || memory_used > memory_limit - size) return false;
  memory_used += size;
  return true;
}

static int protection(int access) {
  return (access & ACCESS_READ ? PROT_READ : 0) |
         (access == ACCESS_READ_WRITE ? PROT_WRITE : 0);
}

static Result physical_create(uint64_t size, Physical **created) {
  if (physical_file < 0) physical_file = memfd_create("fake-device", MFD_CLOEXEC);
  if (physical_file < 0) return RESULT_OPERATING_SYSTEM;
  if (!memory_take(size)) return RESULT_OUT_OF_MEMORY;
  if (ftruncate(physical_file, (off_t)(physical_end + size)) != 0) {
    memory_used -= size;
    return RESULT_OUT_OF_MEMORY;
  }
  Physical *physical = object_new(OBJECT_PHYSICAL, sizeof *physical);
  physical->size = size;
  physical->offset = physical_end;
  physical_end += size;
  *created = physical;
  return RESULT_SUCCESS;
}

static void physical_free_if_unused(Physical *physical) {
  if (physical->base.alive || physical->mappings != 0) return;
  fallocate(physical_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            (off_t)physical->offset, (off_t)physical->size);
  memory_used -= physical->size;
}

static void physical_release(Physical *physical) {
  physical->base.alive = false;
  physical_free_if_unused(physical);
}

static Result reserve(uint64_t size, uint64_t alignment, uint64_t *address) {
  if (size > UINT64_MAX - alignment) return RESULT_OUT_OF_MEMORY;
  char *got = mmap(NULL, size + alignment, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return RESULT_OUT_OF_MEMORY;
  const uint64_t begin = round_up((uint64_t)got, alignment);
  const uint64_t before = begin - (uint64_t)got;
  if (before != 0) munmap(got, before);
  if (before != alignment) munmap((void *)(begin + size), alignment - before);
  range_insert(&reservations, (Range){.begin = begin, .size = size, .kind = RANGE_RESERVATION});
  *address = begin;
  return RESULT_SUCCESS;
}

static Result reservation_free(uint64_t address, uint64_t size) {
  const Range *range = range_at(&reservations, address);
  if (range == NULL || range->size != size ||
      range_overlaps(&device_memory, address, size))
    return RESULT_INVALID_VALUE;
  munmap((void *)address, size);
  range_remove(&reservations, (size_t)(range - reservations.items), 1);
  return RESULT_SUCCESS;
}

static Result mapping_create(uint64_t address, Physical *physical) {
  const uint64_t size = physical->size;
  const size_t i = range_lower(&reservations, address);
  if (i == reservations.count || reservations.items[i].begin > address ||
      size > reservations.items[i].begin + reservations.items[i].size - address ||
      range_overlaps(&device_memory, address, size))
    return RESULT_INVALID_VALUE;
  if (mmap((void *)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical_file,
           (off_t)physical->offset) == MAP_FAILED)
    return RESULT_OUT_OF_MEMORY;
  range_insert(&device_memory, (Range){.begin = address,
                                       .size = size,
                                       .kind = RANGE_MAPPING,
                                       .access = ACCESS_NONE,
                                       .owner = &physical->base});
  physical->mappings++;
  return RESULT_SUCCESS;
}

static Result mappings_set_access(uint64_t address, uint64_t size, int access) {
  size_t first;
  const size_t count =
      range_wholes(&device_memory, address, size, RANGE_MAPPING, &first);
  if (count == 0) return RESULT_INVALID_VALUE;
  if (mprotect((void *)address, size, protection(access)) != 0)
    return RESULT_OPERATING_SYSTEM;
  for (size_t i = first; i < first + count; i++)
    device_memory.items[i].access = access;
  return RESULT_SUCCESS;
}

static int64_t clock_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t mappings_unseen;

/* Lets the device see the mappings whose time has come (hip_mappings.h hides them). */
static void mappings_reveal(void) {
  if (mappings_unseen == 0) return;
  const int64_t now_ns = clock_now_ns();
  for (size_t i = 0; i < device_memory.count; i++) {
    Range *range = &device_memory.items[i];
    if (range->seen_at_ns == 0 || range->seen_at_ns > now_ns) continue;
    range->seen_at_ns = 0;
    range->access = range->access_then;
    mprotect((void *)range->begin, range->size, protection(range->access));
    mappings_unseen--;
  }
}

static Result mappings_remove(uint64_t address, uint64_t size) {
  size_t first;
  const size_t count =
      range_wholes(&device_memory, address, size, RANGE_MAPPING, &first);
  if (count == 0) return RESULT_INVALID_VALUE;
  if (mmap((void *)address, size, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return RESULT_OPERATING_SYSTEM;
  for (size_t i = first; i < first + count; i++) {
    Physical *physical = (Physical *)device_memory.items[i].owner;
    if (device_memory.items[i].seen_at_ns != 0) mappings_unseen--;
    physical->mappings--;
    physical_free_if_unused(physical);
  }
  range_remove(&device_memory, first, count);
  return RESULT_SUCCESS;
}

/* Plain, pooled and pinned memory; only pinned memory is the host's own. */
static Result block_create(RangeTable *table, RangeKind kind, uint64_t size,
                             Object *owner, uint64_t *address) {
  const bool on_device = kind != RANGE_PINNED;
  if (size > UINT64_MAX - HOST_PAGE) return RESULT_OUT_OF_MEMORY;
  const uint64_t backed = round_up(size, HOST_PAGE);
  if (on_device && !memory_take(backed)) return RESULT_OUT_OF_MEMORY;
  void *memory = mmap(NULL, backed, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    if (on_device) memory_used -= backed;
    return RESULT_OUT_OF_MEMORY;
  }
  range_insert(table, (Range){.begin = (uint64_t)memory,
                              .size = size,
                              .kind = kind,
                              .access = ACCESS_READ_WRITE,
                              .owner = owner});
  *address = (uint64_t)memory;
  return RESULT_SUCCESS;
}

/* Whether the device may use all of it: its own memory, or mapped pinned memory. */
static bool device_covers(uint64_t begin, uint64_t size, int access) {
  const size_t i = range_lower(&pinned_memory, begin);
  const Range *range = i < pinned_memory.count ? &pinned_memory.items[i] : NULL;
  if (range != NULL && range->begin <= begin && range->device_mapped)
    return size <= range->size - (begin - range->begin);
  return range_covers(&device_memory, begin, size, access);
}

static void block_free(RangeTable *table, const Range *range) {
  const uint64_t backed = round_up(range->size, HOST_PAGE);
  munmap((void *)range->begin, backed);
  if (range->kind != RANGE_PINNED) memory_used -= backed;
  range_remove(table, (size_t)(range - table->items), 1);
}

/* Frees all blocks of a kind; returns how many there were. */
static int32_t blocks_free_all(RangeTable *table, RangeKind kind) {
  int32_t freed = 0;
  for (size_t i = table->count; i-- > 0;) {
    if (table->items[i].kind != kind) continue;
    block_free(table, &table->items[i]);
    freed++;
  }
  return freed;
}

/* Forgets everything mapped, reserved and created. */
static void memory_wipe(void) {
  for (size_t i = device_memory.count; i-- > 0;) {
    const Range range = device_memory.items[i];
    if (range.kind == RANGE_MAPPING) mappings_remove(range.begin, range.size);
  }
  while (reservations.count != 0)
    reservation_free(reservations.items[0].begin, reservations.items[0].size);
  for (size_t i = 0; i < object_count; i++)
    if (objects[i]->kind == OBJECT_PHYSICAL && objects[i]->alive)
      physical_release((Physical *)objects[i]);
}

#endif
