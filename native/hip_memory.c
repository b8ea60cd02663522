/* Addresses, extents and mappings.
 *
 * The common part makes one set-access and one unmap call per mapping: ROCm 6.3 takes an
 * unmap of several for one of the first (ROCm/ROCR-Runtime#285), and 7.2 refuses access to
 * several (ROCm/rocm-systems#2516). An unmap waits for all streams of every device that has
 * access; up to 6.4 a map waits for the default stream. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "hip.h"

static HipPointer pointer(uint64_t address) { return (HipPointer)(uintptr_t)address; }

int32_t hip_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes) {
  const HipApi *api = ((HipDevice *)self)->api;
  size_t free_now = 0, total = 0;
  HipResult result = api->hipMemGetInfo(&free_now, &total);
  *free_bytes = free_now;
  *total_bytes = total;
  return hip_check(api, result, "hipMemGetInfo");
}

/* The driver says "out of memory" or "invalid value" where it means addresses. */
static int32_t reserve(const HipDevice *device, uint64_t size, uint64_t *address) {
  const HipApi *api = device->api;
  HipPointer got = NULL;
  HipResult result = api->hipMemAddressReserve(&got, size, device->granularity, NULL, 0);
  int32_t status = hip_check(api, result, "hipMemAddressReserve of %" PRIu64 " bytes", size);
  if (status == MB_LOST) return status;
  if (status != MB_OK) {
    return error_set(MB_OUT_OF_ADDRESSES, result, "%s: ask for less", error_last_text());
  }
  *address = (uintptr_t)got;
  if (got) return MB_OK;
  return error_set(MB_OUT_OF_ADDRESSES, 0,
                   "hipMemAddressReserve of %" PRIu64
                   " bytes reported success and gave no address: ask for less",
                   size);
}

/* Versions up to 6.x take no notice of the alignment asked for. */
static int32_t reserve_shifted(HipDevice *device, uint64_t size, uint64_t *address) {
  HipShifted *shifted = calloc(1, sizeof *shifted);
  uint64_t spare;
  int32_t status;
  if (!shifted) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a reservation");
  shifted->driver_size = size + device->granularity;
  status = reserve(device, shifted->driver_size, &shifted->driver_address);
  if (status != MB_OK) {
    free(shifted);
    return status;
  }
  spare = shifted->driver_address % device->granularity;
  shifted->address = shifted->driver_address + (spare ? device->granularity - spare : 0);
  shifted->next = device->shifted;
  device->shifted = shifted;
  *address = shifted->address;
  return MB_OK;
}

static int32_t unreserve(const HipDevice *device, uint64_t address, uint64_t size) {
  HipResult result = device->api->hipMemAddressFree(pointer(address), size);
  return hip_check(device->api, result, "hipMemAddressFree of %" PRIu64 " bytes at 0x%" PRIx64,
                   size, address);
}

int32_t hip_reserve(void *self, uint64_t size, uint64_t *address) {
  HipDevice *device = self;
  int32_t status = reserve(device, size, address);
  if (status != MB_OK || *address % device->granularity == 0) return status;
  status = unreserve(device, *address, size);
  return status == MB_OK ? reserve_shifted(device, size, address) : status;
}

int32_t hip_unreserve(void *self, uint64_t address, uint64_t size) {
  HipDevice *device = self;
  HipShifted **place = &device->shifted, *shifted;
  int32_t status;
  while (*place && (*place)->address != address) place = &(*place)->next;
  shifted = *place;
  if (!shifted) return unreserve(device, address, size);
  status = unreserve(device, shifted->driver_address, shifted->driver_size);
  if (status == MB_OK) {
    *place = shifted->next;
    free(shifted);
  }
  return status;
}

HipAllocationProperties hip_extent_properties(HipDeviceId device) {
  return (HipAllocationProperties){
      .type = HIP_ALLOCATION_PINNED,
      .location = {HIP_LOCATION_DEVICE, device},
  };
}

int32_t hip_extent_create(void *self, uint64_t size, uint64_t *handle) {
  const HipDevice *device = self;
  HipAllocationProperties properties = hip_extent_properties(device->device);
  HipAllocation allocation = NULL;
  HipResult result;
  int32_t status;
  if (!hip_handle_take(device->most_handles)) {
    return error_set(MB_OUT_OF_MEMORY, 0,
                     "%" PRIu32
                     " extents are all that this process has file descriptors for, which ROCm "
                     "may use: raise the limit (ulimit -n) or use larger extents",
                     device->most_handles);
  }
  result = device->api->hipMemCreate(&allocation, size, &properties, 0);
  status = hip_check(device->api, result, "hipMemCreate of %" PRIu64 " bytes", size);
  if (status == MB_OK) {
    *handle = (uintptr_t)allocation;
    return MB_OK;
  }
  hip_handle_give();
  if (status == MB_OUT_OF_MEMORY && hip_descriptors_used_up()) {
    error_append(": the process can open no more files, raise that limit (ulimit -n)");
  }
  return status;
}

int32_t hip_extent_release(void *self, uint64_t handle, uint64_t size) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result = api->hipMemRelease((HipAllocation)(uintptr_t)handle);
  if (result == HIP_RESULT_SUCCESS) hip_handle_give();
  return hip_check(api, result, "hipMemRelease of %" PRIu64 " bytes", size);
}

int32_t hip_map(void *self, uint64_t address, uint64_t size, uint64_t handle) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result =
      api->hipMemMap(pointer(address), size, 0, (HipAllocation)(uintptr_t)handle, 0);
  return hip_check(api, result, "hipMemMap of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

/* To this device alone. Were peers granted access too, this device would have to come last:
 * on ROCm 7.14 a later grant to a peer spoils the mapping (openxla/xla#46576). */
int32_t hip_set_access(void *self, uint64_t address, uint64_t size, int32_t access) {
  const HipDevice *device = self;
  HipAccess granted = {{HIP_LOCATION_DEVICE, device->device}, access};
  HipResult result = device->api->hipMemSetAccess(pointer(address), size, &granted, 1);
  return hip_check(device->api, result,
                   "hipMemSetAccess to %" PRId32 " of %" PRIu64 " bytes at 0x%" PRIx64, access,
                   size, address);
}

/* Versions before 7.0 report success for a map that failed, and crash when they are to unmap
 * what they don't know: asked first. What they don't know is unmapped as it is. */
int32_t hip_unmap(void *self, uint64_t address, uint64_t size) {
  const HipDevice *device = self;
  const HipApi *api = device->api;
  const HipLocation location = {HIP_LOCATION_DEVICE, device->device};
  unsigned long long flags = 0;
  HipResult result = api->hipMemGetAccess(&flags, &location, pointer(address));
  if (result == HIP_RESULT_INVALID_VALUE) return MB_OK;
  if (result != HIP_RESULT_SUCCESS) {
    return hip_check(api, result, "hipMemGetAccess at 0x%" PRIx64, address);
  }
  result = api->hipMemUnmap(pointer(address), size);
  return hip_check(api, result, "hipMemUnmap of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

/* Nothing that a queue can be given waits for a new mapping to be seen, only time does. */
void hip_settle(void *self) {
  const HipDevice *device = self;
  struct timespec left = {0, (long)device->settle_ms * 1000000};
  if (!device->settle_ms) return;
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}
