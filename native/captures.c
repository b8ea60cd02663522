#include "captures.h"

#include <inttypes.h>
#include <stdlib.h>

#include "check.h"

int32_t stream_pin_uncaptured(MbDevice *device, uint32_t stream, const char *what,
                              MbObject **pinned) {
  CaptureState state;
  int32_t status = object_pin(device, OBJECT_STREAM, stream, pinned);
  if (status != MB_OK) return status;
  pthread_mutex_lock(&device->object_lock);
  state = (*pinned)->capture;
  pthread_mutex_unlock(&device->object_lock);
  if (state == CAPTURE_NONE) return MB_OK;
  object_unpin(device, *pinned);
  return error_set(MB_BAD_ARGUMENT, 0,
                   "stream %" PRIu32 " is capturing, and a graph can't hold %s: end the "
                   "capture first or use another stream",
                   stream, what);
}

int32_t captures_hold_off(MbDevice *device, const char *what) {
  uint32_t captures;
  pthread_mutex_lock(&device->object_lock);
  captures = device->captures;
  if (captures == 0) device->waits++;
  pthread_mutex_unlock(&device->object_lock);
  if (captures == 0) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0,
                   "%s waits for all streams, and some are capturing (%" PRIu32
                   "): end the captures first",
                   what, captures);
}

void captures_let(MbDevice *device) {
  pthread_mutex_lock(&device->object_lock);
  if (--device->waits == 0) pthread_cond_broadcast(&device->object_unpinned);
  pthread_mutex_unlock(&device->object_lock);
}

/* With object_lock. */
static int32_t hold_locked(HeldModules *held, MbObject *module) {
  for (uint32_t i = 0; i < held->count; i++) {
    if (held->items[i] == module) return MB_OK;
  }
  if (module->claimed) {
    return error_set(MB_BAD_HANDLE, 0, "the kernel's module is being unloaded");
  }
  if (held->count == held->capacity) {
    uint32_t capacity = held->capacity ? held->capacity * 2 : 4;
    MbObject **items = realloc(held->items, capacity * sizeof *items);
    if (!items) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory to capture a launch");
    held->items = items;
    held->capacity = capacity;
  }
  held->items[held->count++] = module;
  module->holders++;
  return MB_OK;
}

int32_t capture_hold_module(MbDevice *device, const MbObject *function, MbObject *stream) {
  int32_t status = MB_OK;
  pthread_mutex_lock(&device->object_lock);
  if (stream->capture == CAPTURE_ACTIVE) {
    status = hold_locked(&stream->held, function->module);
  } else if (stream->capture == CAPTURE_CHANGING) {
    status = error_set(MB_BAD_ARGUMENT, 0,
                       "another thread begins or ends a capture of the stream: launch after it");
  }
  pthread_mutex_unlock(&device->object_lock);
  return status;
}

void held_modules_release(MbDevice *device, HeldModules *held) {
  pthread_mutex_lock(&device->object_lock);
  for (uint32_t i = 0; i < held->count; i++) held->items[i]->holders--;
  pthread_mutex_unlock(&device->object_lock);
  free(held->items);
  *held = (HeldModules){0};
}

/* Of callers at the same time one gets true, once nobody else uses the stream. */
static bool start_change(MbDevice *device, MbObject *stream, CaptureState from) {
  bool started;
  pthread_mutex_lock(&device->object_lock);
  while (from == CAPTURE_NONE && device->waits) {
    pthread_cond_wait(&device->object_unpinned, &device->object_lock);
  }
  started = stream->capture == from;
  if (started) {
    stream->capture = CAPTURE_CHANGING;
    if (from == CAPTURE_NONE) device->captures++;
  }
  while (started && stream->pins > 1) {
    pthread_cond_wait(&device->object_unpinned, &device->object_lock);
  }
  pthread_mutex_unlock(&device->object_lock);
  return started;
}

static void finish_change(MbDevice *device, MbObject *stream, CaptureState to) {
  pthread_mutex_lock(&device->object_lock);
  stream->capture = to;
  if (to == CAPTURE_NONE) device->captures--;
  pthread_mutex_unlock(&device->object_lock);
}

int32_t mb_capture_begin(uint32_t device, uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  if (stream == 0) {
    status = error_set(MB_BAD_ARGUMENT, 0,
                       "the default stream can't capture: create a stream for it");
    return device_leave(d, status);
  }
  status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status != MB_OK) return device_leave(d, status);
  if (start_change(d, s, CAPTURE_NONE)) {
    status = d->backend->capture_begin(d->self, s->handle);
    finish_change(d, s, status == MB_OK ? CAPTURE_ACTIVE : CAPTURE_NONE);
  } else {
    status = error_set(MB_BAD_ARGUMENT, 0,
                       "stream %" PRIu32 " is capturing already: end that capture first", stream);
  }
  object_unpin(d, s);
  return device_leave(d, status);
}

/* Whether the driver goes on capturing: ending it failed before it had begun. */
static bool is_still_capturing(MbDevice *device, const MbObject *stream) {
  MbError error;
  bool capturing = false;
  error_save(&error);
  if (device->backend->capture_status(device->self, stream->handle, &capturing) != MB_OK) {
    capturing = false;
  }
  error_restore(&error);
  return capturing;
}

/* Of a stream whose capture is changing. graph: null for none. */
static int32_t end_capture(MbDevice *device, MbObject *stream, uint32_t *graph) {
  MbObject captured = {.held = stream->held};
  int32_t status = device->backend->capture_end(device->self, stream->handle,
                                                graph ? &captured.handle : NULL);
  if (status != MB_OK && is_still_capturing(device, stream)) {
    finish_change(device, stream, CAPTURE_ACTIVE);
    return status;
  }
  stream->held = (HeldModules){0};
  finish_change(device, stream, CAPTURE_NONE);
  if (status == MB_OK && graph) {
    status = object_add(device, OBJECT_GRAPH, captured, graph);
    if (status == MB_OK) return MB_OK;
    device->backend->graph_destroy(device->self, captured.handle);
  }
  held_modules_release(device, &captured.held);
  return status;
}

int32_t mb_capture_end(uint32_t device, uint32_t stream, uint32_t *graph) {
  MbDevice *d;
  MbObject *s;
  int32_t status = check_pointer("graph", graph);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status != MB_OK) return device_leave(d, status);
  if (start_change(d, s, CAPTURE_ACTIVE)) {
    status = end_capture(d, s, graph);
  } else {
    status = error_set(MB_BAD_ARGUMENT, 0,
                       "stream %" PRIu32 " is not capturing: begin a capture first", stream);
  }
  object_unpin(d, s);
  return device_leave(d, status);
}

int32_t mb_capture_status(uint32_t device, uint32_t stream, int32_t *capturing) {
  MbDevice *d;
  MbObject *s;
  bool answer = false;
  int32_t status = check_pointer("capturing", capturing);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status == MB_OK) {
    /* Drivers answer for the default stream with an error while others capture. */
    if (stream) status = d->backend->capture_status(d->self, s->handle, &answer);
    if (status == MB_OK) *capturing = answer;
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

void capture_abandon(MbDevice *device, MbObject *stream) {
  MbError error;
  if (!start_change(device, stream, CAPTURE_ACTIVE)) return;
  error_save(&error);
  end_capture(device, stream, NULL);
  error_restore(&error);
}

void captures_abandon_all(MbDevice *device) {
  uint32_t id = table_next(&device->streams, 0);
  while (id) {
    capture_abandon(device, table_find(&device->streams, id));
    id = table_next(&device->streams, id & ID_SLOT_MASK);
  }
}
