#include "kernels.h"

#include <inttypes.h>

#include "captures.h"
#include "check.h"

/* Far above any code object, and far below what a copy of it could not hold. */
static const double largest_image = 1 << 30;

int32_t mb_module_load(uint32_t device, const uint8_t *image, double bytes, uint32_t *module) {
  MbDevice *d;
  MbObject loaded = {0};
  uint64_t length;
  int32_t status = check_pointer("image", image);
  if (status == MB_OK) status = check_pointer("module", module);
  if (status == MB_OK) status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK && bytes > largest_image) {
    status = error_set(MB_BAD_ARGUMENT, 0, "an image of %.0f bytes is too large", bytes);
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = d->backend->module_load(d->self, image, (size_t)length, &loaded.handle);
  if (status == MB_OK) {
    status = object_add(d, OBJECT_MODULE, loaded, module);
    if (status != MB_OK) d->backend->module_unload(d->self, loaded.handle);
  }
  return device_leave(d, status);
}

int32_t mb_module_unload(uint32_t device, uint32_t module) {
  MbDevice *d;
  MbObject *claimed;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = captures_hold_off(d, "unloading a module");
  if (status != MB_OK) return device_leave(d, status);
  status = object_claim(d, OBJECT_MODULE, module, &claimed);
  if (status == MB_OK) {
    /* Queued kernels still need their code. */
    status = streams_synchronize(d);
    if (status == MB_OK) status = d->backend->module_unload(d->self, claimed->handle);
    object_end_claim(d, OBJECT_MODULE, module, status == MB_OK);
  }
  captures_let(d);
  return device_leave(d, status);
}

int32_t mb_function(uint32_t device, uint32_t module, const uint8_t *name, uint32_t name_length,
                    uint32_t *function) {
  MbDevice *d;
  MbObject *m, found = {0};
  char copy[1024];
  int32_t status = check_pointer("function", function);
  if (status == MB_OK) status = check_text("name", name, name_length, copy, sizeof copy);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_MODULE, module, &m);
  if (status == MB_OK) {
    found.module = m;
    status = d->backend->function(d->self, m->handle, copy, &found.handle);
    if (status == MB_OK) status = object_add(d, OBJECT_FUNCTION, found, function);
    object_unpin(d, m);
  }
  return device_leave(d, status);
}

int32_t kernels_check_args(const uint8_t *args, uint32_t args_bytes) {
  const uint32_t largest = 4096; /* as every driver takes */
  if (args_bytes > largest) {
    return error_set(MB_BAD_ARGUMENT, 0, "args_bytes must be at most %" PRIu32 ", got %" PRIu32,
                     largest, args_bytes);
  }
  return args_bytes ? check_pointer("args", args) : MB_OK;
}

/* Pins both or neither. */
static int32_t pin_launch(MbDevice *device, uint32_t function, uint32_t stream, MbObject **f,
                          MbObject **s) {
  int32_t status = object_pin(device, OBJECT_FUNCTION, function, f);
  if (status != MB_OK) return status;
  status = object_pin(device, OBJECT_STREAM, stream, s);
  if (status != MB_OK) object_unpin(device, *f);
  return status;
}

/* Limits that all backends share; drivers check their own beyond them. */
static int32_t check_geometry(const MbGeometry *geometry) {
  static const char *const names[] = {"grid_x", "grid_y", "grid_z",
                                      "block_x", "block_y", "block_z"};
  static const uint32_t limits[] = {0x7FFFFFFF, 65535, 65535, 1024, 1024, 64};
  const uint32_t *block = geometry->block;
  for (int i = 0; i < 6; i++) {
    uint32_t count = i < 3 ? geometry->grid[i] : block[i - 3];
    int32_t status = check_count(names[i], count, limits[i]);
    if (status != MB_OK) return status;
  }
  return check_count("threads of a block", block[0] * block[1] * block[2], 1024);
}

int32_t mb_launch(uint32_t device, uint32_t function, uint32_t grid_x, uint32_t grid_y,
                  uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                  uint32_t shared_bytes, uint32_t stream, const uint8_t *args,
                  uint32_t args_bytes) {
  MbDevice *d;
  MbObject *f, *s;
  MbGeometry geometry = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  int32_t status = check_geometry(&geometry);
  if (status == MB_OK) status = kernels_check_args(args, args_bytes);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = pin_launch(d, function, stream, &f, &s);
  if (status == MB_OK) {
    status = capture_hold_module(d, f, s);
    if (status == MB_OK) {
      status = d->backend->launch(d->self, f->handle, &geometry, s->handle, args, args_bytes);
    }
    object_unpin(d, f);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}
