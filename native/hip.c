#define _GNU_SOURCE
#include "hip.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Why the runtime sees no device, as far as the system tells, and what to do. */
static const char *advice(void) {
  static const char kernel_driver[] = "/dev/kfd";
  if (access(kernel_driver, F_OK) != 0) {
    return "there is no /dev/kfd: load the amdgpu kernel driver, or use a machine with an AMD "
           "GPU that ROCm supports";
  }
  if (access(kernel_driver, R_OK | W_OK) != 0) {
    return "/dev/kfd may not be opened: add the user to the groups \"render\" and \"video\"";
  }
  return "look whether ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES hides it, and whether "
         "rocminfo shows it";
}

static bool means_no_device(HipResult result) {
  /* hipInit gives the second where hipGetDeviceCount gives the first. */
  return result == HIP_RESULT_NO_DEVICE || result == HIP_RESULT_INVALID_DEVICE;
}

static int32_t load_initialized(const char *library, const HipApi **api) {
  int32_t status = hip_load(library, api);
  if (status != MB_OK) return status;
  status = hip_check(*api, (*api)->initialized, "hipInit");
  if (means_no_device((*api)->initialized)) {
    return error_set(MB_NO_DEVICE, (*api)->initialized, "no AMD device: %s: %s",
                     error_last_text(), advice());
  }
  return status;
}

static int32_t count(const char *library, uint32_t *devices) {
  const HipApi *api;
  int found = 0;
  HipResult result;
  int32_t status = load_initialized(library, &api);
  if (status != MB_OK) return status;
  result = api->hipGetDeviceCount(&found);
  if (means_no_device(result)) {
    return error_set(MB_NO_DEVICE, result, "no AMD device: %s", advice());
  }
  *devices = (uint32_t)found;
  return hip_check(api, result, "hipGetDeviceCount");
}

/* Finds the device and makes it the calling thread's. */
static int32_t select_device(const HipApi *api, uint32_t ordinal, HipDeviceId *device) {
  HipResult result = HIP_RESULT_INVALID_DEVICE;
  int32_t status;
  if (ordinal <= INT_MAX) result = api->hipDeviceGet(device, (int)ordinal);
  status = hip_check(api, result, "hipDeviceGet of device %" PRIu32, ordinal);
  if (status != MB_OK) return status;
  return hip_check(api, api->hipSetDevice(*device), "hipSetDevice of %d", *device);
}

static int32_t get_attribute(const HipApi *api, HipDeviceId device, int attribute, int *value) {
  HipResult result = api->hipDeviceGetAttribute(value, attribute, device);
  return hip_check(api, result, "hipDeviceGetAttribute %d", attribute);
}

/* Such as gfx90a; the driver appends features, such as ":sramecc+:xnack-". */
static int32_t get_architecture(const HipApi *api, HipDeviceId device, char *architecture,
                                size_t capacity) {
  _Alignas(16) char properties[HIP_PROPERTIES_ROOM] = {0};
  const bool is_r0600 = api->hipGetDevicePropertiesR0600 != NULL;
  const char *full =
      properties + (is_r0600 ? HIP_R0600_ARCHITECTURE_AT : HIP_R0000_ARCHITECTURE_AT);
  HipResult result = is_r0600 ? api->hipGetDevicePropertiesR0600(properties, device)
                              : api->hipGetDeviceProperties(properties, device);
  size_t length = strnlen(full, HIP_ARCHITECTURE_BYTES);
  const char *features = memchr(full, ':', length);
  if (features) length = (size_t)(features - full);
  snprintf(architecture, capacity, "%.*s", (int)length, full);
  return hip_check(api, result, "hipGetDeviceProperties");
}

static int32_t describe_memory(const HipApi *api, HipDeviceId device,
                               MbDescription *description) {
  double *properties = description->properties;
  uint64_t granularity = 0;
  size_t total = 0;
  int32_t status = hip_check(api, api->hipDeviceTotalMem(&total, device), "hipDeviceTotalMem");
  if (status == MB_OK) {
    status = hip_find_granularity(api, device, &granularity, description->limits,
                                  sizeof description->limits);
  }
  properties[MB_PROP_TOTAL_MEMORY] = (double)total;
  properties[MB_PROP_GRANULARITY] = (double)granularity;
  properties[MB_PROP_GRANULARITY_ADVISED] = (double)granularity;
  properties[MB_PROP_VMM] = granularity != 0;
  properties[MB_PROP_EXTENT_LIMIT] = hip_most_handles();
  return status;
}

