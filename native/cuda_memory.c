#include <inttypes.h>

#include "cuda.h"

int32_t cuda_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  size_t free_now = 0, total = 0;
  CuResult result = api->cuMemGetInfo(&free_now, &total);
  *free_bytes = free_now;
  *total_bytes = total;
  return cuda_check(api, result, "cuMemGetInfo");
}

/* The driver says "out of memory" or "invalid value" where it means addresses. */
int32_t cuda_reserve(void *self, uint64_t size, uint64_t *address) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemAddressReserve(address, size, 0, 0, 0);
  int32_t status;
  if (result == CU_SUCCESS) return MB_OK;
  status = cuda_check(api, result, "cuMemAddressReserve of %" PRIu64 " bytes", size);
  if (status == MB_LOST) return status;
  return error_set(MB_OUT_OF_ADDRESSES, result, "%s: ask for less", error_last_text());
}

int32_t cuda_unreserve(void *self, uint64_t address, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemAddressFree(address, size);
  return cuda_check(api, result, "cuMemAddressFree of %" PRIu64 " bytes at 0x%" PRIx64, size,
                     address);
}

CuAllocationProperties cuda_extent_properties(CuDevice device) {
  return (CuAllocationProperties){
      .type = CU_ALLOCATION_PINNED,
      .location = {CU_LOCATION_DEVICE, device},
  };
}

int32_t cuda_extent_create(void *self, uint64_t size, uint64_t *handle) {
  const CudaDevice *device = self;
  CuAllocationProperties properties = cuda_extent_properties(device->device);
  CuResult result = device->api->cuMemCreate(handle, size, &properties, 0);
  return cuda_check(device->api, result, "cuMemCreate of %" PRIu64 " bytes", size);
}

int32_t cuda_extent_release(void *self, uint64_t handle, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemRelease(handle);
  return cuda_check(api, result, "cuMemRelease of %" PRIu64 " bytes", size);
}

int32_t cuda_map(void *self, uint64_t address, uint64_t size, uint64_t handle) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemMap(address, size, 0, handle, 0);
  return cuda_check(api, result, "cuMemMap of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

int32_t cuda_set_access(void *self, uint64_t address, uint64_t size, int32_t access) {
  const CudaDevice *device = self;
  CuAccess granted = {{CU_LOCATION_DEVICE, device->device}, access};
  CuResult result = device->api->cuMemSetAccess(address, size, &granted, 1);
  return cuda_check(device->api, result,
                     "cuMemSetAccess to %" PRId32 " of %" PRIu64 " bytes at 0x%" PRIx64, access,
                     size, address);
}

int32_t cuda_unmap(void *self, uint64_t address, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemUnmap(address, size);
  return cuda_check(api, result, "cuMemUnmap of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}
