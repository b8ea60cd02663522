/* The driver's own allocators: plain, and a stream-ordered pool. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "device.h"

static void track(MbDevice *device, Allocation *allocation) {
  pthread_mutex_lock(&device->range_lock);
  allocations_insert(&device->allocations, allocation);
  pthread_mutex_unlock(&device->range_lock);
}

/* Taken out before the driver frees it, so that nobody else frees it as well. */
static int32_t untrack(MbDevice *device, AllocationKind kind, double address,
                       Allocation **allocation) {
  uint64_t start;
  int32_t status = check_address("address", address, 1, 0, &start);
  if (status != MB_OK) return status;
  pthread_mutex_lock(&device->range_lock);
  *allocation = allocations_remove(&device->allocations, kind, start);
  pthread_mutex_unlock(&device->range_lock);
  if (*allocation) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "no %s allocation of this device starts at 0x%" PRIx64,
                   kind == ALLOCATION_PLAIN ? "plain" : "pool", start);
}

static int32_t new_allocation(AllocationKind kind, uint64_t size, Allocation **allocation) {
  *allocation = calloc(1, sizeof **allocation);
  if (!*allocation) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for an allocation");
  (*allocation)->kind = kind;
  (*allocation)->size = size;
  return MB_OK;
}

/* Tracks it and gives its address, or frees the record. */
static int32_t finish_alloc(MbDevice *device, Allocation *allocation, int32_t status,
                            double *address) {
  if (status == MB_OK) {
    *address = (double)allocation->address;
    track(device, allocation);
  } else {
    free(allocation);
  }
  return status;
}

/* Frees the record, or tracks it again. */
static int32_t finish_free(MbDevice *device, Allocation *allocation, int32_t status) {
  if (status == MB_OK) {
    free(allocation);
  } else {
    track(device, allocation);
  }
  return status;
}

int32_t mb_plain_alloc(uint32_t device, double size, double *address) {
  MbDevice *d;
  Allocation *allocation;
  uint64_t bytes;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = new_allocation(ALLOCATION_PLAIN, bytes, &allocation);
  if (status == MB_OK) {
    status = d->backend->plain_alloc(d->self, bytes, &allocation->address);
    status = finish_alloc(d, allocation, status, address);
  }
  return device_leave(d, status);
}

int32_t mb_plain_free(uint32_t device, double address) {
  MbDevice *d;
  Allocation *allocation;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = untrack(d, ALLOCATION_PLAIN, address, &allocation);
  if (status == MB_OK) {
    status = d->backend->plain_free(d->self, allocation->address, allocation->size);
    status = finish_free(d, allocation, status);
  }
  return device_leave(d, status);
}

int32_t mb_pool_alloc(uint32_t device, double size, uint32_t stream, double *address) {
  MbDevice *d;
  MbObject *s;
  Allocation *allocation;
  uint64_t bytes;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status == MB_OK) {
    status = new_allocation(ALLOCATION_POOL, bytes, &allocation);
    if (status == MB_OK) {
      status = d->backend->pool_alloc(d->self, bytes, s->handle, &allocation->address);
      status = finish_alloc(d, allocation, status, address);
    }
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

int32_t mb_pool_free(uint32_t device, double address, uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  Allocation *allocation;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status == MB_OK) {
    status = untrack(d, ALLOCATION_POOL, address, &allocation);
    if (status == MB_OK) {
      status = d->backend->pool_free(d->self, allocation->address, allocation->size, s->handle);
      status = finish_free(d, allocation, status);
    }
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

int32_t mb_pool_trim(uint32_t device) {
  MbDevice *d;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  return device_leave(d, d->backend->pool_trim(d->self));
}
