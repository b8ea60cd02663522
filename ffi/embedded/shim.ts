// Written by "deno task embed" from native/: change the files there, not this one.

/** Texts of files of `native/`, by name. */
export const SHIM = {
  "allocations.c": `#include "allocations.h"

#include <stddef.h>

/* Ranks must look random for the treap to stay flat: splitmix64 of the address. */
static uint64_t rank_of(uint64_t address) {
  uint64_t x = address + 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/* Splits by address into what lies below it and the rest. */
static void split(Allocation *tree, uint64_t address, Allocation **lower, Allocation **higher) {
  while (tree) {
    if (tree->address < address) {
      *lower = tree;
      lower = &tree->higher;
      tree = tree->higher;
    } else {
      *higher = tree;
      higher = &tree->lower;
      tree = tree->lower;
    }
  }
  *lower = *higher = NULL;
}

static void join(Allocation **place, Allocation *lower, Allocation *higher) {
  while (lower && higher) {
    if (lower->rank > higher->rank) {
      *place = lower;
      place = &lower->higher;
      lower = lower->higher;
    } else {
      *place = higher;
      place = &higher->lower;
      higher = higher->lower;
    }
  }
  *place = lower ? lower : higher;
}

void allocations_insert(Allocations *allocations, Allocation *allocation) {
  Allocation **place = &allocations->root;
  allocation->rank = rank_of(allocation->address);
  while (*place && (*place)->rank >= allocation->rank) {
    place = allocation->address < (*place)->address ? &(*place)->lower : &(*place)->higher;
  }
  split(*place, allocation->address, &allocation->lower, &allocation->higher);
  *place = allocation;
}

Allocation *allocations_remove(Allocations *allocations, AllocationKind kind, uint64_t address) {
  Allocation **place = &allocations->root, *found;
  while (*place && (*place)->address != address) {
    place = address < (*place)->address ? &(*place)->lower : &(*place)->higher;
  }
  found = *place;
  if (!found || found->kind != kind) return NULL;
  join(place, found->lower, found->higher);
  return found;
}

bool allocations_overlap(const Allocations *allocations, uint64_t address, uint64_t size) {
  const Allocation *node = allocations->root, *last = NULL;
  while (node) {
    if (node->address < address + size) {
      last = node;
      node = node->higher;
    } else {
      node = node->lower;
    }
  }
  /* They are apart, so of those that begin below the range's end the last ends last. */
  return last && last->address + last->size > address;
}

Allocation *allocations_find(const Allocations *allocations, uint64_t address, uint64_t size) {
  Allocation *node = allocations->root, *below = NULL;
  while (node) {
    if (node->address <= address) {
      below = node;
      node = node->higher;
    } else {
      node = node->lower;
    }
  }
  if (!below || address - below->address >= below->size) return NULL;
  return size <= below->size - (address - below->address) ? below : NULL;
}
`,
  "allocations.h": `/* Live allocations of the driver's own allocators and of page-locked host memory, by
 * address, so that data calls can tell whether a range lies inside one. A treap: the n-th
 * step of a replay must not cost more for all that is live. The owner locks it. */
#ifndef MOONBRIGHT_ALLOCATIONS_H
#define MOONBRIGHT_ALLOCATIONS_H

#include <stdbool.h>

#include "error.h"

typedef enum AllocationKind {
  ALLOCATION_PLAIN,
  ALLOCATION_POOL,
  ALLOCATION_PINNED,  /* of the host, used by the device too */
  ALLOCATION_WRAPPED, /* somebody else's, never freed here */
} AllocationKind;

typedef struct Allocation {
  uint64_t address, size, rank;
  struct Allocation *lower, *higher;
  AllocationKind kind;
  uint32_t copies; /* of the host's that go on in it, if it is page-locked */
} Allocation;

/* A zeroed one is empty. */
typedef struct Allocations {
  Allocation *root;
} Allocations;

void allocations_insert(Allocations *allocations, Allocation *allocation);
/* Null unless an allocation of that kind begins at the address. */
Allocation *allocations_remove(Allocations *allocations, AllocationKind kind, uint64_t address);
/* Whether any allocation has a byte of the range, which is not empty. */
bool allocations_overlap(const Allocations *allocations, uint64_t address, uint64_t size);
/* The allocation that holds the whole range, or null. */
Allocation *allocations_find(const Allocations *allocations, uint64_t address, uint64_t size);

#endif
`,
  "backend.h": `/* What a backend implements. The common part has checked every argument: ids became
 * handles, ranges are mapped, sizes are multiples of the granularity.
 *
 * Functions return an MbStatus after error_set. All may be called from several threads
 * at once, except that reserve to unmap of one device come one at a time. Handles are
 * whatever the backend likes; a null stream handle is fine. */
#ifndef MOONBRIGHT_BACKEND_H
#define MOONBRIGHT_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

typedef struct MbDescription {
  double properties[MB_PROP_COUNT];
  char name[256], architecture[64];
  char limits[512]; /* why memory can't be mapped at chosen addresses, if it can't */
} MbDescription;

typedef struct MbBackend {
  const char *name;
  bool single_mappings; /* set_access and unmap take one mapping, not a range of them */

  /* library: path or name, null for the usual places. */
  int32_t (*count)(const char *library, uint32_t *count);
  int32_t (*describe)(const char *library, uint32_t ordinal, MbDescription *description);
  /* granularity: 0 if the device can't map memory at chosen addresses. */
  int32_t (*open)(const char *library, uint32_t ordinal, void **self, uint64_t *granularity);
  /* All that the common part knows of has been released. */
  void (*close)(void *self);
  /* Makes the device's context current in the calling thread. */
  int32_t (*enter)(void *self);
  int32_t (*memory_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

  int32_t (*reserve)(void *self, uint64_t size, uint64_t *address);
  int32_t (*unreserve)(void *self, uint64_t address, uint64_t size);
  int32_t (*extent_create)(void *self, uint64_t size, uint64_t *handle);
  int32_t (*extent_release)(void *self, uint64_t handle, uint64_t size);
  /* Maps one whole extent, without access. */
  int32_t (*map)(void *self, uint64_t address, uint64_t size, uint64_t handle);
  int32_t (*set_access)(void *self, uint64_t address, uint64_t size, int32_t access);
  /* After new mappings have their access: returns when the device sees them. Null if it does
   * at once. */
  void (*settle)(void *self);
  int32_t (*unmap)(void *self, uint64_t address, uint64_t size);

  void *(*default_stream)(void *self);
  int32_t (*stream_create)(void *self, void **stream);
  int32_t (*stream_destroy)(void *self, void *stream);
  int32_t (*stream_synchronize)(void *self, void *stream);
  uint64_t (*stream_handle)(void *self, void *stream);
  int32_t (*stream_wait)(void *self, void *stream, void *event);
  int32_t (*event_create)(void *self, int32_t timing, void **event);
  int32_t (*event_destroy)(void *self, void *event);
  int32_t (*event_record)(void *self, void *event, void *stream);
  int32_t (*event_query)(void *self, void *event);
  int32_t (*event_synchronize)(void *self, void *event);
  int32_t (*event_elapsed)(void *self, void *start, void *end, double *milliseconds);

  /* Host memory that the device copies from and to without a detour. */
  int32_t (*staging_alloc)(void *self, size_t size, uint8_t **memory);
  int32_t (*staging_free)(void *self, uint8_t *memory);
  int32_t (*fill)(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                  void *stream);
  int32_t (*copy_in)(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                     void *stream);
  int32_t (*copy_out)(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream);
  int32_t (*copy)(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                  void *stream);

  /* Host memory that the device uses at the same address. */
  int32_t (*pinned_alloc)(void *self, uint64_t size, uint64_t *address);
  int32_t (*pinned_free)(void *self, uint64_t address, uint64_t size);

  /* What reaches a capturing stream is fill, copy and launch alone; a stream captures when
   * capture_end is called, and not when capture_begin is. */
  int32_t (*capture_begin)(void *self, void *stream);
  int32_t (*capture_status)(void *self, void *stream, bool *capturing);
  /* graph: null to throw away what was captured. */
  int32_t (*capture_end)(void *self, void *stream, void **graph);
  int32_t (*graph_launch)(void *self, void *graph, void *stream);
  /* Its launches may still be under way. */
  int32_t (*graph_destroy)(void *self, void *graph);

  int32_t (*module_load)(void *self, const uint8_t *image, size_t bytes, void **module);
  int32_t (*module_unload)(void *self, void *module);
  int32_t (*function)(void *self, void *module, const char *name, void **function);
  int32_t (*launch)(void *self, void *function, const MbGeometry *geometry, void *stream,
                    const uint8_t *args, size_t args_bytes);

  int32_t (*plain_alloc)(void *self, uint64_t size, uint64_t *address);
  int32_t (*plain_free)(void *self, uint64_t address, uint64_t size);
  int32_t (*pool_alloc)(void *self, uint64_t size, void *stream, uint64_t *address);
  int32_t (*pool_free)(void *self, uint64_t address, uint64_t size, void *stream);
  int32_t (*pool_trim)(void *self);
} MbBackend;

extern const MbBackend host_backend;
extern const MbBackend cuda_backend;
extern const MbBackend hip_backend;

/* The backend of an MbBackendId. */
int32_t backend_find(int32_t id, const MbBackend **backend);

/* Checks a library argument; *library is null for the usual places, else points to copy. */
#define BACKEND_LIBRARY_CAPACITY 4096
int32_t backend_library(const uint8_t *library, uint32_t length,
                        char copy[BACKEND_LIBRARY_CAPACITY], const char **path);

#endif
`,
  "backends.c": `#include "backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "forks.h"

int32_t backend_find(int32_t id, const MbBackend **backend) {
  int32_t status = forks_check();
  if (status != MB_OK) return status;
  forks_watch();
  switch (id) {
    case MB_BACKEND_HOST:
      *backend = &host_backend;
      return MB_OK;
    case MB_BACKEND_CUDA:
      *backend = &cuda_backend;
      return MB_OK;
    case MB_BACKEND_HIP:
      *backend = &hip_backend;
      return MB_OK;
    default:
      return error_set(MB_BAD_ARGUMENT, 0, "backend must be from 0 to 2, got %" PRId32, id);
  }
}

int32_t backend_library(const uint8_t *library, uint32_t length,
                        char copy[BACKEND_LIBRARY_CAPACITY], const char **path) {
  *path = NULL;
  if (length == 0) return MB_OK;
  *path = copy;
  return check_text("library", library, length, copy, BACKEND_LIBRARY_CAPACITY);
}

int32_t mb_device_count(int32_t backend, const uint8_t *library, uint32_t library_length,
                        uint32_t *count) {
  char copy[BACKEND_LIBRARY_CAPACITY];
  const char *path;
  const MbBackend *found;
  int32_t status = check_pointer("count", count);
  if (status == MB_OK) status = backend_library(library, library_length, copy, &path);
  if (status == MB_OK) status = backend_find(backend, &found);
  if (status == MB_OK) status = found->count(path, count);
  return status;
}

int32_t mb_device_properties(int32_t backend, const uint8_t *library, uint32_t library_length,
                             uint32_t ordinal, double *properties, uint8_t *name,
                             uint32_t name_capacity) {
  char copy[BACKEND_LIBRARY_CAPACITY], text[1024];
  const char *path;
  const MbBackend *found;
  MbDescription description = {0};
  int32_t status = check_pointer("properties", properties);
  if (status == MB_OK) status = check_pointer("name", name);
  if (status == MB_OK) status = check_count("name_capacity", name_capacity, UINT32_MAX);
  if (status == MB_OK) status = backend_library(library, library_length, copy, &path);
  if (status == MB_OK) status = backend_find(backend, &found);
  if (status == MB_OK) status = found->describe(path, ordinal, &description);
  if (status != MB_OK) return status;
  memcpy(properties, description.properties, sizeof description.properties);
  snprintf(text, sizeof text, "%s\\n%s\\n%s", description.name, description.architecture,
           description.limits);
  uint32_t length = error_cut(text, (uint32_t)strlen(text), name_capacity - 1);
  memcpy(name, text, length);
  name[length] = 0;
  return MB_OK;
}
`,
  "baseline.c": `/* The driver's own allocators: plain, and a stream-ordered pool. */
#include "captures.h"
#include "check.h"
#include "tracking.h"

int32_t mb_plain_alloc(uint32_t device, double size, double *address) {
  MbDevice *d;
  Allocation *allocation;
  uint64_t bytes;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_new(ALLOCATION_PLAIN, bytes, &allocation);
  if (status == MB_OK) {
    status = d->backend->plain_alloc(d->self, bytes, &allocation->address);
    status = tracking_finish_alloc(d, allocation, status, address);
  }
  return device_leave(d, status);
}

int32_t mb_plain_free(uint32_t device, double address) {
  MbDevice *d;
  Allocation *allocation;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_take(d, ALLOCATION_PLAIN, address, &allocation);
  if (status == MB_OK) {
    status = d->backend->plain_free(d->self, allocation->address, allocation->size);
    status = tracking_finish_free(d, allocation, status);
  }
  return device_leave(d, status);
}

int32_t mb_pool_alloc(uint32_t device, double size, uint32_t stream, double *address) {
  MbDevice *d;
  MbObject *s;
  Allocation *allocation;
  uint64_t bytes;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = stream_pin_uncaptured(d, stream, "an allocation from the pool", &s);
  if (status == MB_OK) {
    status = tracking_new(ALLOCATION_POOL, bytes, &allocation);
    if (status == MB_OK) {
      status = d->backend->pool_alloc(d->self, bytes, s->handle, &allocation->address);
      status = tracking_finish_alloc(d, allocation, status, address);
    }
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

int32_t mb_pool_free(uint32_t device, double address, uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  Allocation *allocation;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = stream_pin_uncaptured(d, stream, "a free to the pool", &s);
  if (status == MB_OK) {
    status = tracking_take(d, ALLOCATION_POOL, address, &allocation);
    if (status == MB_OK) {
      status = d->backend->pool_free(d->self, allocation->address, allocation->size, s->handle);
      status = tracking_finish_free(d, allocation, status);
    }
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

int32_t mb_pool_trim(uint32_t device) {
  MbDevice *d;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  return device_leave(d, d->backend->pool_trim(d->self));
}
`,
  "captures.c": `#include "captures.h"

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
`,
  "captures.h": `/* Streams that note work for a graph instead of doing it, and what they can't be used for:
 * a driver would answer that by spoiling the capture, so it is refused before. */
#ifndef MOONBRIGHT_CAPTURES_H
#define MOONBRIGHT_CAPTURES_H

#include "device.h"

/* As object_pin, for a use that no graph can hold: MB_BAD_ARGUMENT while the stream is
 * capturing. what: the use, such as "an event". */
int32_t stream_pin_uncaptured(MbDevice *device, uint32_t stream, const char *what,
                              MbObject **pinned);
/* Before a wait for all streams: MB_BAD_ARGUMENT while one is capturing. After MB_OK none
 * begins to until captures_let. */
int32_t captures_hold_off(MbDevice *device, const char *what);
void captures_let(MbDevice *device);
/* Before a launch: lets the capture, if there is one, hold the kernel's module. */
int32_t capture_hold_module(MbDevice *device, const MbObject *function, MbObject *stream);
/* Ends the capture of a stream that is being destroyed, if there is one. */
void capture_abandon(MbDevice *device, MbObject *stream);
/* For closing. */
void captures_abandon_all(MbDevice *device);
/* Lets a graph's modules go. */
void held_modules_release(MbDevice *device, HeldModules *held);

#endif
`,
  "check.c": `#include "check.h"

#include <inttypes.h>
#include <string.h>

static const double numbers_end = 9007199254740992.0; /* 2^53 */

int32_t check_pointer(const char *what, const void *pointer) {
  if (pointer) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "%s must not be null", what);
}

int32_t check_count(const char *what, uint32_t count, uint32_t limit) {
  if (count > 0 && count <= limit) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "%s must be from 1 to %" PRIu32 ", got %" PRIu32, what,
                   limit, count);
}

int32_t check_whole(const char *what, double value, uint64_t *whole) {
  /* Written so that NaN fails too. */
  if (!(value >= 0 && value < numbers_end) || (double)(uint64_t)value != value) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "%s must be a whole number from 0 to below 2^53, got %.17g", what, value);
  }
  *whole = (uint64_t)value;
  return MB_OK;
}

int32_t check_size(const char *what, double value, uint64_t unit, uint64_t *size) {
  int32_t status = check_whole(what, value, size);
  if (status != MB_OK) return status;
  if (*size > 0 && *size % unit == 0) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0,
                   "%s must be a multiple of %" PRIu64 " bytes above 0, got %" PRIu64, what, unit,
                   *size);
}

int32_t check_address(const char *what, double value, uint64_t unit, uint64_t size,
                      uint64_t *address) {
  int32_t status = check_whole(what, value, address);
  if (status != MB_OK) return status;
  if (*address % unit) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "%s must be aligned to %" PRIu64 " bytes, got 0x%" PRIx64, what, unit,
                     *address);
  }
  if (size > (uint64_t)numbers_end - *address) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "%s 0x%" PRIx64 " and %" PRIu64 " bytes from there reach beyond 2^53", what,
                     *address, size);
  }
  return MB_OK;
}

int32_t check_access(int32_t access) {
  if (access == MB_ACCESS_NONE || access == MB_ACCESS_READ || access == MB_ACCESS_READ_WRITE) {
    return MB_OK;
  }
  return error_set(MB_BAD_ARGUMENT, 0, "access must be 0, 1 or 3, got %" PRId32, access);
}

int32_t check_text(const char *what, const uint8_t *text, uint32_t length, char *copy,
                   uint32_t capacity) {
  int32_t status = check_pointer(what, text);
  if (status == MB_OK) status = check_count(what, length, capacity - 1);
  if (status != MB_OK) return status;
  if (memchr(text, 0, length)) {
    return error_set(MB_BAD_ARGUMENT, 0, "%s must not hold a NUL byte", what);
  }
  memcpy(copy, text, length);
  copy[length] = 0;
  return MB_OK;
}
`,
  "check.h": `/* Checks of single arguments. Each returns MB_OK or notes what is wrong. */
#ifndef MOONBRIGHT_CHECK_H
#define MOONBRIGHT_CHECK_H

#include "error.h"

/* Most elements of any array that crosses: as many as there can be ids. */
#define CHECK_LARGEST_COUNT 0xFFFFFu

int32_t check_pointer(const char *what, const void *pointer);
/* From 1 to limit. */
int32_t check_count(const char *what, uint32_t count, uint32_t limit);
/* A whole number from 0 to below 2^53. */
int32_t check_whole(const char *what, double value, uint64_t *whole);
/* A whole number above 0, a multiple of unit. */
int32_t check_size(const char *what, double value, uint64_t unit, uint64_t *size);
/* A whole number, a multiple of unit, such that address + size stays below 2^53. */
int32_t check_address(const char *what, double value, uint64_t unit, uint64_t size,
                      uint64_t *address);
int32_t check_access(int32_t access);
/* Copies text with a final NUL; text must hold none itself and be shorter than capacity. */
int32_t check_text(const char *what, const uint8_t *text, uint32_t length, char *copy,
                   uint32_t capacity);

#endif
`,
  "clock.h": `#ifndef MOONBRIGHT_CLOCK_H
#define MOONBRIGHT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
`,
  "cuda.c": `#include "cuda.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static int32_t load_initialized(const char *library, const CudaApi **api) {
  int32_t status = cuda_load(library, api);
  if (status != MB_OK) return status;
  return cuda_check(*api, (*api)->initialized, "cuInit");
}

static int32_t count(const char *library, uint32_t *devices) {
  const CudaApi *api;
  int found = 0;
  CuResult result;
  int32_t status = cuda_load(library, &api);
  if (status != MB_OK) return status;
  result = api->initialized;
  if (result == CU_SUCCESS) result = api->cuDeviceGetCount(&found);
  /* A driver without a device is no error to one who counts. */
  if (result == CU_ERROR_NO_DEVICE) {
    result = CU_SUCCESS;
    found = 0;
  }
  *devices = (uint32_t)found;
  return cuda_check(api, result, "counting CUDA devices");
}

static int32_t get_device(const CudaApi *api, uint32_t ordinal, CuDevice *device) {
  CuResult result = CU_ERROR_INVALID_DEVICE;
  if (ordinal <= INT_MAX) result = api->cuDeviceGet(device, (int)ordinal);
  return cuda_check(api, result, "cuDeviceGet of device %" PRIu32, ordinal);
}

static int32_t get_attribute(const CudaApi *api, CuDevice device, int attribute, int *value) {
  CuResult result = api->cuDeviceGetAttribute(value, attribute, device);
  return cuda_check(api, result, "cuDeviceGetAttribute %d", attribute);
}

/* 0 if the device can't map memory at chosen addresses. */
static int32_t get_granularity(const CudaApi *api, CuDevice device, int option,
                               uint64_t *granularity) {
  CuAllocationProperties properties = cuda_extent_properties(device);
  size_t bytes = 0;
  int vmm;
  int32_t status = get_attribute(api, device, CU_ATTRIBUTE_VMM, &vmm);
  if (status == MB_OK && vmm) {
    status = cuda_check(api, api->cuMemGetAllocationGranularity(&bytes, &properties, option),
                         "cuMemGetAllocationGranularity");
    if (status == MB_OK && !bytes) {
      status = error_set(MB_DRIVER, 0, "cuMemGetAllocationGranularity gave 0 bytes");
    }
  }
  *granularity = bytes;
  return status;
}

static int32_t describe_memory(const CudaApi *api, CuDevice device, double *properties) {
  size_t total = 0;
  uint64_t least = 0, advised = 0;
  int32_t status =
      cuda_check(api, api->cuDeviceTotalMem(&total, device), "cuDeviceTotalMem");
  if (status == MB_OK) status = get_granularity(api, device, CU_GRANULARITY_MINIMUM, &least);
  if (status == MB_OK) status = get_granularity(api, device, CU_GRANULARITY_RECOMMENDED, &advised);
  properties[MB_PROP_TOTAL_MEMORY] = (double)total;
  properties[MB_PROP_GRANULARITY] = (double)least;
  properties[MB_PROP_GRANULARITY_ADVISED] = (double)advised;
  return status;
}

static int32_t describe(const char *library, uint32_t ordinal, MbDescription *description) {
  static const struct {
    int attribute;
    MbProperty property;
  } attributes[] = {
      {CU_ATTRIBUTE_VMM, MB_PROP_VMM},     {CU_ATTRIBUTE_MAJOR, MB_PROP_MAJOR},
      {CU_ATTRIBUTE_MINOR, MB_PROP_MINOR}, {CU_ATTRIBUTE_MULTIPROCESSORS, MB_PROP_PROCESSORS},
      {CU_ATTRIBUTE_INTEGRATED, MB_PROP_INTEGRATED},
  };
  double *properties = description->properties;
  const CudaApi *api;
  CuDevice device = 0;
  int value = 0, version = 0;
  int32_t status = load_initialized(library, &api);
  if (status == MB_OK) status = get_device(api, ordinal, &device);
  if (status == MB_OK) {
    status = cuda_check(
        api,
        api->cuDeviceGetName(description->name, (int)sizeof description->name, device),
        "cuDeviceGetName");
  }
  if (status == MB_OK) status = describe_memory(api, device, properties);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes && status == MB_OK; i++) {
    status = get_attribute(api, device, attributes[i].attribute, &value);
    properties[attributes[i].property] = value;
  }
  if (status != MB_OK) return status;
  /* Drivers from before pools don't know the attribute. */
  properties[MB_PROP_POOLS] =
      api->has_pools &&
      api->cuDeviceGetAttribute(&value, CU_ATTRIBUTE_POOLS, device) == CU_SUCCESS && value;
  if (api->cuDriverGetVersion(&version) == CU_SUCCESS) {
    properties[MB_PROP_DRIVER_VERSION] = version;
  }
  description->name[sizeof description->name - 1] = 0;
  snprintf(description->architecture, sizeof description->architecture, "sm_%.0f%.0f",
           properties[MB_PROP_MAJOR], properties[MB_PROP_MINOR]);
  return MB_OK;
}

static int32_t open_context(CudaDevice *device) {
  CuResult result = device->api->cuDevicePrimaryCtxRetain(&device->context, device->device);
  return cuda_check(device->api, result, "cuDevicePrimaryCtxRetain");
}

static int32_t open_device(const char *library, uint32_t ordinal, void **self,
                           uint64_t *granularity) {
  CudaDevice *device = calloc(1, sizeof *device);
  int32_t status;
  if (!device) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a device");
  status = load_initialized(library, &device->api);
  if (status == MB_OK) status = get_device(device->api, ordinal, &device->device);
  if (status == MB_OK) {
    status = get_granularity(device->api, device->device, CU_GRANULARITY_MINIMUM, granularity);
  }
  if (status == MB_OK) status = open_context(device);
  if (status != MB_OK) {
    free(device);
    return status;
  }
  pthread_mutex_init(&device->pool_lock, NULL);
  *self = device;
  return MB_OK;
}

static void close_device(void *self) {
  CudaDevice *device = self;
  if (device->pool) device->api->cuMemPoolDestroy(device->pool);
  device->api->cuDevicePrimaryCtxRelease(device->device);
  pthread_mutex_destroy(&device->pool_lock);
  free(device);
}

/* Always, whatever this thread set before: other libraries change the context too. */
static int32_t enter(void *self) {
  const CudaDevice *device = self;
  return cuda_check(device->api, device->api->cuCtxSetCurrent(device->context),
                     "cuCtxSetCurrent");
}

const MbBackend cuda_backend = {
    .name = "cuda",
    .count = count,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .memory_info = cuda_memory_info,
    .reserve = cuda_reserve,
    .unreserve = cuda_unreserve,
    .extent_create = cuda_extent_create,
    .extent_release = cuda_extent_release,
    .map = cuda_map,
    .set_access = cuda_set_access,
    .unmap = cuda_unmap,
    .default_stream = cuda_default_stream,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_handle = cuda_stream_handle,
    .stream_wait = cuda_stream_wait,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_synchronize = cuda_event_synchronize,
    .event_elapsed = cuda_event_elapsed,
    .staging_alloc = cuda_staging_alloc,
    .staging_free = cuda_staging_free,
    .fill = cuda_fill,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .copy = cuda_copy,
    .pinned_alloc = cuda_pinned_alloc,
    .pinned_free = cuda_pinned_free,
    .capture_begin = cuda_capture_begin,
    .capture_status = cuda_capture_status,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .function = cuda_function,
    .launch = cuda_launch,
    .plain_alloc = cuda_plain_alloc,
    .plain_free = cuda_plain_free,
    .pool_alloc = cuda_pool_alloc,
    .pool_free = cuda_pool_free,
    .pool_trim = cuda_pool_trim,
};
`,
  "cuda.h": `/* The cuda backend's device: a retained primary context. */
#ifndef MOONBRIGHT_CUDA_H
#define MOONBRIGHT_CUDA_H

#include <pthread.h>

#include "backend.h"
#include "cuda_api.h"

typedef struct CudaDevice {
  const CudaApi *api;
  CuDevice device;
  CuContext context;
  pthread_mutex_t pool_lock;
  CuPool pool; /* null until first used */
} CudaDevice;

/* Loads the library once per path and keeps it; null for the usual names. */
int32_t cuda_load(const char *library, const CudaApi **api);

/* The status of a result. Failures are noted in the driver's words, after a format that
 * names the call: "call: NAME (code): description". */
int32_t cuda_check(const CudaApi *api, CuResult result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

int32_t cuda_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes);
int32_t cuda_reserve(void *self, uint64_t size, uint64_t *address);
int32_t cuda_unreserve(void *self, uint64_t address, uint64_t size);
int32_t cuda_extent_create(void *self, uint64_t size, uint64_t *handle);
int32_t cuda_extent_release(void *self, uint64_t handle, uint64_t size);
int32_t cuda_map(void *self, uint64_t address, uint64_t size, uint64_t handle);
int32_t cuda_set_access(void *self, uint64_t address, uint64_t size, int32_t access);
int32_t cuda_unmap(void *self, uint64_t address, uint64_t size);
/* What all extents of a device are made with. */
CuAllocationProperties cuda_extent_properties(CuDevice device);

int32_t cuda_plain_alloc(void *self, uint64_t size, uint64_t *address);
int32_t cuda_plain_free(void *self, uint64_t address, uint64_t size);
int32_t cuda_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address);
int32_t cuda_pool_free(void *self, uint64_t address, uint64_t size, void *stream);
int32_t cuda_pool_trim(void *self);

void *cuda_default_stream(void *self);
int32_t cuda_stream_create(void *self, void **stream);
int32_t cuda_stream_destroy(void *self, void *stream);
int32_t cuda_stream_synchronize(void *self, void *stream);
uint64_t cuda_stream_handle(void *self, void *stream);
int32_t cuda_stream_wait(void *self, void *stream, void *event);
int32_t cuda_event_create(void *self, int32_t timing, void **event);
int32_t cuda_event_destroy(void *self, void *event);
int32_t cuda_event_record(void *self, void *event, void *stream);
int32_t cuda_event_query(void *self, void *event);
int32_t cuda_event_synchronize(void *self, void *event);
int32_t cuda_event_elapsed(void *self, void *start, void *end, double *milliseconds);

int32_t cuda_staging_alloc(void *self, size_t size, uint8_t **memory);
int32_t cuda_staging_free(void *self, uint8_t *memory);
int32_t cuda_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                  void *stream);
int32_t cuda_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                     void *stream);
int32_t cuda_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream);
int32_t cuda_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                  void *stream);

int32_t cuda_pinned_alloc(void *self, uint64_t size, uint64_t *address);
int32_t cuda_pinned_free(void *self, uint64_t address, uint64_t size);

int32_t cuda_capture_begin(void *self, void *stream);
int32_t cuda_capture_status(void *self, void *stream, bool *capturing);
int32_t cuda_capture_end(void *self, void *stream, void **graph);
int32_t cuda_graph_launch(void *self, void *graph, void *stream);
int32_t cuda_graph_destroy(void *self, void *graph);

int32_t cuda_module_load(void *self, const uint8_t *image, size_t bytes, void **module);
int32_t cuda_module_unload(void *self, void *module);
int32_t cuda_function(void *self, void *module, const char *name, void **function);
int32_t cuda_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                    const uint8_t *args, size_t args_bytes);

#endif
`,
  "cuda_allocators.c": `/* cuMemAlloc, and a stream-ordered pool of the device's own. */
#include <inttypes.h>

#include "cuda.h"

int32_t cuda_plain_alloc(void *self, uint64_t size, uint64_t *address) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemAlloc(address, size);
  return cuda_check(api, result, "cuMemAlloc of %" PRIu64 " bytes", size);
}

int32_t cuda_plain_free(void *self, uint64_t address, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemFree(address);
  return cuda_check(api, result, "cuMemFree of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

/* With pool_lock. A pool that keeps all that is freed until it is trimmed. */
static int32_t create_pool(CudaDevice *device) {
  CuPoolProperties properties = {
      .type = CU_ALLOCATION_PINNED,
      .location = {CU_LOCATION_DEVICE, device->device},
  };
  const CudaApi *api = device->api;
  uint64_t kept = UINT64_MAX;
  CuPool pool;
  CuResult result = api->cuMemPoolCreate(&pool, &properties);
  if (result != CU_SUCCESS) return cuda_check(api, result, "cuMemPoolCreate");
  result = api->cuMemPoolSetAttribute(pool, CU_POOL_RELEASE_THRESHOLD, &kept);
  if (result != CU_SUCCESS) {
    api->cuMemPoolDestroy(pool);
    return cuda_check(api, result, "cuMemPoolSetAttribute");
  }
  device->pool = pool;
  return MB_OK;
}

static int32_t get_pool(CudaDevice *device, CuPool *pool) {
  int32_t status = MB_OK;
  if (!device->api->has_pools) {
    return error_set(MB_UNSUPPORTED, 0, "the driver has no stream-ordered pools");
  }
  pthread_mutex_lock(&device->pool_lock);
  if (!device->pool) status = create_pool(device);
  *pool = device->pool;
  pthread_mutex_unlock(&device->pool_lock);
  return status;
}

int32_t cuda_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address) {
  CudaDevice *device = self;
  CuPool pool;
  CuResult result;
  int32_t status = get_pool(device, &pool);
  if (status != MB_OK) return status;
  result = device->api->cuMemAllocFromPoolAsync(address, size, pool, stream);
  return cuda_check(device->api, result, "cuMemAllocFromPoolAsync of %" PRIu64 " bytes", size);
}

int32_t cuda_pool_free(void *self, uint64_t address, uint64_t size, void *stream) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemFreeAsync(address, stream);
  return cuda_check(api, result, "cuMemFreeAsync of %" PRIu64 " bytes at 0x%" PRIx64, size,
                     address);
}

int32_t cuda_pool_trim(void *self) {
  CudaDevice *device = self;
  CuPool pool;
  int32_t status = get_pool(device, &pool);
  if (status != MB_OK) return status;
  return cuda_check(device->api, device->api->cuMemPoolTrimTo(pool, 0), "cuMemPoolTrimTo");
}
`,
  "cuda_api.h": `/* The part of NVIDIA's driver API that the cuda backend calls, declared here because no
 * header of theirs is needed to build, and loaded at run time. */
#ifndef MOONBRIGHT_CUDA_API_H
#define MOONBRIGHT_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CuResult;
typedef int CuDevice;
typedef uint64_t CuPointer;
typedef uint64_t CuAllocation;
typedef struct CuContextOpaque *CuContext;
typedef struct CuStreamOpaque *CuStream;
typedef struct CuEventOpaque *CuEvent;
typedef struct CuModuleOpaque *CuModule;
typedef struct CuFunctionOpaque *CuFunction;
typedef struct CuPoolOpaque *CuPool;
typedef struct CuGraphOpaque *CuGraph;
typedef struct CuGraphExecOpaque *CuGraphExec;

enum {
  CU_SUCCESS = 0,
  CU_ERROR_OUT_OF_MEMORY = 2,
  CU_ERROR_DEINITIALIZED = 4,
  CU_ERROR_NO_DEVICE = 100,
  CU_ERROR_INVALID_DEVICE = 101,
  CU_ERROR_ECC_UNCORRECTABLE = 214,
  CU_ERROR_NVLINK_UNCORRECTABLE = 220,
  CU_ERROR_NOT_FOUND = 500,
  CU_ERROR_NOT_READY = 600,
  CU_ERROR_ILLEGAL_ADDRESS = 700,
  CU_ERROR_LAUNCH_TIMEOUT = 702,
  CU_ERROR_CONTEXT_IS_DESTROYED = 709,
  CU_ERROR_ASSERT = 710,
  CU_ERROR_HARDWARE_STACK = 714,
  CU_ERROR_ILLEGAL_INSTRUCTION = 715,
  CU_ERROR_MISALIGNED_ADDRESS = 716,
  CU_ERROR_INVALID_ADDRESS_SPACE = 717,
  CU_ERROR_INVALID_PC = 718,
  CU_ERROR_LAUNCH_FAILED = 719,
  CU_ERROR_NOT_PERMITTED = 800,
  CU_ERROR_NOT_SUPPORTED = 801,
  CU_ERROR_CAPTURE_INVALIDATED = 901,
};

enum {
  CU_ATTRIBUTE_MULTIPROCESSORS = 16,
  CU_ATTRIBUTE_INTEGRATED = 18,
  CU_ATTRIBUTE_MAJOR = 75,
  CU_ATTRIBUTE_MINOR = 76,
  CU_ATTRIBUTE_VMM = 102,
  CU_ATTRIBUTE_POOLS = 115,
};

enum {
  CU_ALLOCATION_PINNED = 1,
  CU_LOCATION_DEVICE = 1,
  CU_GRANULARITY_MINIMUM = 0,
  CU_GRANULARITY_RECOMMENDED = 1,
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_JIT_ERROR_LOG = 5,
  CU_JIT_ERROR_LOG_BYTES = 6,
  CU_POOL_RELEASE_THRESHOLD = 4,
  CU_HOST_PORTABLE = 1,
  CU_HOST_DEVICE_MAP = 2,
  CU_CAPTURE_RELAXED = 2,
};

#define CU_LAUNCH_END ((void *)0)
#define CU_LAUNCH_BUFFER ((void *)1)
#define CU_LAUNCH_BUFFER_SIZE ((void *)2)

typedef struct CuLocation {
  int32_t type, id;
} CuLocation;

typedef struct CuAllocationProperties {
  int32_t type, handle_types;
  CuLocation location;
  void *win32;
  uint8_t compression, rdma_capable;
  uint16_t usage;
  uint8_t reserved[4];
} CuAllocationProperties;
_Static_assert(sizeof(CuAllocationProperties) == 32, "the driver's layout");

typedef struct CuAccess {
  CuLocation location;
  int32_t flags;
} CuAccess;
_Static_assert(sizeof(CuAccess) == 12, "the driver's layout");

typedef struct CuPoolProperties {
  int32_t type, handle_types;
  CuLocation location;
  void *win32;
  size_t most_bytes;
  uint16_t usage;
  uint8_t reserved[54];
} CuPoolProperties;
_Static_assert(sizeof(CuPoolProperties) == 88, "the driver's layout");

/* X(member, exported name, parameters) */
#define CUDA_SYMBOLS(X)                                                                        \\
  X(cuInit, "cuInit", (unsigned flags))                                                        \\
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                  \\
  X(cuGetErrorName, "cuGetErrorName", (CuResult result, const char **name))                    \\
  X(cuGetErrorString, "cuGetErrorString", (CuResult result, const char **text))                \\
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                        \\
  X(cuDeviceGet, "cuDeviceGet", (CuDevice *device, int ordinal))                               \\
  X(cuDeviceGetName, "cuDeviceGetName", (char *name, int capacity, CuDevice device))           \\
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CuDevice device)) \\
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *bytes, CuDevice device))                 \\
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                                      \\
    (CuContext *context, CuDevice device))                                                     \\
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CuDevice device))              \\
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CuContext context))                                   \\
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free_bytes, size_t *total_bytes))                \\
  X(cuMemAlloc, "cuMemAlloc_v2", (CuPointer *address, size_t bytes))                           \\
  X(cuMemFree, "cuMemFree_v2", (CuPointer address))                                            \\
  X(cuMemHostAlloc, "cuMemHostAlloc", (void **memory, size_t bytes, unsigned flags))           \\
  X(cuMemFreeHost, "cuMemFreeHost", (void *memory))                                            \\
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                 \\
    (CuPointer *address, void *memory, unsigned flags))                                        \\
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                 \\
    (CuPointer destination, const void *source, size_t bytes, CuStream stream))                \\
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                 \\
    (void *destination, CuPointer source, size_t bytes, CuStream stream))                      \\
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                 \\
    (CuPointer destination, CuPointer source, size_t bytes, CuStream stream))                  \\
  X(cuMemsetD8Async, "cuMemsetD8Async",                                                        \\
    (CuPointer address, unsigned char value, size_t count, CuStream stream))                   \\
  X(cuMemsetD16Async, "cuMemsetD16Async",                                                      \\
    (CuPointer address, unsigned short value, size_t count, CuStream stream))                  \\
  X(cuMemsetD32Async, "cuMemsetD32Async",                                                      \\
    (CuPointer address, unsigned value, size_t count, CuStream stream))                        \\
  X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity",                            \\
    (size_t *bytes, const CuAllocationProperties *properties, int option))                     \\
  X(cuMemAddressReserve, "cuMemAddressReserve",                                                \\
    (CuPointer *address, size_t bytes, size_t alignment, CuPointer wanted, uint64_t flags))    \\
  X(cuMemAddressFree, "cuMemAddressFree", (CuPointer address, size_t bytes))                   \\
  X(cuMemCreate, "cuMemCreate",                                                                \\
    (CuAllocation *allocation, size_t bytes, const CuAllocationProperties *properties,         \\
     uint64_t flags))                                                                          \\
  X(cuMemRelease, "cuMemRelease", (CuAllocation allocation))                                   \\
  X(cuMemMap, "cuMemMap",                                                                      \\
    (CuPointer address, size_t bytes, size_t offset, CuAllocation allocation, uint64_t flags)) \\
  X(cuMemUnmap, "cuMemUnmap", (CuPointer address, size_t bytes))                               \\
  X(cuMemSetAccess, "cuMemSetAccess",                                                          \\
    (CuPointer address, size_t bytes, const CuAccess *accesses, size_t count))                 \\
  X(cuStreamCreate, "cuStreamCreate", (CuStream *stream, unsigned flags))                      \\
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CuStream stream))                                  \\
  X(cuStreamSynchronize, "cuStreamSynchronize", (CuStream stream))                             \\
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (CuStream stream, CuEvent event, unsigned flags))  \\
  X(cuEventCreate, "cuEventCreate", (CuEvent *event, unsigned flags))                          \\
  X(cuEventDestroy, "cuEventDestroy_v2", (CuEvent event))                                      \\
  X(cuEventRecord, "cuEventRecord", (CuEvent event, CuStream stream))                          \\
  X(cuEventQuery, "cuEventQuery", (CuEvent event))                                             \\
  X(cuEventSynchronize, "cuEventSynchronize", (CuEvent event))                                 \\
  X(cuEventElapsedTime, "cuEventElapsedTime",                                                  \\
    (float *milliseconds, CuEvent start, CuEvent end))                                         \\
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                  \\
    (CuModule *module, const void *image, unsigned count, int *options, void **values))        \\
  X(cuModuleUnload, "cuModuleUnload", (CuModule module))                                       \\
  X(cuModuleGetFunction, "cuModuleGetFunction",                                                \\
    (CuFunction *function, CuModule module, const char *name))                                 \\
  X(cuLaunchKernel, "cuLaunchKernel",                                                          \\
    (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \\
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream stream, void **args,  \\
     void **extra))

/* All or none: drivers before 11.2 have no pools. */
#define CUDA_POOL_SYMBOLS(X)                                                                   \\
  X(cuMemPoolCreate, "cuMemPoolCreate", (CuPool *pool, const CuPoolProperties *properties))    \\
  X(cuMemPoolDestroy, "cuMemPoolDestroy", (CuPool pool))                                       \\
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", (CuPool pool, int attribute, void *value)) \\
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", (CuPool pool, size_t kept_bytes))                      \\
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                                        \\
    (CuPointer *address, size_t bytes, CuPool pool, CuStream stream))                          \\
  X(cuMemFreeAsync, "cuMemFreeAsync", (CuPointer address, CuStream stream))

/* All or none: drivers before 10.1 have no graphs that a program may capture relaxed. */
#define CUDA_GRAPH_SYMBOLS(X)                                                                  \\
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CuStream stream, int mode))              \\
  X(cuStreamEndCapture, "cuStreamEndCapture", (CuStream stream, CuGraph *graph))               \\
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (CuStream stream, int *status))                \\
  X(cuGraphLaunch, "cuGraphLaunch", (CuGraphExec exec, CuStream stream))                       \\
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CuGraphExec exec))                              \\
  X(cuGraphDestroy, "cuGraphDestroy", (CuGraph graph))

/* One of them is enough: the first came with 11.4, the second is older. */
#define CUDA_INSTANTIATE_SYMBOLS(X)                                                            \\
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                                \\
    (CuGraphExec *exec, CuGraph graph, unsigned long long flags))                              \\
  X(cuGraphInstantiate, "cuGraphInstantiate_v2",                                               \\
    (CuGraphExec *exec, CuGraph graph, void **error_node, char *log, size_t log_bytes))

typedef struct CudaApi {
#define CUDA_MEMBER(member, name, parameters) CuResult(*member) parameters;
  CUDA_SYMBOLS(CUDA_MEMBER)
  CUDA_POOL_SYMBOLS(CUDA_MEMBER)
  CUDA_GRAPH_SYMBOLS(CUDA_MEMBER)
  CUDA_INSTANTIATE_SYMBOLS(CUDA_MEMBER)
#undef CUDA_MEMBER
  int has_pools, has_graphs;
  CuResult initialized; /* what cuInit said */
} CudaApi;

#endif
`,
  "cuda_data.c": `#include <inttypes.h>

#include "cuda.h"

static const CudaApi *api_of(const void *self) { return ((const CudaDevice *)self)->api; }

int32_t cuda_staging_alloc(void *self, size_t size, uint8_t **memory) {
  const CudaApi *api = api_of(self);
  void *pinned = NULL;
  CuResult result = api->cuMemHostAlloc(&pinned, size, 0);
  *memory = pinned;
  return cuda_check(api, result, "cuMemHostAlloc of %zu bytes for staging", size);
}

int32_t cuda_staging_free(void *self, uint8_t *memory) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuMemFreeHost(memory), "cuMemFreeHost");
}

int32_t cuda_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                  void *stream) {
  const CudaApi *api = api_of(self);
  CuResult result;
  if (width == 1) {
    result = api->cuMemsetD8Async(address, (unsigned char)value, count, stream);
  } else if (width == 2) {
    result = api->cuMemsetD16Async(address, (unsigned short)value, count, stream);
  } else {
    result = api->cuMemsetD32Async(address, value, count, stream);
  }
  return cuda_check(api, result,
                     "cuMemsetD%" PRIu32 "Async of %" PRIu64 " elements at 0x%" PRIx64, width * 8,
                     count, address);
}

int32_t cuda_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                     void *stream) {
  const CudaApi *api = api_of(self);
  CuResult result = api->cuMemcpyHtoDAsync(destination, staged, bytes, stream);
  return cuda_check(api, result, "cuMemcpyHtoDAsync of %zu bytes to 0x%" PRIx64, bytes,
                     destination);
}

int32_t cuda_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream) {
  const CudaApi *api = api_of(self);
  CuResult result = api->cuMemcpyDtoHAsync(staged, source, bytes, stream);
  return cuda_check(api, result, "cuMemcpyDtoHAsync of %zu bytes from 0x%" PRIx64, bytes, source);
}

int32_t cuda_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                  void *stream) {
  const CudaApi *api = api_of(self);
  CuResult result = api->cuMemcpyDtoDAsync(destination, source, bytes, stream);
  return cuda_check(api, result,
                     "cuMemcpyDtoDAsync of %" PRIu64 " bytes from 0x%" PRIx64 " to 0x%" PRIx64,
                     bytes, source, destination);
}
`,
  "cuda_error.c": `#include <stdarg.h>
#include <stdio.h>

#include "cuda.h"

static int32_t status_of(CuResult result) {
  switch (result) {
    case CU_SUCCESS:
      return MB_OK;
    case CU_ERROR_OUT_OF_MEMORY:
      return MB_OUT_OF_MEMORY;
    case CU_ERROR_NO_DEVICE:
    case CU_ERROR_INVALID_DEVICE:
      return MB_NO_DEVICE;
    case CU_ERROR_NOT_FOUND:
      return MB_NOT_FOUND;
    case CU_ERROR_NOT_READY:
      return MB_NOT_READY;
    case CU_ERROR_NOT_PERMITTED:
    case CU_ERROR_NOT_SUPPORTED:
      return MB_UNSUPPORTED;
    /* After any of these the context refuses everything. */
    case CU_ERROR_DEINITIALIZED:
    case CU_ERROR_ECC_UNCORRECTABLE:
    case CU_ERROR_NVLINK_UNCORRECTABLE:
    case CU_ERROR_ILLEGAL_ADDRESS:
    case CU_ERROR_LAUNCH_TIMEOUT:
    case CU_ERROR_CONTEXT_IS_DESTROYED:
    case CU_ERROR_ASSERT:
    case CU_ERROR_HARDWARE_STACK:
    case CU_ERROR_ILLEGAL_INSTRUCTION:
    case CU_ERROR_MISALIGNED_ADDRESS:
    case CU_ERROR_INVALID_ADDRESS_SPACE:
    case CU_ERROR_INVALID_PC:
    case CU_ERROR_LAUNCH_FAILED:
      return MB_LOST;
    default:
      return MB_DRIVER;
  }
}

int32_t cuda_check(const CudaApi *api, CuResult result, const char *format, ...) {
  char call[512];
  const char *name = NULL, *text = NULL;
  va_list arguments;
  if (result == CU_SUCCESS) return MB_OK;
  va_start(arguments, format);
  vsnprintf(call, sizeof call, format, arguments);
  va_end(arguments);
  if (api->cuGetErrorName(result, &name) != CU_SUCCESS || !name) name = "unknown error";
  if (api->cuGetErrorString(result, &text) != CU_SUCCESS || !text) text = "no description";
  error_set(status_of(result), result, "%s: %s (%d): %s", call, name, result, text);
  if (status_of(result) == MB_LOST) {
    error_append(": this process can't use the device any more, start a new one");
  }
  return status_of(result);
}
`,
  "cuda_graphs.c": `#include <stdlib.h>

#include "cuda.h"

typedef struct CudaGraph {
  CuGraphExec exec;
  CuGraph captured; /* what it was made of, if that could not be destroyed at once */
} CudaGraph;

static const CudaApi *api_of(const void *self) { return ((const CudaDevice *)self)->api; }

/* Relaxed: while it goes on, memory is allocated, mapped and unmapped by this thread and by
 * others, which the stricter modes forbid. */
int32_t cuda_capture_begin(void *self, void *stream) {
  const CudaApi *api = api_of(self);
  if (!api->has_graphs) {
    return error_set(MB_UNSUPPORTED, 0,
                     "the NVIDIA driver has no graphs: install one of CUDA 10.1 or later");
  }
  return cuda_check(api, api->cuStreamBeginCapture(stream, CU_CAPTURE_RELAXED),
                    "cuStreamBeginCapture");
}

/* One that something spoiled counts too: it has to be ended all the same. */
int32_t cuda_capture_status(void *self, void *stream, bool *capturing) {
  const CudaApi *api = api_of(self);
  int state = 0;
  CuResult result = api->has_graphs ? api->cuStreamIsCapturing(stream, &state) : CU_SUCCESS;
  *capturing = state != 0;
  return cuda_check(api, result, "cuStreamIsCapturing");
}

static int32_t instantiate(const CudaApi *api, CuGraph captured, CudaGraph **graph) {
  CudaGraph *made = calloc(1, sizeof *made);
  CuResult result;
  if (!made) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a graph");
  result = api->cuGraphInstantiateWithFlags
               ? api->cuGraphInstantiateWithFlags(&made->exec, captured, 0)
               : api->cuGraphInstantiate(&made->exec, captured, NULL, NULL, 0);
  if (result == CU_SUCCESS) {
    *graph = made;
  } else {
    free(made);
  }
  return cuda_check(api, result, "cuGraphInstantiate");
}

int32_t cuda_capture_end(void *self, void *stream, void **graph) {
  const CudaApi *api = api_of(self);
  CuGraph captured = NULL;
  CudaGraph *made = NULL;
  CuResult result = api->cuStreamEndCapture(stream, &captured);
  int32_t status = cuda_check(api, result, "cuStreamEndCapture");
  if (result == CU_ERROR_CAPTURE_INVALIDATED) {
    error_append(": something else used the stream through its handle or waited for the "
                 "device meanwhile: capture again without it");
  }
  if (status == MB_OK && graph) status = instantiate(api, captured, &made);
  /* What was instantiated is a copy. */
  if (captured && api->cuGraphDestroy(captured) != CU_SUCCESS && made) made->captured = captured;
  if (made) *graph = made;
  return status;
}

int32_t cuda_graph_launch(void *self, void *graph, void *stream) {
  const CudaApi *api = api_of(self);
  const CudaGraph *launched = graph;
  return cuda_check(api, api->cuGraphLaunch(launched->exec, stream), "cuGraphLaunch");
}

int32_t cuda_graph_destroy(void *self, void *graph) {
  const CudaApi *api = api_of(self);
  CudaGraph *destroyed = graph;
  int32_t status = MB_OK;
  if (destroyed->captured) {
    status = cuda_check(api, api->cuGraphDestroy(destroyed->captured), "cuGraphDestroy");
    if (status == MB_OK) destroyed->captured = NULL;
  }
  if (status == MB_OK) {
    status = cuda_check(api, api->cuGraphExecDestroy(destroyed->exec), "cuGraphExecDestroy");
  }
  if (status == MB_OK) free(destroyed);
  return status;
}
`,
  "cuda_kernels.c": `#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "elf_image.h"

/* The driver looks for the headers of several formats: zeroes follow a short image. */
enum { FATBIN_HEADER_BYTES = 16, PADDING_BYTES = 64 };
static const uint32_t fatbin_magic = 0xBA55ED50;

/* The driver is given no length: it believes what the image says of itself. */
static int32_t check_fatbin(const uint8_t *image, size_t bytes) {
  uint64_t length;
  if (bytes >= FATBIN_HEADER_BYTES) {
    memcpy(&length, image + 8, sizeof length);
    if (length <= bytes - FATBIN_HEADER_BYTES) return MB_OK;
  }
  return error_set(MB_BAD_ARGUMENT, 0, "the module image is a fat binary that is cut off");
}

static int32_t check_image(const uint8_t *image, size_t bytes) {
  if (elf_is_image(image, bytes)) return elf_check(image, bytes);
  if (bytes >= sizeof fatbin_magic && memcmp(image, &fatbin_magic, sizeof fatbin_magic) == 0) {
    return check_fatbin(image, bytes);
  }
  /* PTX is text; a NUL at its end is usual. */
  while (bytes && !image[bytes - 1]) bytes--;
  if (bytes && !memchr(image, 0, bytes)) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "the module image is neither PTX nor a CUDA binary");
}

int32_t cuda_module_load(void *self, const uint8_t *image, size_t bytes, void **module) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  char log[512] = {0};
  int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
  CuModule loaded = NULL;
  CuResult result;
  uint8_t *copy;
  int32_t status = check_image(image, bytes);
  if (status != MB_OK) return status;
  copy = calloc(1, bytes + PADDING_BYTES);
  if (!copy) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory to load a module");
  memcpy(copy, image, bytes);
  result = api->cuModuleLoadDataEx(&loaded, copy, 2, options, values);
  free(copy);
  if (result == CU_SUCCESS) {
    *module = loaded;
    return MB_OK;
  }
  status = cuda_check(api, result, "cuModuleLoadDataEx of %zu bytes", bytes);
  if (log[0]) error_append(": %s", log);
  return status;
}

int32_t cuda_module_unload(void *self, void *module) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  return cuda_check(api, api->cuModuleUnload(module), "cuModuleUnload");
}

int32_t cuda_function(void *self, void *module, const char *name, void **function) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuFunction found = NULL;
  CuResult result = api->cuModuleGetFunction(&found, module, name);
  *function = found;
  return cuda_check(api, result, "cuModuleGetFunction of \\"%s\\"", name);
}

int32_t cuda_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                    const uint8_t *args, size_t args_bytes) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  const uint32_t *grid = geometry->grid, *block = geometry->block;
  union {
    const uint8_t *given;
    void *driver; /* which only reads it */
  } buffer = {args};
  void *extra[] = {CU_LAUNCH_BUFFER, buffer.driver, CU_LAUNCH_BUFFER_SIZE, &args_bytes,
                   CU_LAUNCH_END};
  CuResult result = api->cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                        block[2], geometry->shared_bytes, stream, NULL,
                                        args_bytes ? extra : NULL);
  return cuda_check(api, result, "cuLaunchKernel of %u x %u x %u blocks of %u x %u x %u threads",
                     grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}
`,
  "cuda_library.c": `#include "cuda.h"
#include "vendor_library.h"

#define COUNT(symbols) (sizeof(symbols) / sizeof *(symbols))

#define CUDA_SYMBOL(member, name, parameters) {offsetof(CudaApi, member), name},
static const VendorSymbol symbols[] = {CUDA_SYMBOLS(CUDA_SYMBOL)};
static const VendorSymbol pool_symbols[] = {CUDA_POOL_SYMBOLS(CUDA_SYMBOL)};
static const VendorSymbol graph_symbols[] = {CUDA_GRAPH_SYMBOLS(CUDA_SYMBOL)};
static const VendorSymbol instantiate_symbols[] = {CUDA_INSTANTIATE_SYMBOLS(CUDA_SYMBOL)};
#undef CUDA_SYMBOL

static int32_t fill(void *library, const char *name, void *table) {
  CudaApi *api = table;
  const char *missing = vendor_symbols(library, symbols, COUNT(symbols), api);
  if (missing) {
    return error_set(MB_NO_LIBRARY, 0,
                     "%s lacks the symbol %s: the NVIDIA driver is too old, install a newer one",
                     name, missing);
  }
  api->has_pools = !vendor_symbols(library, pool_symbols, COUNT(pool_symbols), api);
  vendor_symbols(library, instantiate_symbols, 1, api);
  vendor_symbols(library, instantiate_symbols + 1, 1, api);
  api->has_graphs = (api->cuGraphInstantiateWithFlags || api->cuGraphInstantiate) &&
                    !vendor_symbols(library, graph_symbols, COUNT(graph_symbols), api);
  return MB_OK;
}

static bool start(void *table) {
  CudaApi *api = table;
  api->initialized = api->cuInit(0);
  return api->initialized == CU_SUCCESS;
}

static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
static VendorLibrary nvidia = {.driver = "NVIDIA driver",
                               .names = names,
                               .api_bytes = sizeof(CudaApi),
                               .fill = fill,
                               .start = start,
                               .lock = PTHREAD_MUTEX_INITIALIZER};

int32_t cuda_load(const char *library, const CudaApi **api) {
  const void *table = NULL;
  int32_t status = vendor_library_load(&nvidia, library, &table);
  *api = table;
  return status;
}
`,
  "cuda_memory.c": `#include <inttypes.h>

#include "cuda.h"

int32_t cuda_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  size_t free_now = 0, total = 0;
  CuResult result = api->cuMemGetInfo(&free_now, &total);
  *free_bytes = free_now;
  *total_bytes = total;
  return cuda_check(api, result, "cuMemGetInfo");
}

/* The driver says "out of memory" or "invalid value" where it means addresses. */
int32_t cuda_reserve(void *self, uint64_t size, uint64_t *address) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemAddressReserve(address, size, 0, 0, 0);
  int32_t status;
  if (result == CU_SUCCESS) return MB_OK;
  status = cuda_check(api, result, "cuMemAddressReserve of %" PRIu64 " bytes", size);
  if (status == MB_LOST) return status;
  return error_set(MB_OUT_OF_ADDRESSES, result, "%s: ask for less", error_last_text());
}

int32_t cuda_unreserve(void *self, uint64_t address, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemAddressFree(address, size);
  return cuda_check(api, result, "cuMemAddressFree of %" PRIu64 " bytes at 0x%" PRIx64, size,
                     address);
}

CuAllocationProperties cuda_extent_properties(CuDevice device) {
  return (CuAllocationProperties){
      .type = CU_ALLOCATION_PINNED,
      .location = {CU_LOCATION_DEVICE, device},
  };
}

int32_t cuda_extent_create(void *self, uint64_t size, uint64_t *handle) {
  const CudaDevice *device = self;
  CuAllocationProperties properties = cuda_extent_properties(device->device);
  CuResult result = device->api->cuMemCreate(handle, size, &properties, 0);
  return cuda_check(device->api, result, "cuMemCreate of %" PRIu64 " bytes", size);
}

int32_t cuda_extent_release(void *self, uint64_t handle, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemRelease(handle);
  return cuda_check(api, result, "cuMemRelease of %" PRIu64 " bytes", size);
}

int32_t cuda_map(void *self, uint64_t address, uint64_t size, uint64_t handle) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemMap(address, size, 0, handle, 0);
  return cuda_check(api, result, "cuMemMap of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

int32_t cuda_set_access(void *self, uint64_t address, uint64_t size, int32_t access) {
  const CudaDevice *device = self;
  CuAccess granted = {{CU_LOCATION_DEVICE, device->device}, access};
  CuResult result = device->api->cuMemSetAccess(address, size, &granted, 1);
  return cuda_check(device->api, result,
                     "cuMemSetAccess to %" PRId32 " of %" PRIu64 " bytes at 0x%" PRIx64, access,
                     size, address);
}

int32_t cuda_unmap(void *self, uint64_t address, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemUnmap(address, size);
  return cuda_check(api, result, "cuMemUnmap of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}
`,
  "cuda_pinned.c": `#include <inttypes.h>

#include "cuda.h"

int32_t cuda_pinned_alloc(void *self, uint64_t size, uint64_t *address) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  void *memory = NULL;
  CuPointer seen = 0;
  CuResult result = api->cuMemHostAlloc(&memory, size, CU_HOST_PORTABLE | CU_HOST_DEVICE_MAP);
  int32_t status = cuda_check(api, result, "cuMemHostAlloc of %" PRIu64 " bytes", size);
  if (status != MB_OK) return status;
  result = api->cuMemHostGetDevicePointer(&seen, memory, 0);
  if (result == CU_SUCCESS && seen == (uintptr_t)memory) {
    *address = seen;
    return MB_OK;
  }
  status = result == CU_SUCCESS
               ? error_set(MB_UNSUPPORTED, 0,
                           "the device has page-locked memory at other addresses than the "
                           "host: use a device with unified addressing")
               : cuda_check(api, result, "cuMemHostGetDevicePointer");
  api->cuMemFreeHost(memory);
  return status;
}

int32_t cuda_pinned_free(void *self, uint64_t address, uint64_t size) {
  const CudaApi *api = ((CudaDevice *)self)->api;
  CuResult result = api->cuMemFreeHost((void *)(uintptr_t)address);
  return cuda_check(api, result, "cuMemFreeHost of %" PRIu64 " bytes at 0x%" PRIx64, size,
                    address);
}
`,
  "cuda_streams.c": `#include "cuda.h"

static const CudaApi *api_of(const void *self) { return ((const CudaDevice *)self)->api; }

void *cuda_default_stream(void *self) {
  (void)self;
  return NULL;
}

int32_t cuda_stream_create(void *self, void **stream) {
  const CudaApi *api = api_of(self);
  CuStream created = NULL;
  CuResult result = api->cuStreamCreate(&created, CU_STREAM_NON_BLOCKING);
  *stream = created;
  return cuda_check(api, result, "cuStreamCreate");
}

int32_t cuda_stream_destroy(void *self, void *stream) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuStreamDestroy(stream), "cuStreamDestroy");
}

int32_t cuda_stream_synchronize(void *self, void *stream) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuStreamSynchronize(stream), "cuStreamSynchronize");
}

uint64_t cuda_stream_handle(void *self, void *stream) {
  (void)self;
  return (uintptr_t)stream;
}

int32_t cuda_stream_wait(void *self, void *stream, void *event) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}

int32_t cuda_event_create(void *self, int32_t timing, void **event) {
  const CudaApi *api = api_of(self);
  CuEvent created = NULL;
  CuResult result = api->cuEventCreate(&created, timing ? 0 : CU_EVENT_DISABLE_TIMING);
  *event = created;
  return cuda_check(api, result, "cuEventCreate");
}

int32_t cuda_event_destroy(void *self, void *event) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuEventDestroy(event), "cuEventDestroy");
}

int32_t cuda_event_record(void *self, void *event, void *stream) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuEventRecord(event, stream), "cuEventRecord");
}

/* Not ready is an answer, no error to keep a text for. */
int32_t cuda_event_query(void *self, void *event) {
  const CudaApi *api = api_of(self);
  CuResult result = api->cuEventQuery(event);
  if (result == CU_ERROR_NOT_READY) return MB_NOT_READY;
  return cuda_check(api, result, "cuEventQuery");
}

int32_t cuda_event_synchronize(void *self, void *event) {
  const CudaApi *api = api_of(self);
  return cuda_check(api, api->cuEventSynchronize(event), "cuEventSynchronize");
}

int32_t cuda_event_elapsed(void *self, void *start, void *end, double *milliseconds) {
  const CudaApi *api = api_of(self);
  float elapsed = 0;
  CuResult result = api->cuEventElapsedTime(&elapsed, start, end);
  if (result == CU_ERROR_NOT_READY) return MB_NOT_READY;
  *milliseconds = (double)elapsed;
  return cuda_check(api, result, "cuEventElapsedTime");
}
`,
  "data.c": `#include <inttypes.h>
#include <string.h>

#include "captures.h"
#include "check.h"

static int32_t check_fill(uint32_t value, uint32_t width) {
  if (width != 1 && width != 2 && width != 4) {
    return error_set(MB_BAD_ARGUMENT, 0, "width must be 1, 2 or 4 bytes, got %" PRIu32, width);
  }
  if (width < 4 && value >> 8 * width) {
    return error_set(MB_BAD_ARGUMENT, 0, "value %" PRIu32 " does not fit into %" PRIu32 " bytes",
                     value, width);
  }
  return MB_OK;
}

int32_t mb_memset(uint32_t device, double address, uint32_t value, uint32_t width,
                  double count, uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  uint64_t start, elements;
  int32_t status = check_fill(value, width);
  if (status == MB_OK) status = check_size("count", count, 1, &elements);
  /* width * elements stays below 2^55. */
  if (status == MB_OK) status = check_address("address", address, width, elements * width, &start);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = range_check(d, start, elements * width, MB_ACCESS_READ_WRITE);
  if (status == MB_OK) status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status == MB_OK) {
    status = d->backend->fill(d->self, start, value, width, elements, s->handle);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

static size_t chunk_length(uint64_t left) {
  return left < STAGING_CHUNK_BYTES ? (size_t)left : STAGING_CHUNK_BYTES;
}

/* A copy that was queued without its event: the chunk is safe only once the stream is. */
static void drain(MbDevice *device, void *stream) {
  MbError error;
  error_save(&error);
  device->backend->stream_synchronize(device->self, stream);
  error_restore(&error);
}

static int32_t copy_in(MbDevice *device, uint64_t destination, const uint8_t *source,
                       uint64_t bytes, void *stream) {
  for (uint64_t done = 0; done < bytes;) {
    size_t length = chunk_length(bytes - done);
    StagingChunk *chunk;
    int32_t status = staging_take(device, &chunk);
    if (status != MB_OK) return status;
    memcpy(chunk->memory, source + done, length);
    status = device->backend->copy_in(device->self, destination + done, chunk->memory, length,
                                      stream);
    if (status == MB_OK) status = device->backend->event_record(device->self, chunk->event, stream);
    if (status != MB_OK) drain(device, stream);
    staging_give(device, chunk, status == MB_OK);
    if (status != MB_OK) return status;
    done += length;
  }
  return MB_OK;
}

int32_t mb_copy_in(uint32_t device, double destination, const uint8_t *source, double bytes,
                   uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  uint64_t start, length;
  int32_t status = check_pointer("source", source);
  if (status == MB_OK) status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK) status = check_address("destination", destination, 1, length, &start);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = range_check(d, start, length, MB_ACCESS_READ_WRITE);
  if (status == MB_OK) status = stream_pin_uncaptured(d, stream, "a copy from the host", &s);
  if (status == MB_OK) {
    status = copy_in(d, start, source, length, s->handle);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

/* Queues the next piece into chunks[turn] while an earlier one is awaited and emptied. */
static int32_t copy_out_through(MbDevice *device, uint8_t *destination, uint64_t source,
                                uint64_t bytes, void *stream, StagingChunk *const *chunks,
                                uint32_t chunk_count) {
  uint64_t queued = 0, done = 0;
  uint32_t in_flight = 0, next_in = 0, next_out = 0;
  while (done < bytes) {
    StagingChunk *chunk;
    size_t length;
    int32_t status = MB_OK;
    while (queued < bytes && in_flight < chunk_count && status == MB_OK) {
      chunk = chunks[next_in];
      length = chunk_length(bytes - queued);
      status = device->backend->copy_out(device->self, chunk->memory, source + queued, length,
                                         stream);
      if (status == MB_OK) {
        status = device->backend->event_record(device->self, chunk->event, stream);
      }
      queued += length;
      next_in = (next_in + 1) % chunk_count;
      in_flight++;
    }
    chunk = chunks[next_out];
    if (status == MB_OK) status = device->backend->event_synchronize(device->self, chunk->event);
    if (status != MB_OK) {
      drain(device, stream);
      return status;
    }
    length = chunk_length(bytes - done);
    memcpy(destination + done, chunk->memory, length);
    done += length;
    next_out = (next_out + 1) % chunk_count;
    in_flight--;
  }
  return MB_OK;
}

static int32_t copy_out(MbDevice *device, uint8_t *destination, uint64_t source, uint64_t bytes,
                        void *stream) {
  StagingChunk *chunks[2] = {NULL, NULL};
  int32_t status = staging_take(device, &chunks[0]);
  if (status != MB_OK) return status;
  if (bytes > STAGING_CHUNK_BYTES) chunks[1] = staging_take_spare(device);
  status = copy_out_through(device, destination, source, bytes, stream, chunks,
                            chunks[1] ? 2 : 1);
  staging_give(device, chunks[0], false);
  if (chunks[1]) staging_give(device, chunks[1], false);
  return status;
}

int32_t mb_copy_out(uint32_t device, uint8_t *destination, double source, double bytes,
                    uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  uint64_t start, length;
  int32_t status = check_pointer("destination", destination);
  if (status == MB_OK) status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK) status = check_address("source", source, 1, length, &start);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = range_check(d, start, length, MB_ACCESS_READ);
  if (status == MB_OK) status = stream_pin_uncaptured(d, stream, "a copy to the host", &s);
  if (status == MB_OK) {
    status = copy_out(d, destination, start, length, s->handle);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

int32_t mb_copy(uint32_t device, double destination, double source, double bytes,
                uint32_t stream) {
  MbDevice *d;
  MbObject *s;
  uint64_t to, from, length;
  int32_t status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK) status = check_address("destination", destination, 1, length, &to);
  if (status == MB_OK) status = check_address("source", source, 1, length, &from);
  if (status == MB_OK && to < from + length && from < to + length) {
    status = error_set(MB_BAD_ARGUMENT, 0, "destination and source must not overlap");
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = range_check(d, to, length, MB_ACCESS_READ_WRITE);
  if (status == MB_OK) status = range_check(d, from, length, MB_ACCESS_READ);
  if (status == MB_OK) status = object_pin(d, OBJECT_STREAM, stream, &s);
  if (status == MB_OK) {
    status = d->backend->copy(d->self, to, from, length, s->handle);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}
`,
  "device.h": `/* An open device, and how calls enter and leave it.
 *
 * Locks, in the order in which they are taken:
 *   vmm_lock     one reserve, create, map or unmap at a time; held during driver calls
 *   range_lock   what data calls look up; never held during a driver call
 *   object_lock  streams, events, modules, functions, graphs; never held during a driver call
 * Extents, reservations and their granules change under vmm_lock and range_lock both, so
 * holding either is enough to read them. */
#ifndef MOONBRIGHT_DEVICE_H
#define MOONBRIGHT_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "allocations.h"
#include "backend.h"
#include "ids.h"
#include "objects.h"
#include "reservations.h"
#include "staging.h"

typedef struct MbExtent {
  uint64_t size, handle;
  uint32_t mappings; /* addresses at which it is mapped; under vmm_lock */
  bool listed;       /* finds duplicates in one release call; under vmm_lock */
} MbExtent;

typedef struct MbDevice {
  const MbBackend *backend;
  void *self;
  uint64_t granularity; /* 0 if memory can't be mapped at chosen addresses */

  /* Of the registry, under its lock. */
  uint32_t calls_in_flight;
  bool closing;

  /* Set once, when a call finds the context dead. */
  pthread_mutex_t lost_lock;
  atomic_bool lost;
  MbError lost_error;

  pthread_mutex_t vmm_lock;
  pthread_mutex_t range_lock;
  MbTable extents;
  Reservations reservations;
  Allocations allocations; /* under range_lock alone */
  pthread_cond_t pinned_unused;

  pthread_mutex_t object_lock;
  pthread_cond_t object_unpinned;
  MbTable streams, events, modules, functions, graphs;
  MbObject default_stream;
  uint32_t captures; /* streams that are capturing, or begin or end it */
  uint32_t waits;    /* calls that wait for all streams: no capture begins meanwhile */

  Staging staging;
} MbDevice;

/* Finds the device, holds off its closing and makes its context current. Every MB_OK is
 * followed by a device_leave; after any other status there is nothing to leave. */
int32_t device_enter(uint32_t id, MbDevice **device);
/* Returns the status; MB_LOST makes the device lost. */
int32_t device_leave(MbDevice *device, int32_t status);

/* Waits for all streams of the device; captures_hold_off comes before. Not for the whole of a
 * GPU's context: that would spoil what other devices of the same GPU capture, and fail. */
int32_t streams_synchronize(MbDevice *device);

/* As device_enter, for a device that can map memory, with vmm_lock taken. */
int32_t device_enter_vmm(uint32_t id, MbDevice **device);
int32_t device_leave_vmm(MbDevice *device, int32_t status);

#endif
`,
  "devices.c": `#define _GNU_SOURCE
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
`,
  "elf_image.c": `#include "elf_image.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

bool elf_is_image(const uint8_t *image, size_t bytes) {
  return bytes >= SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0;
}

static int32_t bad(const char *why) {
  return error_set(MB_BAD_ARGUMENT, 0, "the module image is no usable object: %s", why);
}

static bool inside(uint64_t offset, uint64_t length, uint64_t bytes) {
  return offset <= bytes && length <= bytes - offset;
}

/* Copies: an image need not be aligned. */
static Elf64_Ehdr header_of(const uint8_t *image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  return header;
}

static Elf64_Phdr segment_of(const uint8_t *image, const Elf64_Ehdr *header, uint32_t index) {
  Elf64_Phdr segment;
  memcpy(&segment, image + header->e_phoff + index * sizeof segment, sizeof segment);
  return segment;
}

static int32_t check_segments(const uint8_t *image, size_t bytes, const Elf64_Ehdr *header) {
  if (!header->e_phnum) return MB_OK;
  if (header->e_phentsize != sizeof(Elf64_Phdr)) return bad("program headers of unknown size");
  if (!inside(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), bytes)) {
    return bad("its program headers lie beyond its end");
  }
  for (uint32_t i = 0; i < header->e_phnum; i++) {
    const Elf64_Phdr segment = segment_of(image, header, i);
    if (segment.p_type != PT_NULL && !inside(segment.p_offset, segment.p_filesz, bytes)) {
      return bad("a segment lies beyond its end");
    }
    if (segment.p_type == PT_LOAD && segment.p_filesz > segment.p_memsz) {
      return bad("a segment is larger in the file than in memory");
    }
  }
  return MB_OK;
}

static int32_t check_sections(const uint8_t *image, size_t bytes, const Elf64_Ehdr *header) {
  if (!header->e_shoff || !header->e_shnum) return MB_OK;
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return bad("section headers of unknown size");
  if (!inside(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), bytes)) {
    return bad("its section headers lie beyond its end: is it cut off?");
  }
  for (uint32_t i = 0; i < header->e_shnum; i++) {
    Elf64_Shdr section;
    memcpy(&section, image + header->e_shoff + i * sizeof section, sizeof section);
    /* Types of the vendors' own need not have bytes in the file. */
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS ||
        section.sh_type >= SHT_LOOS) {
      continue;
    }
    if (!inside(section.sh_offset, section.sh_size, bytes)) {
      return bad("a section lies beyond its end");
    }
  }
  return MB_OK;
}

int32_t elf_check(const uint8_t *image, size_t bytes) {
  Elf64_Ehdr header;
  int32_t status;
  if (!elf_is_image(image, bytes)) return bad("it does not begin as an ELF file");
  if (bytes < sizeof header) return bad("it is shorter than an ELF header");
  header = header_of(image);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return bad("it is not of 64 bits");
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) return bad("it is not little-endian");
  status = check_segments(image, bytes, &header);
  return status == MB_OK ? check_sections(image, bytes, &header) : status;
}

/* Whether one loaded segment holds the addresses; in_file: with bytes from the file. */
static bool is_loaded(const uint8_t *image, uint64_t address, uint64_t length, bool in_file) {
  const Elf64_Ehdr header = header_of(image);
  for (uint32_t i = 0; i < header.e_phnum; i++) {
    const Elf64_Phdr segment = segment_of(image, &header, i);
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        inside(address - segment.p_vaddr, length,
               in_file ? segment.p_filesz : segment.p_memsz)) {
      return true;
    }
  }
  return false;
}

/* The loader computes where segments go from the first and the last. */
static int32_t check_loads(const uint8_t *image, const Elf64_Ehdr *header) {
  const uint64_t largest = UINT64_C(1) << 32;
  uint64_t end = 0;
  uint32_t loads = 0;
  for (uint32_t i = 0; i < header->e_phnum; i++) {
    const Elf64_Phdr segment = segment_of(image, header, i);
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr < end || segment.p_vaddr > largest || segment.p_memsz > largest) {
      return bad("its segments overlap or are too large");
    }
    end = segment.p_vaddr + segment.p_memsz;
    loads++;
  }
  return loads ? MB_OK : bad("it has nothing to load");
}

static bool is_address_tag(int64_t tag) {
  switch (tag) {
    case DT_HASH:
    case DT_GNU_HASH:
    case DT_STRTAB:
    case DT_SYMTAB:
    case DT_RELA:
    case DT_REL:
    case DT_JMPREL:
    case DT_INIT:
    case DT_FINI:
    case DT_INIT_ARRAY:
    case DT_FINI_ARRAY:
    case DT_VERSYM:
    case DT_VERDEF:
    case DT_VERNEED:
      return true;
    default:
      return false;
  }
}

static int32_t check_dynamic(const uint8_t *image, const Elf64_Phdr *dynamic) {
  bool strings = false, symbols = false;
  if (!is_loaded(image, dynamic->p_vaddr, dynamic->p_filesz, true)) {
    return bad("its dynamic section is not loaded");
  }
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    memcpy(&entry, image + dynamic->p_offset + at, sizeof entry);
    if (entry.d_tag == DT_NULL) {
      return strings && symbols ? MB_OK : bad("its dynamic section names no symbols");
    }
    if (is_address_tag(entry.d_tag) && !is_loaded(image, entry.d_un.d_ptr, 1, false)) {
      return bad("its dynamic section points outside of it");
    }
    strings |= entry.d_tag == DT_STRTAB;
    symbols |= entry.d_tag == DT_SYMTAB;
  }
  return bad("its dynamic section has no end");
}

int32_t elf_check_shared_object(const uint8_t *image, size_t bytes, uint16_t machine) {
  Elf64_Ehdr header;
  int32_t status = elf_check(image, bytes);
  if (status != MB_OK) return status;
  header = header_of(image);
  if (header.e_machine != machine) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "the module image is for ELF machine %u, this device needs %u",
                     header.e_machine, machine);
  }
  if (header.e_type != ET_DYN) return bad("it is not a shared object");
  status = check_loads(image, &header);
  if (status != MB_OK) return status;
  for (uint32_t i = 0; i < header.e_phnum; i++) {
    const Elf64_Phdr segment = segment_of(image, &header, i);
    if (segment.p_type == PT_DYNAMIC) return check_dynamic(image, &segment);
  }
  return bad("it has no dynamic section");
}
`,
  "elf_image.h": `/* Loaders trust the tables of an ELF file: what they point to is checked first. That
 * keeps a cut, foreign or damaged file from ending the process; an object that is built
 * to do harm does it when it runs. */
#ifndef MOONBRIGHT_ELF_IMAGE_H
#define MOONBRIGHT_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

bool elf_is_image(const uint8_t *image, size_t bytes);
/* Checks the header, segments and sections. */
int32_t elf_check(const uint8_t *image, size_t bytes);
/* Checks what dlopen reads as well; machine as in the ELF header. */
int32_t elf_check_shared_object(const uint8_t *image, size_t bytes, uint16_t machine);

#endif
`,
  "error.c": `#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local MbError last;

int32_t error_set(int32_t status, int32_t driver_code, const char *format, ...) {
  /* Built aside: an argument may point into the text that is replaced. */
  char text[sizeof last.text];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  memcpy(last.text, text, sizeof text);
  last.status = status;
  last.driver_code = driver_code;
  return status;
}

void error_append(const char *format, ...) {
  char text[sizeof last.text];
  size_t length = strlen(last.text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(last.text + length, sizeof last.text - length, "%s", text);
}

void error_save(MbError *error) { *error = last; }

int32_t error_restore(const MbError *error) {
  last = *error;
  return last.status;
}

const char *error_last_text(void) { return last.text; }

uint32_t error_cut(const char *text, uint32_t length, uint32_t capacity) {
  if (length <= capacity) return length;
  length = capacity;
  while (length > 0 && ((unsigned char)text[length] & 0xC0u) == 0x80u) length--;
  return length;
}

int32_t mb_error_text(uint8_t *text, uint32_t capacity) {
  uint32_t length = (uint32_t)strlen(last.text);
  if (!text) return (int32_t)length;
  length = error_cut(last.text, length, capacity);
  memcpy(text, last.text, length);
  return (int32_t)length;
}

int32_t mb_driver_code(void) { return last.driver_code; }

int32_t mb_abi_version(void) { return MB_ABI_VERSION; }
`,
  "error.h": `/* The calling thread's last error: what mb_error_text and mb_driver_code report. */
#ifndef MOONBRIGHT_ERROR_H
#define MOONBRIGHT_ERROR_H

#include "moonbright.h"

typedef struct MbError {
  int32_t status, driver_code;
  char text[1024];
} MbError;

/* Notes an error and returns its status, so that callers can return the call. */
int32_t error_set(int32_t status, int32_t driver_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds to the text of the last error: what an undo could not restore. */
void error_append(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An undo runs calls that may fail themselves: keep the first error across them. */
void error_save(MbError *error);
int32_t error_restore(const MbError *error);

/* The last error's text, for building another from it. */
const char *error_last_text(void);

/* Length of a text cut to capacity without splitting a UTF-8 character. */
uint32_t error_cut(const char *text, uint32_t length, uint32_t capacity);

#endif
`,
  "events.c": `#include <inttypes.h>

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
`,
  "extents.c": `#include <inttypes.h>
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
`,
  "forks.c": `#include "forks.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_bool forked;

/* Of the child's only thread, before fork returns in it. */
static void note_fork(void) { atomic_store(&forked, 1); }

static void watch(void) { pthread_atfork(NULL, NULL, note_fork); }

void forks_watch(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
}

int32_t forks_check(void) {
  if (!atomic_load(&forked)) return MB_OK;
  return error_set(MB_UNSUPPORTED, 0,
                   "this process was forked from one that used MoonBright, and a driver can't "
                   "be used in a forked child: start a new program in the child (exec) and "
                   "open the device there");
}
`,
  "forks.h": `/* A forked child has its parent's memory but not its threads, nor its driver's state: no
 * vendor's driver can be used there, and a lock may be held by a thread that is gone. */
#ifndef MOONBRIGHT_FORKS_H
#define MOONBRIGHT_FORKS_H

#include "error.h"

/* From here on a fork is noticed in the child. */
void forks_watch(void);
/* MB_UNSUPPORTED in the child of a process that had used the library. */
int32_t forks_check(void);

#endif
`,
  "graphs.c": `#include "captures.h"

int32_t mb_graph_launch(uint32_t device, uint32_t graph, uint32_t stream) {
  MbDevice *d;
  MbObject *g, *s;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_GRAPH, graph, &g);
  if (status != MB_OK) return device_leave(d, status);
  status = stream_pin_uncaptured(d, stream, "another graph", &s);
  if (status == MB_OK) {
    status = d->backend->graph_launch(d->self, g->handle, s->handle);
    object_unpin(d, s);
  }
  object_unpin(d, g);
  return device_leave(d, status);
}

int32_t mb_graph_destroy(uint32_t device, uint32_t graph) {
  MbDevice *d;
  MbObject *claimed;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_claim(d, OBJECT_GRAPH, graph, &claimed);
  if (status == MB_OK) {
    status = d->backend->graph_destroy(d->self, claimed->handle);
    if (status == MB_OK) held_modules_release(d, &claimed->held);
    object_end_claim(d, OBJECT_GRAPH, graph, status == MB_OK);
  }
  return device_leave(d, status);
}
`,
  "hip.c": `#define _GNU_SOURCE
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
    return "/dev/kfd may not be opened: add the user to the groups \\"render\\" and \\"video\\"";
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
`,
  "hip.h": `/* The hip backend's device.
 *
 * HIP has no contexts to hold: a thread names the device it means. What its virtual memory
 * calls want beyond CUDA's, by version, is said where it is done: hip_vmm.c and
 * hip_memory.c. Written from the vendor's headers and source; not yet run on AMD hardware. */
#ifndef MOONBRIGHT_HIP_H
#define MOONBRIGHT_HIP_H

#include <pthread.h>

#include "backend.h"
#include "hip_api.h"

/* A reservation whose first usable address is not the driver's. */
typedef struct HipShifted {
  struct HipShifted *next;
  uint64_t address, driver_address, driver_size;
} HipShifted;

typedef struct HipDevice {
  const HipApi *api;
  HipDeviceId device;
  uint64_t granularity;  /* 0 if memory can't be mapped at chosen addresses */
  uint32_t most_handles; /* of extents in this process, 0 for no limit */
  uint32_t settle_ms;    /* how long a new mapping takes to be seen by the device */
  HipShifted *shifted;
  pthread_mutex_t pool_lock;
  HipPool pool; /* null until first used */
} HipDevice;

/* Loads the library once per path and keeps it; null for the usual names. */
int32_t hip_load(const char *library, const HipApi **api);

/* The status of a result. Failures are noted in the driver's words, after a format that
 * names the call: "call: NAME (code): description", without the last if there is none. */
int32_t hip_check(const HipApi *api, HipResult result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether the device can map memory at chosen addresses, found out by doing so. The device
 * must be current. granularity: 0 if it can't; then why says why not. */
int32_t hip_find_granularity(const HipApi *api, HipDeviceId device, uint64_t *granularity,
                             char *why, size_t why_bytes);

/* Most extents that the process may hold, 0 for no limit: a handle may take a descriptor. */
uint32_t hip_most_handles(void);
/* Counts one more, unless there are that many. */
bool hip_handle_take(uint32_t most);
void hip_handle_give(void);
/* Whether the process can open no file any more. */
bool hip_descriptors_used_up(void);

/* What all extents of a device are made with. */
HipAllocationProperties hip_extent_properties(HipDeviceId device);

int32_t hip_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes);
int32_t hip_reserve(void *self, uint64_t size, uint64_t *address);
int32_t hip_unreserve(void *self, uint64_t address, uint64_t size);
int32_t hip_extent_create(void *self, uint64_t size, uint64_t *handle);
int32_t hip_extent_release(void *self, uint64_t handle, uint64_t size);
int32_t hip_map(void *self, uint64_t address, uint64_t size, uint64_t handle);
int32_t hip_set_access(void *self, uint64_t address, uint64_t size, int32_t access);
int32_t hip_unmap(void *self, uint64_t address, uint64_t size);
void hip_settle(void *self);

int32_t hip_plain_alloc(void *self, uint64_t size, uint64_t *address);
int32_t hip_plain_free(void *self, uint64_t address, uint64_t size);
int32_t hip_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address);
int32_t hip_pool_free(void *self, uint64_t address, uint64_t size, void *stream);
int32_t hip_pool_trim(void *self);

void *hip_default_stream(void *self);
int32_t hip_stream_create(void *self, void **stream);
int32_t hip_stream_destroy(void *self, void *stream);
int32_t hip_stream_synchronize(void *self, void *stream);
uint64_t hip_stream_handle(void *self, void *stream);
int32_t hip_stream_wait(void *self, void *stream, void *event);
int32_t hip_event_create(void *self, int32_t timing, void **event);
int32_t hip_event_destroy(void *self, void *event);
int32_t hip_event_record(void *self, void *event, void *stream);
int32_t hip_event_query(void *self, void *event);
int32_t hip_event_synchronize(void *self, void *event);
int32_t hip_event_elapsed(void *self, void *start, void *end, double *milliseconds);

int32_t hip_staging_alloc(void *self, size_t size, uint8_t **memory);
int32_t hip_staging_free(void *self, uint8_t *memory);
int32_t hip_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                 void *stream);
int32_t hip_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                    void *stream);
int32_t hip_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream);
int32_t hip_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                 void *stream);

int32_t hip_pinned_alloc(void *self, uint64_t size, uint64_t *address);
int32_t hip_pinned_free(void *self, uint64_t address, uint64_t size);

int32_t hip_capture_begin(void *self, void *stream);
int32_t hip_capture_status(void *self, void *stream, bool *capturing);
int32_t hip_capture_end(void *self, void *stream, void **graph);
int32_t hip_graph_launch(void *self, void *graph, void *stream);
int32_t hip_graph_destroy(void *self, void *graph);

int32_t hip_module_load(void *self, const uint8_t *image, size_t bytes, void **module);
int32_t hip_module_unload(void *self, void *module);
int32_t hip_function(void *self, void *module, const char *name, void **function);
int32_t hip_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                   const uint8_t *args, size_t args_bytes);

#endif
`,
  "hip_allocators.c": `/* hipMalloc, and a stream-ordered pool of the device's own. */
#include <inttypes.h>

#include "hip.h"

int32_t hip_plain_alloc(void *self, uint64_t size, uint64_t *address) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipPointer memory = NULL;
  HipResult result = api->hipMalloc(&memory, size);
  *address = (uintptr_t)memory;
  return hip_check(api, result, "hipMalloc of %" PRIu64 " bytes", size);
}

int32_t hip_plain_free(void *self, uint64_t address, uint64_t size) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result = api->hipFree((HipPointer)(uintptr_t)address);
  return hip_check(api, result, "hipFree of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

/* With pool_lock. A pool that keeps all that is freed until it is trimmed. */
static int32_t create_pool(HipDevice *device) {
  HipPoolProperties properties = {
      .type = HIP_ALLOCATION_PINNED,
      .location = {HIP_LOCATION_DEVICE, device->device},
  };
  const HipApi *api = device->api;
  uint64_t kept = UINT64_MAX;
  HipPool pool = NULL;
  HipResult result = api->hipMemPoolCreate(&pool, &properties);
  if (result != HIP_RESULT_SUCCESS) return hip_check(api, result, "hipMemPoolCreate");
  result = api->hipMemPoolSetAttribute(pool, HIP_POOL_RELEASE_THRESHOLD, &kept);
  if (result != HIP_RESULT_SUCCESS) {
    api->hipMemPoolDestroy(pool);
    return hip_check(api, result, "hipMemPoolSetAttribute");
  }
  device->pool = pool;
  return MB_OK;
}

static int32_t get_pool(HipDevice *device, HipPool *pool) {
  int32_t status = MB_OK;
  if (!device->api->has_pools) {
    return error_set(MB_UNSUPPORTED, 0, "the HIP runtime has no stream-ordered pools");
  }
  pthread_mutex_lock(&device->pool_lock);
  if (!device->pool) status = create_pool(device);
  *pool = device->pool;
  pthread_mutex_unlock(&device->pool_lock);
  return status;
}

int32_t hip_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address) {
  HipDevice *device = self;
  HipPool pool;
  HipPointer memory = NULL;
  HipResult result;
  int32_t status = get_pool(device, &pool);
  if (status != MB_OK) return status;
  result = device->api->hipMallocFromPoolAsync(&memory, size, pool, stream);
  *address = (uintptr_t)memory;
  return hip_check(device->api, result, "hipMallocFromPoolAsync of %" PRIu64 " bytes", size);
}

int32_t hip_pool_free(void *self, uint64_t address, uint64_t size, void *stream) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result = api->hipFreeAsync((HipPointer)(uintptr_t)address, stream);
  return hip_check(api, result, "hipFreeAsync of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

int32_t hip_pool_trim(void *self) {
  HipDevice *device = self;
  HipPool pool;
  int32_t status = get_pool(device, &pool);
  if (status != MB_OK) return status;
  return hip_check(device->api, device->api->hipMemPoolTrimTo(pool, 0), "hipMemPoolTrimTo");
}
`,
  "hip_api.h": `/* The part of AMD's HIP runtime that the hip backend calls, declared here because no header
 * of theirs is needed to build, and loaded at run time. A test compiles it beside the
 * vendor's headers and compares layouts and values. */
#ifndef MOONBRIGHT_HIP_API_H
#define MOONBRIGHT_HIP_API_H

#include <stddef.h>
#include <stdint.h>

typedef int HipResult;
typedef int HipDeviceId;
typedef void *HipPointer;
typedef struct HipAllocationOpaque *HipAllocation;
typedef struct HipStreamOpaque *HipStream;
typedef struct HipEventOpaque *HipEvent;
typedef struct HipModuleOpaque *HipModule;
typedef struct HipFunctionOpaque *HipFunction;
typedef struct HipPoolOpaque *HipPool;
typedef struct HipGraphOpaque *HipGraph;
typedef struct HipGraphExecOpaque *HipGraphExec;

enum {
  HIP_RESULT_SUCCESS = 0,
  HIP_RESULT_INVALID_VALUE = 1,
  HIP_RESULT_OUT_OF_MEMORY = 2,
  HIP_RESULT_DEINITIALIZED = 4,
  HIP_RESULT_NO_DEVICE = 100,
  HIP_RESULT_INVALID_DEVICE = 101,
  HIP_RESULT_NO_BINARY_FOR_GPU = 209,
  HIP_RESULT_ECC_UNCORRECTABLE = 214,
  HIP_RESULT_NOT_FOUND = 500,
  HIP_RESULT_NOT_READY = 600,
  HIP_RESULT_ILLEGAL_ADDRESS = 700,
  HIP_RESULT_LAUNCH_TIMEOUT = 702,
  HIP_RESULT_ASSERT = 710,
  HIP_RESULT_LAUNCH_FAILURE = 719,
  HIP_RESULT_NOT_SUPPORTED = 801,
  HIP_RESULT_CAPTURE_INVALIDATED = 901,
};

/* hipDeviceAttribute_t. The same numbers from 5.2 to 7.14; they are not CUDA's. */
enum {
  HIP_ATTRIBUTE_INTEGRATED = 16,
  HIP_ATTRIBUTE_MULTIPROCESSORS = 63,
  HIP_ATTRIBUTE_POOLS = 88,
  HIP_ATTRIBUTE_VMM = 89,
};

enum {
  HIP_ALLOCATION_PINNED = 1,
  HIP_LOCATION_DEVICE = 1,
  HIP_GRANULARITY_MINIMUM = 0,
  HIP_GRANULARITY_RECOMMENDED = 1,
  HIP_STREAM_NON_BLOCKING = 1,
  HIP_EVENT_DISABLE_TIMING = 2,
  HIP_POOL_RELEASE_THRESHOLD = 4,
  HIP_HOST_PORTABLE = 1,
  HIP_HOST_DEVICE_MAP = 2,
  HIP_CAPTURE_RELAXED = 2,
};

/* hipRuntimeGetVersion: major * 10^7 + minor * 10^5 + patch. Before it, reserving addresses
 * reports success on Linux and gives none. */
enum { HIP_FIRST_VMM_VERSION = 60100000 };

/* The list's end is not CUDA's 0. */
#define HIP_ARGS_BUFFER ((void *)1)
#define HIP_ARGS_BUFFER_SIZE ((void *)2)
#define HIP_ARGS_END ((void *)3)

/* hipDeviceProp_t by the function that fills it: only the architecture's name is read, which
 * no attribute gives. Room for either and then some: later versions may append. */
enum {
  HIP_PROPERTIES_ROOM = 8192,
  HIP_ARCHITECTURE_BYTES = 256,
  HIP_R0000_ARCHITECTURE_AT = 396,  /* hipGetDeviceProperties, up to 5.7 */
  HIP_R0600_ARCHITECTURE_AT = 1160, /* hipGetDevicePropertiesR0600, from 6.0 on */
};

typedef struct HipLocation {
  int32_t type, id;
} HipLocation;
_Static_assert(sizeof(HipLocation) == 8, "hipMemLocation");

/* As from 5.3 on: 5.2 has the members in another order, and can't map memory anyway. */
typedef struct HipAllocationProperties {
  int32_t type, handle_types;
  HipLocation location;
  void *win32;
  uint8_t compression, rdma_capable;
  uint16_t usage;
} HipAllocationProperties;
_Static_assert(sizeof(HipAllocationProperties) == 32, "hipMemAllocationProp");

typedef struct HipAccess {
  HipLocation location;
  int32_t flags;
} HipAccess;
_Static_assert(sizeof(HipAccess) == 12, "hipMemAccessDesc");

typedef struct HipPoolProperties {
  int32_t type, handle_types;
  HipLocation location;
  void *win32;
  size_t most_bytes;
  uint8_t reserved[56];
} HipPoolProperties;
_Static_assert(sizeof(HipPoolProperties) == 88, "hipMemPoolProps");

/* X(result, name, parameters) */
#define HIP_SYMBOLS(X)                                                                         \\
  X(HipResult, hipInit, (unsigned flags))                                                      \\
  X(HipResult, hipRuntimeGetVersion, (int *version))                                           \\
  X(const char *, hipGetErrorName, (HipResult result))                                         \\
  X(const char *, hipGetErrorString, (HipResult result))                                       \\
  X(HipResult, hipGetDeviceCount, (int *count))                                                \\
  X(HipResult, hipDeviceGet, (HipDeviceId *device, int ordinal))                               \\
  X(HipResult, hipDeviceGetName, (char *name, int capacity, HipDeviceId device))               \\
  X(HipResult, hipDeviceGetAttribute, (int *value, int attribute, HipDeviceId device))         \\
  X(HipResult, hipDeviceTotalMem, (size_t *bytes, HipDeviceId device))                         \\
  X(HipResult, hipSetDevice, (HipDeviceId device))                                             \\
  X(HipResult, hipMemGetInfo, (size_t *free_bytes, size_t *total_bytes))                       \\
  X(HipResult, hipMalloc, (HipPointer *address, size_t bytes))                                 \\
  X(HipResult, hipFree, (HipPointer address))                                                  \\
  X(HipResult, hipHostMalloc, (void **memory, size_t bytes, unsigned flags))                   \\
  X(HipResult, hipHostFree, (void *memory))                                                    \\
  X(HipResult, hipHostGetDevicePointer, (HipPointer *address, void *memory, unsigned flags))   \\
  X(HipResult, hipMemcpyHtoDAsync,                                                             \\
    (HipPointer destination, const void *source, size_t bytes, HipStream stream))              \\
  X(HipResult, hipMemcpyDtoHAsync,                                                             \\
    (void *destination, HipPointer source, size_t bytes, HipStream stream))                    \\
  X(HipResult, hipMemcpyDtoDAsync,                                                             \\
    (HipPointer destination, HipPointer source, size_t bytes, HipStream stream))               \\
  X(HipResult, hipMemsetD8Async,                                                               \\
    (HipPointer address, unsigned char value, size_t count, HipStream stream))                 \\
  X(HipResult, hipMemsetD16Async,                                                              \\
    (HipPointer address, unsigned short value, size_t count, HipStream stream))                \\
  X(HipResult, hipMemsetD32Async,                                                              \\
    (HipPointer address, int value, size_t count, HipStream stream))                           \\
  X(HipResult, hipStreamCreateWithFlags, (HipStream * stream, unsigned flags))                 \\
  X(HipResult, hipStreamDestroy, (HipStream stream))                                           \\
  X(HipResult, hipStreamSynchronize, (HipStream stream))                                       \\
  X(HipResult, hipStreamWaitEvent, (HipStream stream, HipEvent event, unsigned flags))         \\
  X(HipResult, hipEventCreateWithFlags, (HipEvent * event, unsigned flags))                    \\
  X(HipResult, hipEventDestroy, (HipEvent event))                                              \\
  X(HipResult, hipEventRecord, (HipEvent event, HipStream stream))                             \\
  X(HipResult, hipEventQuery, (HipEvent event))                                                \\
  X(HipResult, hipEventSynchronize, (HipEvent event))                                          \\
  X(HipResult, hipEventElapsedTime, (float *milliseconds, HipEvent start, HipEvent end))       \\
  X(HipResult, hipModuleLoadData, (HipModule * module, const void *image))                     \\
  X(HipResult, hipModuleUnload, (HipModule module))                                            \\
  X(HipResult, hipModuleGetFunction,                                                           \\
    (HipFunction * function, HipModule module, const char *name))                              \\
  X(HipResult, hipModuleLaunchKernel,                                                          \\
    (HipFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \\
     unsigned block_y, unsigned block_z, unsigned shared_bytes, HipStream stream, void **args, \\
     void **extra))

/* One of them is enough; the first is preferred. */
#define HIP_PROPERTIES_SYMBOLS(X)                                                              \\
  X(HipResult, hipGetDevicePropertiesR0600, (void *properties, int device))                    \\
  X(HipResult, hipGetDeviceProperties, (void *properties, int device))

/* All or none: versions before 5.2 can't map memory at chosen addresses. */
#define HIP_VMM_SYMBOLS(X)                                                                     \\
  X(HipResult, hipMemGetAllocationGranularity,                                                 \\
    (size_t *bytes, const HipAllocationProperties *properties, int option))                    \\
  X(HipResult, hipMemAddressReserve,                                                           \\
    (HipPointer *address, size_t bytes, size_t alignment, HipPointer wanted,                   \\
     unsigned long long flags))                                                                \\
  X(HipResult, hipMemAddressFree, (HipPointer address, size_t bytes))                          \\
  X(HipResult, hipMemCreate,                                                                   \\
    (HipAllocation * allocation, size_t bytes, const HipAllocationProperties *properties,      \\
     unsigned long long flags))                                                                \\
  X(HipResult, hipMemRelease, (HipAllocation allocation))                                      \\
  X(HipResult, hipMemMap,                                                                      \\
    (HipPointer address, size_t bytes, size_t offset, HipAllocation allocation,                \\
     unsigned long long flags))                                                                \\
  X(HipResult, hipMemUnmap, (HipPointer address, size_t bytes))                                \\
  X(HipResult, hipMemSetAccess,                                                                \\
    (HipPointer address, size_t bytes, const HipAccess *accesses, size_t count))               \\
  X(HipResult, hipMemGetAccess,                                                                \\
    (unsigned long long *flags, const HipLocation *location, HipPointer address))

/* All or none. */
#define HIP_POOL_SYMBOLS(X)                                                                    \\
  X(HipResult, hipMemPoolCreate, (HipPool * pool, const HipPoolProperties *properties))        \\
  X(HipResult, hipMemPoolDestroy, (HipPool pool))                                              \\
  X(HipResult, hipMemPoolSetAttribute, (HipPool pool, int attribute, void *value))             \\
  X(HipResult, hipMemPoolTrimTo, (HipPool pool, size_t kept_bytes))                            \\
  X(HipResult, hipMallocFromPoolAsync,                                                         \\
    (HipPointer *address, size_t bytes, HipPool pool, HipStream stream))                       \\
  X(HipResult, hipFreeAsync, (HipPointer address, HipStream stream))

/* All or none. */
#define HIP_GRAPH_SYMBOLS(X)                                                                   \\
  X(HipResult, hipStreamBeginCapture, (HipStream stream, int mode))                            \\
  X(HipResult, hipStreamEndCapture, (HipStream stream, HipGraph *graph))                       \\
  X(HipResult, hipStreamIsCapturing, (HipStream stream, int *status))                          \\
  X(HipResult, hipGraphInstantiate,                                                            \\
    (HipGraphExec * exec, HipGraph graph, void **error_node, char *log, size_t log_bytes))     \\
  X(HipResult, hipGraphLaunch, (HipGraphExec exec, HipStream stream))                          \\
  X(HipResult, hipGraphExecDestroy, (HipGraphExec exec))                                       \\
  X(HipResult, hipGraphDestroy, (HipGraph graph))

typedef struct HipApi {
#define HIP_MEMBER(result, name, parameters) result(*name) parameters;
  HIP_SYMBOLS(HIP_MEMBER)
  HIP_PROPERTIES_SYMBOLS(HIP_MEMBER)
  HIP_VMM_SYMBOLS(HIP_MEMBER)
  HIP_POOL_SYMBOLS(HIP_MEMBER)
  HIP_GRAPH_SYMBOLS(HIP_MEMBER)
#undef HIP_MEMBER
  int has_vmm, has_pools, has_graphs;
  HipResult initialized; /* what hipInit said */
} HipApi;

#endif
`,
  "hip_data.c": `#include <inttypes.h>

#include "hip.h"

static const HipApi *api_of(const void *self) { return ((const HipDevice *)self)->api; }

static HipPointer pointer(uint64_t address) { return (HipPointer)(uintptr_t)address; }

int32_t hip_staging_alloc(void *self, size_t size, uint8_t **memory) {
  const HipApi *api = api_of(self);
  void *pinned = NULL;
  HipResult result = api->hipHostMalloc(&pinned, size, 0);
  *memory = pinned;
  return hip_check(api, result, "hipHostMalloc of %zu bytes for staging", size);
}

int32_t hip_staging_free(void *self, uint8_t *memory) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipHostFree(memory), "hipHostFree");
}

int32_t hip_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                 void *stream) {
  const HipApi *api = api_of(self);
  HipPointer start = pointer(address);
  HipResult result;
  if (width == 1) {
    result = api->hipMemsetD8Async(start, (unsigned char)value, count, stream);
  } else if (width == 2) {
    result = api->hipMemsetD16Async(start, (unsigned short)value, count, stream);
  } else {
    result = api->hipMemsetD32Async(start, (int)value, count, stream);
  }
  return hip_check(api, result,
                   "hipMemsetD%" PRIu32 "Async of %" PRIu64 " elements at 0x%" PRIx64, width * 8,
                   count, address);
}

int32_t hip_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                    void *stream) {
  const HipApi *api = api_of(self);
  HipResult result = api->hipMemcpyHtoDAsync(pointer(destination), staged, bytes, stream);
  return hip_check(api, result, "hipMemcpyHtoDAsync of %zu bytes to 0x%" PRIx64, bytes,
                   destination);
}

int32_t hip_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream) {
  const HipApi *api = api_of(self);
  HipResult result = api->hipMemcpyDtoHAsync(staged, pointer(source), bytes, stream);
  return hip_check(api, result, "hipMemcpyDtoHAsync of %zu bytes from 0x%" PRIx64, bytes, source);
}

int32_t hip_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                 void *stream) {
  const HipApi *api = api_of(self);
  HipResult result =
      api->hipMemcpyDtoDAsync(pointer(destination), pointer(source), bytes, stream);
  return hip_check(api, result,
                   "hipMemcpyDtoDAsync of %" PRIu64 " bytes from 0x%" PRIx64 " to 0x%" PRIx64,
                   bytes, source, destination);
}
`,
  "hip_error.c": `#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hip.h"

static int32_t status_of(HipResult result) {
  switch (result) {
    case HIP_RESULT_SUCCESS:
      return MB_OK;
    case HIP_RESULT_OUT_OF_MEMORY:
      return MB_OUT_OF_MEMORY;
    case HIP_RESULT_NO_DEVICE:
    case HIP_RESULT_INVALID_DEVICE:
      return MB_NO_DEVICE;
    case HIP_RESULT_NOT_FOUND:
      return MB_NOT_FOUND;
    case HIP_RESULT_NOT_READY:
      return MB_NOT_READY;
    case HIP_RESULT_NOT_SUPPORTED:
    case HIP_RESULT_NO_BINARY_FOR_GPU:
      return MB_UNSUPPORTED;
    /* After any of these the device refuses everything, if the process lives on: a fault in
     * a kernel usually ends it. "Context is destroyed" is not among them: destroying an
     * unknown stream or event gives that here. */
    case HIP_RESULT_DEINITIALIZED:
    case HIP_RESULT_ECC_UNCORRECTABLE:
    case HIP_RESULT_ILLEGAL_ADDRESS:
    case HIP_RESULT_LAUNCH_TIMEOUT:
    case HIP_RESULT_ASSERT:
    case HIP_RESULT_LAUNCH_FAILURE:
      return MB_LOST;
    default:
      return MB_DRIVER;
  }
}

int32_t hip_check(const HipApi *api, HipResult result, const char *format, ...) {
  char call[512];
  const char *name, *text;
  va_list arguments;
  if (result == HIP_RESULT_SUCCESS) return MB_OK;
  va_start(arguments, format);
  vsnprintf(call, sizeof call, format, arguments);
  va_end(arguments);
  name = api->hipGetErrorName(result);
  text = api->hipGetErrorString(result);
  if (!name) name = "unknown error";
  error_set(status_of(result), result, "%s: %s (%d)", call, name, result);
  /* Old versions describe an error by its name. */
  if (text && strcmp(text, name) != 0) error_append(": %s", text);
  if (status_of(result) == MB_LOST) {
    error_append(": this process can't use the device any more, start a new one");
  }
  return status_of(result);
}
`,
  "hip_graphs.c": `#include <stdlib.h>

#include "hip.h"

typedef struct HipGraphParts {
  HipGraphExec exec;
  HipGraph captured; /* what it was made of, if that could not be destroyed at once */
} HipGraphParts;

static const HipApi *api_of(const void *self) { return ((const HipDevice *)self)->api; }

/* Relaxed: while it goes on, memory is allocated, mapped and unmapped by this thread and by
 * others, which the stricter modes forbid. */
int32_t hip_capture_begin(void *self, void *stream) {
  const HipApi *api = api_of(self);
  if (!api->has_graphs) {
    return error_set(MB_UNSUPPORTED, 0, "the HIP runtime has no graphs: update ROCm");
  }
  return hip_check(api, api->hipStreamBeginCapture(stream, HIP_CAPTURE_RELAXED),
                   "hipStreamBeginCapture");
}

/* One that something spoiled counts too: it has to be ended all the same. */
int32_t hip_capture_status(void *self, void *stream, bool *capturing) {
  const HipApi *api = api_of(self);
  int state = 0;
  HipResult result =
      api->has_graphs ? api->hipStreamIsCapturing(stream, &state) : HIP_RESULT_SUCCESS;
  *capturing = state != 0;
  return hip_check(api, result, "hipStreamIsCapturing");
}

static int32_t instantiate(const HipApi *api, HipGraph captured, HipGraphParts **graph) {
  HipGraphParts *made = calloc(1, sizeof *made);
  HipResult result;
  if (!made) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a graph");
  result = api->hipGraphInstantiate(&made->exec, captured, NULL, NULL, 0);
  if (result == HIP_RESULT_SUCCESS) {
    *graph = made;
  } else {
    free(made);
  }
  return hip_check(api, result, "hipGraphInstantiate");
}

int32_t hip_capture_end(void *self, void *stream, void **graph) {
  const HipApi *api = api_of(self);
  HipGraph captured = NULL;
  HipGraphParts *made = NULL;
  HipResult result = api->hipStreamEndCapture(stream, &captured);
  int32_t status = hip_check(api, result, "hipStreamEndCapture");
  if (result == HIP_RESULT_CAPTURE_INVALIDATED) {
    error_append(": something else used the stream through its handle or waited for the "
                 "device meanwhile: capture again without it");
  }
  if (status == MB_OK && graph) status = instantiate(api, captured, &made);
  /* What was instantiated is a copy. */
  if (captured && api->hipGraphDestroy(captured) != HIP_RESULT_SUCCESS && made) {
    made->captured = captured;
  }
  if (made) *graph = made;
  return status;
}

int32_t hip_graph_launch(void *self, void *graph, void *stream) {
  const HipApi *api = api_of(self);
  const HipGraphParts *launched = graph;
  return hip_check(api, api->hipGraphLaunch(launched->exec, stream), "hipGraphLaunch");
}

int32_t hip_graph_destroy(void *self, void *graph) {
  const HipApi *api = api_of(self);
  HipGraphParts *destroyed = graph;
  int32_t status = MB_OK;
  if (destroyed->captured) {
    status = hip_check(api, api->hipGraphDestroy(destroyed->captured), "hipGraphDestroy");
    if (status == MB_OK) destroyed->captured = NULL;
  }
  if (status == MB_OK) {
    status = hip_check(api, api->hipGraphExecDestroy(destroyed->exec), "hipGraphExecDestroy");
  }
  if (status == MB_OK) free(destroyed);
  return status;
}
`,
  "hip_handles.c": `/* How many extents a process may hold. ROCm 7.14 keeps a file descriptor for each handle
 * (ROCm/rocm-systems#10604), and reports a lack of descriptors as a lack of memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hip.h"
#include "ids.h"

/* Left to the program for files and sockets, and to the driver for what it opens besides. */
enum { FEWEST_LEFT = 64, PART_LEFT = 8, FEWEST_HANDLES = 16 };

static atomic_uint handles;

uint32_t hip_most_handles(void) {
  struct rlimit limit;
  uint64_t left;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > ID_SLOT_MASK) return 0;
  left = limit.rlim_cur / PART_LEFT;
  if (left < FEWEST_LEFT) left = FEWEST_LEFT;
  if (limit.rlim_cur < left + FEWEST_HANDLES) return FEWEST_HANDLES;
  return (uint32_t)(limit.rlim_cur - left);
}

bool hip_handle_take(uint32_t most) {
  if (atomic_fetch_add(&handles, 1) < most || !most) return true;
  hip_handle_give();
  return false;
}

void hip_handle_give(void) { atomic_fetch_sub(&handles, 1); }

bool hip_descriptors_used_up(void) {
  int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno == EMFILE;
  close(descriptor);
  return false;
}
`,
  "hip_kernels.c": `#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elf_image.h"
#include "hip.h"

/* Several code objects in one file, as hipcc makes them: a magic word, their number, and for
 * each its place, its size, the length of its target's name and the name. */
static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum { BUNDLE_MAGIC_BYTES = sizeof bundle_magic - 1, BUNDLE_ENTRY_BYTES = 24 };

static uint64_t word_at(const uint8_t *image, size_t offset) {
  uint64_t word;
  memcpy(&word, image + offset, sizeof word);
  return word;
}

/* The runtime is given no length: it believes what the image says of itself. */
static bool bundle_is_whole(const uint8_t *image, size_t bytes) {
  size_t at = BUNDLE_MAGIC_BYTES + sizeof(uint64_t);
  uint64_t entries;
  if (bytes < at) return false;
  entries = word_at(image, BUNDLE_MAGIC_BYTES);
  for (uint64_t i = 0; i < entries; i++) {
    uint64_t offset, size, name_bytes;
    if (bytes - at < BUNDLE_ENTRY_BYTES) return false;
    offset = word_at(image, at);
    size = word_at(image, at + 8);
    name_bytes = word_at(image, at + 16);
    at += BUNDLE_ENTRY_BYTES;
    if (name_bytes > bytes - at || offset > bytes || size > bytes - offset) return false;
    at += name_bytes;
  }
  return true;
}

static int32_t check_image(const uint8_t *image, size_t bytes) {
  if (elf_is_image(image, bytes)) return elf_check_shared_object(image, bytes, EM_AMDGPU);
  if (bytes >= BUNDLE_MAGIC_BYTES && memcmp(image, bundle_magic, BUNDLE_MAGIC_BYTES) == 0) {
    if (bundle_is_whole(image, bytes)) return MB_OK;
    return error_set(MB_BAD_ARGUMENT, 0,
                     "the module image is an offload bundle that is cut off");
  }
  return error_set(MB_BAD_ARGUMENT, 0,
                   "the module image is neither an AMD code object nor an uncompressed offload "
                   "bundle");
}

/* The runtime keeps no copy of an image: ours lives as long as the module. */
typedef struct HipImage {
  HipModule module;
  _Alignas(16) uint8_t bytes[]; /* the loader reads the tables in place */
} HipImage;

int32_t hip_module_load(void *self, const uint8_t *image, size_t bytes, void **module) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipImage *kept;
  HipResult result;
  int32_t status = check_image(image, bytes);
  if (status != MB_OK) return status;
  kept = malloc(sizeof *kept + bytes);
  if (!kept) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory to load a module");
  memcpy(kept->bytes, image, bytes);
  result = api->hipModuleLoadData(&kept->module, kept->bytes);
  if (result == HIP_RESULT_SUCCESS) {
    *module = kept;
    return MB_OK;
  }
  free(kept);
  status = hip_check(api, result, "hipModuleLoadData of %zu bytes", bytes);
  if (result == HIP_RESULT_NO_BINARY_FOR_GPU) {
    error_append(": the image is for another architecture than the device's");
  }
  return status;
}

int32_t hip_module_unload(void *self, void *module) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipImage *kept = module;
  int32_t status = hip_check(api, api->hipModuleUnload(kept->module), "hipModuleUnload");
  if (status == MB_OK) free(kept);
  return status;
}

int32_t hip_function(void *self, void *module, const char *name, void **function) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipFunction found = NULL;
  HipResult result =
      api->hipModuleGetFunction(&found, ((HipImage *)module)->module, name);
  *function = found;
  return hip_check(api, result, "hipModuleGetFunction of \\"%s\\"", name);
}

/* The runtime counts threads along an axis in 32 bits. Only the first can have that many:
 * along the others there are fewer than 2^16 blocks. */
static int32_t check_geometry(const MbGeometry *geometry) {
  uint32_t blocks = geometry->grid[0], threads = geometry->block[0];
  if ((uint64_t)blocks * threads <= UINT32_MAX) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0,
                   "a grid of %" PRIu32 " blocks of %" PRIu32
                   " threads has more than 2^32 - 1 threads along an axis",
                   blocks, threads);
}

int32_t hip_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                   const uint8_t *args, size_t args_bytes) {
  const HipApi *api = ((HipDevice *)self)->api;
  const uint32_t *grid = geometry->grid, *block = geometry->block;
  union {
    const uint8_t *given;
    void *runtime; /* which only reads it */
  } buffer = {args};
  void *extra[] = {HIP_ARGS_BUFFER, buffer.runtime, HIP_ARGS_BUFFER_SIZE, &args_bytes,
                   HIP_ARGS_END};
  HipResult result;
  int32_t status = check_geometry(geometry);
  if (status != MB_OK) return status;
  result = api->hipModuleLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                      block[2], geometry->shared_bytes, stream, NULL,
                                      args_bytes ? extra : NULL);
  return hip_check(api, result,
                   "hipModuleLaunchKernel of %u x %u x %u blocks of %u x %u x %u threads",
                   grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}
`,
  "hip_library.c": `#include "hip.h"
#include "vendor_library.h"

#define COUNT(symbols) (sizeof(symbols) / sizeof *(symbols))

#define HIP_SYMBOL(result, name, parameters) {offsetof(HipApi, name), #name},
static const VendorSymbol symbols[] = {HIP_SYMBOLS(HIP_SYMBOL)};
static const VendorSymbol properties_symbols[] = {HIP_PROPERTIES_SYMBOLS(HIP_SYMBOL)};
static const VendorSymbol vmm_symbols[] = {HIP_VMM_SYMBOLS(HIP_SYMBOL)};
static const VendorSymbol pool_symbols[] = {HIP_POOL_SYMBOLS(HIP_SYMBOL)};
static const VendorSymbol graph_symbols[] = {HIP_GRAPH_SYMBOLS(HIP_SYMBOL)};
#undef HIP_SYMBOL

static int32_t fill(void *library, const char *name, void *table) {
  HipApi *api = table;
  const char *missing = vendor_symbols(library, symbols, COUNT(symbols), api);
  if (!missing && vendor_symbols(library, properties_symbols, 1, api)) {
    missing = vendor_symbols(library, properties_symbols + 1, 1, api);
  }
  if (missing) {
    return error_set(MB_NO_LIBRARY, 0,
                     "%s lacks the symbol %s: ROCm's HIP runtime is too old, install a newer one",
                     name, missing);
  }
  api->has_vmm = !vendor_symbols(library, vmm_symbols, COUNT(vmm_symbols), api);
  api->has_pools = !vendor_symbols(library, pool_symbols, COUNT(pool_symbols), api);
  api->has_graphs = !vendor_symbols(library, graph_symbols, COUNT(graph_symbols), api);
  return MB_OK;
}

static bool start(void *table) {
  HipApi *api = table;
  api->initialized = api->hipInit(0);
  return api->initialized == HIP_RESULT_SUCCESS;
}

static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                    "libamdhip64.so", NULL};
static VendorLibrary amd = {.driver = "HIP runtime (ROCm)",
                            .names = names,
                            .api_bytes = sizeof(HipApi),
                            .fill = fill,
                            .start = start,
                            .lock = PTHREAD_MUTEX_INITIALIZER};

int32_t hip_load(const char *library, const HipApi **api) {
  const void *table = NULL;
  int32_t status = vendor_library_load(&amd, library, &table);
  *api = table;
  return status;
}
`,
  "hip_memory.c": `/* Addresses, extents and mappings.
 *
 * The common part makes one set-access and one unmap call per mapping: ROCm 6.3 takes an
 * unmap of several for one of the first (ROCm/ROCR-Runtime#285), and 7.2 refuses access to
 * several (ROCm/rocm-systems#2516). An unmap waits for all streams of every device that has
 * access; up to 6.4 a map waits for the default stream. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "hip.h"

static HipPointer pointer(uint64_t address) { return (HipPointer)(uintptr_t)address; }

int32_t hip_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes) {
  const HipApi *api = ((HipDevice *)self)->api;
  size_t free_now = 0, total = 0;
  HipResult result = api->hipMemGetInfo(&free_now, &total);
  *free_bytes = free_now;
  *total_bytes = total;
  return hip_check(api, result, "hipMemGetInfo");
}

/* The driver says "out of memory" or "invalid value" where it means addresses. */
static int32_t reserve(const HipDevice *device, uint64_t size, uint64_t *address) {
  const HipApi *api = device->api;
  HipPointer got = NULL;
  HipResult result = api->hipMemAddressReserve(&got, size, device->granularity, NULL, 0);
  int32_t status = hip_check(api, result, "hipMemAddressReserve of %" PRIu64 " bytes", size);
  if (status == MB_LOST) return status;
  if (status != MB_OK) {
    return error_set(MB_OUT_OF_ADDRESSES, result, "%s: ask for less", error_last_text());
  }
  *address = (uintptr_t)got;
  if (got) return MB_OK;
  return error_set(MB_OUT_OF_ADDRESSES, 0,
                   "hipMemAddressReserve of %" PRIu64
                   " bytes reported success and gave no address: ask for less",
                   size);
}

/* Versions up to 6.x take no notice of the alignment asked for. */
static int32_t reserve_shifted(HipDevice *device, uint64_t size, uint64_t *address) {
  HipShifted *shifted = calloc(1, sizeof *shifted);
  uint64_t spare;
  int32_t status;
  if (!shifted) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a reservation");
  shifted->driver_size = size + device->granularity;
  status = reserve(device, shifted->driver_size, &shifted->driver_address);
  if (status != MB_OK) {
    free(shifted);
    return status;
  }
  spare = shifted->driver_address % device->granularity;
  shifted->address = shifted->driver_address + (spare ? device->granularity - spare : 0);
  shifted->next = device->shifted;
  device->shifted = shifted;
  *address = shifted->address;
  return MB_OK;
}

static int32_t unreserve(const HipDevice *device, uint64_t address, uint64_t size) {
  HipResult result = device->api->hipMemAddressFree(pointer(address), size);
  return hip_check(device->api, result, "hipMemAddressFree of %" PRIu64 " bytes at 0x%" PRIx64,
                   size, address);
}

int32_t hip_reserve(void *self, uint64_t size, uint64_t *address) {
  HipDevice *device = self;
  int32_t status = reserve(device, size, address);
  if (status != MB_OK || *address % device->granularity == 0) return status;
  status = unreserve(device, *address, size);
  return status == MB_OK ? reserve_shifted(device, size, address) : status;
}

int32_t hip_unreserve(void *self, uint64_t address, uint64_t size) {
  HipDevice *device = self;
  HipShifted **place = &device->shifted, *shifted;
  int32_t status;
  while (*place && (*place)->address != address) place = &(*place)->next;
  shifted = *place;
  if (!shifted) return unreserve(device, address, size);
  status = unreserve(device, shifted->driver_address, shifted->driver_size);
  if (status == MB_OK) {
    *place = shifted->next;
    free(shifted);
  }
  return status;
}

HipAllocationProperties hip_extent_properties(HipDeviceId device) {
  return (HipAllocationProperties){
      .type = HIP_ALLOCATION_PINNED,
      .location = {HIP_LOCATION_DEVICE, device},
  };
}

int32_t hip_extent_create(void *self, uint64_t size, uint64_t *handle) {
  const HipDevice *device = self;
  HipAllocationProperties properties = hip_extent_properties(device->device);
  HipAllocation allocation = NULL;
  HipResult result;
  int32_t status;
  if (!hip_handle_take(device->most_handles)) {
    return error_set(MB_OUT_OF_MEMORY, 0,
                     "%" PRIu32
                     " extents are all that this process has file descriptors for, which ROCm "
                     "may use: raise the limit (ulimit -n) or use larger extents",
                     device->most_handles);
  }
  result = device->api->hipMemCreate(&allocation, size, &properties, 0);
  status = hip_check(device->api, result, "hipMemCreate of %" PRIu64 " bytes", size);
  if (status == MB_OK) {
    *handle = (uintptr_t)allocation;
    return MB_OK;
  }
  hip_handle_give();
  if (status == MB_OUT_OF_MEMORY && hip_descriptors_used_up()) {
    error_append(": the process can open no more files, raise that limit (ulimit -n)");
  }
  return status;
}

int32_t hip_extent_release(void *self, uint64_t handle, uint64_t size) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result = api->hipMemRelease((HipAllocation)(uintptr_t)handle);
  if (result == HIP_RESULT_SUCCESS) hip_handle_give();
  return hip_check(api, result, "hipMemRelease of %" PRIu64 " bytes", size);
}

int32_t hip_map(void *self, uint64_t address, uint64_t size, uint64_t handle) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result =
      api->hipMemMap(pointer(address), size, 0, (HipAllocation)(uintptr_t)handle, 0);
  return hip_check(api, result, "hipMemMap of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

/* To this device alone. Were peers granted access too, this device would have to come last:
 * on ROCm 7.14 a later grant to a peer spoils the mapping (openxla/xla#46576). */
int32_t hip_set_access(void *self, uint64_t address, uint64_t size, int32_t access) {
  const HipDevice *device = self;
  HipAccess granted = {{HIP_LOCATION_DEVICE, device->device}, access};
  HipResult result = device->api->hipMemSetAccess(pointer(address), size, &granted, 1);
  return hip_check(device->api, result,
                   "hipMemSetAccess to %" PRId32 " of %" PRIu64 " bytes at 0x%" PRIx64, access,
                   size, address);
}

/* Versions before 7.0 report success for a map that failed, and crash when they are to unmap
 * what they don't know: asked first. What they don't know is unmapped as it is. */
int32_t hip_unmap(void *self, uint64_t address, uint64_t size) {
  const HipDevice *device = self;
  const HipApi *api = device->api;
  const HipLocation location = {HIP_LOCATION_DEVICE, device->device};
  unsigned long long flags = 0;
  HipResult result = api->hipMemGetAccess(&flags, &location, pointer(address));
  if (result == HIP_RESULT_INVALID_VALUE) return MB_OK;
  if (result != HIP_RESULT_SUCCESS) {
    return hip_check(api, result, "hipMemGetAccess at 0x%" PRIx64, address);
  }
  result = api->hipMemUnmap(pointer(address), size);
  return hip_check(api, result, "hipMemUnmap of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}

/* Nothing that a queue can be given waits for a new mapping to be seen, only time does. */
void hip_settle(void *self) {
  const HipDevice *device = self;
  struct timespec left = {0, (long)device->settle_ms * 1000000};
  if (!device->settle_ms) return;
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}
`,
  "hip_pinned.c": `#include <inttypes.h>

#include "hip.h"

int32_t hip_pinned_alloc(void *self, uint64_t size, uint64_t *address) {
  const HipApi *api = ((HipDevice *)self)->api;
  void *memory = NULL;
  HipPointer seen = NULL;
  HipResult result = api->hipHostMalloc(&memory, size, HIP_HOST_PORTABLE | HIP_HOST_DEVICE_MAP);
  int32_t status = hip_check(api, result, "hipHostMalloc of %" PRIu64 " bytes", size);
  if (status != MB_OK) return status;
  result = api->hipHostGetDevicePointer(&seen, memory, 0);
  if (result == HIP_RESULT_SUCCESS && seen == memory) {
    *address = (uintptr_t)seen;
    return MB_OK;
  }
  status = result == HIP_RESULT_SUCCESS
               ? error_set(MB_UNSUPPORTED, 0,
                           "the device has page-locked memory at other addresses than the "
                           "host: use a device with unified addressing")
               : hip_check(api, result, "hipHostGetDevicePointer");
  api->hipHostFree(memory);
  return status;
}

int32_t hip_pinned_free(void *self, uint64_t address, uint64_t size) {
  const HipApi *api = ((HipDevice *)self)->api;
  HipResult result = api->hipHostFree((void *)(uintptr_t)address);
  return hip_check(api, result, "hipHostFree of %" PRIu64 " bytes at 0x%" PRIx64, size, address);
}
`,
  "hip_streams.c": `#include "hip.h"

static const HipApi *api_of(const void *self) { return ((const HipDevice *)self)->api; }

void *hip_default_stream(void *self) {
  (void)self;
  return NULL;
}

int32_t hip_stream_create(void *self, void **stream) {
  const HipApi *api = api_of(self);
  HipStream created = NULL;
  HipResult result = api->hipStreamCreateWithFlags(&created, HIP_STREAM_NON_BLOCKING);
  *stream = created;
  return hip_check(api, result, "hipStreamCreateWithFlags");
}

int32_t hip_stream_destroy(void *self, void *stream) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipStreamDestroy(stream), "hipStreamDestroy");
}

int32_t hip_stream_synchronize(void *self, void *stream) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipStreamSynchronize(stream), "hipStreamSynchronize");
}

uint64_t hip_stream_handle(void *self, void *stream) {
  (void)self;
  return (uintptr_t)stream;
}

int32_t hip_stream_wait(void *self, void *stream, void *event) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipStreamWaitEvent(stream, event, 0), "hipStreamWaitEvent");
}

int32_t hip_event_create(void *self, int32_t timing, void **event) {
  const HipApi *api = api_of(self);
  HipEvent created = NULL;
  HipResult result = api->hipEventCreateWithFlags(&created, timing ? 0 : HIP_EVENT_DISABLE_TIMING);
  *event = created;
  return hip_check(api, result, "hipEventCreateWithFlags");
}

int32_t hip_event_destroy(void *self, void *event) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipEventDestroy(event), "hipEventDestroy");
}

int32_t hip_event_record(void *self, void *event, void *stream) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipEventRecord(event, stream), "hipEventRecord");
}

/* Not ready is an answer, no error to keep a text for. */
int32_t hip_event_query(void *self, void *event) {
  const HipApi *api = api_of(self);
  HipResult result = api->hipEventQuery(event);
  if (result == HIP_RESULT_NOT_READY) return MB_NOT_READY;
  return hip_check(api, result, "hipEventQuery");
}

int32_t hip_event_synchronize(void *self, void *event) {
  const HipApi *api = api_of(self);
  return hip_check(api, api->hipEventSynchronize(event), "hipEventSynchronize");
}

int32_t hip_event_elapsed(void *self, void *start, void *end, double *milliseconds) {
  const HipApi *api = api_of(self);
  float elapsed = 0;
  HipResult result = api->hipEventElapsedTime(&elapsed, start, end);
  if (result == HIP_RESULT_NOT_READY) return MB_NOT_READY;
  *milliseconds = (double)elapsed;
  return hip_check(api, result, "hipEventElapsedTime");
}
`,
  "hip_vmm.c": `/* Whether a device can map memory at chosen addresses. What the driver says of itself is not
 * enough: before 6.1 reserving addresses reports success and gives none, and around 7.2
 * access to a second mapping of a reservation is refused (ROCm/rocm-systems#2516). So what
 * the allocator lives on is done once, in small. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "hip.h"

/* Whatever the driver says: up to 7.2 it says 4 KiB even where larger ones are recommended,
 * and a translation reaches as far as a 2 MiB page only in mappings made of such. */
static const uint64_t least_granularity = UINT64_C(2) << 20;

enum { TRIAL_EXTENTS = 2 };

/* Of different sizes, as the versions that refuse the second accept it if they are equal. */
typedef struct Trial {
  HipDevice device; /* not an open one: only what the calls look at */
  uint64_t address, size;
  uint64_t sizes[TRIAL_EXTENTS], handles[TRIAL_EXTENTS];
  uint32_t created, mapped;
} Trial;

static uint64_t mapping_at(const Trial *trial, uint32_t index) {
  return trial->address + (index ? trial->sizes[0] : 0);
}

static int32_t try_mapping(Trial *trial) {
  int32_t status = MB_OK;
  for (; trial->created < TRIAL_EXTENTS && status == MB_OK; trial->created++) {
    uint32_t i = trial->created;
    status = hip_extent_create(&trial->device, trial->sizes[i], &trial->handles[i]);
    if (status != MB_OK) return status;
  }
  for (; trial->mapped < TRIAL_EXTENTS; trial->mapped++) {
    uint32_t i = trial->mapped;
    status = hip_map(&trial->device, mapping_at(trial, i), trial->sizes[i], trial->handles[i]);
    if (status != MB_OK) return status;
  }
  for (uint32_t i = 0; i < TRIAL_EXTENTS && status == MB_OK; i++) {
    status = hip_set_access(&trial->device, mapping_at(trial, i), trial->sizes[i],
                            MB_ACCESS_READ_WRITE);
  }
  return status;
}

/* Ends at the first failure; called again, it goes on there. */
static int32_t clean_up(Trial *trial) {
  int32_t status = MB_OK;
  for (; trial->mapped; trial->mapped--) {
    uint32_t i = trial->mapped - 1;
    status = hip_unmap(&trial->device, mapping_at(trial, i), trial->sizes[i]);
    if (status != MB_OK) return status;
  }
  for (; trial->created; trial->created--) {
    uint32_t i = trial->created - 1;
    status = hip_extent_release(&trial->device, trial->handles[i], trial->sizes[i]);
    if (status != MB_OK) return status;
  }
  return hip_unreserve(&trial->device, trial->address, trial->size);
}

/* What a driver answers that can't do it; anything else says nothing about that. */
static bool is_refusal(const MbError *error) {
  return error->driver_code == HIP_RESULT_INVALID_VALUE ||
         error->driver_code == HIP_RESULT_NOT_SUPPORTED ||
         (error->status == MB_OUT_OF_ADDRESSES && error->driver_code == 0);
}

/* refused: set if the driver can't do it, and then the last error says what. */
static int32_t try_out(const HipApi *api, HipDeviceId device, uint64_t granularity,
                       bool *refused) {
  Trial trial = {.device = {.api = api, .device = device, .granularity = granularity},
                 .size = 3 * granularity,
                 .sizes = {granularity, 2 * granularity}};
  MbError error;
  int32_t status = hip_reserve(&trial.device, trial.size, &trial.address);
  if (status == MB_OK) {
    int32_t cleaned;
    status = try_mapping(&trial);
    error_save(&error);
    cleaned = clean_up(&trial);
    if (cleaned != MB_OK) cleaned = clean_up(&trial);
    if (status == MB_OK) return cleaned;
    error_restore(&error);
  }
  error_save(&error);
  *refused = is_refusal(&error);
  /* A full device is no reason to do without. */
  return *refused || status == MB_OUT_OF_MEMORY ? MB_OK : status;
}

static int32_t ask_granularity(const HipApi *api, HipDeviceId device, uint64_t *granularity) {
  HipAllocationProperties properties = hip_extent_properties(device);
  int32_t status = MB_OK;
  *granularity = least_granularity;
  for (int option = HIP_GRANULARITY_MINIMUM; option <= HIP_GRANULARITY_RECOMMENDED; option++) {
    size_t bytes = 0;
    HipResult result = api->hipMemGetAllocationGranularity(&bytes, &properties, option);
    if (status == MB_OK) status = hip_check(api, result, "hipMemGetAllocationGranularity");
    if (bytes > *granularity) *granularity = bytes;
  }
  return status;
}

/* Whether the version and the device's attribute promise it. */
static int32_t is_promised(const HipApi *api, HipDeviceId device, bool *promised, char *why,
                           size_t why_bytes) {
  int version = 0, supported = 0;
  int32_t status = hip_check(api, api->hipRuntimeGetVersion(&version), "hipRuntimeGetVersion");
  *promised = false;
  if (status != MB_OK) return status;
  if (!api->has_vmm || version < HIP_FIRST_VMM_VERSION) {
    snprintf(why, why_bytes,
             "the HIP runtime's version is %d.%d, and mapping memory needs ROCm 6.1 or later: "
             "update ROCm",
             version / 10000000, version / 100000 % 100);
    return MB_OK;
  }
  status = hip_check(api, api->hipDeviceGetAttribute(&supported, HIP_ATTRIBUTE_VMM, device),
                     "hipDeviceGetAttribute %d", HIP_ATTRIBUTE_VMM);
  *promised = supported != 0;
  if (status == MB_OK && !supported) {
    snprintf(why, why_bytes,
             "the driver says that this device has no virtual memory management: update the "
             "amdgpu kernel driver");
  }
  return status;
}

int32_t hip_find_granularity(const HipApi *api, HipDeviceId device, uint64_t *granularity,
                             char *why, size_t why_bytes) {
  bool promised = false, refused = false;
  int32_t status = is_promised(api, device, &promised, why, why_bytes);
  *granularity = 0;
  if (status != MB_OK || !promised) return status;
  status = ask_granularity(api, device, granularity);
  if (status == MB_OK) status = try_out(api, device, *granularity, &refused);
  if (status == MB_OK && refused) {
    snprintf(why, why_bytes, "the driver has virtual memory management, but failed at it: %s",
             error_last_text());
    *granularity = 0;
  }
  return status;
}
`,
  "host.c": `#include "host.h"

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
      snprintf(name, capacity, "%.*s", (int)strcspn(value, "\\n"), value);
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
`,
  "host.h": `/* The host backend's device: one memfd of memory, streams that are threads. */
#ifndef MOONBRIGHT_HOST_H
#define MOONBRIGHT_HOST_H

#include <pthread.h>
#include <stdbool.h>

#include "backend.h"

/* One record of an event: waits hold on to the record that they saw, so that a later
 * record of the same event does not change what they wait for. */
typedef struct HostMarker {
  uint32_t references;
  bool passed;
  int64_t passed_ns;
} HostMarker;

typedef struct HostEvent {
  HostMarker *last; /* null until recorded */
} HostEvent;

typedef enum HostWorkKind {
  HOST_FILL,
  HOST_COPY,
  HOST_LAUNCH,
  HOST_MARK,
  HOST_WAIT,
  HOST_GRAPH,
} HostWorkKind;

typedef struct HostGraph HostGraph;

typedef struct HostWork {
  struct HostWork *next;
  HostWorkKind kind;
  union {
    struct {
      uint8_t *memory;
      uint64_t count;
      uint32_t value, width;
    } fill;
    struct {
      uint8_t *destination;
      const uint8_t *source;
      size_t bytes;
    } copy;
    struct {
      MbHostKernel kernel;
      MbGeometry geometry;
    } launch;
    HostMarker *marker;
    struct {
      HostGraph *graph;
      uint64_t turn; /* among the graph's launches */
    } graph;
  } of;
  _Alignas(16) uint8_t args[]; /* of a launch */
} HostWork;

typedef struct HostDevice HostDevice;

typedef struct HostStream {
  HostDevice *device;
  pthread_mutex_t lock;
  pthread_cond_t queued_work, finished_work;
  HostWork *first, **last;
  uint64_t queued, finished; /* counts */
  bool started, stopping;
  HostGraph *capture; /* where work is noted instead of queued, or null */
  pthread_t thread;
  struct HostStream *next;
} HostStream;

enum { HOST_POOL_BUCKETS = 256 };

typedef struct HostPoolBlock {
  uint64_t address, size;
  const HostStream *stream; /* later work of the same stream may use it at once */
  struct HostPoolBlock *next;
} HostPoolBlock;

enum { HOST_SPARE_AREAS = 8 };

struct HostDevice {
  int memory; /* memfd: an extent is a range of it */
  void *spare_areas[HOST_SPARE_AREAS]; /* see host_unmap; null where there is none */
  pthread_mutex_t memory_lock;
  uint64_t next_offset; /* under memory_lock, as are the next three */
  uint64_t capacity, used;
  HostPoolBlock *pool[HOST_POOL_BUCKETS];

  pthread_mutex_t marker_lock; /* all markers and events */
  pthread_cond_t marker_passed;

  pthread_mutex_t streams_lock;
  HostStream *streams; /* all of them, the default one included */
  HostStream default_stream;
};

/* Bytes of a line such as MemTotal in /proc/meminfo, 0 if there is none. */
uint64_t host_meminfo(const char *line);

int32_t host_memory_open(HostDevice *device);
void host_memory_close(HostDevice *device);
int32_t host_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes);
int32_t host_reserve(void *self, uint64_t size, uint64_t *address);
int32_t host_unreserve(void *self, uint64_t address, uint64_t size);
int32_t host_extent_create(void *self, uint64_t size, uint64_t *handle);
int32_t host_extent_release(void *self, uint64_t handle, uint64_t size);
int32_t host_map(void *self, uint64_t address, uint64_t size, uint64_t handle);
int32_t host_set_access(void *self, uint64_t address, uint64_t size, int32_t access);
int32_t host_unmap(void *self, uint64_t address, uint64_t size);

int32_t host_plain_alloc(void *self, uint64_t size, uint64_t *address);
int32_t host_plain_free(void *self, uint64_t address, uint64_t size);
int32_t host_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address);
int32_t host_pool_free(void *self, uint64_t address, uint64_t size, void *stream);
int32_t host_pool_trim(void *self);
/* Takes bytes out of what the device may still give, or puts them back. */
int32_t host_take(HostDevice *device, uint64_t bytes);
void host_put_back(HostDevice *device, uint64_t bytes);

void host_streams_open(HostDevice *device);
void host_streams_close(HostDevice *device);
int32_t host_synchronize(void *self);
void *host_default_stream(void *self);
int32_t host_stream_create(void *self, void **stream);
int32_t host_stream_destroy(void *self, void *stream);
int32_t host_stream_synchronize(void *self, void *stream);
uint64_t host_stream_handle(void *self, void *stream);
/* Null with MB_OUT_OF_MEMORY noted. */
HostWork *host_new_work(HostWorkKind kind, size_t args_bytes);
/* Queues the work or, while the stream is capturing, notes it for the graph. Takes it over,
 * also when it fails. */
int32_t host_enqueue(HostStream *stream, HostWork *work);
/* Runs one piece of work in its stream's thread. */
void host_run(HostDevice *device, HostWork *work);

int32_t host_stream_wait(void *self, void *stream, void *event);
int32_t host_event_create(void *self, int32_t timing, void **event);
int32_t host_event_destroy(void *self, void *event);
int32_t host_event_record(void *self, void *event, void *stream);
int32_t host_event_query(void *self, void *event);
int32_t host_event_synchronize(void *self, void *event);
int32_t host_event_elapsed(void *self, void *start, void *end, double *milliseconds);
void host_marker_pass(HostDevice *device, HostMarker *marker);
/* Waits for the marker and lets go of it. */
void host_marker_wait(HostDevice *device, HostMarker *marker);
void host_marker_drop(HostDevice *device, HostMarker *marker);
HostMarker *host_new_marker(uint32_t references);

int32_t host_staging_alloc(void *self, size_t size, uint8_t **memory);
int32_t host_staging_free(void *self, uint8_t *memory);
int32_t host_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                  void *stream);
int32_t host_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                     void *stream);
int32_t host_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream);
int32_t host_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                  void *stream);

int32_t host_capture_begin(void *self, void *stream);
int32_t host_capture_status(void *self, void *stream, bool *capturing);
int32_t host_capture_end(void *self, void *stream, void **graph);
int32_t host_graph_launch(void *self, void *graph, void *stream);
int32_t host_graph_destroy(void *self, void *graph);
/* Notes work; false if it is of a kind that no graph holds. */
bool host_graph_add(HostGraph *graph, HostWork *work);
/* Runs a launch when its turn has come, and lets go of the graph. */
void host_graph_run(HostDevice *device, HostGraph *graph, uint64_t turn);

int32_t host_module_load(void *self, const uint8_t *image, size_t bytes, void **module);
int32_t host_module_unload(void *self, void *module);
int32_t host_function(void *self, void *module, const char *name, void **function);
int32_t host_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                    const uint8_t *args, size_t args_bytes);

#endif
`,
  "host_allocators.c": `/* What stands in for a driver's own allocators on the host: mmap, and a cache of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"

int32_t host_plain_alloc(void *self, uint64_t size, uint64_t *address) {
  void *memory;
  int32_t status = host_take(self, size);
  if (status != MB_OK) return status;
  memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    int code = errno;
    host_put_back(self, size);
    return error_set(MB_OUT_OF_MEMORY, code, "mmap of %" PRIu64 " bytes: %s", size,
                     strerror(code));
  }
  *address = (uintptr_t)memory;
  return MB_OK;
}

static int32_t give_back(HostDevice *device, uint64_t address, uint64_t size) {
  if (munmap((void *)(uintptr_t)address, size) != 0) {
    return error_set(MB_DRIVER, errno, "munmap of %" PRIu64 " bytes at 0x%" PRIx64 ": %s", size,
                     address, strerror(errno));
  }
  host_put_back(device, size);
  return MB_OK;
}

/* Waits for the device, as the vendors' plain free does. */
int32_t host_plain_free(void *self, uint64_t address, uint64_t size) {
  int32_t status = host_synchronize(self);
  return status == MB_OK ? give_back(self, address, size) : status;
}

static HostPoolBlock **bucket_of(HostDevice *device, uint64_t size, const HostStream *stream) {
  uint64_t key = (size ^ (uintptr_t)stream >> 4) * 0x9E3779B97F4A7C15u;
  return &device->pool[key >> 56];
}

int32_t host_pool_alloc(void *self, uint64_t size, void *stream, uint64_t *address) {
  HostDevice *device = self;
  HostPoolBlock **place, *found;
  pthread_mutex_lock(&device->memory_lock);
  place = bucket_of(device, size, stream);
  while (*place && ((*place)->size != size || (*place)->stream != stream)) {
    place = &(*place)->next;
  }
  found = *place;
  if (found) *place = found->next;
  pthread_mutex_unlock(&device->memory_lock);
  if (!found) return host_plain_alloc(self, size, address);
  *address = found->address;
  free(found);
  return MB_OK;
}

int32_t host_pool_free(void *self, uint64_t address, uint64_t size, void *stream) {
  HostDevice *device = self;
  HostPoolBlock **place, *block = malloc(sizeof *block);
  if (!block) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a pool's record");
  *block = (HostPoolBlock){address, size, stream, NULL};
  pthread_mutex_lock(&device->memory_lock);
  place = bucket_of(device, size, stream);
  block->next = *place;
  *place = block;
  pthread_mutex_unlock(&device->memory_lock);
  return MB_OK;
}

static HostPoolBlock *take_any(HostDevice *device) {
  HostPoolBlock *block = NULL;
  pthread_mutex_lock(&device->memory_lock);
  for (int i = 0; i < HOST_POOL_BUCKETS && !block; i++) {
    block = device->pool[i];
    if (block) device->pool[i] = block->next;
  }
  pthread_mutex_unlock(&device->memory_lock);
  return block;
}

int32_t host_pool_trim(void *self) {
  HostPoolBlock *block = take_any(self);
  int32_t status = MB_OK;
  /* Work queued before a block was freed may still use it. */
  if (block) status = host_synchronize(self);
  while (block) {
    int32_t freed = give_back(self, block->address, block->size);
    if (freed != MB_OK) status = freed;
    free(block);
    block = take_any(self);
  }
  return status;
}
`,
  "host_data.c": `/* Work that streams of the host backend carry out, but for modules. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

static void fill(uint8_t *memory, uint32_t value, uint32_t width, uint64_t count) {
  if (width == 1) {
    memset(memory, (int)value, count);
  } else if (width == 2) {
    uint16_t *elements = (uint16_t *)(void *)memory;
    for (uint64_t i = 0; i < count; i++) elements[i] = (uint16_t)value;
  } else {
    uint32_t *elements = (uint32_t *)(void *)memory;
    for (uint64_t i = 0; i < count; i++) elements[i] = value;
  }
}

void host_run(HostDevice *device, HostWork *work) {
  switch (work->kind) {
    case HOST_FILL:
      fill(work->of.fill.memory, work->of.fill.value, work->of.fill.width, work->of.fill.count);
      break;
    case HOST_COPY:
      memcpy(work->of.copy.destination, work->of.copy.source, work->of.copy.bytes);
      break;
    case HOST_LAUNCH:
      work->of.launch.kernel(work->args, &work->of.launch.geometry);
      break;
    case HOST_MARK:
      host_marker_pass(device, work->of.marker);
      break;
    case HOST_WAIT:
      host_marker_wait(device, work->of.marker);
      break;
    case HOST_GRAPH:
      host_graph_run(device, work->of.graph.graph, work->of.graph.turn);
      break;
  }
}

static uint8_t *pointer(uint64_t address) { return (uint8_t *)(uintptr_t)address; }

int32_t host_fill(void *self, uint64_t address, uint32_t value, uint32_t width, uint64_t count,
                  void *stream) {
  HostWork *work = host_new_work(HOST_FILL, 0);
  (void)self;
  if (!work) return MB_OUT_OF_MEMORY;
  work->of.fill.memory = pointer(address);
  work->of.fill.value = value;
  work->of.fill.width = width;
  work->of.fill.count = count;
  return host_enqueue(stream, work);
}

static int32_t enqueue_copy(void *stream, uint8_t *destination, const uint8_t *source,
                            size_t bytes) {
  HostWork *work = host_new_work(HOST_COPY, 0);
  if (!work) return MB_OUT_OF_MEMORY;
  work->of.copy.destination = destination;
  work->of.copy.source = source;
  work->of.copy.bytes = bytes;
  return host_enqueue(stream, work);
}

int32_t host_copy_in(void *self, uint64_t destination, const uint8_t *staged, size_t bytes,
                     void *stream) {
  (void)self;
  return enqueue_copy(stream, pointer(destination), staged, bytes);
}

int32_t host_copy_out(void *self, uint8_t *staged, uint64_t source, size_t bytes, void *stream) {
  (void)self;
  return enqueue_copy(stream, staged, pointer(source), bytes);
}

int32_t host_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                  void *stream) {
  (void)self;
  return enqueue_copy(stream, pointer(destination), pointer(source), bytes);
}

int32_t host_staging_alloc(void *self, size_t size, uint8_t **memory) {
  (void)self;
  *memory = malloc(size);
  if (*memory) return MB_OK;
  return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a staging chunk");
}

int32_t host_staging_free(void *self, uint8_t *memory) {
  (void)self;
  free(memory);
  return MB_OK;
}
`,
  "host_events.c": `#define _GNU_SOURCE
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
`,
  "host_graphs.c": `/* Graphs of the host backend: lists of work that streams run again and again. */
#include <stdlib.h>

#include "host.h"

struct HostGraph {
  pthread_mutex_t lock;
  pthread_cond_t finished_launch;
  HostWork *first, **last;
  uint64_t launched, finished; /* counts: launches run one after the other */
  uint32_t references;         /* the owner's and one for each queued launch */
};

static HostGraph *new_graph(void) {
  HostGraph *graph = calloc(1, sizeof *graph);
  if (!graph) {
    error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a graph");
    return NULL;
  }
  pthread_mutex_init(&graph->lock, NULL);
  pthread_cond_init(&graph->finished_launch, NULL);
  graph->last = &graph->first;
  graph->references = 1;
  return graph;
}

static void free_graph(HostGraph *graph) {
  while (graph->first) {
    HostWork *work = graph->first;
    graph->first = work->next;
    free(work);
  }
  pthread_mutex_destroy(&graph->lock);
  pthread_cond_destroy(&graph->finished_launch);
  free(graph);
}

/* With the lock, which is let go. */
static void drop_locked(HostGraph *graph) {
  bool last = --graph->references == 0;
  pthread_mutex_unlock(&graph->lock);
  if (last) free_graph(graph);
}

bool host_graph_add(HostGraph *graph, HostWork *work) {
  if (work->kind != HOST_FILL && work->kind != HOST_COPY && work->kind != HOST_LAUNCH) {
    return false;
  }
  *graph->last = work;
  graph->last = &work->next;
  return true;
}

int32_t host_capture_begin(void *self, void *stream) {
  HostStream *captured = stream;
  HostGraph *graph = new_graph();
  (void)self;
  if (!graph) return MB_OUT_OF_MEMORY;
  pthread_mutex_lock(&captured->lock);
  captured->capture = graph;
  pthread_mutex_unlock(&captured->lock);
  return MB_OK;
}

int32_t host_capture_status(void *self, void *stream, bool *capturing) {
  HostStream *asked = stream;
  (void)self;
  pthread_mutex_lock(&asked->lock);
  *capturing = asked->capture != NULL;
  pthread_mutex_unlock(&asked->lock);
  return MB_OK;
}

int32_t host_capture_end(void *self, void *stream, void **graph) {
  HostStream *captured = stream;
  HostGraph *ended;
  (void)self;
  pthread_mutex_lock(&captured->lock);
  ended = captured->capture;
  captured->capture = NULL;
  pthread_mutex_unlock(&captured->lock);
  if (graph) {
    *graph = ended;
  } else {
    free_graph(ended);
  }
  return MB_OK;
}

/* Its turn is taken and its work queued at once: a launch never waits for a later one. */
int32_t host_graph_launch(void *self, void *graph, void *stream) {
  HostGraph *launched = graph;
  HostWork *work = host_new_work(HOST_GRAPH, 0);
  int32_t status;
  (void)self;
  if (!work) return MB_OUT_OF_MEMORY;
  pthread_mutex_lock(&launched->lock);
  work->of.graph.graph = launched;
  work->of.graph.turn = launched->launched;
  status = host_enqueue(stream, work);
  if (status == MB_OK) {
    launched->launched++;
    launched->references++;
  }
  pthread_mutex_unlock(&launched->lock);
  return status;
}

void host_graph_run(HostDevice *device, HostGraph *graph, uint64_t turn) {
  pthread_mutex_lock(&graph->lock);
  while (graph->finished < turn) pthread_cond_wait(&graph->finished_launch, &graph->lock);
  pthread_mutex_unlock(&graph->lock);
  for (HostWork *work = graph->first; work; work = work->next) host_run(device, work);
  pthread_mutex_lock(&graph->lock);
  graph->finished++;
  pthread_cond_broadcast(&graph->finished_launch);
  drop_locked(graph);
}

int32_t host_graph_destroy(void *self, void *graph) {
  HostGraph *destroyed = graph;
  (void)self;
  pthread_mutex_lock(&destroyed->lock);
  drop_locked(destroyed);
  return MB_OK;
}
`,
  "host_kernels.c": `/* Modules of the host backend: shared objects, loaded from memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_image.h"
#include "host.h"

#if defined(__x86_64__)
enum { THIS_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { THIS_MACHINE = EM_AARCH64 };
#elif defined(__riscv)
enum { THIS_MACHINE = EM_RISCV };
#else
enum { THIS_MACHINE = EM_NONE };
#endif

enum { PATH_BITS = 32, PATH_CAPACITY = 128 };

typedef struct HostModule {
  void *library;
  char path[PATH_CAPACITY];
} HostModule;

/* dlopen gives a library again that it has under the same path, and descriptors are used
 * again: each load writes its number into the path, as one slash more or one dot. */
static void unique_path(char *path, int descriptor) {
  static atomic_uint loads;
  unsigned number = atomic_fetch_add(&loads, 1);
  int length = snprintf(path, PATH_CAPACITY, "/proc/self/fd/");
  for (int bit = 0; bit < PATH_BITS; bit++) {
    length += snprintf(path + length, PATH_CAPACITY - (size_t)length, "%s",
                       number >> bit & 1 ? "./" : "/");
  }
  snprintf(path + length, PATH_CAPACITY - (size_t)length, "%d", descriptor);
}

static int32_t write_image(int file, const uint8_t *image, size_t bytes) {
  size_t written = 0;
  while (written < bytes) {
    ssize_t n = write(file, image + written, bytes - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return error_set(MB_OUT_OF_MEMORY, errno, "writing a module of %zu bytes to memory: %s",
                       bytes, strerror(errno));
    }
    written += (size_t)n;
  }
  return MB_OK;
}

static int32_t load_from(int file, const uint8_t *image, size_t bytes, HostModule *module) {
  int32_t status = write_image(file, image, bytes);
  if (status != MB_OK) return status;
  unique_path(module->path, file);
  module->library = dlopen(module->path, RTLD_NOW | RTLD_LOCAL);
  if (module->library) return MB_OK;
  return error_set(MB_DRIVER, 0, "dlopen of a module of %zu bytes: %s", bytes, dlerror());
}

int32_t host_module_load(void *self, const uint8_t *image, size_t bytes, void **module) {
  HostModule *loaded;
  int file;
  int32_t status = elf_check_shared_object(image, bytes, THIS_MACHINE);
  (void)self;
  if (status != MB_OK) return status;
  file = memfd_create("moonbright-module", MFD_CLOEXEC);
  if (file < 0) return error_set(MB_LIMIT, errno, "memfd_create for a module: %s", strerror(errno));
  loaded = calloc(1, sizeof *loaded);
  status = loaded ? load_from(file, image, bytes, loaded)
                  : error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a module");
  close(file);
  if (status == MB_OK) {
    *module = loaded;
  } else {
    free(loaded);
  }
  return status;
}

int32_t host_module_unload(void *self, void *module) {
  HostModule *unloaded = module;
  (void)self;
  dlclose(unloaded->library);
  free(unloaded);
  return MB_OK;
}

/* dlsym also looks into what the object depends on, and finds data as well as code. */
static bool is_function_of(const HostModule *module, const void *symbol) {
  Dl_info info;
#ifdef __GLIBC__
  const Elf64_Sym *entry = NULL;
  if (!dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT)) return false;
  if (entry && ELF64_ST_TYPE(entry->st_info) != STT_FUNC) return false;
#else
  if (!dladdr(symbol, &info)) return false;
#endif
  return strcmp(info.dli_fname, module->path) == 0;
}

int32_t host_function(void *self, void *module, const char *name, void **function) {
  const HostModule *searched = module;
  void *symbol = dlsym(searched->library, name);
  (void)self;
  if (!symbol || !is_function_of(searched, symbol)) {
    return error_set(MB_NOT_FOUND, 0, "the module has no kernel \\"%s\\"", name);
  }
  *function = symbol;
  return MB_OK;
}

int32_t host_launch(void *self, void *function, const MbGeometry *geometry, void *stream,
                    const uint8_t *args, size_t args_bytes) {
  HostWork *work = host_new_work(HOST_LAUNCH, args_bytes);
  (void)self;
  if (!work) return MB_OUT_OF_MEMORY;
  memcpy(&work->of.launch.kernel, &function, sizeof function);
  work->of.launch.geometry = *geometry;
  if (args_bytes) memcpy(work->args, args, args_bytes);
  return host_enqueue(stream, work);
}
`,
  "host_memory.c": `#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host.h"

static const uint64_t alignment = 2 << 20; /* of reservations: the granularity */
enum { SPARE_AREA_BYTES = 4096 };

uint64_t host_meminfo(const char *line) {
  FILE *file = fopen("/proc/meminfo", "re");
  char text[256];
  uint64_t kib = 0;
  if (!file) return 0;
  while (fgets(text, sizeof text, file)) {
    if (strncmp(text, line, strlen(line)) == 0) {
      kib = strtoull(text + strlen(line), NULL, 10);
      break;
    }
  }
  fclose(file);
  return kib * 1024;
}

/* Areas of memory that no other can merge with: pages of the file that are never used. */
static void make_spare_areas(HostDevice *device) {
  for (int i = 0; i < HOST_SPARE_AREAS; i++) {
    void *area;
    if (device->spare_areas[i]) continue;
    area = mmap(NULL, SPARE_AREA_BYTES, PROT_NONE, MAP_SHARED, device->memory, 0);
    device->spare_areas[i] = area == MAP_FAILED ? NULL : area;
  }
}

static void drop_spare_areas(HostDevice *device) {
  for (int i = 0; i < HOST_SPARE_AREAS; i++) {
    if (device->spare_areas[i]) munmap(device->spare_areas[i], SPARE_AREA_BYTES);
    device->spare_areas[i] = NULL;
  }
}

int32_t host_memory_open(HostDevice *device) {
  device->memory = memfd_create("moonbright", MFD_CLOEXEC);
  if (device->memory < 0) {
    int code = errno;
    return error_set(code == EMFILE || code == ENFILE ? MB_LIMIT : MB_DRIVER, code,
                     "memfd_create: %s", strerror(code));
  }
  pthread_mutex_init(&device->memory_lock, NULL);
  device->capacity = host_meminfo("MemAvailable:");
  make_spare_areas(device);
  return MB_OK;
}

void host_memory_close(HostDevice *device) {
  drop_spare_areas(device);
  close(device->memory);
  pthread_mutex_destroy(&device->memory_lock);
}

int32_t host_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes) {
  HostDevice *device = self;
  pthread_mutex_lock(&device->memory_lock);
  *free_bytes = device->capacity - device->used;
  pthread_mutex_unlock(&device->memory_lock);
  *total_bytes = host_meminfo("MemTotal:");
  return MB_OK;
}

int32_t host_take(HostDevice *device, uint64_t bytes) {
  uint64_t left;
  pthread_mutex_lock(&device->memory_lock);
  left = device->capacity - device->used;
  if (bytes <= left) device->used += bytes;
  pthread_mutex_unlock(&device->memory_lock);
  if (bytes <= left) return MB_OK;
  return error_set(MB_OUT_OF_MEMORY, 0,
                   "%" PRIu64 " bytes are more than the %" PRIu64
                   " that are left of the memory that was available when the device was opened",
                   bytes, left);
}

void host_put_back(HostDevice *device, uint64_t bytes) {
  pthread_mutex_lock(&device->memory_lock);
  device->used -= bytes;
  pthread_mutex_unlock(&device->memory_lock);
}

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

static int32_t reserve_failed(uint64_t size, int code) {
  return error_set(MB_OUT_OF_ADDRESSES, code, "mmap to reserve %" PRIu64 " bytes: %s: ask for less",
                   size, strerror(code));
}

static void *map_nothing(void *where, uint64_t size, int flags) {
  return mmap(where, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

int32_t host_reserve(void *self, uint64_t size, uint64_t *address) {
  uint8_t *start = map_nothing(NULL, size, 0);
  size_t before;
  (void)self;
  if (start == MAP_FAILED) return reserve_failed(size, errno);
  if ((uintptr_t)start % alignment) {
    munmap(start, size);
    start = map_nothing(NULL, size + alignment, 0);
    if (start == MAP_FAILED) return reserve_failed(size, errno);
    before = (alignment - (uintptr_t)start % alignment) % alignment;
    if (before) munmap(start, before);
    munmap(start + before + size, alignment - before);
    start += before;
  }
  *address = (uintptr_t)start;
  return MB_OK;
}

int32_t host_unreserve(void *self, uint64_t address, uint64_t size) {
  (void)self;
  if (munmap(pointer(address), size) == 0) return MB_OK;
  return error_set(MB_DRIVER, errno, "munmap of %" PRIu64 " reserved bytes: %s", size,
                   strerror(errno));
}

/* A file larger than the limit would not fail: it would end the process by a signal. */
static bool file_may_grow_to(uint64_t size) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

int32_t host_extent_create(void *self, uint64_t size, uint64_t *handle) {
  HostDevice *device = self;
  uint64_t end = device->next_offset + size;
  int32_t status = host_take(device, size);
  if (status != MB_OK) return status;
  /* Offsets are never used twice: a stale mapping can't come to show other data. */
  if (!file_may_grow_to(end) || ftruncate(device->memory, (off_t)end) != 0) {
    int code = file_may_grow_to(end) ? errno : EFBIG;
    host_put_back(device, size);
    return error_set(code == EFBIG ? MB_LIMIT : MB_OUT_OF_MEMORY, code,
                     "ftruncate for an extent of %" PRIu64 " bytes: %s", size, strerror(code));
  }
  *handle = device->next_offset;
  device->next_offset = end;
  return MB_OK;
}

int32_t host_extent_release(void *self, uint64_t handle, uint64_t size) {
  HostDevice *device = self;
  if (fallocate(device->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)handle,
                (off_t)size) != 0) {
    return error_set(MB_DRIVER, errno, "fallocate to release an extent of %" PRIu64 " bytes: %s",
                     size, strerror(errno));
  }
  host_put_back(device, size);
  return MB_OK;
}

/* Mapping over a reservation takes no new addresses: out of memory means out of areas. */
static int32_t area_failed(const char *call, uint64_t address, uint64_t size, int code) {
  if (code == ENOMEM) {
    return error_set(MB_LIMIT, code,
                     "%s of %" PRIu64 " bytes at 0x%" PRIx64
                     ": %s: the process has as many memory areas as vm.max_map_count allows: "
                     "use larger extents or raise it",
                     call, size, address, strerror(code));
  }
  return error_set(MB_DRIVER, code, "%s of %" PRIu64 " bytes at 0x%" PRIx64 ": %s", call, size,
                   address, strerror(code));
}

int32_t host_map(void *self, uint64_t address, uint64_t size, uint64_t handle) {
  const HostDevice *device = self;
  if (mmap(pointer(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED, device->memory,
           (off_t)handle) != MAP_FAILED) {
    return MB_OK;
  }
  return area_failed("mmap", address, size, errno);
}

int32_t host_set_access(void *self, uint64_t address, uint64_t size, int32_t access) {
  int protection = access == MB_ACCESS_READ_WRITE ? PROT_READ | PROT_WRITE
                   : access == MB_ACCESS_READ     ? PROT_READ
                                                  : PROT_NONE;
  (void)self;
  if (mprotect(pointer(address), size, protection) == 0) return MB_OK;
  return area_failed("mprotect", address, size, errno);
}

/* A process with all the areas it may have is refused even the call that would leave it
 * with fewer: the spare ones make room for it, or a map that fails could not be undone. */
int32_t host_unmap(void *self, uint64_t address, uint64_t size) {
  void *unmapped = map_nothing(pointer(address), size, MAP_FIXED);
  int code = errno;
  if (unmapped == MAP_FAILED && code == ENOMEM) {
    drop_spare_areas(self);
    unmapped = map_nothing(pointer(address), size, MAP_FIXED);
    code = errno;
    make_spare_areas(self);
  }
  return unmapped == MAP_FAILED ? area_failed("mmap to unmap", address, size, code) : MB_OK;
}
`,
  "host_streams.c": `#define _GNU_SOURCE
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
`,
  "ids.c": `#include "ids.h"

#include <stdlib.h>

/* Slots are taken again oldest first and only while this many rest, so that it takes
 * millions of creations until a stale id could name a new item. */
enum { ID_RESTING_SLOTS = 1024, ID_GENERATIONS = 4096 };

static uint32_t id_of(const MbTable *table, uint32_t slot) {
  return table->slots[slot].generation << 20 | (slot + 1);
}

static int32_t table_grow(MbTable *table) {
  uint32_t capacity = table->capacity ? table->capacity * 2 : 16;
  MbSlot *slots;
  if (capacity > ID_SLOT_MASK) capacity = ID_SLOT_MASK;
  slots = realloc(table->slots, capacity * sizeof *slots);
  if (!slots) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a table of ids");
  table->slots = slots;
  table->capacity = capacity;
  return MB_OK;
}

int32_t table_add(MbTable *table, void *item, uint32_t *id) {
  uint32_t slot;
  if (table->free_count > ID_RESTING_SLOTS ||
      (table->used == ID_SLOT_MASK && table->free_count > 0)) {
    slot = table->oldest_free - 1;
    table->oldest_free = table->slots[slot].next_free;
    if (!table->oldest_free) table->newest_free = 0;
    table->free_count--;
  } else {
    if (table->used == ID_SLOT_MASK) {
      return error_set(MB_LIMIT, 0, "all %u ids of a kind are taken", ID_SLOT_MASK);
    }
    if (table->used == table->capacity && table_grow(table) != MB_OK) return MB_OUT_OF_MEMORY;
    slot = table->used++;
    table->slots[slot].generation = 0;
  }
  table->slots[slot].item = item;
  *id = id_of(table, slot);
  return MB_OK;
}

void *table_find(const MbTable *table, uint32_t id) {
  uint32_t slot = (id & ID_SLOT_MASK) - 1; /* wraps for 0, which no table holds */
  if (slot >= table->used || id_of(table, slot) != id) return NULL;
  return table->slots[slot].item;
}

void *table_remove(MbTable *table, uint32_t id) {
  void *item = table_find(table, id);
  if (item) {
    uint32_t number = id & ID_SLOT_MASK;
    MbSlot *slot = &table->slots[number - 1];
    slot->item = NULL;
    slot->generation = (slot->generation + 1) % ID_GENERATIONS;
    slot->next_free = 0;
    if (table->newest_free) {
      table->slots[table->newest_free - 1].next_free = number;
    } else {
      table->oldest_free = number;
    }
    table->newest_free = number;
    table->free_count++;
  }
  return item;
}

void *table_at(const MbTable *table, uint32_t number) { return table->slots[number - 1].item; }

uint32_t table_next(const MbTable *table, uint32_t from) {
  for (uint32_t slot = from; slot < table->used; slot++) {
    if (table->slots[slot].item) return id_of(table, slot);
  }
  return 0;
}

void table_free(MbTable *table) {
  free(table->slots);
  *table = (MbTable){0};
}
`,
  "ids.h": `/* Tables from ids to items. An id is generation << 20 | slot + 1, so that a stale or
 * invented one is told from a live one. The owner of a table locks it. */
#ifndef MOONBRIGHT_IDS_H
#define MOONBRIGHT_IDS_H

#include "error.h"

#define ID_SLOT_MASK 0xFFFFFu

typedef struct MbSlot {
  void *item; /* null while free */
  uint32_t generation;
  uint32_t next_free; /* slot + 1 */
} MbSlot;

/* A zeroed table is an empty one. */
typedef struct MbTable {
  MbSlot *slots;
  uint32_t used, capacity;
  uint32_t oldest_free, newest_free, free_count;
} MbTable;

/* MB_LIMIT if the table is full. */
int32_t table_add(MbTable *table, void *item, uint32_t *id);
/* Null if there is none of that id. */
void *table_find(const MbTable *table, uint32_t id);
void *table_remove(MbTable *table, uint32_t id);
/* The item of a slot known to be live; number is slot + 1. */
void *table_at(const MbTable *table, uint32_t number);
/* Walks: the id of the first item in slot \`from\` or later, 0 at the end. */
uint32_t table_next(const MbTable *table, uint32_t from);
void table_free(MbTable *table);

#endif
`,
  "kernels.c": `#include "kernels.h"

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
`,
  "kernels.h": `/* What a launch and a timed loop of launches check alike. */
#ifndef MOONBRIGHT_KERNELS_H
#define MOONBRIGHT_KERNELS_H

#include "device.h"

int32_t kernels_check_args(const uint8_t *args, uint32_t args_bytes);

#endif
`,
  "mappings.c": `#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "clock.h"
#include "device.h"

/* A range of whole mappings of one reservation. */
typedef struct Range {
  uint64_t address, size;
  Reservation *reservation;
} Range;

static uint64_t end_of(Range range) { return range.address + range.size; }

/* Sums the extents' sizes and finds the free range they are to fill. */
static int32_t find_map_range(MbDevice *device, double address, uint32_t count,
                              const uint32_t *ids, Range *range) {
  const uint64_t too_much = UINT64_C(1) << 53;
  int32_t status;
  range->size = 0;
  for (uint32_t i = 0; i < count; i++) {
    const MbExtent *extent = table_find(&device->extents, ids[i]);
    if (!extent) {
      return error_set(MB_BAD_HANDLE, 0, "no extent of this device has the id %" PRIu32, ids[i]);
    }
    range->size += extent->size;
    if (range->size >= too_much) {
      return error_set(MB_BAD_ARGUMENT, 0, "the extents reach beyond 2^53 bytes");
    }
  }
  status = check_address("address", address, device->granularity, range->size, &range->address);
  if (status != MB_OK) return status;
  range->reservation =
      reservations_find(&device->reservations, range->address, range->size);
  if (!range->reservation) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "0x%" PRIx64 " to 0x%" PRIx64 " does not lie inside one reservation",
                     range->address, end_of(*range));
  }
  return reservation_check_free(device, range->reservation, range->address, range->size);
}

static void note_mapped(MbDevice *device, Range range, uint64_t size, const uint32_t *ids,
                        int32_t access) {
  uint64_t at = range.address;
  for (uint32_t i = 0; at < range.address + size; i++) {
    const MbExtent *extent = table_find(&device->extents, ids[i]);
    Mapping mapping = {at, extent->size, ids[i] & ID_SLOT_MASK, access};
    mapping_note(device, range.reservation, mapping);
    at += extent->size;
  }
}

static uint64_t size_of(const MbDevice *device, uint32_t id) {
  const MbExtent *extent = table_find(&device->extents, id);
  return extent->size;
}

/* Sets the access of new mappings, in one call where the driver takes a range of them. */
static int32_t grant(MbDevice *device, Range range, const uint32_t *ids, int32_t access) {
  const MbBackend *backend = device->backend;
  int32_t status = MB_OK;
  for (uint64_t at = range.address; at < end_of(range) && status == MB_OK; ids++) {
    uint64_t size = range.size;
    if (backend->single_mappings) size = size_of(device, *ids);
    status = backend->set_access(device->self, at, size, access);
    at += size;
  }
  if (status == MB_OK && backend->settle) backend->settle(device->self);
  return status;
}

/* Unmaps the first bytes of a range, again in one call or several. What can't be unmapped is
 * noted as without access, so that its extents aren't released under it; counts it. */
static uint64_t take_back(MbDevice *device, Range range, uint64_t mapped, const uint32_t *ids) {
  uint64_t stuck = 0;
  for (uint64_t done = 0; done < mapped;) {
    Range piece = {range.address + done, mapped, range.reservation};
    if (device->backend->single_mappings) piece.size = size_of(device, *ids);
    if (device->backend->unmap(device->self, piece.address, piece.size) != MB_OK) {
      note_mapped(device, piece, piece.size, ids, MB_ACCESS_NONE);
      stuck += piece.size;
    }
    done += piece.size;
    ids++;
  }
  return stuck;
}

/* Unmaps what the failing call mapped, keeping its error. */
static int32_t undo_map(MbDevice *device, Range range, uint64_t mapped, const uint32_t *ids) {
  MbError error;
  uint64_t stuck;
  error_save(&error);
  stuck = take_back(device, range, mapped, ids);
  error_restore(&error);
  if (stuck) {
    error_append("; undoing failed too: %" PRIu64 " bytes stay mapped without access at 0x%" PRIx64,
                 stuck, range.address);
  }
  return error.status;
}

static int32_t map_extents(MbDevice *device, double address, uint32_t count,
                           const uint32_t *ids, int32_t access, double *elapsed_ns) {
  Range range;
  uint64_t mapped = 0;
  int64_t started, between, ended;
  int32_t status = find_map_range(device, address, count, ids, &range);
  if (status != MB_OK) return status;
  started = clock_ns();
  for (uint32_t i = 0; i < count; i++) {
    const MbExtent *extent = table_find(&device->extents, ids[i]);
    status = device->backend->map(device->self, range.address + mapped, extent->size,
                                  extent->handle);
    if (status != MB_OK) return undo_map(device, range, mapped, ids);
    mapped += extent->size;
  }
  between = clock_ns();
  status = grant(device, range, ids, access);
  if (status != MB_OK) return undo_map(device, range, mapped, ids);
  ended = clock_ns();
  note_mapped(device, range, range.size, ids, access);
  if (elapsed_ns) {
    elapsed_ns[0] = (double)(between - started);
    elapsed_ns[1] = (double)(ended - between);
  }
  return MB_OK;
}

int32_t mb_map(uint32_t device, double address, uint32_t count, const uint32_t *extents,
               int32_t access, double *elapsed_ns) {
  MbDevice *d;
  int32_t status = check_count("count", count, CHECK_LARGEST_COUNT);
  if (status == MB_OK) status = check_pointer("extents", extents);
  if (status == MB_OK) status = check_access(access);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  return device_leave_vmm(d, map_extents(d, address, count, extents, access, elapsed_ns));
}

static int32_t find_mapped_range(MbDevice *device, double address, double size, Range *range) {
  int32_t status = check_size("size", size, device->granularity, &range->size);
  if (status == MB_OK) {
    status = check_address("address", address, device->granularity, range->size,
                           &range->address);
  }
  if (status != MB_OK) return status;
  range->reservation =
      reservations_find(&device->reservations, range->address, range->size);
  if (!range->reservation) {
    return error_set(MB_NOT_MAPPED, 0,
                     "0x%" PRIx64 " to 0x%" PRIx64 " does not lie inside one reservation",
                     range->address, end_of(*range));
  }
  return reservation_check_whole(device, range->reservation, range->address, range->size);
}

/* Sets the access of noted mappings. */
static int32_t grant_noted(MbDevice *device, Range range, int32_t access) {
  const MbBackend *backend = device->backend;
  int32_t status = MB_OK;
  for (uint64_t at = range.address; at < end_of(range) && status == MB_OK;) {
    uint64_t size = range.size;
    if (backend->single_mappings) size = mapping_at(device, range.reservation, at).size;
    status = backend->set_access(device->self, at, size, access);
    at += size;
  }
  if (status == MB_OK && backend->settle) backend->settle(device->self);
  return status;
}

/* Sets the access that is noted for the mappings of a range, with few calls. Mappings for
 * which that fails are noted as having none; counts their bytes. */
static uint64_t restore_access(MbDevice *device, Range range) {
  uint64_t at = range.address, failed = 0;
  while (at < end_of(range)) {
    Mapping first = mapping_at(device, range.reservation, at);
    uint64_t start = at;
    while (at < end_of(range)) {
      Mapping next = mapping_at(device, range.reservation, at);
      if (next.access != first.access) break;
      at += next.size;
    }
    if (first.access != MB_ACCESS_NONE &&
        grant_noted(device, (Range){start, at - start, range.reservation}, first.access) !=
            MB_OK) {
      failed += at - start;
      while (start < at) {
        Mapping mapping = mapping_at(device, range.reservation, start);
        mapping_note_access(device, range.reservation, mapping, MB_ACCESS_NONE);
        start += mapping.size;
      }
    }
  }
  return failed;
}

static int32_t undo_set_access(MbDevice *device, Range range) {
  MbError error;
  uint64_t failed;
  error_save(&error);
  failed = restore_access(device, range);
  error_restore(&error);
  if (failed) {
    error_append("; undoing failed too: %" PRIu64 " bytes are left without access", failed);
  }
  return error.status;
}

static int32_t set_access(MbDevice *device, double address, double size, int32_t access) {
  Range range;
  int32_t status = find_mapped_range(device, address, size, &range);
  if (status != MB_OK) return status;
  status = grant_noted(device, range, access);
  if (status != MB_OK) return undo_set_access(device, range);
  for (uint64_t at = range.address; at < end_of(range);) {
    Mapping mapping = mapping_at(device, range.reservation, at);
    mapping_note_access(device, range.reservation, mapping, access);
    at += mapping.size;
  }
  return MB_OK;
}

int32_t mb_set_access(uint32_t device, double address, double size, int32_t access) {
  MbDevice *d;
  int32_t status = check_access(access);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  return device_leave_vmm(d, set_access(d, address, size, access));
}

static int compare_addresses(const void *left, const void *right) {
  uint64_t a = ((const Range *)left)->address, b = ((const Range *)right)->address;
  return (a > b) - (a < b);
}

/* Checks the ranges and sorts them: which goes first makes no difference. */
static int32_t find_unmap_ranges(MbDevice *device, uint32_t count, const double *addresses,
                                 const double *sizes, Range *ranges) {
  for (uint32_t i = 0; i < count; i++) {
    int32_t status = find_mapped_range(device, addresses[i], sizes[i], &ranges[i]);
    if (status != MB_OK) return status;
  }
  qsort(ranges, count, sizeof *ranges, compare_addresses);
  for (uint32_t i = 1; i < count; i++) {
    if (ranges[i].address < end_of(ranges[i - 1])) {
      return error_set(MB_BAD_ARGUMENT, 0, "0x%" PRIx64 " lies in two of the ranges",
                       ranges[i].address);
    }
  }
  return MB_OK;
}

/* Maps a range again as it is still noted; counts the bytes that it could not. */
static uint64_t map_again(MbDevice *device, Range range) {
  uint64_t failed = 0, run = range.address;
  for (uint64_t at = range.address; at < end_of(range);) {
    Mapping mapping = mapping_at(device, range.reservation, at);
    const MbExtent *extent = table_at(&device->extents, mapping.number);
    if (device->backend->map(device->self, at, mapping.size, extent->handle) != MB_OK) {
      failed += restore_access(device, (Range){run, at - run, range.reservation});
      failed += mapping.size;
      mapping_forget(device, range.reservation, mapping);
      run = at + mapping.size;
    }
    at += mapping.size;
  }
  return failed + restore_access(device, (Range){run, end_of(range) - run, range.reservation});
}

static int32_t undo_unmap(MbDevice *device, uint32_t count, const Range *ranges) {
  MbError error;
  uint64_t failed = 0;
  error_save(&error);
  for (uint32_t i = 0; i < count; i++) failed += map_again(device, ranges[i]);
  error_restore(&error);
  if (failed) {
    error_append("; undoing failed too: %" PRIu64 " bytes are left unmapped or without access",
                 failed);
  }
  return error.status;
}

/* Unmaps a range, or on failure the beginning of it; counts the bytes. */
static int32_t unmap_range(MbDevice *device, Range range, uint64_t *unmapped) {
  int32_t status = MB_OK;
  *unmapped = 0;
  while (*unmapped < range.size) {
    uint64_t at = range.address + *unmapped, size = range.size;
    if (device->backend->single_mappings) size = mapping_at(device, range.reservation, at).size;
    status = device->backend->unmap(device->self, at, size);
    if (status != MB_OK) break;
    *unmapped += size;
  }
  return status;
}

static int32_t unmap_ranges(MbDevice *device, uint32_t count, Range *ranges) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t unmapped;
    int32_t status = unmap_range(device, ranges[i], &unmapped);
    if (status != MB_OK) {
      ranges[i].size = unmapped;
      return undo_unmap(device, i + 1, ranges);
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    for (uint64_t at = ranges[i].address; at < end_of(ranges[i]);) {
      Mapping mapping = mapping_at(device, ranges[i].reservation, at);
      mapping_forget(device, ranges[i].reservation, mapping);
      at += mapping.size;
    }
  }
  return MB_OK;
}

int32_t mb_unmap(uint32_t device, uint32_t count, const double *addresses,
                 const double *sizes) {
  MbDevice *d;
  Range *ranges;
  int32_t status = check_count("count", count, CHECK_LARGEST_COUNT);
  if (status == MB_OK) status = check_pointer("addresses", addresses);
  if (status == MB_OK) status = check_pointer("sizes", sizes);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  ranges = malloc(count * sizeof *ranges);
  if (ranges) {
    status = find_unmap_ranges(d, count, addresses, sizes, ranges);
    if (status == MB_OK) status = unmap_ranges(d, count, ranges);
    free(ranges);
  } else {
    status = error_set(MB_OUT_OF_MEMORY, 0, "no host memory to unmap %" PRIu32 " ranges", count);
  }
  return device_leave_vmm(d, status);
}
`,
  "moonbright.h": `/* The C interface of MoonBright's shim: everything that crosses from TypeScript.
 *
 * Only 32-bit integers, doubles and caller-owned buffers cross. Addresses, sizes
 * and counts that may pass 2^32 are doubles holding whole numbers below 2^53, so a
 * scoped --allow-ffi is enough and no call needs a bigint. Every function checks
 * its arguments, sets the device's context itself, may be called from any thread,
 * and returns an MbStatus. A failed batch call undoes all of its own work.
 *
 * Ids (devices, extents, streams, events, modules, functions, graphs) are slot numbers
 * with a generation, never pointers: a stale or invented id gives MB_BAD_HANDLE.
 * All but device ids belong to one open device. Stream id 0 is the device's default
 * stream.
 *
 * In a forked child of a process that had used the library every call on devices gives
 * MB_UNSUPPORTED, but mb_close, which leaves everything to the parent.
 */
#ifndef MOONBRIGHT_H
#define MOONBRIGHT_H

#include <stdint.h>

#define MB_ABI_VERSION 3

#define MB_API __attribute__((visibility("default")))

typedef enum MbStatus {
  MB_OK = 0,
  MB_NOT_READY = 1,      /* the event has not passed yet (not an error) */
  MB_BAD_ARGUMENT = 2,   /* null, misaligned, out of range, wrong count */
  MB_BAD_HANDLE = 3,     /* unknown or stale id */
  MB_OUT_OF_MEMORY = 4,  /* the device or the system has no memory left */
  MB_OUT_OF_ADDRESSES = 5, /* the reservation was refused */
  MB_NO_LIBRARY = 6,     /* the vendor's library is missing or lacks symbols */
  MB_NO_DEVICE = 7,      /* no such device */
  MB_UNSUPPORTED = 8,    /* the device or its driver can't do this */
  MB_NOT_MAPPED = 9,     /* the range is not (wholly) mapped and accessible */
  MB_NOT_FOUND = 10,     /* no kernel of that name in the module */
  MB_LOST = 11,          /* the context is dead: an earlier operation faulted */
  MB_LIMIT = 12,         /* a table of the shim or of the system is full */
  MB_DRIVER = 13         /* any other driver error: see mb_driver_code */
} MbStatus;

typedef enum MbBackendId { MB_BACKEND_HOST = 0, MB_BACKEND_CUDA = 1, MB_BACKEND_HIP = 2 } MbBackendId;

/* Access rights of a mapping. */
typedef enum MbAccess { MB_ACCESS_NONE = 0, MB_ACCESS_READ = 1, MB_ACCESS_READ_WRITE = 3 } MbAccess;

/* Indices into the array that mb_device_properties fills. */
typedef enum MbProperty {
  MB_PROP_TOTAL_MEMORY = 0,        /* bytes */
  MB_PROP_GRANULARITY = 1,         /* bytes: sizes and addresses of extents are multiples */
  MB_PROP_GRANULARITY_ADVISED = 2, /* bytes */
  MB_PROP_VMM = 3,                 /* 1 if memory can be mapped at chosen addresses */
  MB_PROP_POOLS = 4,               /* 1 if the driver has a stream-ordered pool */
  MB_PROP_MAJOR = 5,               /* compute capability, 0 elsewhere */
  MB_PROP_MINOR = 6,
  MB_PROP_PROCESSORS = 7,          /* multiprocessors, compute units or cores */
  MB_PROP_DRIVER_VERSION = 8,      /* as the vendor's library reports it, e.g. 13000 */
  MB_PROP_INTEGRATED = 9,          /* 1 if the memory is the host's own */
  MB_PROP_EXTENT_LIMIT = 10,       /* that may exist at once, 0 for no limit */
  MB_PROP_COUNT = 11
} MbProperty;

/* A kernel compiled for the host: called once per launch, loops over the grid itself. */
typedef struct MbGeometry {
  uint32_t grid[3], block[3], shared_bytes;
} MbGeometry;
typedef void (*MbHostKernel)(const void *args, const MbGeometry *geometry);

/* ---- the library ---- */
MB_API int32_t mb_abi_version(void);
/* The calling thread's last error as UTF-8, cut to capacity; returns its length. */
MB_API int32_t mb_error_text(uint8_t *text, uint32_t capacity);
/* The vendor's own code of the calling thread's last error, 0 if there was none. */
MB_API int32_t mb_driver_code(void);

/* ---- backends and devices ---- */
/* library: UTF-8 path or name of the vendor's library, length 0 for the usual places. */
MB_API int32_t mb_device_count(int32_t backend, const uint8_t *library, uint32_t library_length,
                               uint32_t *count);
/* name receives "device name\\narchitecture\\nlimits" as UTF-8 with a final NUL, cut to
 * name_capacity; limits say why memory can't be mapped at chosen addresses, if it can't. */
MB_API int32_t mb_device_properties(int32_t backend, const uint8_t *library,
                                    uint32_t library_length, uint32_t ordinal,
                                    double *properties /* [MB_PROP_COUNT] */, uint8_t *name,
                                    uint32_t name_capacity);
MB_API int32_t mb_open(int32_t backend, const uint8_t *library, uint32_t library_length,
                       uint32_t ordinal, uint32_t *device);
/* Releases all that the device still holds. Quiet on a lost context. */
MB_API int32_t mb_close(uint32_t device);
MB_API int32_t mb_memory_info(uint32_t device, double *free_and_total /* [2], bytes */);
/* Waits for all streams of the device; refused while one is capturing. */
MB_API int32_t mb_synchronize(uint32_t device);

/* ---- addresses and extents ---- */
MB_API int32_t mb_reserve(uint32_t device, double size, double *address);
/* address: as mb_reserve gave it; nothing may be mapped in the range. */
MB_API int32_t mb_unreserve(uint32_t device, double address);
MB_API int32_t mb_extents_create(uint32_t device, uint32_t count, const double *sizes,
                                 uint32_t *extents);
/* Extents still mapped somewhere are refused. */
MB_API int32_t mb_extents_release(uint32_t device, uint32_t count, const uint32_t *extents);
/* Maps the extents side by side from address on, then sets access (MbAccess) once for
 * the whole range. An extent may be mapped at several addresses. elapsed_ns: null, or
 * [2]: time of the map calls, time of the set-access call. */
MB_API int32_t mb_map(uint32_t device, double address, uint32_t count, const uint32_t *extents,
                      int32_t access, double *elapsed_ns);
/* The range must consist of whole mappings. */
MB_API int32_t mb_set_access(uint32_t device, double address, double size, int32_t access);
/* Each range must consist of whole mappings. HIP waits for all work on the device, the
 * others don't. */
MB_API int32_t mb_unmap(uint32_t device, uint32_t count, const double *addresses,
                        const double *sizes);

/* ---- streams and events ---- */
MB_API int32_t mb_stream_create(uint32_t device, uint32_t *stream);
MB_API int32_t mb_stream_destroy(uint32_t device, uint32_t stream);
MB_API int32_t mb_stream_synchronize(uint32_t device, uint32_t stream);
/* The vendor's own handle of a stream (0 on the host backend), for other libraries. */
MB_API int32_t mb_stream_handle(uint32_t device, uint32_t stream, uint64_t *handle);
/* Later work of the stream waits for the event's last record. */
MB_API int32_t mb_stream_wait(uint32_t device, uint32_t stream, uint32_t event);
/* timing: 1 if mb_event_elapsed will be asked. */
MB_API int32_t mb_event_create(uint32_t device, int32_t timing, uint32_t *event);
MB_API int32_t mb_event_destroy(uint32_t device, uint32_t event);
MB_API int32_t mb_event_record(uint32_t device, uint32_t event, uint32_t stream);
/* MB_OK once all work before the last record is done (also if never recorded), else MB_NOT_READY. */
MB_API int32_t mb_event_query(uint32_t device, uint32_t event);
MB_API int32_t mb_event_synchronize(uint32_t device, uint32_t event);
MB_API int32_t mb_event_elapsed(uint32_t device, uint32_t start, uint32_t end,
                                double *milliseconds);

/* ---- data: ranges must be mapped and accessible, or inside one plain, pooled or
 * page-locked allocation ---- */
/* width: 1, 2 or 4 bytes; count: elements; address aligned to width. Asynchronous. */
MB_API int32_t mb_memset(uint32_t device, double address, uint32_t value, uint32_t width,
                         double count, uint32_t stream);
/* In stream order through pinned staging. Returns when source may be reused. */
MB_API int32_t mb_copy_in(uint32_t device, double destination, const uint8_t *source,
                          double bytes, uint32_t stream);
/* In stream order through pinned staging. Returns when destination is filled. */
MB_API int32_t mb_copy_out(uint32_t device, uint8_t *destination, double source, double bytes,
                           uint32_t stream);
/* Device to device, in stream order, asynchronous; the ranges must not overlap. */
MB_API int32_t mb_copy(uint32_t device, double destination, double source, double bytes,
                       uint32_t stream);

/* ---- kernels ---- */
/* image: PTX or a code object for a GPU, a shared object for the host backend. One that is cut
 * off or of another kind is refused; beyond that it is code, and trusted as such. */
MB_API int32_t mb_module_load(uint32_t device, const uint8_t *image, double bytes,
                              uint32_t *module);
MB_API int32_t mb_module_unload(uint32_t device, uint32_t module);
MB_API int32_t mb_function(uint32_t device, uint32_t module, const uint8_t *name,
                           uint32_t name_length, uint32_t *function);
/* args: the argument block, laid out as the kernel's parameters; copied before returning. */
MB_API int32_t mb_launch(uint32_t device, uint32_t function, uint32_t grid_x, uint32_t grid_y,
                         uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                         uint32_t shared_bytes, uint32_t stream, const uint8_t *args,
                         uint32_t args_bytes);

/* ---- page-locked host memory ---- */
/* Memory of the host that kernels and the data calls above use at the same address; what it
 * holds at first is left open. MB_UNSUPPORTED if the device can't address it so. On the
 * host backend it counts as the device's own memory. */
MB_API int32_t mb_host_alloc(uint32_t device, double bytes, double *address);
/* Waits for all work on the device; refused while a stream is capturing. */
MB_API int32_t mb_host_free(uint32_t device, double address);
/* Both copy at once, in no stream's order: the caller knows that no work is using the range.
 * The range must lie inside one allocation, else MB_NOT_MAPPED. */
MB_API int32_t mb_host_write(uint32_t device, double address, const uint8_t *source,
                             double bytes);
MB_API int32_t mb_host_read(uint32_t device, uint8_t *destination, double address,
                            double bytes);

/* ---- memory of others ---- */
/* Lets the data calls use a range that others allocated and that the device can reach; it
 * is neither checked for that nor ever freed. Must not overlap memory of this device or
 * another wrapped range. */
MB_API int32_t mb_wrap(uint32_t device, double address, double bytes);
/* Waits for nothing: queued work goes on using the range. */
MB_API int32_t mb_unwrap(uint32_t device, double address);

/* ---- graphs ---- */
/* From here on fills, copies on the device and launches put into the stream are noted
 * instead of done. Everything else that uses the stream is refused with MB_BAD_ARGUMENT and
 * leaves the capture as it is, as are waits for the whole device. Calls on addresses,
 * extents and other streams go on as ever. The default stream can't capture. */
MB_API int32_t mb_capture_begin(uint32_t device, uint32_t stream);
/* Ends the capture and makes a graph of what was noted. Where it fails the capture has ended
 * all the same, unless mb_capture_status says that the driver goes on with it. Destroying
 * the stream or closing the device ends a capture without a graph. */
MB_API int32_t mb_capture_end(uint32_t device, uint32_t stream, uint32_t *graph);
/* capturing: 1 or 0. */
MB_API int32_t mb_capture_status(uint32_t device, uint32_t stream, int32_t *capturing);
/* Does what was noted, in the stream's order and after the graph's launches so far. All
 * memory that the graph uses must be there as when it was captured. */
MB_API int32_t mb_graph_launch(uint32_t device, uint32_t graph, uint32_t stream);
/* Launches under way go on. Until then no module whose kernels it holds can be unloaded. */
MB_API int32_t mb_graph_destroy(uint32_t device, uint32_t graph);

/* ---- the driver's own allocators, as baselines ---- */
MB_API int32_t mb_plain_alloc(uint32_t device, double size, double *address);
MB_API int32_t mb_plain_free(uint32_t device, double address);
/* From a pool of the device's own that keeps what is freed until mb_pool_trim. */
MB_API int32_t mb_pool_alloc(uint32_t device, double size, uint32_t stream, double *address);
MB_API int32_t mb_pool_free(uint32_t device, double address, uint32_t stream);
MB_API int32_t mb_pool_trim(uint32_t device);

/* ---- timed loops: n samples in nanoseconds each, without the cost of crossing ---- */
MB_API int32_t mb_time_plain(uint32_t device, double size, uint32_t n, double *alloc_ns,
                             double *free_ns);
/* warm 0: the pool is emptied before each pair. */
MB_API int32_t mb_time_pool(uint32_t device, double size, uint32_t stream, int32_t warm,
                            uint32_t n, double *alloc_ns, double *free_ns);
/* size made of extents of extent_size, reserved once. stages: [n][5] create, map, set access,
 * unmap, release. */
MB_API int32_t mb_time_vmm(uint32_t device, double size, double extent_size, uint32_t n,
                           double *stages);
/* One block of 32 threads per launch. synchronize 1: each sample holds the wait for its end;
 * 0: the stream is drained now and then outside the samples. */
MB_API int32_t mb_time_launch(uint32_t device, uint32_t function, uint32_t stream,
                              const uint8_t *args, uint32_t args_bytes, int32_t synchronize,
                              uint32_t n, double *launch_ns);

#endif
`,
  "objects.c": `#include "objects.h"

#include <stdlib.h>

#include "device.h"

static MbTable *table_of(MbDevice *device, ObjectKind kind) {
  switch (kind) {
    case OBJECT_STREAM:
      return &device->streams;
    case OBJECT_EVENT:
      return &device->events;
    case OBJECT_MODULE:
      return &device->modules;
    case OBJECT_GRAPH:
      return &device->graphs;
    default:
      return &device->functions;
  }
}

static int32_t unknown(ObjectKind kind, uint32_t id) {
  static const char *const names[] = {"stream", "event", "module", "function", "graph"};
  return error_set(MB_BAD_HANDLE, 0, "no %s of this device has the id %u", names[kind], id);
}

int32_t object_add(MbDevice *device, ObjectKind kind, MbObject object, uint32_t *id) {
  MbObject *kept = malloc(sizeof *kept);
  int32_t status;
  if (!kept) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for an id");
  *kept = object;
  pthread_mutex_lock(&device->object_lock);
  status = table_add(table_of(device, kind), kept, id);
  pthread_mutex_unlock(&device->object_lock);
  if (status != MB_OK) free(kept);
  return status;
}

/* With object_lock, as all whose names say so. Null for one that somebody is destroying. */
static MbObject *find_locked(MbDevice *device, ObjectKind kind, uint32_t id) {
  MbObject *found = table_find(table_of(device, kind), id);
  return found && !found->claimed ? found : NULL;
}

int32_t object_pin(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object) {
  MbObject *found;
  pthread_mutex_lock(&device->object_lock);
  found = kind == OBJECT_STREAM && id == 0 ? &device->default_stream
                                           : find_locked(device, kind, id);
  if (found) found->pins++;
  pthread_mutex_unlock(&device->object_lock);
  if (!found) return unknown(kind, id);
  *object = found;
  return MB_OK;
}

MbObject *object_pin_next(MbDevice *device, ObjectKind kind, uint32_t *id) {
  MbObject *found;
  pthread_mutex_lock(&device->object_lock);
  for (;;) {
    uint32_t next = table_next(table_of(device, kind), *id & ID_SLOT_MASK);
    found = next ? table_find(table_of(device, kind), next) : NULL;
    if (!found || !found->claimed) {
      *id = next;
      break;
    }
    pthread_cond_wait(&device->object_unpinned, &device->object_lock);
  }
  if (found) found->pins++;
  pthread_mutex_unlock(&device->object_lock);
  return found;
}

void object_unpin(MbDevice *device, MbObject *object) {
  pthread_mutex_lock(&device->object_lock);
  /* Who removes it waits for no pin, who changes its capture for no other than its own. */
  if (--object->pins <= 1) pthread_cond_broadcast(&device->object_unpinned);
  pthread_mutex_unlock(&device->object_lock);
}

/* Lets the lock go while it waits. */
static void claim_locked(MbDevice *device, MbObject *object) {
  object->claimed = true;
  while (object->pins) pthread_cond_wait(&device->object_unpinned, &device->object_lock);
}

static uint32_t next_function_of(const MbDevice *device, const MbObject *module, uint32_t id) {
  for (;;) {
    const MbObject *function;
    id = table_next(&device->functions, id & ID_SLOT_MASK);
    if (!id) return 0;
    function = table_find(&device->functions, id);
    if (function->module == module) return id;
  }
}

static void claim_functions_locked(MbDevice *device, const MbObject *module) {
  uint32_t id = 0;
  while ((id = next_function_of(device, module, id)) != 0) {
    claim_locked(device, table_find(&device->functions, id));
  }
}

static void end_function_claims_locked(MbDevice *device, const MbObject *module, bool destroyed) {
  uint32_t id = 0;
  while ((id = next_function_of(device, module, id)) != 0) {
    MbObject *function = table_find(&device->functions, id);
    function->claimed = false;
    if (destroyed) free(table_remove(&device->functions, id));
  }
}

int32_t object_claim(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object) {
  MbObject *found;
  bool held;
  pthread_mutex_lock(&device->object_lock);
  found = find_locked(device, kind, id);
  held = found && kind == OBJECT_MODULE && found->holders;
  if (found && !held) {
    claim_locked(device, found);
    if (kind == OBJECT_MODULE) claim_functions_locked(device, found);
  }
  pthread_mutex_unlock(&device->object_lock);
  if (held) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "graphs still hold kernels of the module %u: destroy them first", id);
  }
  if (!found) return unknown(kind, id);
  *object = found;
  return MB_OK;
}

void object_end_claim(MbDevice *device, ObjectKind kind, uint32_t id, bool destroyed) {
  MbObject *object;
  pthread_mutex_lock(&device->object_lock);
  object = table_find(table_of(device, kind), id);
  object->claimed = false;
  if (kind == OBJECT_MODULE) end_function_claims_locked(device, object, destroyed);
  if (destroyed) free(table_remove(table_of(device, kind), id));
  /* For who walks over the objects of the kind. */
  pthread_cond_broadcast(&device->object_unpinned);
  pthread_mutex_unlock(&device->object_lock);
}

bool object_remove_any(MbDevice *device, ObjectKind kind, MbObject *object) {
  uint32_t id = table_next(table_of(device, kind), 0);
  MbObject *claimed;
  if (!id || object_claim(device, kind, id, &claimed) != MB_OK) return false;
  *object = *claimed;
  object_end_claim(device, kind, id, true);
  return true;
}
`,
  "objects.h": `/* Streams, events, modules, functions and graphs of a device. A call pins what it uses, so that
 * another thread's destroy waits for it instead of pulling a handle from under it. */
#ifndef MOONBRIGHT_OBJECTS_H
#define MOONBRIGHT_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ids.h"

typedef struct MbDevice MbDevice;

typedef struct MbObject MbObject;

typedef enum CaptureState {
  CAPTURE_NONE,
  CAPTURE_CHANGING, /* a thread is beginning or ending it */
  CAPTURE_ACTIVE,
} CaptureState;

/* Modules whose kernels a capture or a graph holds. */
typedef struct HeldModules {
  MbObject **items;
  uint32_t count, capacity;
} HeldModules;

struct MbObject {
  void *handle;
  uint32_t pins;
  MbObject *module;      /* of a function */
  bool timing, recorded; /* of an event */
  CaptureState capture;  /* of a stream */
  HeldModules held;      /* of a graph, or of a stream while it captures */
  uint32_t holders;      /* of a module: captures and graphs that hold kernels of it */
  bool claimed;          /* it is being destroyed: its id is stale unless that fails */
};

/* Tables of MbDevice. */
typedef enum ObjectKind {
  OBJECT_STREAM,
  OBJECT_EVENT,
  OBJECT_MODULE,
  OBJECT_FUNCTION,
  OBJECT_GRAPH,
} ObjectKind;

/* Takes the handle over on success only. */
int32_t object_add(MbDevice *device, ObjectKind kind, MbObject object, uint32_t *id);
int32_t object_pin(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object);
/* Walks: pins the first object behind an id, 0 to begin with, and sets the id to its own; null
 * at the end. Waits for one that is being destroyed to be gone. */
MbObject *object_pin_next(MbDevice *device, ObjectKind kind, uint32_t *id);
void object_unpin(MbDevice *device, MbObject *object);
/* For the one who is to destroy it: makes the id stale and waits until nobody has it pinned.
 * For a module, its functions too; it is refused while a graph holds kernels of it. */
int32_t object_claim(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object);
/* Ends a claim: forgets what was destroyed, else makes the id good again. */
void object_end_claim(MbDevice *device, ObjectKind kind, uint32_t id, bool destroyed);
/* Removes any one object of the kind; false if there is none. For closing. */
bool object_remove_any(MbDevice *device, ObjectKind kind, MbObject *object);

#endif
`,
  "pinned.c": `/* Page-locked memory of the host that the device uses at the same address. */
#include <inttypes.h>
#include <string.h>

#include "captures.h"
#include "check.h"
#include "tracking.h"

int32_t mb_host_alloc(uint32_t device, double bytes, double *address) {
  MbDevice *d;
  Allocation *allocation;
  uint64_t size;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = check_size("bytes", bytes, 1, &size);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_new(ALLOCATION_PINNED, size, &allocation);
  if (status == MB_OK) {
    status = d->backend->pinned_alloc(d->self, size, &allocation->address);
    status = tracking_finish_alloc(d, allocation, status, address);
  }
  return device_leave(d, status);
}

/* Later copies of the host's don't find it any more; those that go on are awaited. */
static int32_t take_unused(MbDevice *device, double address, Allocation **allocation) {
  int32_t status = tracking_take(device, ALLOCATION_PINNED, address, allocation);
  if (status != MB_OK) return status;
  pthread_mutex_lock(&device->range_lock);
  while ((*allocation)->copies) pthread_cond_wait(&device->pinned_unused, &device->range_lock);
  pthread_mutex_unlock(&device->range_lock);
  return MB_OK;
}

int32_t mb_host_free(uint32_t device, double address) {
  MbDevice *d;
  Allocation *allocation;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = captures_hold_off(d, "a free of page-locked memory");
  if (status != MB_OK) return device_leave(d, status);
  status = take_unused(d, address, &allocation);
  if (status == MB_OK) {
    /* Queued work may still use it. */
    status = streams_synchronize(d);
    if (status == MB_OK) {
      status = d->backend->pinned_free(d->self, allocation->address, allocation->size);
    }
    status = tracking_finish_free(d, allocation, status);
  }
  captures_let(d);
  return device_leave(d, status);
}

/* Until unuse it can't be freed. */
static int32_t use(MbDevice *device, uint64_t address, uint64_t bytes,
                   Allocation **allocation) {
  Allocation *found;
  pthread_mutex_lock(&device->range_lock);
  found = allocations_find(&device->allocations, address, bytes);
  if (found && found->kind != ALLOCATION_PINNED) found = NULL;
  if (found) found->copies++;
  pthread_mutex_unlock(&device->range_lock);
  *allocation = found;
  if (found) return MB_OK;
  return error_set(MB_NOT_MAPPED, 0,
                   "0x%" PRIx64 " to 0x%" PRIx64
                   " lies inside no page-locked allocation of this device",
                   address, address + bytes);
}

static void unuse(MbDevice *device, Allocation *allocation) {
  pthread_mutex_lock(&device->range_lock);
  if (--allocation->copies == 0) pthread_cond_broadcast(&device->pinned_unused);
  pthread_mutex_unlock(&device->range_lock);
}

/* One of source and destination is null, and stands for the page-locked memory. */
static int32_t copy_pinned(uint32_t device, double address, double bytes,
                           const uint8_t *source, uint8_t *destination) {
  MbDevice *d;
  Allocation *allocation;
  uint64_t start, length;
  int32_t status = check_size("bytes", bytes, 1, &length);
  if (status == MB_OK) status = check_address("address", address, 1, length, &start);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = use(d, start, length, &allocation);
  if (status == MB_OK) {
    uint8_t *pinned = (uint8_t *)(uintptr_t)start;
    memcpy(destination ? destination : pinned, source ? source : pinned, (size_t)length);
    unuse(d, allocation);
  }
  return device_leave(d, status);
}

int32_t mb_host_write(uint32_t device, double address, const uint8_t *source, double bytes) {
  int32_t status = check_pointer("source", source);
  if (status != MB_OK) return status;
  return copy_pinned(device, address, bytes, source, NULL);
}

int32_t mb_host_read(uint32_t device, uint8_t *destination, double address, double bytes) {
  int32_t status = check_pointer("destination", destination);
  if (status != MB_OK) return status;
  return copy_pinned(device, address, bytes, NULL, destination);
}
`,
  "reservations.c": `#define _GNU_SOURCE
#include "reservations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "device.h"

enum { START_BIT = 1 << 20, ACCESS_SHIFT = 21 };

static uint64_t granule_of(const MbDevice *device, const Reservation *reservation,
                           uint64_t address) {
  return (address - reservation->address) / device->granularity;
}

static int32_t access_of(uint32_t entry) { return (int32_t)(entry >> ACCESS_SHIFT); }

static size_t granules_bytes(const MbDevice *device, uint64_t size) {
  return (size_t)(size / device->granularity) * sizeof(uint32_t);
}

/* Index of the first reservation above the address. */
static uint32_t index_above(const Reservations *reservations, uint64_t address) {
  uint32_t low = 0, high = reservations->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (reservations->items[middle]->address > address) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Reservation *reservations_find(const Reservations *reservations, uint64_t address,
                               uint64_t size) {
  uint32_t above = index_above(reservations, address);
  Reservation *found = above ? reservations->items[above - 1] : NULL;
  if (!found || address - found->address >= found->size) return NULL;
  return size <= found->size - (address - found->address) ? found : NULL;
}

Mapping mapping_at(const MbDevice *device, const Reservation *reservation, uint64_t address) {
  uint32_t entry = reservation->granules[granule_of(device, reservation, address)];
  uint32_t number = entry & ID_SLOT_MASK;
  const MbExtent *extent = table_at(&device->extents, number);
  return (Mapping){address, extent->size, number, access_of(entry)};
}

static void write_granules(MbDevice *device, Reservation *reservation, Mapping mapping,
                           uint32_t entry) {
  uint64_t first = granule_of(device, reservation, mapping.address);
  uint64_t count = mapping.size / device->granularity;
  uint64_t end = first + count;
  for (uint64_t granule = first; granule < end; granule++) reservation->granules[granule] = entry;
  if (entry) reservation->granules[first] |= START_BIT;
  if (end > reservation->used_granules) reservation->used_granules = end;
}

static uint32_t entry_of(uint32_t number, int32_t access) {
  return number | (uint32_t)access << ACCESS_SHIFT;
}

void mapping_note(MbDevice *device, Reservation *reservation, Mapping mapping) {
  MbExtent *extent = table_at(&device->extents, mapping.number);
  pthread_mutex_lock(&device->range_lock);
  write_granules(device, reservation, mapping, entry_of(mapping.number, mapping.access));
  reservation->mapped_granules += mapping.size / device->granularity;
  pthread_mutex_unlock(&device->range_lock);
  extent->mappings++;
}

void mapping_forget(MbDevice *device, Reservation *reservation, Mapping mapping) {
  MbExtent *extent = table_at(&device->extents, mapping.number);
  pthread_mutex_lock(&device->range_lock);
  write_granules(device, reservation, mapping, 0);
  reservation->mapped_granules -= mapping.size / device->granularity;
  pthread_mutex_unlock(&device->range_lock);
  extent->mappings--;
}

void mapping_note_access(MbDevice *device, Reservation *reservation, Mapping mapping,
                         int32_t access) {
  pthread_mutex_lock(&device->range_lock);
  write_granules(device, reservation, mapping, entry_of(mapping.number, access));
  pthread_mutex_unlock(&device->range_lock);
}

int32_t reservation_check_free(const MbDevice *device, const Reservation *reservation,
                               uint64_t address, uint64_t size) {
  uint64_t granule = granule_of(device, reservation, address);
  uint64_t end = granule + size / device->granularity;
  /* Fresh addresses lie above all that was mapped: nothing to look at. */
  if (end > reservation->used_granules) end = reservation->used_granules;
  for (; granule < end; granule++) {
    if (reservation->granules[granule]) {
      return error_set(MB_BAD_ARGUMENT, 0, "0x%" PRIx64 " is already mapped",
                       reservation->address + granule * device->granularity);
    }
  }
  return MB_OK;
}

int32_t reservation_check_whole(const MbDevice *device, const Reservation *reservation,
                                uint64_t address, uint64_t size) {
  uint64_t end = address + size;
  uint64_t at = address;
  while (at < end) {
    uint32_t entry = reservation->granules[granule_of(device, reservation, at)];
    if (!entry) return error_set(MB_NOT_MAPPED, 0, "0x%" PRIx64 " is not mapped", at);
    if (!(entry & START_BIT)) break;
    at += mapping_at(device, reservation, at).size;
  }
  if (at == end) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0,
                   "the range 0x%" PRIx64 " to 0x%" PRIx64 " cuts a mapping at its %s", address,
                   end, at > end ? "end" : "start");
}

/* With range_lock or vmm_lock. */
static int32_t check_mapped(const MbDevice *device, uint64_t address, uint64_t bytes,
                            int32_t access) {
  const Reservation *reservation = reservations_find(&device->reservations, address, bytes);
  uint64_t granule, last;
  if (!reservation) {
    return error_set(MB_NOT_MAPPED, 0,
                     "0x%" PRIx64 " to 0x%" PRIx64
                     " lies in no reservation and in no allocation of this device",
                     address, address + bytes);
  }
  granule = granule_of(device, reservation, address);
  last = granule_of(device, reservation, address + bytes - 1);
  while (granule <= last) {
    uint32_t entry = reservation->granules[granule];
    uint64_t at = reservation->address + granule * device->granularity;
    if (!entry) return error_set(MB_NOT_MAPPED, 0, "0x%" PRIx64 " is not mapped", at);
    if ((access_of(entry) & access) != access) {
      return error_set(MB_NOT_MAPPED, 0, "0x%" PRIx64 " is mapped without %s access", at,
                       access == MB_ACCESS_READ ? "read" : "read-write");
    }
    granule += entry & START_BIT
                   ? mapping_at(device, reservation, at).size / device->granularity
                   : 1;
  }
  return MB_OK;
}

int32_t range_check(MbDevice *device, uint64_t address, uint64_t bytes, int32_t access) {
  int32_t status = MB_OK;
  pthread_mutex_lock(&device->range_lock);
  if (!allocations_find(&device->allocations, address, bytes)) {
    status = check_mapped(device, address, bytes, access);
  }
  pthread_mutex_unlock(&device->range_lock);
  return status;
}

/* With range_lock. */
static int32_t insert_reservation(Reservations *reservations, Reservation *added) {
  uint32_t place;
  if (reservations->count == reservations->capacity) {
    uint32_t capacity = reservations->capacity ? reservations->capacity * 2 : 8;
    Reservation **items;
    if (capacity > ID_SLOT_MASK) {
      return error_set(MB_LIMIT, 0, "the device has too many reservations");
    }
    items = realloc(reservations->items, capacity * sizeof(Reservation *));
    if (!items) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a reservation");
    reservations->items = items;
    reservations->capacity = capacity;
  }
  place = index_above(reservations, added->address);
  memmove(reservations->items + place + 1, reservations->items + place,
          (reservations->count - place) * sizeof *reservations->items);
  reservations->items[place] = added;
  reservations->count++;
  return MB_OK;
}

static void remove_reservation(MbDevice *device, const Reservation *removed) {
  Reservations *reservations = &device->reservations;
  uint32_t place;
  pthread_mutex_lock(&device->range_lock);
  place = index_above(reservations, removed->address) - 1;
  reservations->count--;
  memmove(reservations->items + place, reservations->items + place + 1,
          (reservations->count - place) * sizeof *reservations->items);
  pthread_mutex_unlock(&device->range_lock);
}

static void free_reservation(const MbDevice *device, Reservation *reservation) {
  munmap(reservation->granules, granules_bytes(device, reservation->size));
  free(reservation);
}

static int32_t new_reservation(const MbDevice *device, uint64_t size, Reservation **added) {
  Reservation *reservation = calloc(1, sizeof *reservation);
  void *granules;
  if (!reservation) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a reservation");
  granules = mmap(NULL, granules_bytes(device, size), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (granules == MAP_FAILED) {
    int code = errno;
    free(reservation);
    return error_set(MB_OUT_OF_ADDRESSES, code,
                     "mmap of %zu bytes to keep track of a reservation of %" PRIu64
                     " bytes: %s: ask for less",
                     granules_bytes(device, size), size, strerror(code));
  }
  reservation->size = size;
  reservation->granules = granules;
  *added = reservation;
  return MB_OK;
}

static int32_t reserve(MbDevice *device, uint64_t size, uint64_t *address) {
  Reservation *added = NULL;
  int32_t status = new_reservation(device, size, &added);
  if (status != MB_OK) return status;
  status = device->backend->reserve(device->self, size, &added->address);
  if (status == MB_OK) {
    uint64_t checked;
    if (check_address("the reserved address", (double)added->address, device->granularity, size,
                      &checked) != MB_OK) {
      status = error_set(MB_OUT_OF_ADDRESSES, 0, "%s", error_last_text());
    } else {
      pthread_mutex_lock(&device->range_lock);
      status = insert_reservation(&device->reservations, added);
      pthread_mutex_unlock(&device->range_lock);
    }
    if (status != MB_OK) {
      MbError error;
      error_save(&error);
      device->backend->unreserve(device->self, added->address, size);
      error_restore(&error);
    }
  }
  if (status == MB_OK) {
    *address = added->address;
  } else {
    free_reservation(device, added);
  }
  return status;
}

int32_t mb_reserve(uint32_t device, double size, double *address) {
  MbDevice *d;
  uint64_t bytes, reserved;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  status = check_size("size", size, d->granularity, &bytes);
  if (status == MB_OK) status = reserve(d, bytes, &reserved);
  if (status == MB_OK) *address = (double)reserved;
  return device_leave_vmm(d, status);
}

static int32_t unreserve(MbDevice *device, uint64_t address) {
  Reservation *reservation = reservations_find(&device->reservations, address, 1);
  int32_t status;
  if (!reservation || reservation->address != address) {
    return error_set(MB_BAD_ARGUMENT, 0, "no reservation starts at 0x%" PRIx64, address);
  }
  if (reservation->mapped_granules) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "%" PRIu64 " bytes of the reservation at 0x%" PRIx64 " are still mapped",
                     reservation->mapped_granules * device->granularity, address);
  }
  status = device->backend->unreserve(device->self, address, reservation->size);
  if (status == MB_OK) {
    remove_reservation(device, reservation);
    free_reservation(device, reservation);
  }
  return status;
}

int32_t mb_unreserve(uint32_t device, double address) {
  MbDevice *d;
  uint64_t start;
  int32_t status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  status = check_address("address", address, d->granularity, 0, &start);
  if (status == MB_OK) status = unreserve(d, start);
  return device_leave_vmm(d, status);
}

void reservations_close(MbDevice *device) {
  Reservations *reservations = &device->reservations;
  while (reservations->count) {
    Reservation *reservation = reservations->items[reservations->count - 1];
    uint64_t granule = 0;
    while (granule < reservation->used_granules) {
      uint64_t address = reservation->address + granule * device->granularity;
      if (reservation->granules[granule]) {
        Mapping mapping = mapping_at(device, reservation, address);
        device->backend->unmap(device->self, mapping.address, mapping.size);
        granule += mapping.size / device->granularity;
      } else {
        granule++;
      }
    }
    device->backend->unreserve(device->self, reservation->address, reservation->size);
    remove_reservation(device, reservation);
    free_reservation(device, reservation);
  }
  free(reservations->items);
  *reservations = (Reservations){0};
}
`,
  "reservations.h": `/* Reserved address ranges and what is mapped where in them.
 *
 * Each reservation holds one 32-bit entry per granule in lazily paged memory: a lookup is
 * one read, and 64 TiB of 2 MiB granules take 128 MiB of addresses, no more memory than
 * was mapped. Entry: extent slot + 1 (0: unmapped), a bit where a mapping starts, access. */
#ifndef MOONBRIGHT_RESERVATIONS_H
#define MOONBRIGHT_RESERVATIONS_H

#include <stdbool.h>

#include "ids.h"

typedef struct MbDevice MbDevice;

typedef struct Reservation {
  uint64_t address, size;
  uint32_t *granules;
  uint64_t used_granules;   /* none at or above this was ever mapped */
  uint64_t mapped_granules;
} Reservation;

/* Sorted by address. A zeroed one is empty. */
typedef struct Reservations {
  Reservation **items;
  uint32_t count, capacity;
} Reservations;

/* The reservation that holds the whole range, or null. */
Reservation *reservations_find(const Reservations *reservations, uint64_t address,
                               uint64_t size);

/* One mapping, as a walk over a range meets it. */
typedef struct Mapping {
  uint64_t address, size;
  uint32_t number; /* extent slot + 1 */
  int32_t access;
} Mapping;

/* The mapping that starts at an address known to be the start of one. */
Mapping mapping_at(const MbDevice *device, const Reservation *reservation, uint64_t address);

/* These change granules and take range_lock for it. */
void mapping_note(MbDevice *device, Reservation *reservation, Mapping mapping);
void mapping_forget(MbDevice *device, Reservation *reservation, Mapping mapping);
void mapping_note_access(MbDevice *device, Reservation *reservation, Mapping mapping,
                         int32_t access);

/* MB_BAD_ARGUMENT if any of the range is mapped. */
int32_t reservation_check_free(const MbDevice *device, const Reservation *reservation,
                               uint64_t address, uint64_t size);
/* MB_NOT_MAPPED, or MB_BAD_ARGUMENT if the range cuts a mapping. */
int32_t reservation_check_whole(const MbDevice *device, const Reservation *reservation,
                                uint64_t address, uint64_t size);

/* Whether data calls may touch the range: it lies in mappings with that access or inside
 * one tracked allocation. */
int32_t range_check(MbDevice *device, uint64_t address, uint64_t bytes, int32_t access);

/* For closing: unmaps and gives back all that is left, whatever the driver says. */
void reservations_close(MbDevice *device);

#endif
`,
  "staging.c": `#include "staging.h"

#include <stdlib.h>

#include "device.h"

/* Two keep one caller's host copies and the device busy at once; more only for calls
 * that run at the same time. */
enum { CHUNKS_BEFORE_WAITING = 2, MOST_CHUNKS = 32 };

void staging_init(Staging *staging) {
  pthread_mutex_init(&staging->lock, NULL);
  pthread_cond_init(&staging->given, NULL);
  staging->newest = &staging->oldest;
}

void staging_destroy(Staging *staging) {
  pthread_mutex_destroy(&staging->lock);
  pthread_cond_destroy(&staging->given);
}

static StagingChunk *unlink_chunk(Staging *staging, StagingChunk **place) {
  StagingChunk *chunk = *place;
  *place = chunk->next;
  if (!chunk->next) staging->newest = place;
  staging->free_count--;
  return chunk;
}

/* With the lock: a free chunk that the device has done with, or null. */
static StagingChunk *take_passed(MbDevice *device) {
  Staging *staging = &device->staging;
  for (StagingChunk **place = &staging->oldest; *place; place = &(*place)->next) {
    if (!(*place)->pending ||
        device->backend->event_query(device->self, (*place)->event) == MB_OK) {
      return unlink_chunk(staging, place);
    }
  }
  return NULL;
}

static int32_t create_chunk(MbDevice *device, StagingChunk **chunk) {
  StagingChunk *created = calloc(1, sizeof *created);
  int32_t status;
  if (!created) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a staging chunk");
  status = device->backend->staging_alloc(device->self, STAGING_CHUNK_BYTES, &created->memory);
  if (status == MB_OK) {
    status = device->backend->event_create(device->self, 0, &created->event);
    if (status != MB_OK) {
      MbError error;
      error_save(&error);
      device->backend->staging_free(device->self, created->memory);
      error_restore(&error);
    }
  }
  if (status == MB_OK) {
    *chunk = created;
  } else {
    free(created);
  }
  return status;
}

/* With total already counted up. */
static int32_t create_counted_chunk(MbDevice *device, StagingChunk **chunk) {
  int32_t status = create_chunk(device, chunk);
  if (status != MB_OK) {
    pthread_mutex_lock(&device->staging.lock);
    device->staging.total--;
    pthread_cond_broadcast(&device->staging.given);
    pthread_mutex_unlock(&device->staging.lock);
  }
  return status;
}

int32_t staging_take(MbDevice *device, StagingChunk **chunk) {
  Staging *staging = &device->staging;
  StagingChunk *taken;
  int32_t status;
  pthread_mutex_lock(&staging->lock);
  while (!(taken = take_passed(device))) {
    if (staging->free_count < CHUNKS_BEFORE_WAITING && staging->total < MOST_CHUNKS) {
      staging->total++;
      pthread_mutex_unlock(&staging->lock);
      return create_counted_chunk(device, chunk);
    }
    if (staging->free_count) {
      taken = unlink_chunk(staging, &staging->oldest);
      break;
    }
    pthread_cond_wait(&staging->given, &staging->lock);
  }
  pthread_mutex_unlock(&staging->lock);
  if (taken->pending) {
    status = device->backend->event_synchronize(device->self, taken->event);
    if (status != MB_OK) {
      staging_give(device, taken, true);
      return status;
    }
  }
  *chunk = taken;
  return MB_OK;
}

StagingChunk *staging_take_spare(MbDevice *device) {
  Staging *staging = &device->staging;
  StagingChunk *chunk;
  bool create;
  pthread_mutex_lock(&staging->lock);
  chunk = take_passed(device);
  create = !chunk && staging->total < CHUNKS_BEFORE_WAITING;
  if (create) staging->total++;
  pthread_mutex_unlock(&staging->lock);
  if (create && create_counted_chunk(device, &chunk) != MB_OK) chunk = NULL;
  return chunk;
}

void staging_give(MbDevice *device, StagingChunk *chunk, bool pending) {
  Staging *staging = &device->staging;
  chunk->pending = pending;
  chunk->next = NULL;
  pthread_mutex_lock(&staging->lock);
  *staging->newest = chunk;
  staging->newest = &chunk->next;
  staging->free_count++;
  pthread_cond_signal(&staging->given);
  pthread_mutex_unlock(&staging->lock);
}

void staging_close(MbDevice *device) {
  Staging *staging = &device->staging;
  while (staging->oldest) {
    StagingChunk *chunk = unlink_chunk(staging, &staging->oldest);
    device->backend->event_destroy(device->self, chunk->event);
    device->backend->staging_free(device->self, chunk->memory);
    free(chunk);
  }
}
`,
  "staging.h": `/* Chunks of pinned host memory through which data calls copy. A call owns the chunks it
 * uses, so a call that waits for its stream holds up nobody else. */
#ifndef MOONBRIGHT_STAGING_H
#define MOONBRIGHT_STAGING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define STAGING_CHUNK_BYTES ((size_t)4 << 20)

typedef struct MbDevice MbDevice;

typedef struct StagingChunk {
  uint8_t *memory;
  void *event;
  bool pending; /* the device reads it until the event has passed */
  struct StagingChunk *next;
} StagingChunk;

typedef struct Staging {
  pthread_mutex_t lock;
  pthread_cond_t given;
  StagingChunk *oldest, **newest;
  uint32_t free_count, total;
} Staging;

void staging_init(Staging *staging);
void staging_destroy(Staging *staging);
/* Waits for one if it must. */
int32_t staging_take(MbDevice *device, StagingChunk **chunk);
/* A second chunk for a call that has one already: null rather than a wait. */
StagingChunk *staging_take_spare(MbDevice *device);
void staging_give(MbDevice *device, StagingChunk *chunk, bool pending);
/* For closing: frees all chunks. */
void staging_close(MbDevice *device);

#endif
`,
  "streams.c": `#include "captures.h"
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
`,
  "timing.c": `/* Loops that time the driver's calls without the cost of crossing into them. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "captures.h"
#include "check.h"
#include "clock.h"
#include "kernels.h"

static const uint32_t most_samples = 10000000;

/* Keeps the error of the call that failed while its leftovers are freed. */
#define KEEPING_ERROR(call)  \\
  do {                       \\
    MbError kept;            \\
    error_save(&kept);       \\
    call;                    \\
    error_restore(&kept);    \\
  } while (0)

static int32_t check_samples(uint32_t n, const double *samples) {
  int32_t status = check_count("n", n, most_samples);
  return status == MB_OK ? check_pointer("samples", samples) : status;
}

static int32_t time_plain(MbDevice *device, uint64_t size, uint32_t n, double *alloc_ns,
                          double *free_ns) {
  for (uint32_t i = 0; i < n; i++) {
    uint64_t address;
    int64_t started = clock_ns(), between;
    int32_t status = device->backend->plain_alloc(device->self, size, &address);
    if (status != MB_OK) return status;
    between = clock_ns();
    status = device->backend->plain_free(device->self, address, size);
    if (status != MB_OK) return status;
    free_ns[i] = (double)(clock_ns() - between);
    alloc_ns[i] = (double)(between - started);
  }
  return MB_OK;
}

int32_t mb_time_plain(uint32_t device, double size, uint32_t n, double *alloc_ns,
                      double *free_ns) {
  MbDevice *d;
  uint64_t bytes;
  int32_t status = check_samples(n, alloc_ns);
  if (status == MB_OK) status = check_samples(n, free_ns);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  return device_leave(d, time_plain(d, bytes, n, alloc_ns, free_ns));
}

static int32_t empty_pool(MbDevice *device, void *stream) {
  int32_t status = device->backend->stream_synchronize(device->self, stream);
  return status == MB_OK ? device->backend->pool_trim(device->self) : status;
}

static int32_t time_pool(MbDevice *device, uint64_t size, void *stream, bool warm, uint32_t n,
                         double *alloc_ns, double *free_ns) {
  uint64_t address;
  int32_t status;
  if (warm) {
    status = device->backend->pool_alloc(device->self, size, stream, &address);
    if (status != MB_OK) return status;
    status = device->backend->pool_free(device->self, address, size, stream);
    if (status != MB_OK) return status;
  }
  for (uint32_t i = 0; i < n; i++) {
    int64_t started, between;
    status = warm ? MB_OK : empty_pool(device, stream);
    if (status != MB_OK) return status;
    started = clock_ns();
    status = device->backend->pool_alloc(device->self, size, stream, &address);
    if (status != MB_OK) return status;
    between = clock_ns();
    status = device->backend->pool_free(device->self, address, size, stream);
    if (status != MB_OK) return status;
    free_ns[i] = (double)(clock_ns() - between);
    alloc_ns[i] = (double)(between - started);
  }
  return MB_OK;
}

int32_t mb_time_pool(uint32_t device, double size, uint32_t stream, int32_t warm, uint32_t n,
                     double *alloc_ns, double *free_ns) {
  MbDevice *d;
  MbObject *s;
  uint64_t bytes;
  int32_t status = check_samples(n, alloc_ns);
  if (status == MB_OK) status = check_samples(n, free_ns);
  if (status == MB_OK) status = check_size("size", size, 1, &bytes);
  if (status == MB_OK && warm != 0 && warm != 1) {
    status = error_set(MB_BAD_ARGUMENT, 0, "warm must be 0 or 1, got %" PRId32, warm);
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = stream_pin_uncaptured(d, stream, "a timed loop", &s);
  if (status == MB_OK) {
    status = time_pool(d, bytes, s->handle, warm == 1, n, alloc_ns, free_ns);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}

typedef struct VmmLoop {
  MbDevice *device;
  uint64_t address, extent_size;
  uint64_t *handles;
  uint32_t extents;
} VmmLoop;

/* Bytes that one call for \`mapped\` mappings side by side may take. */
static uint64_t call_bytes(const VmmLoop *loop, uint32_t mapped) {
  return loop->device->backend->single_mappings ? loop->extent_size
                                                : mapped * loop->extent_size;
}

static int32_t set_access(const VmmLoop *loop) {
  const uint64_t size = loop->extents * loop->extent_size, bytes = call_bytes(loop, loop->extents);
  int32_t status = MB_OK;
  for (uint64_t done = 0; done < size && status == MB_OK; done += bytes) {
    status = loop->device->backend->set_access(loop->device->self, loop->address + done, bytes,
                                               MB_ACCESS_READ_WRITE);
  }
  if (status == MB_OK && loop->device->backend->settle) {
    loop->device->backend->settle(loop->device->self);
  }
  return status;
}

/* Goes on after a failure, which it returns. */
static int32_t unmap(const VmmLoop *loop, uint32_t mapped) {
  const uint64_t size = mapped * loop->extent_size, bytes = call_bytes(loop, mapped);
  int32_t status = MB_OK;
  for (uint64_t done = 0; done < size; done += bytes) {
    int32_t one =
        loop->device->backend->unmap(loop->device->self, loop->address + done, bytes);
    if (one != MB_OK) status = one;
  }
  return status;
}

static void undo_vmm(VmmLoop *loop, uint32_t created, uint32_t mapped) {
  const MbBackend *backend = loop->device->backend;
  void *self = loop->device->self;
  unmap(loop, mapped);
  for (uint32_t i = 0; i < created; i++) {
    backend->extent_release(self, loop->handles[i], loop->extent_size);
  }
}

static int32_t time_vmm_once(VmmLoop *loop, double *stages) {
  const MbBackend *backend = loop->device->backend;
  void *self = loop->device->self;
  uint32_t created = 0, mapped = 0, released = 0;
  int64_t times[6];
  int32_t status = MB_OK;
  times[0] = clock_ns();
  for (; created < loop->extents && status == MB_OK; created++) {
    status = backend->extent_create(self, loop->extent_size, &loop->handles[created]);
    if (status != MB_OK) break;
  }
  times[1] = clock_ns();
  for (; mapped < loop->extents && status == MB_OK; mapped++) {
    status = backend->map(self, loop->address + mapped * loop->extent_size, loop->extent_size,
                          loop->handles[mapped]);
    if (status != MB_OK) break;
  }
  times[2] = clock_ns();
  if (status == MB_OK) status = set_access(loop);
  times[3] = clock_ns();
  if (status == MB_OK) status = unmap(loop, loop->extents);
  if (status != MB_OK) {
    KEEPING_ERROR(undo_vmm(loop, created, mapped));
    return status;
  }
  times[4] = clock_ns();
  for (; released < loop->extents; released++) {
    int32_t freed = backend->extent_release(self, loop->handles[released], loop->extent_size);
    if (freed != MB_OK) status = freed;
  }
  times[5] = clock_ns();
  for (int i = 0; i < 5; i++) stages[i] = (double)(times[i + 1] - times[i]);
  return status;
}

/* With vmm_lock. */
static int32_t time_vmm(MbDevice *device, uint64_t size, uint64_t extent_size, uint32_t n,
                        double *stages) {
  VmmLoop loop = {device, 0, extent_size, NULL, (uint32_t)(size / extent_size)};
  int32_t status;
  loop.handles = malloc(loop.extents * sizeof *loop.handles);
  if (!loop.handles) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a timed loop");
  status = device->backend->reserve(device->self, size, &loop.address);
  if (status == MB_OK) {
    for (uint32_t i = 0; i < n && status == MB_OK; i++) {
      status = time_vmm_once(&loop, stages + (size_t)i * 5);
    }
    if (status == MB_OK) {
      status = device->backend->unreserve(device->self, loop.address, size);
    } else {
      KEEPING_ERROR(device->backend->unreserve(device->self, loop.address, size));
    }
  }
  free(loop.handles);
  return status;
}

/* size is a multiple of extent_size, extent_size of the granularity. */
static int32_t check_extent_sizes(const MbDevice *device, double size, double extent_size,
                                  uint64_t *bytes, uint64_t *extent_bytes) {
  int32_t status = check_size("extent_size", extent_size, device->granularity, extent_bytes);
  if (status == MB_OK) status = check_size("size", size, *extent_bytes, bytes);
  if (status == MB_OK && *bytes / *extent_bytes > CHECK_LARGEST_COUNT) {
    status = error_set(MB_BAD_ARGUMENT, 0, "size holds more than %u extents",
                       CHECK_LARGEST_COUNT);
  }
  return status;
}

int32_t mb_time_vmm(uint32_t device, double size, double extent_size, uint32_t n,
                    double *stages) {
  MbDevice *d;
  uint64_t bytes, extent_bytes;
  int32_t status = check_samples(n, stages);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  status = check_extent_sizes(d, size, extent_size, &bytes, &extent_bytes);
  if (status == MB_OK) status = time_vmm(d, bytes, extent_bytes, n, stages);
  return device_leave_vmm(d, status);
}

/* Takes no lock of the shim's own, so that what it shows is the driver's. */
static int32_t time_launch(MbDevice *device, void *function, void *stream, const uint8_t *args,
                           uint32_t args_bytes, bool synchronize, uint32_t n,
                           double *launch_ns) {
  static const MbGeometry geometry = {{1, 1, 1}, {32, 1, 1}, 0};
  const uint32_t launches_between_drains = 256; /* a full queue would hold launches up */
  int32_t status = device->backend->stream_synchronize(device->self, stream);
  for (uint32_t i = 0; i < n && status == MB_OK; i++) {
    int64_t started = clock_ns();
    status = device->backend->launch(device->self, function, &geometry, stream, args, args_bytes);
    if (status == MB_OK && synchronize) {
      status = device->backend->stream_synchronize(device->self, stream);
    }
    launch_ns[i] = (double)(clock_ns() - started);
    if (status == MB_OK && !synchronize && (i + 1) % launches_between_drains == 0) {
      status = device->backend->stream_synchronize(device->self, stream);
    }
  }
  if (status == MB_OK) status = device->backend->stream_synchronize(device->self, stream);
  return status;
}

int32_t mb_time_launch(uint32_t device, uint32_t function, uint32_t stream, const uint8_t *args,
                       uint32_t args_bytes, int32_t synchronize, uint32_t n,
                       double *launch_ns) {
  MbDevice *d;
  MbObject *f, *s;
  int32_t status = check_samples(n, launch_ns);
  if (status == MB_OK) status = kernels_check_args(args, args_bytes);
  if (status == MB_OK && synchronize != 0 && synchronize != 1) {
    status = error_set(MB_BAD_ARGUMENT, 0, "synchronize must be 0 or 1, got %" PRId32,
                       synchronize);
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = object_pin(d, OBJECT_FUNCTION, function, &f);
  if (status == MB_OK) {
    status = stream_pin_uncaptured(d, stream, "a timed loop", &s);
    if (status != MB_OK) object_unpin(d, f);
  }
  if (status == MB_OK) {
    status = time_launch(d, f->handle, s->handle, args, args_bytes, synchronize == 1, n,
                         launch_ns);
    object_unpin(d, f);
    object_unpin(d, s);
  }
  return device_leave(d, status);
}
`,
  "tracking.c": `#include "tracking.h"

#include <inttypes.h>
#include <stdlib.h>

#include "check.h"

static void track(MbDevice *device, Allocation *allocation) {
  pthread_mutex_lock(&device->range_lock);
  allocations_insert(&device->allocations, allocation);
  pthread_mutex_unlock(&device->range_lock);
}

int32_t tracking_take(MbDevice *device, AllocationKind kind, double address,
                      Allocation **allocation) {
  static const char *const names[] = {"plain", "pool", "page-locked", "wrapped"};
  uint64_t start;
  int32_t status = check_address("address", address, 1, 0, &start);
  if (status != MB_OK) return status;
  pthread_mutex_lock(&device->range_lock);
  *allocation = allocations_remove(&device->allocations, kind, start);
  pthread_mutex_unlock(&device->range_lock);
  if (*allocation) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "no %s allocation of this device starts at 0x%" PRIx64,
                   names[kind], start);
}

int32_t tracking_new(AllocationKind kind, uint64_t size, Allocation **allocation) {
  *allocation = calloc(1, sizeof **allocation);
  if (!*allocation) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for an allocation");
  (*allocation)->kind = kind;
  (*allocation)->size = size;
  return MB_OK;
}

int32_t tracking_finish_alloc(MbDevice *device, Allocation *allocation, int32_t status,
                              double *address) {
  if (status == MB_OK) {
    *address = (double)allocation->address;
    track(device, allocation);
  } else {
    free(allocation);
  }
  return status;
}

int32_t tracking_finish_free(MbDevice *device, Allocation *allocation, int32_t status) {
  if (status == MB_OK) {
    free(allocation);
  } else {
    track(device, allocation);
  }
  return status;
}
`,
  "tracking.h": `/* The way of an allocation into the device's table of them and out again. */
#ifndef MOONBRIGHT_TRACKING_H
#define MOONBRIGHT_TRACKING_H

#include "device.h"

/* A record that is not in the table yet. */
int32_t tracking_new(AllocationKind kind, uint64_t size, Allocation **allocation);
/* status: of the driver's allocation, which is passed on. Tracks the record and gives its
 * address, or frees it. */
int32_t tracking_finish_alloc(MbDevice *device, Allocation *allocation, int32_t status,
                              double *address);
/* Takes it out, before the driver frees it, so that nobody else frees it as well. */
int32_t tracking_take(MbDevice *device, AllocationKind kind, double address,
                      Allocation **allocation);
/* status: of the driver's free, which is passed on. Frees the record, or tracks it again. */
int32_t tracking_finish_free(MbDevice *device, Allocation *allocation, int32_t status);

#endif
`,
  "vendor_library.c": `#include "vendor_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct VendorApi {
  VendorApi *next;
  void *api;
  bool started;
  char path[];
};

const char *vendor_symbols(void *library, const VendorSymbol *wanted, size_t count, void *api) {
  for (size_t i = 0; i < count; i++) {
    void *symbol = dlsym(library, wanted[i].name);
    if (!symbol) return wanted[i].name;
    memcpy((char *)api + wanted[i].offset, &symbol, sizeof symbol);
  }
  return NULL;
}

static int32_t open_path(const VendorLibrary *vendor, const char *path, void **library) {
  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*library) return MB_OK;
  return error_set(MB_NO_LIBRARY, 0, "dlopen of \\"%s\\" for the %s: %s", path,
                   vendor->driver, dlerror());
}

/* The first of the usual names that can be opened. */
static int32_t open_usual(const VendorLibrary *vendor, void **library, const char **name) {
  char tried[768] = "";
  size_t length = 0;
  for (const char *const *each = vendor->names; *each; each++) {
    *library = dlopen(*each, RTLD_NOW | RTLD_LOCAL);
    if (*library) {
      *name = *each;
      return MB_OK;
    }
    snprintf(tried + length, sizeof tried - length, "%s%s (%s)", length ? ", " : "", *each,
             dlerror());
    length = strlen(tried);
  }
  return error_set(MB_NO_LIBRARY, 0,
                   "no %s found: %s: install it or give its library's path",
                   vendor->driver, tried);
}

static int32_t load(const VendorLibrary *vendor, const char *path, void *api) {
  const char *name = path;
  void *library = NULL;
  int32_t status =
      path ? open_path(vendor, path, &library) : open_usual(vendor, &library, &name);
  if (status != MB_OK) return status;
  status = vendor->fill(library, name, api);
  if (status != MB_OK) dlclose(library);
  return status;
}

/* With the lock. */
static int32_t find_or_load(VendorLibrary *vendor, const char *path, const void **api) {
  const char *key = path ? path : "";
  size_t length = strlen(key) + 1;
  VendorApi *entry = vendor->loaded;
  int32_t status;
  while (entry && strcmp(entry->path, key) != 0) entry = entry->next;
  if (entry) {
    if (!entry->started) entry->started = vendor->start(entry->api);
    *api = entry->api;
    return MB_OK;
  }
  entry = calloc(1, sizeof *entry + length);
  if (entry) entry->api = calloc(1, vendor->api_bytes);
  if (!entry || !entry->api) {
    free(entry);
    return error_set(MB_OUT_OF_MEMORY, 0, "no host memory to load a library");
  }
  memcpy(entry->path, key, length);
  status = load(vendor, path, entry->api);
  if (status != MB_OK) {
    free(entry->api);
    free(entry);
    return status;
  }
  entry->started = vendor->start(entry->api);
  entry->next = vendor->loaded;
  vendor->loaded = entry;
  *api = entry->api;
  return MB_OK;
}

int32_t vendor_library_load(VendorLibrary *vendor, const char *path, const void **api) {
  int32_t status;
  pthread_mutex_lock(&vendor->lock);
  status = find_or_load(vendor, path, api);
  pthread_mutex_unlock(&vendor->lock);
  return status;
}
`,
  "vendor_library.h": `/* Loading a vendor's library, and finding what it exports. */
#ifndef MOONBRIGHT_VENDOR_LIBRARY_H
#define MOONBRIGHT_VENDOR_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"

typedef struct VendorSymbol {
  size_t offset; /* of its pointer in the vendor's table of functions */
  const char *name;
} VendorSymbol;

/* Fills in what a library exports, up to the first symbol that it lacks, which is returned;
 * null if it has them all. */
const char *vendor_symbols(void *library, const VendorSymbol *wanted, size_t count, void *api);

typedef struct VendorApi VendorApi;

typedef struct VendorLibrary {
  const char *driver;       /* as messages name it, such as "NVIDIA driver" */
  const char *const *names; /* where it usually is, best first; null at the end */
  size_t api_bytes;
  /* Fills the zeroed table in. name: of the library, for messages. */
  int32_t (*fill)(void *library, const char *name, void *api);
  /* Readies it for work. Asked again each time as long as it doesn't succeed: what was
   * lacking, such as a device file, may have come. */
  bool (*start)(void *api);
  pthread_mutex_t lock;
  VendorApi *loaded;
} VendorLibrary;

/* Loads it once per path and keeps it for good: drivers don't take being unloaded well.
 * path: null for the usual names. */
int32_t vendor_library_load(VendorLibrary *vendor, const char *path, const void **api);

#endif
`,
  "wrapped.c": `/* Memory that others allocated and the device can use, made known to the data calls. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "tracking.h"

/* With range_lock. What the device has of its own may go away under the wrapper. */
static bool overlaps(const MbDevice *device, uint64_t address, uint64_t size) {
  const Reservations *reservations = &device->reservations;
  for (uint32_t i = 0; i < reservations->count; i++) {
    const Reservation *one = reservations->items[i];
    if (address < one->address + one->size && one->address < address + size) return true;
  }
  return allocations_overlap(&device->allocations, address, size);
}

int32_t mb_wrap(uint32_t device, double address, double bytes) {
  MbDevice *d;
  Allocation *wrapped;
  uint64_t start, size;
  int32_t status = check_size("bytes", bytes, 1, &size);
  if (status == MB_OK) status = check_address("address", address, 1, size, &start);
  if (status == MB_OK && start == 0) {
    status = error_set(MB_BAD_ARGUMENT, 0, "address must not be 0");
  }
  if (status == MB_OK) status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_new(ALLOCATION_WRAPPED, size, &wrapped);
  if (status == MB_OK) {
    wrapped->address = start;
    pthread_mutex_lock(&d->range_lock);
    if (overlaps(d, start, size)) {
      status = error_set(MB_BAD_ARGUMENT, 0,
                         "0x%" PRIx64 " to 0x%" PRIx64
                         " overlaps memory that this device has or has wrapped already",
                         start, start + size);
    } else {
      allocations_insert(&d->allocations, wrapped);
    }
    pthread_mutex_unlock(&d->range_lock);
    if (status != MB_OK) free(wrapped);
  }
  return device_leave(d, status);
}

int32_t mb_unwrap(uint32_t device, double address) {
  MbDevice *d;
  Allocation *wrapped;
  int32_t status = device_enter(device, &d);
  if (status != MB_OK) return status;
  status = tracking_take(d, ALLOCATION_WRAPPED, address, &wrapped);
  if (status == MB_OK) free(wrapped);
  return device_leave(d, status);
}
`,
};