static int32_t describe(const char *library, uint32_t ordinal, MbDescription *description) {
  double *properties = description->properties;
  const HipApi *api;
  HipDeviceId device = 0;
  int processors = 0, integrated = 0, pools = 0, version = 0;
  int32_t status = load_initialized(library, &api);
  if (status == MB_OK) status = select_device(api, ordinal, &device);
  if (status == MB_OK) {
    status = hip_check(
        api, api->hipDeviceGetName(description->name, (int)sizeof description->name, device),
        "hipDeviceGetName");
  }
  if (status == MB_OK) {
    status = get_architecture(api, device, description->architecture,
                              sizeof description->architecture);
  }
  if (status == MB_OK) status = describe_memory(api, device, description);
  if (status == MB_OK) {
    status = get_attribute(api, device, HIP_ATTRIBUTE_MULTIPROCESSORS, &processors);
  }
  if (status == MB_OK) {
    status = get_attribute(api, device, HIP_ATTRIBUTE_INTEGRATED, &integrated);
  }
  if (status != MB_OK) return status;
  description->name[sizeof description->name - 1] = 0;
  properties[MB_PROP_PROCESSORS] = processors;
  properties[MB_PROP_INTEGRATED] = integrated;
  /* Versions from before pools don't know the attribute. */
  properties[MB_PROP_POOLS] =
      api->has_pools &&
      api->hipDeviceGetAttribute(&pools, HIP_ATTRIBUTE_POOLS, device) == HIP_RESULT_SUCCESS &&
      pools;
  if (api->hipRuntimeGetVersion(&version) == HIP_RESULT_SUCCESS) {
    properties[MB_PROP_DRIVER_VERSION] = version;
  }
  return MB_OK;
}

/* On RDNA 4 a map may return up to 2 ms before the device sees the mapping
 * (ROCm/rocm-systems#11693). */
static uint32_t settle_ms_of(const char *architecture) {
  static const struct {
    const char *prefix;
    uint32_t ms;
  } late[] = {{"gfx12", 2}};
  for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
    if (strncmp(architecture, late[i].prefix, strlen(late[i].prefix)) == 0) return late[i].ms;
  }
  return 0;
}

static int32_t find_out(HipDevice *device) {
  char architecture[HIP_ARCHITECTURE_BYTES], why[512];
  int32_t status =
      get_architecture(device->api, device->device, architecture, sizeof architecture);
  if (status != MB_OK) return status;
  device->settle_ms = settle_ms_of(architecture);
  device->most_handles = hip_most_handles();
  return hip_find_granularity(device->api, device->device, &device->granularity, why,
                              sizeof why);
}

static int32_t open_device(const char *library, uint32_t ordinal, void **self,
                           uint64_t *granularity) {
  HipDevice *device = calloc(1, sizeof *device);
  int32_t status;
  if (!device) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a device");
  status = load_initialized(library, &device->api);
  if (status == MB_OK) status = select_device(device->api, ordinal, &device->device);
  if (status == MB_OK) status = find_out(device);
  if (status != MB_OK) {
    free(device);
    return status;
  }
  pthread_mutex_init(&device->pool_lock, NULL);
  *granularity = device->granularity;
  *self = device;
  return MB_OK;
}

static void close_device(void *self) {
  HipDevice *device = self;
  if (device->pool) device->api->hipMemPoolDestroy(device->pool);
  while (device->shifted) {
    HipShifted *shifted = device->shifted;
    device->shifted = shifted->next;
    free(shifted);
  }
  pthread_mutex_destroy(&device->pool_lock);
  free(device);
}

/* Always, whatever this thread set before: other libraries change the device too. */
static int32_t enter(void *self) {
  const HipDevice *device = self;
  return hip_check(device->api, device->api->hipSetDevice(device->device), "hipSetDevice");
}

const MbBackend hip_backend = {
    .name = "hip",
    .single_mappings = true,
    .count = count,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .memory_info = hip_memory_info,
    .reserve = hip_reserve,
    .unreserve = hip_unreserve,
    .extent_create = hip_extent_create,
    .extent_release = hip_extent_release,
    .map = hip_map,
    .set_access = hip_set_access,
    .settle = hip_settle,
    .unmap = hip_unmap,
    .default_stream = hip_default_stream,
    .stream_create = hip_stream_create,
    .stream_destroy = hip_stream_destroy,
    .stream_synchronize = hip_stream_synchronize,
    .stream_handle = hip_stream_handle,
    .stream_wait = hip_stream_wait,
    .event_create = hip_event_create,
    .event_destroy = hip_event_destroy,
    .event_record = hip_event_record,
    .event_query = hip_event_query,
    .event_synchronize = hip_event_synchronize,
    .event_elapsed = hip_event_elapsed,
    .staging_alloc = hip_staging_alloc,
    .staging_free = hip_staging_free,
    .fill = hip_fill,
    .copy_in = hip_copy_in,
    .copy_out = hip_copy_out,
    .copy = hip_copy,
    .pinned_alloc = hip_pinned_alloc,
    .pinned_free = hip_pinned_free,
    .capture_begin = hip_capture_begin,
    .capture_status = hip_capture_status,
    .capture_end = hip_capture_end,
    .graph_launch = hip_graph_launch,
    .graph_destroy = hip_graph_destroy,
    .module_load = hip_module_load,
    .module_unload = hip_module_unload,
    .function = hip_function,
    .launch = hip_launch,
    .plain_alloc = hip_plain_alloc,
    .plain_free = hip_plain_free,
    .pool_alloc = hip_pool_alloc,
    .pool_free = hip_pool_free,
    .pool_trim = hip_pool_trim,
};
