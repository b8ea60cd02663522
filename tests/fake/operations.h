/* What the vendors' functions for streams, data, kernels, graphs and pools do alike. Handles
 * are passed as they come. */
#ifndef FAKE_OPERATIONS_H
#define FAKE_OPERATIONS_H

#include "graphs.h"
#include "modules.h"
#include "pools.h"
#include "world.h"

/* Handles are numbers in disguise. */
#define HANDLE(object) ((void *)(object)->base.handle)

static Result plain_alloc(size_t size, uint64_t *address) {
  CHECK(capture_forbid_unless_relaxed());
  if (address == NULL || size == 0) return RESULT_INVALID_VALUE;
  return block_create(&device_memory, RANGE_PLAIN, size, NULL, address);
}

/* Waits for everything on the device, as the real ones do. */
static Result plain_free(uint64_t address) {
  CHECK(capture_forbid_unless_relaxed());
  if (address == 0) return RESULT_SUCCESS;
  const Range *range = range_at(&device_memory, address);
  if (range == NULL || range->kind != RANGE_PLAIN) return RESULT_INVALID_VALUE;
  streams_drain();
  block_free(&device_memory, range_at(&device_memory, address));
  return result_after_work();
}

static Result pinned_alloc(void **memory, size_t size, bool device_mapped) {
  CHECK(capture_forbid_unless_relaxed());
  if (memory == NULL || size == 0) return RESULT_INVALID_VALUE;
  uint64_t address;
  const Result result = block_create(&pinned_memory, RANGE_PINNED, size, NULL, &address);
  if (result != RESULT_SUCCESS) return result;
  range_at(&pinned_memory, address)->device_mapped = device_mapped;
  *memory = (void *)address;
  return RESULT_SUCCESS;
}

/* As with unified addressing, but only of memory that was meant to be mapped. */
static Result pinned_device_address(uint64_t *address, const void *memory, unsigned flags) {
  const Range *range = range_at(&pinned_memory, (uint64_t)memory);
  if (address == NULL || flags != 0 || range == NULL || !range->device_mapped)
    return RESULT_INVALID_VALUE;
  *address = (uint64_t)memory;
  return RESULT_SUCCESS;
}

/* Does not wait: queued copies from or to it fail, so that nobody relies on a wait that
 * is documented nowhere. */
static Result pinned_free(const void *memory) {
  CHECK(capture_forbid_unless_relaxed());
  const Range *range = range_at(&pinned_memory, (uint64_t)memory);
  if (range == NULL) return RESULT_INVALID_VALUE;
  block_free(&pinned_memory, range);
  return RESULT_SUCCESS;
}

static bool is_pinned(const void *memory, size_t bytes) {
  return range_covers(&pinned_memory, (uint64_t)memory, bytes, ACCESS_READ);
}

static Result copy_in(uint64_t destination, const void *source, size_t bytes,
                      const void *handle) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (bytes == 0) return RESULT_SUCCESS;
  if (source == NULL || destination == 0) return RESULT_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  /* Pinned memory is read when the copy runs; other memory may be reused at once. */
  const bool staged = !is_pinned(source, bytes);
  if (staged) CHECK(capture_forbid(stream, RESULT_CAPTURE_UNSUPPORTED));
  Operation *operation = operation_new(OPERATION_COPY, staged ? bytes : 0);
  if (staged) memcpy(operation->bytes, source, bytes);
  operation->work.copy =
      (CopyWork){destination, (uint64_t)source, bytes, &device_memory,
                 staged ? NULL : &pinned_memory};
  stream_push(stream, operation);
  return RESULT_SUCCESS;
}

static Result copy_out(void *destination, uint64_t source, size_t bytes,
                       const void *handle) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (bytes == 0) return RESULT_SUCCESS;
  if (destination == NULL || source == 0) return RESULT_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  const bool pinned = is_pinned(destination, bytes);
  if (!pinned) CHECK(capture_forbid(stream, RESULT_CAPTURE_UNSUPPORTED));
  Operation *operation = operation_new(OPERATION_COPY, 0);
  operation->work.copy =
      (CopyWork){(uint64_t)destination, source, bytes, pinned ? &pinned_memory : NULL,
                 &device_memory};
  const uint64_t sequence = stream_push(stream, operation);
  /* A copy to memory that is not pinned returns only when it is done. */
  if (!pinned) stream_drain(stream, sequence);
  return result_after_work();
}

