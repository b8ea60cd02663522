/* The host backend's device: one memfd of memory, streams that are threads. */
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
