#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>

#include "captures.h"
#include "check.h"
#include "forks.h"

static struct {
  pthread_mutex_t lock;
  pthread_cond_t left; /* the last call of a closing device has returned */
  MbTable devices;
} registry = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}};

static int32_t unknown_device(uint32_t id) {
  return error_set(MB_BAD_HANDLE, 0, "no open device has the id %" PRIu32, id);
}

int32_t device_enter(uint32_t id, MbDevice **device) {
  MbDevice *found;
  int32_t status = forks_check();
  if (status != MB_OK) return status;
  pthread_mutex_lock(&registry.lock);
  found = table_find(&registry.devices, id);
  if (found) found->calls_in_flight++;
  pthread_mutex_unlock(&registry.lock);
  if (!found) return unknown_device(id);
  status = atomic_load(&found->lost) ? error_restore(&found->lost_error)
                                     : found->backend->enter(found->self);
  if (status != MB_OK) return device_leave(found, status);
  *device = found;
  return MB_OK;
}

static void note_lost(MbDevice *device) {
  pthread_mutex_lock(&device->lost_lock);
  if (!atomic_load(&device->lost)) {
    error_save(&device->lost_error);
    atomic_store(&device->lost, true);
  }
  pthread_mutex_unlock(&device->lost_lock);
}

int32_t device_leave(MbDevice *device, int32_t status) {
  if (status == MB_LOST) note_lost(device);
  pthread_mutex_lock(&registry.lock);
  if (--device->calls_in_flight == 0 && device->closing) pthread_cond_broadcast(&registry.left);
  pthread_mutex_unlock(&registry.lock);
  return status;
}

int32_t device_enter_vmm(uint32_t id, MbDevice **device) {
  int32_t status = device_enter(id, device);
  if (status != MB_OK) return status;
  if (!(*device)->granularity) {
    status = error_set(MB_UNSUPPORTED, 0,
                       "the device or its driver can't map memory at chosen addresses");
    return device_leave(*device, status);
  }
  pthread_mutex_lock(&(*device)->vmm_lock);
  return MB_OK;
}

int32_t device_leave_vmm(MbDevice *device, int32_t status) {
  pthread_mutex_unlock(&device->vmm_lock);
  return device_leave(device, status);
}

