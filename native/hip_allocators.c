/* hipMalloc, and a stream-ordered pool of the device's own. */
#include <inttypes.h>

#include "hip.h"

int32_t hip_plain_alloc(void *self, uint64_t size, uint64_t *address) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipPointer memory = NULL;
  HipResult result = api->hipMalloc(&memory, size);
  *address = (uintptr_t)memory;
  return hip_check(api, result, "hipMalloc of %" PRIu64 " bytes", size);
}

int32_t hip_plain_free(void *self, uint64_t address, uint64_t size) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result = api->hipFree((HipPointer)(uintptr_t)address);
  return hip_check(api, result, "hipFree of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

/* With pool_lock. A pool that keeps all that is freed until it is trimmed. */
static int32_t create_pool(HipDevice *device) {
  HipPoolProperties properties = {
      .type = HIP_ALLOCATION_PINNED,
      .location = {HIP_LOCATION_DEVICE, device->device},
  };
  const HipApi *api = device->api;
  uint64_t kept = UINT64_MAX;
  HipPool pool = NULL;
  HipResult result = api->hipMemPoolCreate(&pool, &properties);
  if (result != HIP_RESULT_SUCCESS) return hip_check(api, result, "hipMemPoolCreate");
  result = api->hipMemPoolSetAttribute(pool, HIP_POOL_RELEASE_THRESHOLD, &kept);
  if (result != HIP_RESULT_SUCCESS) {
    api->hipMemPoolDestroy(pool);
    return hip_check(api, result, "hipMemPoolSetAttribute");
  }
  device->pool = pool;
  return MB_OK;
}

static int32_t get_pool(HipDevice *device, HipPool *pool) {
  int32_t status = MB_OK;
  if (!device->api->has_pools) {
    return error_set(MB_UNSUPPORTED, 0, "the HIP runtime has no stream-ordered pools");
  }
  pthread_mutex_lock(&device->pool_lock);
  if (!device->pool) status = create_pool(device);
  *pool = device->pool;
  pthread_mutex_unlock(&device->pool_lock);
  return status;
}

int32_t hip_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address) {
  HipDevice *device = self;
  HipPool pool;
  HipPointer memory = NULL;
  HipResult result;
  int32_t status = get_pool(device, &pool);
  if (status != MB_OK) return status;
  result = device->api->hipMallocFromPoolAsync(&memory, size, pool, stream);
  *address = (uintptr_t)memory;
  return hip_check(device->api, result, "hipMallocFromPoolAsync of %" PRIu64 " bytes", size);
}

int32_t hip_pool_free(void *self, uint64_t address, uint64_t size, void *stream) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result = api->hipFreeAsync((HipPointer)(uintptr_t)address, stream);
  return hip_check(api, result, "hipFreeAsync of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

int32_t hip_pool_trim(void *self) {
  HipDevice *device = self;
  HipPool pool;
  int32_t status = get_pool(device, &pool);
  if (status != MB_OK) return status;
  return hip_check(device->api, device->api->hipMemPoolTrimTo(pool, 0), "hipMemPoolTrimTo");
}
