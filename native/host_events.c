#define _GNU_SOURCE
#include <stdlib.h>

#include "clock.h"
#include "host.h"

HostMarker *host_new_marker(uint32_t references) {
  HostMarker *marker = malloc(sizeof *marker);
  if (!marker) {
    error_set(MB_OUT_OF_MEMORY, 0, "no host memory to record an event");
    return NULL;
  }
  *marker = (HostMarker){references, false, 0};
  return marker;
}

/* With marker_lock. */
static void drop_locked(HostMarker *marker) {
  if (--marker->references == 0) free(marker);
}

void host_marker_drop(HostDevice *device, HostMarker *marker) {
  pthread_mutex_lock(&device->marker_lock);
  drop_locked(marker);
  pthread_mutex_unlock(&device->marker_lock);
}

void host_marker_pass(HostDevice *device, HostMarker *marker) {
  pthread_mutex_lock(&device->marker_lock);
  marker->passed = true;
  marker->passed_ns = clock_ns();
  drop_locked(marker);
  pthread_cond_broadcast(&device->marker_passed);
  pthread_mutex_unlock(&device->marker_lock);
}

void host_marker_wait(HostDevice *device, HostMarker *marker) {
  pthread_mutex_lock(&device->marker_lock);
  while (!marker->passed) pthread_cond_wait(&device->marker_passed, &device->marker_lock);
  drop_locked(marker);
  pthread_mutex_unlock(&device->marker_lock);
}

/* The event's last record if it has yet to pass, held; else null. */
static HostMarker *hold_pending(HostDevice *device, HostEvent *event) {
  HostMarker *marker;
  pthread_mutex_lock(&device->marker_lock);
  marker = event->last && !event->last->passed ? event->last : NULL;
  if (marker) marker->references++;
  pthread_mutex_unlock(&device->marker_lock);
  return marker;
}

int32_t host_event_create(void *self, int32_t timing, void **event) {
  HostEvent *created = calloc(1, sizeof *created);
  (void)self;
  (void)timing;
  if (!created) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for an event");
  *event = created;
  return MB_OK;
}

int32_t host_event_destroy(void *self, void *event) {
  HostEvent *destroyed = event;
  if (destroyed->last) host_marker_drop(self, destroyed->last);
  free(destroyed);
  return MB_OK;
}

int32_t host_event_record(void *self, void *event, void *stream) {
  HostDevice *device = self;
  HostEvent *recorded = event;
  HostMarker *marker = host_new_marker(2), *before;
  HostWork *work;
  int32_t status;
  if (!marker) return MB_OUT_OF_MEMORY;
  work = host_new_work(HOST_MARK, 0);
  if (!work) {
    free(marker);
    return MB_OUT_OF_MEMORY;
  }
  work->of.marker = marker;
  status = host_enqueue(stream, work);
  if (status != MB_OK) {
    free(marker);
    return status;
  }
  pthread_mutex_lock(&device->marker_lock);
  before = recorded->last;
  recorded->last = marker;
  if (before) drop_locked(before);
  pthread_mutex_unlock(&device->marker_lock);
  return MB_OK;
}

int32_t host_stream_wait(void *self, void *stream, void *event) {
  HostMarker *marker = hold_pending(self, event);
  HostWork *work;
  int32_t status;
  if (!marker) return MB_OK;
  work = host_new_work(HOST_WAIT, 0);
  if (!work) {
    host_marker_drop(self, marker);
    return MB_OUT_OF_MEMORY;
  }
  work->of.marker = marker;
  status = host_enqueue(stream, work);
  if (status != MB_OK) host_marker_drop(self, marker);
  return status;
}

int32_t host_event_query(void *self, void *event) {
  HostDevice *device = self;
  const HostEvent *asked = event;
  bool passed;
  pthread_mutex_lock(&device->marker_lock);
  passed = !asked->last || asked->last->passed;
  pthread_mutex_unlock(&device->marker_lock);
  return passed ? MB_OK : MB_NOT_READY;
}

int32_t host_event_synchronize(void *self, void *event) {
  HostMarker *marker = hold_pending(self, event);
  if (marker) host_marker_wait(self, marker);
  return MB_OK;
}

int32_t host_event_elapsed(void *self, void *start, void *end, double *milliseconds) {
  HostDevice *device = self;
  const HostMarker *from, *to;
  bool passed;
  pthread_mutex_lock(&device->marker_lock);
  from = ((const HostEvent *)start)->last;
  to = ((const HostEvent *)end)->last;
  passed = from->passed && to->passed;
  if (passed) *milliseconds = (double)(to->passed_ns - from->passed_ns) / 1e6;
  pthread_mutex_unlock(&device->marker_lock);
  return passed ? MB_OK : MB_NOT_READY;
}
