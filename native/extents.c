#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "device.h"

static int32_t create_extent(MbDevice *device, uint64_t size, uint32_t *id) {
  MbExtent *extent = calloc(1, sizeof *extent);
  int32_t status;
  if (!extent) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for an extent's record");
  extent->size = size;
  status = device->backend->extent_create(device->self, size, &extent->handle);
  if (status == MB_OK) {
    pthread_mutex_lock(&device->range_lock);
    status = table_add(&device->extents, extent, id);
    pthread_mutex_unlock(&device->range_lock);
    if (status != MB_OK) {
      MbError error;
      error_save(&error);
      if (device->backend->extent_release(device->self, extent->handle, size) != MB_OK) {
        error_append("; undoing failed too: %" PRIu64 " bytes leaked", size);
      }
      error_restore(&error);
    }
  }
  if (status != MB_OK) free(extent);
  return status;
}

static void forget_extent(MbDevice *device, uint32_t id) {
  pthread_mutex_lock(&device->range_lock);
  free(table_remove(&device->extents, id));
  pthread_mutex_unlock(&device->range_lock);
}

/* Gives back extents that the failing call created, keeping its error. */
static int32_t undo_create(MbDevice *device, uint32_t count, uint32_t *ids) {
  MbError error;
  uint64_t leaked = 0;
  error_save(&error);
  for (uint32_t i = 0; i < count; i++) {
    const MbExtent *extent = table_find(&device->extents, ids[i]);
    if (device->backend->extent_release(device->self, extent->handle, extent->size) != MB_OK) {
      leaked += extent->size;
    }
    forget_extent(device, ids[i]);
    ids[i] = 0;
  }
  error_restore(&error);
  if (leaked) error_append("; undoing failed too: %" PRIu64 " bytes leaked", leaked);
  return error.status;
}

static int32_t create_extents(MbDevice *device, uint32_t count, const double *sizes,
                              uint32_t *ids) {
  uint64_t size;
  int32_t status = MB_OK;
  for (uint32_t i = 0; i < count; i++) {
    status = check_size("an extent's size", sizes[i], device->granularity, &size);
    if (status != MB_OK) return status;
  }
  for (uint32_t i = 0; i < count; i++) {
    status = create_extent(device, (uint64_t)sizes[i], &ids[i]);
    if (status != MB_OK) return undo_create(device, i, ids);
  }
  return MB_OK;
}

int32_t mb_extents_create(uint32_t device, uint32_t count, const double *sizes,
                          uint32_t *extents) {
  MbDevice *d;
  int32_t status = check_count("count", count, CHECK_LARGEST_COUNT);
  if (status == MB_OK) status = check_pointer("sizes", sizes);
  if (status == MB_OK) status = check_pointer("extents", extents);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  return device_leave_vmm(d, create_extents(d, count, sizes, extents));
}

static int32_t check_releasable(const MbDevice *device, uint32_t id, MbExtent **extent) {
  MbExtent *found = table_find(&device->extents, id);
  if (!found) {
    return error_set(MB_BAD_HANDLE, 0, "no extent of this device has the id %" PRIu32, id);
  }
  if (found->mappings) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "extent %" PRIu32 " is still mapped at %" PRIu32 " addresses", id,
                     found->mappings);
  }
  if (found->listed) {
    return error_set(MB_BAD_ARGUMENT, 0, "extent %" PRIu32 " is listed twice", id);
  }
  *extent = found;
  return MB_OK;
}

static int32_t check_all_releasable(MbDevice *device, uint32_t count, const uint32_t *ids) {
  MbExtent *extent = NULL;
  uint32_t checked = 0;
  int32_t status = MB_OK;
  while (checked < count && status == MB_OK) {
    status = check_releasable(device, ids[checked], &extent);
    if (status == MB_OK) {
      extent->listed = true;
      checked++;
    }
  }
  for (uint32_t i = 0; i < checked; i++) {
    extent = table_find(&device->extents, ids[i]);
    extent->listed = false;
  }
  return status;
}

/* Memory behind released extents is gone, and nothing had it mapped: new memory under
 * the old ids is as good. */
static int32_t undo_release(MbDevice *device, uint32_t count, const uint32_t *ids) {
  MbError error;
  uint32_t lost = 0;
  error_save(&error);
  for (uint32_t i = 0; i < count; i++) {
    MbExtent *extent = table_find(&device->extents, ids[i]);
    if (device->backend->extent_create(device->self, extent->size, &extent->handle) != MB_OK) {
      forget_extent(device, ids[i]);
      lost++;
    }
  }
  error_restore(&error);
  if (lost) {
    error_append("; undoing failed too: %" PRIu32 " extents of the call are released", lost);
  }
  return error.status;
}

static int32_t release_extents(MbDevice *device, uint32_t count, const uint32_t *ids) {
  int32_t status = check_all_releasable(device, count, ids);
  if (status != MB_OK) return status;
  for (uint32_t i = 0; i < count; i++) {
    const MbExtent *extent = table_find(&device->extents, ids[i]);
    status = device->backend->extent_release(device->self, extent->handle, extent->size);
    if (status != MB_OK) return undo_release(device, i, ids);
  }
  for (uint32_t i = 0; i < count; i++) forget_extent(device, ids[i]);
  return MB_OK;
}

int32_t mb_extents_release(uint32_t device, uint32_t count, const uint32_t *extents) {
  MbDevice *d;
  int32_t status = check_count("count", count, CHECK_LARGEST_COUNT);
  if (status == MB_OK) status = check_pointer("extents", extents);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  return device_leave_vmm(d, release_extents(d, count, extents));
}
