#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host.h"

static const uint64_t alignment = 2 << 20; /* of reservations: the granularity */
enum { SPARE_AREA_BYTES = 4096 };

uint64_t host_meminfo(const char *line) {
  FILE *file = fopen("/proc/meminfo", "re");
  char text[256];
  uint64_t kib = 0;
  if (!file) return 0;
  while (fgets(text, sizeof text, file)) {
    if (strncmp(text, line, strlen(line)) == 0) {
      kib = strtoull(text + strlen(line), NULL, 10);
      break;
    }
  }
  fclose(file);
  return kib * 1024;
}

/* Areas of memory that no other can merge with: pages of the file that are never used. */
static void make_spare_areas(HostDevice *device) {
  for (int i = 0; i < HOST_SPARE_AREAS; i++) {
    void *area;
    if (device->spare_areas[i]) continue;
    area = mmap(NULL, SPARE_AREA_BYTES, PROT_NONE, MAP_SHARED, device->memory, 0);
    device->spare_areas[i] = area == MAP_FAILED ? NULL : area;
  }
}

static void drop_spare_areas(HostDevice *device) {
  for (int i = 0; i < HOST_SPARE_AREAS; i++) {
    if (device->spare_areas[i]) munmap(device->spare_areas[i], SPARE_AREA_BYTES);
    device->spare_areas[i] = NULL;
  }
}

int32_t host_memory_open(HostDevice *device) {
  device->memory = memfd_create("moonbright", MFD_CLOEXEC);
  if (device->memory < 0) {
    int code = errno;
    return error_set(code == EMFILE || code == ENFILE ? MB_LIMIT : MB_DRIVER, code,
                     "memfd_create: %s", strerror(code));
  }
  pthread_mutex_init(&device->memory_lock, NULL);
  device->capacity = host_meminfo("MemAvailable:");
  make_spare_areas(device);
  return MB_OK;
}

void host_memory_close(HostDevice *device) {
  drop_spare_areas(device);
  close(device->memory);
  pthread_mutex_destroy(&device->memory_lock);
}

int32_t host_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes) {
  HostDevice *device = self;
  pthread_mutex_lock(&device->memory_lock);
  *free_bytes = device->capacity - device->used;
  pthread_mutex_unlock(&device->memory_lock);
  *total_bytes = host_meminfo("MemTotal:");
  return MB_OK;
}

int32_t host_take(HostDevice *device, uint64_t bytes) {
  uint64_t left;
  pthread_mutex_lock(&device->memory_lock);
  left = device->capacity - device->used;
  if (bytes <= left) device->used += bytes;
  pthread_mutex_unlock(&device->memory_lock);
  if (bytes <= left) return MB_OK;
  return error_set(MB_OUT_OF_MEMORY, 0,
                   "%" PRIu64 " bytes are more than the %" PRIu64
                   " that are left of the memory that was available when the device was opened",
                   bytes, left);
}

void host_put_back(HostDevice *device, uint64_t bytes) {
  pthread_mutex_lock(&device->memory_lock);
  device->used -= bytes;
  pthread_mutex_unlock(&device->memory_lock);
}

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

static int32_t reserve_failed(uint64_t size, int code) {
  return error_set(MB_OUT_OF_ADDRESSES, code, "mmap to reserve %" PRIu64 " bytes: %s: ask for less",
                   size, strerror(code));
}

