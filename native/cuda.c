#include "cuda.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static int32_t load_initialized(const char *library, const CudaApi **api) {
  int32_t status = cuda_load(library, api);
  if (status != MB_OK) return status;
  return cuda_check(*api, (*api)->initialized, "cuInit");
}

static int32_t count(const char *library, uint32_t *devices) {
  const CudaApi *api;
  int found = 0;
  CuResult result;
  int32_t status = cuda_load(library, &api);
  if (status != MB_OK) return status;
  result = api->initialized;
  if (result == CU_SUCCESS) result = api->cuDeviceGetCount(&found);
  /* A driver without a device is no error to one who counts. */
  if (result == CU_ERROR_NO_DEVICE) {
    result = CU_SUCCESS;
    found = 0;
  }
  *devices = (uint32_t)found;
  return cuda_check(api, result, "counting CUDA devices");
}

static int32_t get_device(const CudaApi *api, uint32_t ordinal, CuDevice *device) {
  CuResult result = CU_ERROR_INVALID_DEVICE;
  if (ordinal <= INT_MAX) result = api->cuDeviceGet(device, (int)ordinal);
  return cuda_check(api, result, "cuDeviceGet of device %" PRIu32, ordinal);
}

static int32_t get_attribute(const CudaApi *api, CuDevice device, int attribute, int *value) {
  CuResult result = api->cuDeviceGetAttribute(value, attribute, device);
  return cuda_check(api, result, "cuDeviceGetAttribute %d", attribute);
}

/* 0 if the device can't map memory at chosen addresses. */
static int32_t get_granularity(const CudaApi *api, CuDevice device, int option,
                               uint64_t *granularity) {
  CuAllocationProperties properties = cuda_extent_properties(device);
  size_t bytes = 0;
  int vmm;
  int32_t status = get_attribute(api, device, CU_ATTRIBUTE_VMM, &vmm);
  if (status == MB_OK && vmm) {
    status = cuda_check(api, api->cuMemGetAllocationGranularity(&bytes, &properties, option),
                         "cuMemGetAllocationGranularity");
    if (status == MB_OK && !bytes) {
      status = error_set(MB_DRIVER, 0, "cuMemGetAllocationGranularity gave 0 bytes");
    }
  }
  *granularity = bytes;
  return status;
}

static int32_t describe_memory(const CudaApi *api, CuDevice device, double *properties) {
  size_t total = 0;
  uint64_t least = 0, advised = 0;
  int32_t status =
      cuda_check(api, api->cuDeviceTotalMem(&total, device), "cuDeviceTotalMem");
  if (status == MB_OK) status = get_granularity(api, device, CU_GRANULARITY_MINIMUM, &least);
  if (status == MB_OK) status = get_granularity(api, device, CU_GRANULARITY_RECOMMENDED, &advised);
  properties[MB_PROP_TOTAL_MEMORY] = (double)total;
  properties[MB_PROP_GRANULARITY] = (double)least;
  properties[MB_PROP_GRANULARITY_ADVISED] = (double)advised;
  return status;
}

