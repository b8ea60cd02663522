#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static void init_stream(HostStream *stream, HostDevice *device) {
  memset(stream, 0, sizeof *stream);
  stream->device = device;
  stream->last = &stream->first;
  pthread_mutex_init(&stream->lock, NULL);
  pthread_cond_init(&stream->queued_work, NULL);
  pthread_cond_init(&stream->finished_work, NULL);
}

static void *run_stream(void *argument) {
  HostStream *stream = argument;
  pthread_mutex_lock(&stream->lock);
  for (;;) {
    HostWork *work = stream->first;
    if (work) {
      stream->first = work->next;
      if (!stream->first) stream->last = &stream->first;
      pthread_mutex_unlock(&stream->lock);
      host_run(stream->device, work);
      free(work);
      pthread_mutex_lock(&stream->lock);
      stream->finished++;
      pthread_cond_broadcast(&stream->finished_work);
    } else if (stream->stopping) {
      break;
    } else {
      pthread_cond_wait(&stream->queued_work, &stream->lock);
    }
  }
  pthread_mutex_unlock(&stream->lock);
  return NULL;
}

/* With the stream's lock. Signals are the process's business, not this thread's. */
static int32_t start_thread(HostStream *stream) {
  sigset_t all, before;
  int code;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  code = pthread_create(&stream->thread, NULL, run_stream, stream);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code) {
    return error_set(MB_LIMIT, code, "pthread_create for a stream: %s", strerror(code));
  }
  stream->started = true;
  return MB_OK;
}

HostWork *host_new_work(HostWorkKind kind, size_t args_bytes) {
  HostWork *work = malloc(sizeof *work + args_bytes);
  if (!work) {
    error_set(MB_OUT_OF_MEMORY, 0, "no host memory to queue work on a stream");
    return NULL;
  }
  work->next = NULL;
  work->kind = kind;
  return work;
}

/* With the stream's lock. */
static int32_t queue_locked(HostStream *stream, HostWork *work) {
  int32_t status = stream->started ? MB_OK : start_thread(stream);
  if (status != MB_OK) return status;
  *stream->last = work;
  stream->last = &work->next;
  stream->queued++;
  pthread_cond_signal(&stream->queued_work);
  return MB_OK;
}

static int32_t note_locked(HostStream *stream, HostWork *work) {
  if (host_graph_add(stream->capture, work)) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0,
                   "the stream is capturing what a graph can't hold: end the capture first");
}

int32_t host_enqueue(HostStream *stream, HostWork *work) {
  int32_t status;
  pthread_mutex_lock(&stream->lock);
  status = stream->capture ? note_locked(stream, work) : queue_locked(stream, work);
  pthread_mutex_unlock(&stream->lock);
  if (status != MB_OK) free(work);
  return status;
}

/* Behind the work that runs, also while the stream is capturing. */
static int32_t queue_mark(HostStream *stream, HostWork *work) {
  int32_t status;
  pthread_mutex_lock(&stream->lock);
  status = queue_locked(stream, work);
  pthread_mutex_unlock(&stream->lock);
  if (status != MB_OK) free(work);
  return status;
}

int32_t host_stream_synchronize(void *self, void *stream) {
  HostStream *s = stream;
  uint64_t queued;
  (void)self;
  pthread_mutex_lock(&s->lock);
  queued = s->queued;
  while (s->finished < queued) pthread_cond_wait(&s->finished_work, &s->lock);
  pthread_mutex_unlock(&s->lock);
  return MB_OK;
}

void host_streams_open(HostDevice *device) {
  pthread_mutex_init(&device->marker_lock, NULL);
  pthread_cond_init(&device->marker_passed, NULL);
  pthread_mutex_init(&device->streams_lock, NULL);
  init_stream(&device->default_stream, device);
  device->streams = &device->default_stream;
}

/* Finishes the work first. */
static void stop_stream(HostStream *stream) {
  bool started;
  pthread_mutex_lock(&stream->lock);
  stream->stopping = true;
  started = stream->started;
  pthread_cond_signal(&stream->queued_work);
  pthread_mutex_unlock(&stream->lock);
  if (started) pthread_join(stream->thread, NULL);
  pthread_mutex_destroy(&stream->lock);
  pthread_cond_destroy(&stream->queued_work);
  pthread_cond_destroy(&stream->finished_work);
}

void host_streams_close(HostDevice *device) {
  stop_stream(&device->default_stream);
  pthread_mutex_destroy(&device->marker_lock);
  pthread_cond_destroy(&device->marker_passed);
  pthread_mutex_destroy(&device->streams_lock);
}

void *host_default_stream(void *self) { return &((HostDevice *)self)->default_stream; }

int32_t host_stream_create(void *self, void **stream) {
  HostDevice *device = self;
  HostStream *created = malloc(sizeof *created);
  if (!created) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a stream");
  init_stream(created, device);
  pthread_mutex_lock(&device->streams_lock);
  created->next = device->streams;
  device->streams = created;
  pthread_mutex_unlock(&device->streams_lock);
  *stream = created;
  return MB_OK;
}

int32_t host_stream_destroy(void *self, void *stream) {
  HostDevice *device = self;
  HostStream *destroyed = stream, **place = &device->streams;
  pthread_mutex_lock(&device->streams_lock);
  while (*place != destroyed) place = &(*place)->next;
  *place = destroyed->next;
  pthread_mutex_unlock(&device->streams_lock);
  stop_stream(destroyed);
  free(destroyed);
  return MB_OK;
}

uint64_t host_stream_handle(void *self, void *stream) {
  (void)self;
  (void)stream;
  return 0;
}

/* With streams_lock: a marker behind the work of each busy stream, counted. */
static int32_t mark_streams(HostDevice *device, HostMarker **markers, uint32_t *count) {
  for (HostStream *stream = device->streams; stream; stream = stream->next) {
    HostMarker *marker;
    HostWork *work;
    bool busy;
    int32_t status;
    pthread_mutex_lock(&stream->lock);
    busy = stream->finished < stream->queued;
    pthread_mutex_unlock(&stream->lock);
    if (!busy) continue;
    marker = host_new_marker(2);
    if (!marker) return MB_OUT_OF_MEMORY;
    work = host_new_work(HOST_MARK, 0);
    if (!work) {
      free(marker);
      return MB_OUT_OF_MEMORY;
    }
    work->of.marker = marker;
    status = queue_mark(stream, work);
    if (status != MB_OK) {
      free(marker);
      return status;
    }
    markers[(*count)++] = marker;
  }
  return MB_OK;
}

/* Waits behind markers rather than in the streams: those may be destroyed meanwhile. */
int32_t host_synchronize(void *self) {
  HostDevice *device = self;
  HostMarker **markers;
  uint32_t streams = 0, count = 0;
  int32_t status;
  pthread_mutex_lock(&device->streams_lock);
  for (HostStream *stream = device->streams; stream; stream = stream->next) streams++;
  markers = malloc(streams * sizeof *markers);
  status = markers ? mark_streams(device, markers, &count)
                   : error_set(MB_OUT_OF_MEMORY, 0, "no host memory to synchronize");
  pthread_mutex_unlock(&device->streams_lock);
  for (uint32_t i = 0; i < count; i++) host_marker_wait(device, markers[i]);
  free(markers);
  return status;
}