static Result copy_on_device(uint64_t destination, uint64_t source, size_t bytes,
                             const void *handle) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (bytes == 0) return RESULT_SUCCESS;
  /* The real drivers copy anything into overlapping ranges; better not to pass. */
  const uint64_t apart = destination > source ? destination - source : source - destination;
  if (destination == 0 || source == 0 || apart < bytes) return RESULT_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  Operation *operation = operation_new(OPERATION_COPY, 0);
  operation->work.copy =
      (CopyWork){destination, source, bytes, &device_memory, &device_memory};
  stream_push(stream, operation);
  return RESULT_SUCCESS;
}

static Result fill(uint64_t destination, uint32_t value, uint32_t width, size_t count,
                   const void *handle) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (count == 0) return RESULT_SUCCESS;
  if (destination == 0 || destination % width != 0 || count > SIZE_MAX / width)
    return RESULT_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  Operation *operation = operation_new(OPERATION_FILL, 0);
  operation->work.fill = (FillWork){destination, count, value, width};
  stream_push(stream, operation);
  return RESULT_SUCCESS;
}

static Result device_synchronize(void) {
  CHECK(capture_forbid_any());
  streams_drain();
  pools_trim(true);
  return result_after_work();
}

static Result new_stream(void *handle, unsigned flags) {
  if (handle == NULL || flags > STREAM_NON_BLOCKING) return RESULT_INVALID_VALUE;
  *(void **)handle = HANDLE(stream_create(flags != STREAM_NON_BLOCKING));
  return RESULT_SUCCESS;
}

/* Returns at once; queued work still runs. */
static Result destroy_stream(const void *handle, Result unknown) {
  Stream *stream = stream_of(handle);
  if (stream == NULL || stream == &default_stream) return unknown;
  CHECK(capture_forbid(stream, RESULT_CAPTURE_UNSUPPORTED));
  stream_destroy(stream);
  return RESULT_SUCCESS;
}

static Result synchronize_stream(const void *handle) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  CHECK(capture_forbid(stream, RESULT_CAPTURE_UNSUPPORTED));
  stream_drain(stream, last_sequence);
  pools_trim(true);
  return result_after_work();
}

static Result wait_for_event(const void *handle, const void *event_handle, unsigned flags) {
  Stream *stream = stream_of(handle);
  const Event *event = event_of(event_handle);
  if (stream == NULL || event == NULL) return RESULT_INVALID_HANDLE;
  if (flags != 0) return RESULT_INVALID_VALUE;
  CHECK(capture_forbid(stream, RESULT_CAPTURE_ISOLATION));
  if (event->stream == NULL) return RESULT_SUCCESS;
  Operation *operation = operation_new(OPERATION_WAIT, 0);
  operation->work.wait = (WaitWork){event->stream, event->sequence};
  stream_push(stream, operation);
  return RESULT_SUCCESS;
}

static Result new_event(void *handle, unsigned flags) {
  if (handle == NULL || flags > (EVENT_BLOCKING_SYNC | EVENT_DISABLE_TIMING))
    return RESULT_INVALID_VALUE;
  Event *event = object_new(OBJECT_EVENT, sizeof *event);
  event->timing = !(flags & EVENT_DISABLE_TIMING);
  *(void **)handle = HANDLE(event);
  return RESULT_SUCCESS;
}

static Result destroy_event(const void *handle, Result unknown) {
  Event *event = event_of(handle);
  if (event == NULL) return unknown;
  event->base.alive = false;
  return RESULT_SUCCESS;
}

static Result record_event(const void *handle, const void *stream_handle) {
  Event *event = event_of(handle);
  Stream *stream = stream_of(stream_handle);
  if (event == NULL || stream == NULL) return RESULT_INVALID_HANDLE;
  CHECK(capture_forbid(stream, RESULT_CAPTURE_UNSUPPORTED));
  event_record(event, stream);
  return RESULT_SUCCESS;
}

static Result query_event(const void *handle) {
  Event *event = event_of(handle);
  if (event == NULL) return RESULT_INVALID_HANDLE;
  const bool passed = event_poll(event);
  if (context_lost) return RESULT_ILLEGAL_ADDRESS;
  return passed ? RESULT_SUCCESS : RESULT_NOT_READY;
}

static Result synchronize_event(const void *handle) {
  Event *event = event_of(handle);
  if (event == NULL) return RESULT_INVALID_HANDLE;
  if (event->stream != NULL) stream_drain(event->stream, event->sequence);
  return result_after_work();
}