static int32_t describe(const char *library, uint32_t ordinal, MbDescription *description) {
  static const struct {
    int attribute;
    MbProperty property;
  } attributes[] = {
      {CU_ATTRIBUTE_VMM, MB_PROP_VMM},     {CU_ATTRIBUTE_MAJOR, MB_PROP_MAJOR},
      {CU_ATTRIBUTE_MINOR, MB_PROP_MINOR}, {CU_ATTRIBUTE_MULTIPROCESSORS, MB_PROP_PROCESSORS},
      {CU_ATTRIBUTE_INTEGRATED, MB_PROP_INTEGRATED},
  };
  double *properties = description->properties;
  const CudaApi *api;
  CuDevice device = 0;
  int value = 0, version = 0;
  int32_t status = load_initialized(library, &api);
  if (status == MB_OK) status = get_device(api, ordinal, &device);
  if (status == MB_OK) {
    status = cuda_check(
        api,
        api->cuDeviceGetName(description->name, (int)sizeof description->name, device),
        "cuDeviceGetName");
  }
  if (status == MB_OK) status = describe_memory(api, device, properties);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes && status == MB_OK; i++) {
    status = get_attribute(api, device, attributes[i].attribute, &value);
    properties[attributes[i].property] = value;
  }
  if (status != MB_OK) return status;
  /* Drivers from before pools don't know the attribute. */
  properties[MB_PROP_POOLS] =
      api->has_pools &&
      api->cuDeviceGetAttribute(&value, CU_ATTRIBUTE_POOLS, device) == CU_SUCCESS && value;
  if (api->cuDriverGetVersion(&version) == CU_SUCCESS) {
    properties[MB_PROP_DRIVER_VERSION] = version;
  }
  description->name[sizeof description->name - 1] = 0;
  snprintf(description->architecture, sizeof description->architecture, "sm_%.0f%.0f",
           properties[MB_PROP_MAJOR], properties[MB_PROP_MINOR]);
  return MB_OK;
}

static int32_t open_context(CudaDevice *device) {
  CuResult result = device->api->cuDevicePrimaryCtxRetain(&device->context, device->device);
  return cuda_check(device->api, result, "cuDevicePrimaryCtxRetain");
}

static int32_t open_device(const char *library, uint32_t ordinal, void **self,
                           uint64_t *granularity) {
  CudaDevice *device = calloc(1, sizeof *device);
  int32_t status;
  if (!device) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a device");
  status = load_initialized(library, &device->api);
  if (status == MB_OK) status = get_device(device->api, ordinal, &device->device);
  if (status == MB_OK) {
    status = get_granularity(device->api, device->device, CU_GRANULARITY_MINIMUM, granularity);
  }
  if (status == MB_OK) status = open_context(device);
  if (status != MB_OK) {
    free(device);
    return status;
  }
  pthread_mutex_init(&device->pool_lock, NULL);
  *self = device;
  return MB_OK;
}

static void close_device(void *self) {
  CudaDevice *device = self;
  if (device->pool) device->api->cuMemPoolDestroy(device->pool);
  device->api->cuDevicePrimaryCtxRelease(device->device);
  pthread_mutex_destroy(&device->pool_lock);
  free(device);
}

/* Always, whatever this thread set before: other libraries change the context too. */
static int32_t enter(void *self) {
  const CudaDevice *device = self;
  return cuda_check(device->api, device->api->cuCtxSetCurrent(device->context),
                     "cuCtxSetCurrent");
}

const MbBackend cuda_backend = {
    .name = "cuda",
    .count = count,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .memory_info = cuda_memory_info,
    .reserve = cuda_reserve,
    .unreserve = cuda_unreserve,
    .extent_create = cuda_extent_create,
    .extent_release = cuda_extent_release,
    .map = cuda_map,
    .set_access = cuda_set_access,
    .unmap = cuda_unmap,
    .default_stream = cuda_default_stream,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_handle = cuda_stream_handle,
    .stream_wait = cuda_stream_wait,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_synchronize = cuda_event_synchronize,
    .event_elapsed = cuda_event_elapsed,
    .staging_alloc = cuda_staging_alloc,
    .staging_free = cuda_staging_free,
    .fill = cuda_fill,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .copy = cuda_copy,
    .pinned_alloc = cuda_pinned_alloc,
    .pinned_free = cuda_pinned_free,
    .capture_begin = cuda_capture_begin,
    .capture_status = cuda_capture_status,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .function = cuda_function,
    .launch = cuda_launch,
    .plain_alloc = cuda_plain_alloc,
    .plain_free = cuda_plain_free,
    .pool_alloc = cuda_pool_alloc,
    .pool_free = cuda_pool_free,
    .pool_trim = cuda_pool_trim,
};
