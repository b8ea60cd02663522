/* Page-locked memory of the host that the device uses at the same address. */
#include <inttypes.h>
#include <string.h>

#include "captures.h"
#include "check.h"
#include "tracking.h"

int32_t mb_host_alloc(uint32_t device, double bytes, double *address) {
  MbDevice *d;
  Allocation *allocation;
  uint64_t size;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = check_size("bytes", bytes, 1, &size);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_new(ALLOCATION_PINNED, size, &allocation);
  if (status == MB_OK) {
    status = d->backend->pinned_alloc(d->self, size, &allocation->address);
    status = tracking_finish_alloc(d, allocation, status, address);
  }
  return device_leave(d, status);
}

/* Later copies of the host's don't find it any more; those that go on are awaited. */
static int32_t take_unused(MbDevice *device, double address, Allocation **allocation) {
  int32_t status = tracking_take(device, ALLOCATION_PINNED, address, allocation);
  if (status != MB_OK) return status;
  pthread_mutex_lock(&device->range_lock);
  while ((*allocation)->copies) pthread_cond_wait(&device->pinned_unused, &device->range_lock);
  pthread_mutex_unlock(&device->range_lock);
  return MB_OK;
}

int32_t mb_host_free(uint32_t device, double address) {
  MbDevice *d;
  Allocation *allocation;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = captures_hold_off(d, "a free of page-locked memory");
  if (status != MB_OK) return device_leave(d, status);
  status = take_unused(d, address, &allocation);
  if (status == MB_OK) {
    /* Queued work may still use it. */
    status = streams_synchronize(d);
    if (status == MB_OK) {
      status = d->backend->pinned_free(d->self, allocation->address, allocation->size);
    }
    status = tracking_finish_free(d, allocation, status);
  }
  captures_let(d);
  return device_leave(d, status);
}

/* Until unuse it can't be freed. */
static int32_t use(MbDevice *device, uint64_t address, uint64_t bytes,
                   Allocation **allocation) {
  Allocation *found;
  pthread_mutex_lock(&device->range_lock);
  found = allocations_find(&device->allocations, address, bytes);
  if (found && found->kind != ALLOCATION_PINNED) found = NULL;
  if (found) found->copies++;
  pthread_mutex_unlock(&device->range_lock);
  *allocation = found;
  if (found) return MB_OK;
  return error_set(MB_NOT_MAPPED, 0,
                   "0x%" PRIx64 " to 0x%" PRIx64
                   " lies inside no page-locked allocation of this device",
                   address, address + bytes);
}

static void unuse(MbDevice *device, Allocation *allocation) {
  pthread_mutex_lock(&device->range_lock);
  if (--allocation->copies == 0) pthread_cond_broadcast(&device->pinned_unused);
  pthread_mutex_unlock(&device->range_lock);
}

/* One of source and destination is null, and stands for the page-locked memory. */
static int32_t copy_pinned(uint32_t device, double address, double bytes,
                           const uint8_t *source, uint8_t *destination) {
  MbDevice *d;
  Allocation *allocation;
  uint64_t start, length;
  int32_t status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK) status = check_address("address", address, 1, length, &start);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = use(d, start, length, &allocation);
  if (status == MB_OK) {
    uint8_t *pinned = (uint8_t *)(uintptr_t)start;
    memcpy(destination ? destination : pinned, source ? source : pinned, (size_t)length);
    unuse(d, allocation);
  }
  return device_leave(d, status);
}

int32_t mb_host_write(uint32_t device, double address, const uint8_t *source, double bytes) {
  int32_t status = check_pointer("source", source);
  if (status != MB_OK) return status;
  return copy_pinned(device, address, bytes, source, NULL);
}

int32_t mb_host_read(uint32_t device, uint8_t *destination, double address, double bytes) {
  int32_t status = check_pointer("destination", destination);
  if (status != MB_OK) return status;
  return copy_pinned(device, address, bytes, NULL, destination);
}
