#include "tracking.h"

#include <inttypes.h>
#include <stdlib.h>

#include "check.h"

static void track(MbDevice *device, Allocation *allocation) {
  pthread_mutex_lock(&device->range_lock);
  allocations_insert(&device->allocations, allocation);
  pthread_mutex_unlock(&device->range_lock);
}

int32_t tracking_take(MbDevice *device, AllocationKind kind, double address,
                      Allocation **allocation) {
  static const char *const names[] = {"plain", "pool", "page-locked", "wrapped"};
  uint64_t start;
  int32_t status = check_address("address", address, 1, 0, &start);
  if (status != MB_OK) return status;
  pthread_mutex_lock(&device->range_lock);
  *allocation = allocations_remove(&device->allocations, kind, start);
  pthread_mutex_unlock(&device->range_lock);
  if (*allocation) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "no %s allocation of this device starts at 0x%" PRIx64,
                   names[kind], start);
}

int32_t tracking_new(AllocationKind kind, uint64_t size, Allocation **allocation) {
  *allocation = calloc(1, sizeof **allocation);
  if (!*allocation) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for an allocation");
  (*allocation)->kind = kind;
  (*allocation)->size = size;
  return MB_OK;
}

int32_t tracking_finish_alloc(MbDevice *device, Allocation *allocation, int32_t status,
                              double *address) {
  if (status == MB_OK) {
    *address = (double)allocation->address;
    track(device, allocation);
  } else {
    free(allocation);
  }
  return status;
}

int32_t tracking_finish_free(MbDevice *device, Allocation *allocation, int32_t status) {
  if (status == MB_OK) {
    free(allocation);
  } else {
    track(device, allocation);
  }
  return status;
}