static void *map_nothing(void *where, uint64_t size, int flags) {
  return mmap(where, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

int32_t host_reserve(void *self, uint64_t size, uint64_t *address) {
  uint8_t *start = map_nothing(NULL, size, 0);
  size_t before;
  (void)self;
  if (start == MAP_FAILED) return reserve_failed(size, errno);
  if ((uintptr_t)start % alignment) {
    munmap(start, size);
    start = map_nothing(NULL, size + alignment, 0);
    if (start == MAP_FAILED) return reserve_failed(size, errno);
    before = (alignment - (uintptr_t)start % alignment) % alignment;
    if (before) munmap(start, before);
    munmap(start + before + size, alignment - before);
    start += before;
  }
  *address = (uintptr_t)start;
  return MB_OK;
}

int32_t host_unreserve(void *self, uint64_t address, uint64_t size) {
  (void)self;
  if (munmap(pointer(address), size) == 0) return MB_OK;
  return error_set(MB_DRIVER, errno, "munmap of %" PRIu64 " reserved bytes: %s", size,
                   strerror(errno));
}

/* A file larger than the limit would not fail: it would end the process by a signal. */
static bool file_may_grow_to(uint64_t size) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

int32_t host_extent_create(void *self, uint64_t size, uint64_t *handle) {
  HostDevice *device = self;
  uint64_t end = device->next_offset + size;
  int32_t status = host_take(device, size);
  if (status != MB_OK) return status;
  /* Offsets are never used twice: a stale mapping can't come to show other data. */
  if (!file_may_grow_to(end) || ftruncate(device->memory, (off_t)end) != 0) {
    int code = file_may_grow_to(end) ? errno : EFBIG;
    host_put_back(device, size);
    return error_set(code == EFBIG ? MB_LIMIT : MB_OUT_OF_MEMORY, code,
                     "ftruncate for an extent of %" PRIu64 " bytes: %s", size, strerror(code));
  }
  *handle = device->next_offset;
  device->next_offset = end;
  return MB_OK;
}

int32_t host_extent_release(void *self, uint64_t handle, uint64_t size) {
  HostDevice *device = self;
  if (fallocate(device->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)handle,
                (off_t)size) != 0) {
    return error_set(MB_DRIVER, errno, "fallocate to release an extent of %" PRIu64 " bytes: %s",
                     size, strerror(errno));
  }
  host_put_back(device, size);
  return MB_OK;
}

/* Mapping over a reservation takes no new addresses: out of memory means out of areas. */
static int32_t area_failed(const char *call, uint64_t address, uint64_t size, int code) {
  if (code == ENOMEM) {
    return error_set(MB_LIMIT, code,
                     "%s of %" PRIu64 " bytes at 0x%" PRIx64
                     ": %s: the process has as many memory areas as vm.max_map_count allows: "
                     "use larger extents or raise it",
                     call, size, address, strerror(code));
  }
  return error_set(MB_DRIVER, code, "%s of %" PRIu64 " bytes at 0x%" PRIx64 ": %s", call, size,
                   address, strerror(code));
}

int32_t host_map(void *self, uint64_t address, uint64_t size, uint64_t handle) {
  const HostDevice *device = self;
  if (mmap(pointer(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED, device->memory,
           (off_t)handle) != MAP_FAILED) {
    return MB_OK;
  }
  return area_failed("mmap", address, size, errno);
}

int32_t host_set_access(void *self, uint64_t address, uint64_t size, int32_t access) {
  int protection = access == MB_ACCESS_READ_WRITE ? PROT_READ | PROT_WRITE
                   : access == MB_ACCESS_READ     ? PROT_READ
                                                  : PROT_NONE;
  (void)self;
  if (mprotect(pointer(address), size, protection) == 0) return MB_OK;
  return area_failed("mprotect", address, size, errno);
}

/* A process with all the areas it may have is refused even the call that would leave it
 * with fewer: the spare ones make room for it, or a map that fails could not be undone. */
int32_t host_unmap(void *self, uint64_t address, uint64_t size) {
  void *unmapped = map_nothing(pointer(address), size, MAP_FIXED);
  int code = errno;
  if (unmapped == MAP_FAILED && code == ENOMEM) {
    drop_spare_areas(self);
    unmapped = map_nothing(pointer(address), size, MAP_FIXED);
    code = errno;
    make_spare_areas(self);
  }
  return unmapped == MAP_FAILED ? area_failed("mmap to unmap", address, size, code) : MB_OK;
}
