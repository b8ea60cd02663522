/* HIP's rules for mappings, and its known faults with them. */
#ifndef FAKE_HIP_MAPPINGS_H
#define FAKE_HIP_MAPPINGS_H

#include "hip_options.h"
#include "operations.h"

/* The driver's own; extents and mappings are multiples of it. */
#define HIP_GRANULARITY ((uint64_t)4096)
enum { FIRST_UNORDERED_VERSION = 70000000 }; /* whose map does not wait */

/* Memory that stays used until the range that it was mapped in is freed. */
typedef struct Kept {
  struct Kept *next;
  Physical *physical;
  uint64_t address;
} Kept;

static Kept *kept;

static bool is_mapping_of(const Range *range, uint64_t size) {
  return range != NULL && range->kind == RANGE_MAPPING && range->size == size;
}

static Range *reservation_of(uint64_t address) {
  const size_t i = range_lower(&reservations, address);
  if (i == reservations.count || reservations.items[i].begin > address) return NULL;
  return &reservations.items[i];
}

static Result hip_reserve(uint64_t size, uint64_t alignment, uint64_t *address) {
  const uint64_t missed = (uint64_t)options.misaligned;
  if (options.nullReservation) {
    *address = 0;
    return RESULT_SUCCESS;
  }
  if (alignment < HIP_GRANULARITY) alignment = HIP_GRANULARITY;
  uint64_t reserved = 0;
  for (size_t i = 0; i < reservations.count; i++) reserved += reservations.items[i].size;
  if (options.reservable != 0 && (double)(reserved + size) > options.reservable)
    return RESULT_OUT_OF_MEMORY;
  CHECK(reserve(size + missed, alignment, address));
  if (missed != 0) {
    Range *range = range_at(&reservations, *address);
    munmap((void *)range->begin, missed);
    range->begin += missed;
    range->size = size;
    *address = range->begin;
  }
  return RESULT_SUCCESS;
}

static void kept_free(uint64_t begin, uint64_t size) {
  for (Kept **place = &kept; *place != NULL;) {
    Kept *one = *place;
    if (one->address < begin || one->address - begin >= size) {
      place = &one->next;
      continue;
    }
    one->physical->mappings--;
    physical_free_if_unused(one->physical);
    *place = one->next;
    free(one);
  }
}

/* What is still mapped keeps the range; the runtime calls that an unknown error. */
static Result hip_address_free(uint64_t address, uint64_t size) {
  const Range *range = range_at(&reservations, address);
  if (range == NULL || range->size != size) return RESULT_INVALID_VALUE;
  if (range_overlaps(&device_memory, address, size)) return RESULT_UNKNOWN;
  kept_free(address, size);
  return reservation_free(address, size);
}

/* Older versions wait for the default stream, as they queue the mapping there, and lose
 * whatever goes wrong. */
static Result hip_map(uint64_t address, Physical *physical) {
  const bool queued = options.version < FIRST_UNORDERED_VERSION;
  if (queued) stream_drain(&default_stream, last_sequence);
  if (options.silentMapFailure != 0 && --options.silentMapFailure == 0)
    return RESULT_SUCCESS;
  const Result result = mapping_create(address, physical);
  return queued ? RESULT_SUCCESS : result;
}

/* As 7.2 looks whether a range is one of whole mappings: it adds up sizes from the
 * reservation's first mapping on, wherever the range is. */
static bool adds_up(uint64_t address, uint64_t size) {
  const Range *reservation = reservation_of(address);
  uint64_t sum = 0;
  for (size_t i = range_lower(&device_memory, reservation->begin);
       i < device_memory.count && sum < size; i++) {
    const Range *range = &device_memory.items[i];
    if (range->begin >= reservation->begin + reservation->size) break;
    sum += range->size;
  }
  return sum == size;
}

/* Takes the access of a mapping away until then, as from a device that still has an old
 * translation of it. */
static void mapping_hide(Range *range, int64_t seen_at_ns) {
  if (range->seen_at_ns == 0) mappings_unseen++;
  range->seen_at_ns = seen_at_ns;
  range->access_then = range->access;
  range->access = ACCESS_NONE;
  mprotect((void *)range->begin, range->size, PROT_NONE);
}

static Result hip_grant(uint64_t address, uint64_t size, int access) {
  Range *range = range_at(&device_memory, address);
  if (range == NULL) return RESULT_INVALID_VALUE;
  if (!is_mapping_of(range, size))
    return violate("hipMemSetAccess of other than one mapping", (void *)address);
  if (options.refusesReadOnly && access == ACCESS_READ) return RESULT_INVALID_VALUE;
  if (options.refusesSecondAccess && !adds_up(address, size)) return RESULT_INVALID_VALUE;
  if (range->seen_at_ns != 0) {
    range->seen_at_ns = 0;
    mappings_unseen--;
  }
  CHECK(mappings_set_access(address, size, access));
  if (options.lateUs != 0)
    mapping_hide(range, clock_now_ns() + (int64_t)(options.lateUs * 1e3));
  return RESULT_SUCCESS;
}

/* Waits for all streams. */
static Result hip_unmap(uint64_t address, uint64_t size) {
  const Range *range = range_at(&device_memory, address);
  if (range == NULL || range->kind != RANGE_MAPPING)
    return violate("hipMemUnmap of an unknown pointer", (void *)address);
  if (!is_mapping_of(range, size))
    return violate("hipMemUnmap of other than one mapping", (void *)address);
  if (!context_lost) streams_drain();
  if (options.memoryStays) {
    Kept *one = calloc(1, sizeof *one);
    if (one == NULL) abort();
    *one = (Kept){kept, (Physical *)range_at(&device_memory, address)->owner, address};
    one->physical->mappings++;
    kept = one;
  }
  CHECK(mappings_remove(address, size));
  return result_after_work();
}

#endif