/* A host that unloads this library while stream threads still run in it would crash. */
static void stay_loaded(void) {
  Dl_info info;
  if (dladdr(&registry, &info) && info.dli_fname) {
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

static void free_device(MbDevice *device) {
  pthread_mutex_destroy(&device->lost_lock);
  pthread_mutex_destroy(&device->vmm_lock);
  pthread_mutex_destroy(&device->range_lock);
  pthread_cond_destroy(&device->pinned_unused);
  pthread_mutex_destroy(&device->object_lock);
  pthread_cond_destroy(&device->object_unpinned);
  staging_destroy(&device->staging);
  table_free(&device->extents);
  table_free(&device->streams);
  table_free(&device->events);
  table_free(&device->modules);
  table_free(&device->functions);
  table_free(&device->graphs);
  free(device);
}

static int32_t open_device(const MbBackend *backend, const char *library, uint32_t ordinal,
                           uint32_t *id) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  MbDevice *device = calloc(1, sizeof *device);
  int32_t status;
  if (!device) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a device");
  pthread_once(&once, stay_loaded);
  pthread_mutex_init(&device->lost_lock, NULL);
  pthread_mutex_init(&device->vmm_lock, NULL);
  pthread_mutex_init(&device->range_lock, NULL);
  pthread_cond_init(&device->pinned_unused, NULL);
  pthread_mutex_init(&device->object_lock, NULL);
  pthread_cond_init(&device->object_unpinned, NULL);
  staging_init(&device->staging);
  device->backend = backend;
  status = backend->open(library, ordinal, &device->self, &device->granularity);
  if (status == MB_OK) {
    device->default_stream.handle = backend->default_stream(device->self);
    pthread_mutex_lock(&registry.lock);
    status = table_add(&registry.devices, device, id);
    pthread_mutex_unlock(&registry.lock);
    if (status != MB_OK) {
      MbError error;
      error_save(&error);
      backend->close(device->self);
      error_restore(&error);
    }
  }
  if (status != MB_OK) free_device(device);
  return status;
}

int32_t mb_open(int32_t backend, const uint8_t *library, uint32_t library_length,
                uint32_t ordinal, uint32_t *device) {
  char copy[BACKEND_LIBRARY_CAPACITY];
  const char *path;
  const MbBackend *found;
  int32_t status = check_pointer("device", device);
  if (status == MB_OK) status = backend_library(library, library_length, copy, &path);
  if (status == MB_OK) status = backend_find(backend, &found);
  if (status == MB_OK) status = open_device(found, path, ordinal, device);
  return status;
}

static void release_extents(MbDevice *device) {
  uint32_t id;
  while ((id = table_next(&device->extents, 0)) != 0) {
    MbExtent *extent = table_remove(&device->extents, id);
    device->backend->extent_release(device->self, extent->handle, extent->size);
    free(extent);
  }
}

static void free_allocation(MbDevice *device, const Allocation *allocation) {
  const MbBackend *backend = device->backend;
  switch (allocation->kind) {
    case ALLOCATION_PLAIN:
      backend->plain_free(device->self, allocation->address, allocation->size);
      break;
    case ALLOCATION_POOL:
      backend->pool_free(device->self, allocation->address, allocation->size,
                         device->default_stream.handle);
      break;
    case ALLOCATION_PINNED:
      backend->pinned_free(device->self, allocation->address, allocation->size);
      break;
    case ALLOCATION_WRAPPED:
      break;
  }
}

static void free_allocations(MbDevice *device) {
  Allocation *allocation;
  while ((allocation = device->allocations.root) != NULL) {
    allocations_remove(&device->allocations, allocation->kind, allocation->address);
    free_allocation(device, allocation);
    free(allocation);
  }
}

/* Nobody else is in the device any more. Goes on whatever the driver says: on a lost
 * context it refuses everything. */
static void release_all(MbDevice *device) {
  const MbBackend *backend = device->backend;
  MbObject object;
  backend->enter(device->self);
  captures_abandon_all(device);
  streams_synchronize(device);
  while (object_remove_any(device, OBJECT_GRAPH, &object)) {
    backend->graph_destroy(device->self, object.handle);
    held_modules_release(device, &object.held);
  }
  staging_close(device);
  free_allocations(device);
  reservations_close(device);
  release_extents(device);
  while (object_remove_any(device, OBJECT_MODULE, &object)) {
    backend->module_unload(device->self, object.handle);
  }
  while (object_remove_any(device, OBJECT_EVENT, &object)) {
    backend->event_destroy(device->self, object.handle);
  }
  while (object_remove_any(device, OBJECT_STREAM, &object)) {
    backend->stream_destroy(device->self, object.handle);
  }
  backend->close(device->self);
}

int32_t mb_close(uint32_t device) {
  MbDevice *d;
  MbError error;
  /* What a forked child sees is its parent's. */
  if (forks_check() != MB_OK) return MB_OK;
  pthread_mutex_lock(&registry.lock);
  d = table_remove(&registry.devices, device);
  if (d) {
    d->closing = true;
    while (d->calls_in_flight) pthread_cond_wait(&registry.left, &registry.lock);
  }
  pthread_mutex_unlock(&registry.lock);
  if (!d) return unknown_device(device);
  error_save(&error);
  release_all(d);
  error_restore(&error);
  free_device(d);
  return MB_OK;
}

int32_t mb_memory_info(uint32_t device, double *free_and_total) {
  MbDevice *d;
  uint64_t free_bytes, total_bytes;
  int32_t status = check_pointer("free_and_total", free_and_total);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = d->backend->memory_info(d->self, &free_bytes, &total_bytes);
  if (status == MB_OK) {
    free_and_total[0] = (double)free_bytes;
    free_and_total[1] = (double)total_bytes;
  }
  return device_leave(d, status);
}

int32_t mb_synchronize(uint32_t device) {
  MbDevice *d;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = captures_hold_off(d, "synchronizing");
  if (status != MB_OK) return device_leave(d, status);
  status = streams_synchronize(d);
  captures_let(d);
  return device_leave(d, status);
}
