#include "host.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Large enough to go with a GPU's, so that the same sizes are right on both. */
static const uint64_t granularity = 2 << 20;

static int32_t count(const char *library, uint32_t *devices) {
  (void)library;
  *devices = 1;
  return MB_OK;
}

static int32_t check_ordinal(uint32_t ordinal) {
  if (ordinal == 0) return MB_OK;
  return error_set(MB_NO_DEVICE, 0, "the host backend has one device, 0, not %" PRIu32, ordinal);
}

/* The processor's name as /proc/cpuinfo tells it; not all architectures do. */
static void processor_name(char *name, size_t capacity) {
  FILE *file = fopen("/proc/cpuinfo", "re");
  char line[512];
  snprintf(name, capacity, "host");
  if (!file) return;
  while (fgets(line, sizeof line, file)) {
    const char *value = strchr(line, ':');
    if (value && strncmp(line, "model name", 10) == 0) {
      value += strspn(value, ": ");
      snprintf(name, capacity, "%.*s", (int)strcspn(value, "\n"), value);
      break;
    }
  }
  fclose(file);
}

static int32_t describe(const char *library, uint32_t ordinal, MbDescription *description) {
  struct utsname system;
  double *properties = description->properties;
  int32_t status = check_ordinal(ordinal);
  (void)library;
  if (status != MB_OK) return status;
  properties[MB_PROP_TOTAL_MEMORY] = (double)host_meminfo("MemTotal:");
  properties[MB_PROP_GRANULARITY] = (double)granularity;
  properties[MB_PROP_GRANULARITY_ADVISED] = (double)granularity;
  properties[MB_PROP_VMM] = 1;
  properties[MB_PROP_POOLS] = 1;
  properties[MB_PROP_PROCESSORS] = (double)sysconf(_SC_NPROCESSORS_ONLN);
  properties[MB_PROP_INTEGRATED] = 1;
  processor_name(description->name, sizeof description->name);
  if (uname(&system) == 0) {
    snprintf(description->architecture, sizeof description->architecture, "%.*s",
             (int)sizeof description->architecture - 1, system.machine);
  }
  return MB_OK;
}

static int32_t open_device(const char *library, uint32_t ordinal, void **self,
                           uint64_t *granularity_out) {
  HostDevice *device;
  int32_t status = check_ordinal(ordinal);
  (void)library;
  if (status != MB_OK) return status;
  device = calloc(1, sizeof *device);
  if (!device) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a device");
  status = host_memory_open(device);
  if (status != MB_OK) {
    free(device);
    return status;
  }
  host_streams_open(device);
  *self = device;
  *granularity_out = granularity;
  return MB_OK;
}

static void close_device(void *self) {
  HostDevice *device = self;
  host_pool_trim(device);
  host_streams_close(device);
  host_memory_close(device);
  free(device);
}

static int32_t enter(void *self) {
  (void)self;
  return MB_OK;
}

const MbBackend host_backend = {
    .name = "host",
    .count = count,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .memory_info = host_memory_info,
    .reserve = host_reserve,
    .unreserve = host_unreserve,
    .extent_create = host_extent_create,
    .extent_release = host_extent_release,
    .map = host_map,
    .set_access = host_set_access,
    .unmap = host_unmap,
    .default_stream = host_default_stream,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_synchronize = host_stream_synchronize,
    .stream_handle = host_stream_handle,
    .stream_wait = host_stream_wait,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_query = host_event_query,
    .event_synchronize = host_event_synchronize,
    .event_elapsed = host_event_elapsed,
    .staging_alloc = host_staging_alloc,
    .staging_free = host_staging_free,
    .fill = host_fill,
    .copy_in = host_copy_in,
    .copy_out = host_copy_out,
    .copy = host_copy,
    /* The device is the host: all of its memory can be used by both. */
    .pinned_alloc = host_plain_alloc,
    .pinned_free = host_plain_free,
    .capture_begin = host_capture_begin,
    .capture_status = host_capture_status,
    .capture_end = host_capture_end,
    .graph_launch = host_graph_launch,
    .graph_destroy = host_graph_destroy,
    .module_load = host_module_load,
    .module_unload = host_module_unload,
    .function = host_function,
    .launch = host_launch,
    .plain_alloc = host_plain_alloc,
    .plain_free = host_plain_free,
    .pool_alloc = host_pool_alloc,
    .pool_free = host_pool_free,
    .pool_trim = host_pool_trim,
};
