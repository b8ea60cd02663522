/* The cuda backend's device: a retained primary context. */
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
