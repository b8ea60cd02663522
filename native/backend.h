/* What a backend implements. The common part has checked every argument: ids became
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
