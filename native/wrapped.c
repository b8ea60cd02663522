/* Memory that others allocated and the device can use, made known to the data calls. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "tracking.h"

/* With range_lock. What the device has of its own may go away under the wrapper. */
static bool overlaps(const MbDevice *device, uint64_t address, uint64_t size) {
  const Reservations *reservations = &device->reservations;
  for (uint32_t i = 0; i < reservations->count; i++) {
    const Reservation *one = reservations->items[i];
    if (address < one->address + one->size && one->address < address + size) return true;
  }
  return allocations_overlap(&device->allocations, address, size);
}

int32_t mb_wrap(uint32_t device, double address, double bytes) {
  MbDevice *d;
  Allocation *wrapped;
  uint64_t start, size;
  int32_t status = check_size("bytes", bytes, 1, &size);
  if (status == MB_OK) status = check_address("address", address, 1, size, &start);
  if (status == MB_OK && start == 0) {
    status = error_set(MB_BAD_ARGUMENT, 0, "address must not be 0");
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_new(ALLOCATION_WRAPPED, size, &wrapped);
  if (status == MB_OK) {
    wrapped->address = start;
    pthread_mutex_lock(&d->range_lock);
    if (overlaps(d, start, size)) {
      status = error_set(MB_BAD_ARGUMENT, 0,
                         "0x%" PRIx64 " to 0x%" PRIx64
                         " overlaps memory that this device has or has wrapped already",
                         start, start + size);
    } else {
      allocations_insert(&d->allocations, wrapped);
    }
    pthread_mutex_unlock(&d->range_lock);
    if (status != MB_OK) free(wrapped);
  }
  return device_leave(d, status);
}

int32_t mb_unwrap(uint32_t device, double address) {
  MbDevice *d;
  Allocation *wrapped;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_take(d, ALLOCATION_WRAPPED, address, &wrapped);
  if (status == MB_OK) free(wrapped);
  return device_leave(d, status);
}