static Result elapsed_time(float *milliseconds, const void *start_handle,
                           const void *end_handle) {
  const Event *start = event_of(start_handle), *end = event_of(end_handle);
  if (milliseconds == NULL) return RESULT_INVALID_VALUE;
  if (start == NULL || end == NULL || !start->timing || !end->timing ||
      start->stream == NULL || end->stream == NULL)
    return RESULT_INVALID_HANDLE;
  if (!event_passed(start) || !event_passed(end)) return RESULT_NOT_READY;
  *milliseconds = (float)(end->time_ns - start->time_ns) / 1e6f;
  return RESULT_SUCCESS;
}

static Result load_module(void *handle, const void *image) {
  if (handle == NULL || image == NULL) return RESULT_INVALID_VALUE;
  Module *module;
  const Result result = module_load(image, &module);
  if (result == RESULT_SUCCESS) *(void **)handle = HANDLE(module);
  return result;
}

/* Waits first: the code of queued kernels goes with the module. */
static Result unload_module(const void *handle) {
  Module *module = object_find(OBJECT_MODULE, (uintptr_t)handle);
  if (module == NULL) return RESULT_INVALID_HANDLE;
  streams_drain();
  module_unload(module);
  return result_after_work();
}

static Result get_function(void *handle, const void *module_handle, const char *name) {
  Module *module = object_find(OBJECT_MODULE, (uintptr_t)module_handle);
  if (module == NULL) return RESULT_INVALID_HANDLE;
  if (handle == NULL || name == NULL) return RESULT_INVALID_VALUE;
  Function *function;
  const Result result = module_function(module, name, &function);
  if (result == RESULT_SUCCESS) *(void **)handle = HANDLE(function);
  return result;
}

static bool geometry_allowed(const MbGeometry *geometry) {
  static const uint32_t most_grid[3] = {INT32_MAX, 65535, 65535};
  static const uint32_t most_block[3] = {1024, 1024, 64};
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; axis++) {
    const uint32_t grid = geometry->grid[axis], block = geometry->block[axis];
    if (grid == 0 || block == 0 || grid > most_grid[axis] || block > most_block[axis])
      return false;
    threads *= block;
  }
  return threads <= 1024 && geometry->shared_bytes <= 48 * 1024;
}

/* Reads the argument block out of the `extra` list; false if the list is malformed. */
static bool extra_block(void *const *extra, const void *list_end, const void **block,
                        size_t *bytes) {
  *block = NULL;
  *bytes = 0;
  if (extra == NULL) return true;
  for (; *extra != list_end; extra += 2) {
    if (extra[0] == ARGS_BUFFER) *block = extra[1];
    else if (extra[0] == ARGS_BUFFER_SIZE && extra[1] != NULL)
      memcpy(bytes, extra[1], sizeof *bytes);
    else return false;
  }
  return (*block == NULL) == (*bytes == 0);
}

static Result launch(const void *handle, MbGeometry geometry, const void *stream_handle,
                     const void *block, size_t bytes) {
  const Function *function = object_find(OBJECT_FUNCTION, (uintptr_t)handle);
  Stream *stream = stream_of(stream_handle);
  if (function == NULL || stream == NULL) return RESULT_INVALID_HANDLE;
  if (bytes > 4096 || !geometry_allowed(&geometry)) return RESULT_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  Operation *operation = operation_new(OPERATION_LAUNCH, bytes);
  operation->work.launch = (LaunchWork){function->kernel, geometry, &function->base};
  if (bytes != 0) memcpy(operation->bytes, block, bytes);
  stream_push(stream, operation);
  return RESULT_SUCCESS;
}

static Result begin_capture(const void *handle, int mode) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (mode < 0 || mode > CAPTURE_MODE_RELAXED) return RESULT_INVALID_VALUE;
  return capture_begin(stream, mode);
}

static Result end_capture(const void *handle, void *graph) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (graph == NULL) return RESULT_INVALID_VALUE;
  return capture_end(stream, graph);
}

static Result is_capturing(const void *handle, int *status) {
  const Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (status == NULL) return RESULT_INVALID_VALUE;
  CHECK(stream == &default_stream ? capture_check_work(stream) : RESULT_SUCCESS);
  *status = (int)stream->capture;
  return RESULT_SUCCESS;
}

static Result instantiate(void *handle, const void *graph_handle) {
  const Graph *graph = object_find(OBJECT_GRAPH, (uintptr_t)graph_handle);
  if (handle == NULL || graph == NULL) return RESULT_INVALID_VALUE;
  *(void **)handle = HANDLE(graph_instantiate(graph));
  return RESULT_SUCCESS;
}

