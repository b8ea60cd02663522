#include <inttypes.h>

#include "cuda.h"

int32_t cuda_pinned_alloc(void *self, uint64_t size, uint64_t *address) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  void *memory = NULL;
  CuPointer seen = 0;
  CuResult result = api->cuMemHostAlloc(&memory, size, CU_HOST_PORTABLE | CU_HOST_DEVICE_MAP);
  int32_t status = cuda_check(api, result, "cuMemHostAlloc of %" PRIu64 " bytes", size);
  if (status != MB_OK) return status;
  result = api->cuMemHostGetDevicePointer(&seen, memory, 0);
  if (result == CU_SUCCESS && seen == (uintptr_t)memory) {
    *address = seen;
    return MB_OK;
  }
  status = result == CU_SUCCESS
               ? error_set(MB_UNSUPPORTED, 0,
                           "the device has page-locked memory at other addresses than the "
                           "host: use a device with unified addressing")
               : cuda_check(api, result, "cuMemHostGetDevicePointer");
  api->cuMemFreeHost(memory);
  return status;
}

int32_t cuda_pinned_free(void *self, uint64_t address, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemFreeHost((void *)(uintptr_t)address);
  return cuda_check(api, result, "cuMemFreeHost of %" PRIu64 " bytes at 0x%" PRIx64, size,
                    address);
}
