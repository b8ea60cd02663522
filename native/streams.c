#include "captures.h"
#include "check.h"

int32_t streams_synchronize(MbDevice *device) {
  const MbBackend *backend = device->backend;
  int32_t status = backend->stream_synchronize(device->self, device->default_stream.handle);
  uint32_t id = 0;
  MbObject *stream;
  while (status == MB_OK && (stream = object_pin_next(device, OBJECT_STREAM, &id)) != NULL) {
    status = backend->stream_synchronize(device->self, stream->handle);
    object_unpin(device, stream);
  }
  return status;
}

int32_t mb_stream_create(uint32_t device, uint32_t *stream) {
  MbDevice *d;
  MbObject created = {0};
  int32_t status = check_pointer("stream", stream);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = d->backend->stream_create(d->self, &created.handle);
  if (status == MB_OK) {
    status = object_add(d, OBJECT_STREAM, created, stream);
    if (status != MB_OK) d->backend->stream_destroy(d->self, created.handle);
  }
  return device_leave(d, status);
}

int32_t mb_stream_destroy(uint32_t device, uint32_t stream) {
  MbDevice *d;
  MbObject *claimed;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  if (stream == 0) {
    status = error_set(MB_BAD_ARGUMENT, 0, "the default stream can't be destroyed");
  } else {
    status = object_claim(d, OBJECT_STREAM, stream, &claimed);
  }
  if (status == MB_OK) {
    capture_abandon(d, claimed);
    /* The vendor's destroy returns at once and lets the work run on. */
    status = d->backend->stream_synchronize(d->self, claimed->handle);
    if (status == MB_OK) status = d->backend->stream_destroy(d->self, claimed->handle);
    object_end_claim(d, OBJECT_STREAM, stream, status == MB_OK);
  }
  return device_leave(d, status);
}

int32_t mb_stream_synchronize(uint32_t device, uint32_t stream) {
  MbDevice *d;
  MbObject *pinned;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = stream_pin_uncaptured(d, stream, "a wait of the host's", &pinned);
  if (status == MB_OK) {
    status = d->backend->stream_synchronize(d->self, pinned->handle);
    object_unpin(d, pinned);
  }
  return device_leave(d, status);
}

int32_t mb_stream_handle(uint32_t device, uint32_t stream, uint64_t *handle) {
  MbDevice *d;
  MbObject *pinned;
  int32_t status = check_pointer("handle", handle);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_STREAM, stream, &pinned);
  if (status == MB_OK) {
    *handle = d->backend->stream_handle(d->self, pinned->handle);
    object_unpin(d, pinned);
  }
  return device_leave(d, status);
}
