/* What stands in for a driver's own allocators on the host: mmap, and a cache of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"

int32_t host_plain_alloc(void *self, uint64_t size, uint64_t *address) {
  void *memory;
  int32_t status = host_take(self, size);
  if (status != MB_OK) return status;
  memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    int code = errno;
    host_put_back(self, size);
    return error_set(MB_OUT_OF_MEMORY, code, "mmap of %" PRIu64 " bytes: %s", size,
                     strerror(code));
  }
  *address = (uintptr_t)memory;
  return MB_OK;
}

static int32_t give_back(HostDevice *device, uint64_t address, uint64_t size) {
  if (munmap((void *)(uintptr_t)address, size) != 0) {
    return error_set(MB_DRIVER, errno, "munmap of %" PRIu64 " bytes at 0x%" PRIx64 ": %s", size,
                     address, strerror(errno));
  }
  host_put_back(device, size);
  return MB_OK;
}

/* Waits for the device, as the vendors' plain free does. */
int32_t host_plain_free(void *self, uint64_t address, uint64_t size) {
  int32_t status = host_synchronize(self);
  return status == MB_OK ? give_back(self, address, size) : status;
}

static HostPoolBlock **bucket_of(HostDevice *device, uint64_t size, const HostStream *stream) {
  uint64_t key = (size ^ (uintptr_t)stream >> 4) * 0x9E3779B97F4A7C15u;
  return &device->pool[key >> 56];
}

int32_t host_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address) {
  HostDevice *device = self;
  HostPoolBlock **place, *found;
  pthread_mutex_lock(&device->memory_lock);
  place = bucket_of(device, size, stream);
  while (*place && ((*place)->size != size || (*place)->stream != stream)) {
    place = &(*place)->next;
  }
  found = *place;
  if (found) *place = found->next;
  pthread_mutex_unlock(&device->memory_lock);
  if (!found) return host_plain_alloc(self, size, address);
  *address = found->address;
  free(found);
  return MB_OK;
}

int32_t host_pool_free(void *self, uint64_t address, uint64_t size, void *stream) {
  HostDevice *device = self;
  HostPoolBlock **place, *block = malloc(sizeof *block);
  if (!block) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a pool's record");
  *block = (HostPoolBlock){address, size, stream, NULL};
  pthread_mutex_lock(&device->memory_lock);
  place = bucket_of(device, size, stream);
  block->next = *place;
  *place = block;
  pthread_mutex_unlock(&device->memory_lock);
  return MB_OK;
}

static HostPoolBlock *take_any(HostDevice *device) {
  HostPoolBlock *block = NULL;
  pthread_mutex_lock(&device->memory_lock);
  for (int i = 0; i < HOST_POOL_BUCKETS && !block; i++) {
    block = device->pool[i];
    if (block) device->pool[i] = block->next;
  }
  pthread_mutex_unlock(&device->memory_lock);
  return block;
}

int32_t host_pool_trim(void *self) {
  HostPoolBlock *block = take_any(self);
  int32_t status = MB_OK;
  /* Work queued before a block was freed may still use it. */
  if (block) status = host_synchronize(self);
  while (block) {
    int32_t freed = give_back(self, block->address, block->size);
    if (freed != MB_OK) status = freed;
    free(block);
    block = take_any(self);
  }
  return status;
}
