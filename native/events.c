#include <inttypes.h>

#include "captures.h"
#include "check.h"

int32_t mb_event_create(uint32_t device, int32_t timing, uint32_t *event) {
  MbDevice *d;
  MbObject created = {0};
  int32_t status = check_pointer("event", event);
  if (status == MB_OK && timing != 0 && timing != 1) {
    status = error_set(MB_BAD_ARGUMENT, 0, "timing must be 0 or 1, got %" PRId32, timing);
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  created.timing = timing == 1;
  status = d->backend->event_create(d->self, timing, &created.handle);
  if (status == MB_OK) {
    status = object_add(d, OBJECT_EVENT, created, event);
    if (status != MB_OK) d->backend->event_destroy(d->self, created.handle);
  }
  return device_leave(d, status);
}

int32_t mb_event_destroy(uint32_t device, uint32_t event) {
  MbDevice *d;
  MbObject *claimed;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_claim(d, OBJECT_EVENT, event, &claimed);
  if (status == MB_OK) {
    status = d->backend->event_destroy(d->self, claimed->handle);
    object_end_claim(d, OBJECT_EVENT, event, status == MB_OK);
  }
  return device_leave(d, status);
}

static int32_t pin_event_and_stream(MbDevice *device, uint32_t event, uint32_t stream,
                                    MbObject **pinned_event, MbObject **pinned_stream) {
  int32_t status = object_pin(device, OBJECT_EVENT, event, pinned_event);
  if (status != MB_OK) return status;
  status = stream_pin_uncaptured(device, stream, "an event", pinned_stream);
  if (status != MB_OK) object_unpin(device, *pinned_event);
  return status;
}

int32_t mb_event_record(uint32_t device, uint32_t event, uint32_t stream) {
  MbDevice *d;
  MbObject *e, *s;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = pin_event_and_stream(d, event, stream, &e, &s);
  if (status == MB_OK) {
    status = d->backend->event_record(d->self, e->handle, s->handle);
    if (status == MB_OK) {
      pthread_mutex_lock(&d->object_lock);
      e->recorded = true;
      pthread_mutex_unlock(&d->object_lock);
    }
    object_unpin(d, e);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

int32_t mb_stream_wait(uint32_t device, uint32_t stream, uint32_t event) {
  MbDevice *d;
  MbObject *e, *s;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = pin_event_and_stream(d, event, stream, &e, &s);
  if (status == MB_OK) {
    status = d->backend->stream_wait(d->self, s->handle, e->handle);
    object_unpin(d, e);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

int32_t mb_event_query(uint32_t device, uint32_t event) {
  MbDevice *d;
  MbObject *e;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_EVENT, event, &e);
  if (status == MB_OK) {
    status = d->backend->event_query(d->self, e->handle);
    object_unpin(d, e);
  }
  return device_leave(d, status);
}

int32_t mb_event_synchronize(uint32_t device, uint32_t event) {
  MbDevice *d;
  MbObject *e;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_EVENT, event, &e);
  if (status == MB_OK) {
    status = d->backend->event_synchronize(d->self, e->handle);
    object_unpin(d, e);
  }
  return device_leave(d, status);
}

/* Drivers answer these mistakes each in their own way. */
static int32_t check_timed(MbDevice *device, uint32_t id, const MbObject *event) {
  bool recorded;
  pthread_mutex_lock(&device->object_lock);
  recorded = event->recorded;
  pthread_mutex_unlock(&device->object_lock);
  if (!event->timing) {
    return error_set(MB_BAD_ARGUMENT, 0, "event %" PRIu32 " was created without timing", id);
  }
  if (!recorded) return error_set(MB_BAD_ARGUMENT, 0, "event %" PRIu32 " was never recorded", id);
  return MB_OK;
}

static int32_t event_elapsed(MbDevice *device, uint32_t start, uint32_t end,
                             double *milliseconds) {
  MbObject *s, *e;
  int32_t status = object_pin(device, OBJECT_EVENT, start, &s);
  if (status != MB_OK) return status;
  status = object_pin(device, OBJECT_EVENT, end, &e);
  if (status == MB_OK) {
    status = check_timed(device, start, s);
    if (status == MB_OK) status = check_timed(device, end, e);
    if (status == MB_OK) {
      status = device->backend->event_elapsed(device->self, s->handle, e->handle, milliseconds);
    }
    object_unpin(device, e);
  }
  object_unpin(device, s);
  return status;
}

int32_t mb_event_elapsed(uint32_t device, uint32_t start, uint32_t end, double *milliseconds) {
  MbDevice *d;
  int32_t status = check_pointer("milliseconds", milliseconds);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  return device_leave(d, event_elapsed(d, start, end, milliseconds));
}
