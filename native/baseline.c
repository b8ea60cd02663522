/* The driver's own allocators: plain, and a stream-ordered pool. */
#include "captures.h"
#include "check.h"
#include "tracking.h"

int32_t mb_plain_alloc(uint32_t device, double size, double *address) {
  MbDevice *d;
  Allocation *allocation;
  uint64_t bytes;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_new(ALLOCATION_PLAIN, bytes, &allocation);
  if (status == MB_OK) {
    status = d->backend->plain_alloc(d->self, bytes, &allocation->address);
    status = tracking_finish_alloc(d, allocation, status, address);
  }
  return device_leave(d, status);
}

int32_t mb_plain_free(uint32_t device, double address) {
  MbDevice *d;
  Allocation *allocation;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_take(d, ALLOCATION_PLAIN, address, &allocation);
  if (status == MB_OK) {
    status = d->backend->plain_free(d->self, allocation->address, allocation->size);
    status = tracking_finish_free(d, allocation, status);
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
  status = stream_pin_uncaptured(d, stream, "an allocation from the pool", &s);
  if (status == MB_OK) {
    status = tracking_new(ALLOCATION_POOL, bytes, &allocation);
    if (status == MB_OK) {
      status = d->backend->pool_alloc(d->self, bytes, s->handle, &allocation->address);
      status = tracking_finish_alloc(d, allocation, status, address);
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
  status = stream_pin_uncaptured(d, stream, "a free to the pool", &s);
  if (status == MB_OK) {
    status = tracking_take(d, ALLOCATION_POOL, address, &allocation);
    if (status == MB_OK) {
      status = d->backend->pool_free(d->self, allocation->address, allocation->size, s->handle);
      status = tracking_finish_free(d, allocation, status);
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