static Result launch_graph(const void *handle, const void *stream_handle) {
  GraphExec *exec = object_find(OBJECT_GRAPH_EXEC, (uintptr_t)handle);
  Stream *stream = stream_of(stream_handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (exec == NULL) return RESULT_INVALID_VALUE;
  CHECK(capture_forbid(stream, RESULT_CAPTURE_UNSUPPORTED));
  graph_launch(exec, stream);
  return RESULT_SUCCESS;
}

static Result destroy_graph_exec(const void *handle) {
  GraphExec *exec = object_find(OBJECT_GRAPH_EXEC, (uintptr_t)handle);
  if (exec == NULL) return RESULT_INVALID_VALUE;
  graph_exec_destroy(exec);
  return RESULT_SUCCESS;
}

static Result destroy_graph(const void *handle) {
  Graph *graph = object_find(OBJECT_GRAPH, (uintptr_t)handle);
  if (graph == NULL) return RESULT_INVALID_VALUE;
  graph_destroy(graph);
  return RESULT_SUCCESS;
}

static Pool *pool_of(const void *handle) {
  return object_find(OBJECT_POOL, (uintptr_t)handle);
}

static Result new_pool(void *handle, int type, MemLocation location) {
  if (handle == NULL || type != ALLOCATION_PINNED || location.type != LOCATION_DEVICE)
    return RESULT_INVALID_VALUE;
  if (location.id != 0) return RESULT_INVALID_DEVICE;
  *(void **)handle = HANDLE(pool_create());
  return RESULT_SUCCESS;
}

static Result set_pool_attribute(const void *handle, int attribute, const void *value) {
  Pool *pool = pool_of(handle);
  if (pool == NULL || value == NULL) return RESULT_INVALID_VALUE;
  if (attribute != POOL_RELEASE_THRESHOLD) return RESULT_NOT_SUPPORTED;
  memcpy(&pool->threshold, value, sizeof pool->threshold);
  return RESULT_SUCCESS;
}

static Result destroy_pool(const void *handle) {
  Pool *pool = pool_of(handle);
  if (pool == NULL) return RESULT_INVALID_VALUE;
  pool->base.alive = false;
  pool_trim(pool, 0);
  return RESULT_SUCCESS;
}

static Result trim_pool(const void *handle, size_t keep) {
  Pool *pool = pool_of(handle);
  if (pool == NULL) return RESULT_INVALID_VALUE;
  pool_trim(pool, keep);
  return RESULT_SUCCESS;
}

static Result alloc_from_pool(uint64_t *address, size_t bytes, const void *pool_handle,
                              const void *stream_handle) {
  Pool *pool = pool_of(pool_handle);
  Stream *stream = stream_of(stream_handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  if (pool == NULL || address == NULL || bytes == 0) return RESULT_INVALID_VALUE;
  CHECK(capture_forbid(stream, RESULT_CAPTURE_UNSUPPORTED));
  return pool_alloc(pool, bytes, stream, address);
}

static Result free_to_pool(uint64_t address, const void *handle) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return RESULT_INVALID_HANDLE;
  CHECK(capture_forbid(stream, RESULT_CAPTURE_UNSUPPORTED));
  return pool_free(address, stream);
}

/* Frees what belongs to a context; returns how many objects still lived. */
static int32_t context_wipe(void) {
  int32_t leaked = streams_wipe();
  leaked += pooled_in_use();
  blocks_free_all(&device_memory, RANGE_POOLED);
  leaked += blocks_free_all(&device_memory, RANGE_PLAIN);
  leaked += blocks_free_all(&pinned_memory, RANGE_PINNED);
  for (size_t i = 0; i < object_count; i++) {
    Object *object = objects[i];
    if (!object->alive) continue;
    switch (object->kind) {
    case OBJECT_MODULE: module_unload((Module *)object); leaked++; break;
    case OBJECT_GRAPH: graph_destroy((Graph *)object); leaked++; break;
    case OBJECT_GRAPH_EXEC: graph_exec_destroy((GraphExec *)object); leaked++; break;
    case OBJECT_POOL: ((Pool *)object)->cached_bytes = 0; /* freed above */
      /* fall through */
    case OBJECT_EVENT: object->alive = false; leaked++; break;
    default: break; /* functions go with their module; memory outlives the context */
    }
  }
  return leaked;
}

#endif
