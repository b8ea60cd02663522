/* The hip backend's device.
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
