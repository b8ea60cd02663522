#include <inttypes.h>

#include "hip.h"

int32_t hip_pinned_alloc(void *self, uint64_t size, uint64_t *address) {
  const HipApi *api = ((HipDevice *)self)->api;
  void *memory = NULL;
  HipPointer seen = NULL;
  HipResult result = api->hipHostMalloc(&memory, size, HIP_HOST_PORTABLE | HIP_HOST_DEVICE_MAP);
  int32_t status = hip_check(api, result, "hipHostMalloc of %" PRIu64 " bytes", size);
  if (status != MB_OK) return status;
  result = api->hipHostGetDevicePointer(&seen, memory, 0);
  if (result == HIP_RESULT_SUCCESS && seen == memory) {
    *address = (uintptr_t)seen;
    return MB_OK;
  }
  status = result == HIP_RESULT_SUCCESS
               ? error_set(MB_UNSUPPORTED, 0,
                           "the device has page-locked memory at other addresses than the "
                           "host: use a device with unified addressing")
               : hip_check(api, result, "hipHostGetDevicePointer");
  api->hipHostFree(memory);
  return status;
}

int32_t hip_pinned_free(void *self, uint64_t address, uint64_t size) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result = api->hipHostFree((void *)(uintptr_t)address);
  return hip_check(api, result, "hipHostFree of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}
