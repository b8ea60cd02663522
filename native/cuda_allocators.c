/* cuMemAlloc, and a stream-ordered pool of the device's own. */
#include <inttypes.h>

#include "cuda.h"

int32_t cuda_plain_alloc(void *self, uint64_t size, uint64_t *address) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemAlloc(address, size);
  return cuda_check(api, result, "cuMemAlloc of %" PRIu64 " bytes", size);
}

int32_t cuda_plain_free(void *self, uint64_t address, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemFree(address);
  return cuda_check(api, result, "cuMemFree of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

/* With pool_lock. A pool that keeps all that is freed until it is trimmed. */
static int32_t create_pool(CudaDevice *device) {
  CuPoolProperties properties = {
      .type = CU_ALLOCATION_PINNED,
      .location = {CU_LOCATION_DEVICE, device->device},
  };
  const CudaApi *api = device->api;
  uint64_t kept = UINT64_MAX;
  CuPool pool;
  CuResult result = api->cuMemPoolCreate(&pool, &properties);
  if (result != CU_SUCCESS) return cuda_check(api, result, "cuMemPoolCreate");
  result = api->cuMemPoolSetAttribute(pool, CU_POOL_RELEASE_THRESHOLD, &kept);
  if (result != CU_SUCCESS) {
    api->cuMemPoolDestroy(pool);
    return cuda_check(api, result, "cuMemPoolSetAttribute");
  }
  device->pool = pool;
  return MB_OK;
}

static int32_t get_pool(CudaDevice *device, CuPool *pool) {
  int32_t status = MB_OK;
  if (!device->api->has_pools) {
    return error_set(MB_UNSUPPORTED, 0, "the driver has no stream-ordered pools");
  }
  pthread_mutex_lock(&device->pool_lock);
  if (!device->pool) status = create_pool(device);
  *pool = device->pool;
  pthread_mutex_unlock(&device->pool_lock);
  return status;
}

int32_t cuda_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address) {
  CudaDevice *device = self;
  CuPool pool;
  CuResult result;
  int32_t status = get_pool(device, &pool);
  if (status != MB_OK) return status;
  result = device->api->cuMemAllocFromPoolAsync(address, size, pool, stream);
  return cuda_check(device->api, result, "cuMemAllocFromPoolAsync of %" PRIu64 " bytes", size);
}

int32_t cuda_pool_free(void *self, uint64_t address, uint64_t size, void *stream) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemFreeAsync(address, stream);
  return cuda_check(api, result, "cuMemFreeAsync of %" PRIu64 " bytes at 0x%" PRIx64, size,
                     address);
}

int32_t cuda_pool_trim(void *self) {
  CudaDevice *device = self;
  CuPool pool;
  int32_t status = get_pool(device, &pool);
  if (status != MB_OK) return status;
  return cuda_check(device->api, device->api->cuMemPoolTrimTo(pool, 0), "cuMemPoolTrimTo");
}
