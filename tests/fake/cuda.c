/* A fake libcuda that is stricter than the real one, for tests without a GPU.
 *
 *   cc -std=c11 -O1 -g -fPIC -shared -pthread -o libfakecuda.so cuda.c -ldl
 *
 * It refuses what the real driver refuses, leaves work undone until it must be done and
 * does it in a random order (streams.h), checks addresses when work runs (a wrong one
 * loses the context, as on a GPU), and never reuses a handle. Kernels are shared objects
 * in the MbHostKernel convention. The fakecuda_ functions at the end inject failures,
 * count calls and find leaks.
 *
 * FAKECUDA_MEMORY: bytes of device memory (4 GiB); FAKECUDA_SEED: of the random order (0).
 * Both are read when the library is first used, and again by fakecuda_reset.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "graphs.h"
#include "modules.h"
#include "pools.h"

#define API __attribute__((visibility("default")))

/* What has to be in order before a function does anything. */
typedef enum Need {
  NEED_NOTHING,
  NEED_INIT,
  NEED_DEVICE, /* and a device that is not lost, but no current context */
  NEED_CONTEXT /* and a context that is current to the thread */
} Need;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool environment_read;
static pid_t initialized_by; /* a forked child inherits nothing usable */
static Object *primary_context;
static uint32_t primary_retains;
static uint32_t leaked_at_release;
static _Thread_local uintptr_t current_context;

static void read_environment(void) {
  const char *memory = getenv("FAKECUDA_MEMORY"), *seed = getenv("FAKECUDA_SEED");
  memory_limit = memory ? strtoull(memory, NULL, 10) : DEFAULT_MEMORY_LIMIT;
  random_seed(seed ? strtoull(seed, NULL, 10) : 0);
  if (stream_count == 0) streams_add(&default_stream);
  environment_read = true;
}

static CUresult check_need(Need need) {
  if (need == NEED_NOTHING) return CUDA_SUCCESS;
  if (initialized_by != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (need == NEED_INIT) return CUDA_SUCCESS;
  if (need == NEED_CONTEXT && !object_find(OBJECT_CONTEXT, current_context))
    return CUDA_ERROR_INVALID_CONTEXT;
  return context_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static CUresult enter(CallId id, Need need) {
  pthread_mutex_lock(&lock);
  if (!environment_read) read_environment();
  const CUresult injected = call_begin(id);
  return injected != CUDA_SUCCESS ? injected : check_need(need);
}

static void leave(const CUresult *entered) {
  (void)entered;
  pthread_mutex_unlock(&lock);
}

/* First line of every function: holds the lock until the function returns. */
#define ENTER(name, need)                                                        \
  const CUresult entered __attribute__((cleanup(leave))) = enter(CALL_##name, need); \
  if (entered != CUDA_SUCCESS) return entered

/* Work that ran meanwhile may have lost the context. */
static CUresult result_after_work(void) {
  return context_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

/* Passes an error on. */
#define CHECK(result)                                                            \
  do {                                                                           \
    const CUresult checked = (result);                                           \
    if (checked != CUDA_SUCCESS) return checked;                                 \
  } while (0)

/* NULL for a handle that is no living stream's. */
static Stream *stream_of(CUstream handle) {
  /* 0, and 1 for CU_STREAM_LEGACY. */
  if ((uintptr_t)handle <= 1) return &default_stream;
  return object_find(OBJECT_STREAM, (uintptr_t)handle);
}

static Event *event_of(CUevent handle) {
  return object_find(OBJECT_EVENT, (uintptr_t)handle);
}

static bool granular(uint64_t value) { return value % GRANULARITY == 0; }

API CUresult cuInit(unsigned flags) {
  ENTER(cuInit, NEED_NOTHING);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (initialized_by == 0) initialized_by = getpid();
  return check_need(NEED_INIT);
}

API CUresult cuDriverGetVersion(int *version) {
  ENTER(cuDriverGetVersion, NEED_NOTHING);
  if (version == NULL) return CUDA_ERROR_INVALID_VALUE;
  *version = 12040;
  return CUDA_SUCCESS;
}

#define ERROR_NAME(code, name, text) case code: *found = #name; return CUDA_SUCCESS;
#define ERROR_TEXT(code, name, text) case code: *found = text; return CUDA_SUCCESS;

API CUresult cuGetErrorName(CUresult error, const char **found) {
  ENTER(cuGetErrorName, NEED_NOTHING);
  switch ((int)error) { CUDA_ERRORS(ERROR_NAME) }
  *found = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGetErrorString(CUresult error, const char **found) {
  ENTER(cuGetErrorString, NEED_NOTHING);
  switch ((int)error) { CUDA_ERRORS(ERROR_TEXT) }
  *found = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuDeviceGetCount(int *count) {
  ENTER(cuDeviceGetCount, NEED_INIT);
  if (count == NULL) return CUDA_ERROR_INVALID_VALUE;
  *count = 1;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER(cuDeviceGet, NEED_INIT);
  if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int capacity, CUdevice device) {
  ENTER(cuDeviceGetName, NEED_INIT);
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (name == NULL || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)capacity, "Fake CUDA device");
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  ENTER(cuDeviceGetAttribute, NEED_INIT);
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (value == NULL || attribute < 1 || attribute > CU_DEVICE_ATTRIBUTE_LAST_KNOWN)
    return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = 1; break;
  default: *value = 0;
  }
  return CUDA_SUCCESS;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  ENTER(cuDeviceTotalMem_v2, NEED_INIT);
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (bytes == NULL) return CUDA_ERROR_INVALID_VALUE;
  *bytes = memory_limit;
  return CUDA_SUCCESS;
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

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER(cuDevicePrimaryCtxRetain, NEED_DEVICE);
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (context == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (primary_retains++ == 0)
    primary_context = object_new(OBJECT_CONTEXT, sizeof *primary_context);
  *context = (CUcontext)primary_context->handle;
  return CUDA_SUCCESS;
}

/* The last release ends the context, and with it its being lost. A lost one takes mapped
 * memory along: nobody could give it back any more. */
API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER(cuDevicePrimaryCtxRelease_v2, NEED_INIT);
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (primary_retains == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (primary_retains == 1) streams_drain();
  const CUresult result = result_after_work();
  if (--primary_retains == 0) {
    const int32_t leaked = context_wipe();
    if (context_lost) memory_wipe();
    else leaked_at_release += (uint32_t)leaked;
    primary_context->alive = false;
    context_lost = false;
  }
  return result;
}

API CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER(cuCtxSetCurrent, NEED_DEVICE);
  if (context != NULL && !object_find(OBJECT_CONTEXT, (uintptr_t)context))
    return CUDA_ERROR_INVALID_CONTEXT;
  current_context = (uintptr_t)context;
  return CUDA_SUCCESS;
}

API CUresult cuCtxSynchronize(void) {
  ENTER(cuCtxSynchronize, NEED_CONTEXT);
  CHECK(capture_forbid_any());
  streams_drain();
  pools_trim(true);
  return result_after_work();
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER(cuMemGetInfo_v2, NEED_CONTEXT);
  if (free_bytes == NULL || total == NULL) return CUDA_ERROR_INVALID_VALUE;
  *free_bytes = memory_limit - memory_used;
  *total = memory_limit;
  return CUDA_SUCCESS;
}

API CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment,
                                 CUdeviceptr hint, unsigned long long flags) {
  ENTER(cuMemAddressReserve, NEED_DEVICE);
  (void)hint; /* the real driver, too, may ignore it */
  if (address == NULL || size == 0 || !granular(size) || flags != 0 ||
      (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return reserve(size, alignment > GRANULARITY ? alignment : GRANULARITY, address);
}

API CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  ENTER(cuMemAddressFree, NEED_DEVICE);
  return reservation_free(address, size);
}

static bool known_properties(const CUmemAllocationProp *properties) {
  return properties != NULL && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

API CUresult cuMemGetAllocationGranularity(size_t *granularity,
                                           const CUmemAllocationProp *properties,
                                           int option) {
  ENTER(cuMemGetAllocationGranularity, NEED_DEVICE);
  if (granularity == NULL || !known_properties(properties) || option < 0 || option > 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
  *granularity = GRANULARITY;
  return CUDA_SUCCESS;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                         const CUmemAllocationProp *properties,
                         unsigned long long flags) {
  ENTER(cuMemCreate, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  if (handle == NULL || size == 0 || !granular(size) || flags != 0 ||
      !known_properties(properties))
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
  Physical *physical;
  const CUresult result = physical_create(size, &physical);
  if (result == CUDA_SUCCESS) *handle = physical->base.handle;
  return result;
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER(cuMemRelease, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  Physical *physical = object_find(OBJECT_PHYSICAL, (uintptr_t)handle);
  if (physical == NULL) return CUDA_ERROR_INVALID_VALUE;
  physical_release(physical);
  return CUDA_SUCCESS;
}

API CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags) {
  ENTER(cuMemMap, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  Physical *physical = object_find(OBJECT_PHYSICAL, (uintptr_t)handle);
  if (physical == NULL || !granular(address) || size != physical->size || offset != 0 ||
      flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return mapping_create(address, physical);
}

API CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  ENTER(cuMemUnmap, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  return mappings_remove(address, size);
}

API CUresult cuMemSetAccess(CUdeviceptr address, size_t size,
                            const CUmemAccessDesc *access, size_t count) {
  ENTER(cuMemSetAccess, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  if (access == NULL || count != 1 ||
      access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      (access->flags != CU_MEM_ACCESS_NONE && access->flags != CU_MEM_ACCESS_READ &&
       access->flags != CU_MEM_ACCESS_READWRITE))
    return CUDA_ERROR_INVALID_VALUE;
  if (access->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
  return mappings_set_access(address, size, access->flags);
}

API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  ENTER(cuMemAlloc_v2, NEED_CONTEXT);
  CHECK(capture_forbid_unless_relaxed());
  if (address == NULL || size == 0) return CUDA_ERROR_INVALID_VALUE;
  return block_create(&device_memory, RANGE_PLAIN, size, NULL, address);
}

/* Waits for everything on the device, as the real one does. */
API CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER(cuMemFree_v2, NEED_CONTEXT);
  CHECK(capture_forbid_unless_relaxed());
  if (address == 0) return CUDA_SUCCESS;
  const Range *range = range_at(&device_memory, address);
  if (range == NULL || range->kind != RANGE_PLAIN) return CUDA_ERROR_INVALID_VALUE;
  streams_drain();
  block_free(&device_memory, range_at(&device_memory, address));
  return result_after_work();
}

API CUresult cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
  ENTER(cuMemHostAlloc, NEED_CONTEXT);
  CHECK(capture_forbid_unless_relaxed());
  if (memory == NULL || size == 0 || flags > CU_MEMHOSTALLOC_ALL)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t address;
  const CUresult result =
      block_create(&pinned_memory, RANGE_PINNED, size, NULL, &address);
  if (result != CUDA_SUCCESS) return result;
  range_at(&pinned_memory, address)->device_mapped = flags & CU_MEMHOSTALLOC_DEVICEMAP;
  *memory = (void *)address;
  return CUDA_SUCCESS;
}

/* As with unified addressing, but only of memory that was meant to be mapped. */
API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *memory,
                                          unsigned flags) {
  ENTER(cuMemHostGetDevicePointer_v2, NEED_CONTEXT);
  const Range *range = range_at(&pinned_memory, (uint64_t)memory);
  if (address == NULL || flags != 0 || range == NULL || !range->device_mapped)
    return CUDA_ERROR_INVALID_VALUE;
  *address = (CUdeviceptr)memory;
  return CUDA_SUCCESS;
}

/* Does not wait: queued copies from or to it fail, so that nobody relies on a wait that
 * is documented nowhere. */
API CUresult cuMemFreeHost(void *memory) {
  ENTER(cuMemFreeHost, NEED_CONTEXT);
  CHECK(capture_forbid_unless_relaxed());
  const Range *range = range_at(&pinned_memory, (uint64_t)memory);
  if (range == NULL) return CUDA_ERROR_INVALID_VALUE;
  block_free(&pinned_memory, range);
  return CUDA_SUCCESS;
}

static bool is_pinned(const void *memory, size_t bytes) {
  return range_covers(&pinned_memory, (uint64_t)memory, bytes, CU_MEM_ACCESS_READ);
}

API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void *source,
                                  size_t bytes, CUstream handle) {
  ENTER(cuMemcpyHtoDAsync_v2, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_SUCCESS;
  if (source == NULL || destination == 0) return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  /* Pinned memory is read when the copy runs; other memory may be reused at once. */
  const bool staged = !is_pinned(source, bytes);
  if (staged) CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  Operation *operation = operation_new(OPERATION_COPY, staged ? bytes : 0);
  if (staged) memcpy(operation->bytes, source, bytes);
  operation->work.copy =
      (CopyWork){destination, (uint64_t)source, bytes, &device_memory,
                 staged ? NULL : &pinned_memory};
  stream_push(stream, operation);
  return CUDA_SUCCESS;
}

API CUresult cuMemcpyDtoHAsync_v2(void *destination, CUdeviceptr source, size_t bytes,
                                  CUstream handle) {
  ENTER(cuMemcpyDtoHAsync_v2, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_SUCCESS;
  if (destination == NULL || source == 0) return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  const bool pinned = is_pinned(destination, bytes);
  if (!pinned) CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  Operation *operation = operation_new(OPERATION_COPY, 0);
  operation->work.copy =
      (CopyWork){(uint64_t)destination, source, bytes, pinned ? &pinned_memory : NULL,
                 &device_memory};
  const uint64_t sequence = stream_push(stream, operation);
  /* A copy to memory that is not pinned returns only when it is done. */
  if (!pinned) stream_drain(stream, sequence);
  return result_after_work();
}

API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source,
                                  size_t bytes, CUstream handle) {
  ENTER(cuMemcpyDtoDAsync_v2, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_SUCCESS;
  /* The real driver copies anything into overlapping ranges; better not to pass. */
  const uint64_t apart = destination > source ? destination - source : source - destination;
  if (destination == 0 || source == 0 || apart < bytes) return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  Operation *operation = operation_new(OPERATION_COPY, 0);
  operation->work.copy =
      (CopyWork){destination, source, bytes, &device_memory, &device_memory};
  stream_push(stream, operation);
  return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr destination, uint32_t value, uint32_t width,
                     size_t count, CUstream handle) {
  Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (count == 0) return CUDA_SUCCESS;
  if (destination == 0 || destination % width != 0 || count > SIZE_MAX / width)
    return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  Operation *operation = operation_new(OPERATION_FILL, 0);
  operation->work.fill = (FillWork){destination, count, value, width};
  stream_push(stream, operation);
  return CUDA_SUCCESS;
}

API CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count,
                             CUstream stream) {
  ENTER(cuMemsetD8Async, NEED_CONTEXT);
  return fill(destination, value, 1, count, stream);
}

API CUresult cuMemsetD16Async(CUdeviceptr destination, unsigned short value,
                              size_t count, CUstream stream) {
  ENTER(cuMemsetD16Async, NEED_CONTEXT);
  return fill(destination, value, 2, count, stream);
}

API CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned value, size_t count,
                              CUstream stream) {
  ENTER(cuMemsetD32Async, NEED_CONTEXT);
  return fill(destination, value, 4, count, stream);
}

API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  ENTER(cuStreamCreate, NEED_CONTEXT);
  if (stream == NULL || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *stream = (CUstream)stream_create(flags != CU_STREAM_NON_BLOCKING)->base.handle;
  return CUDA_SUCCESS;
}

/* Returns at once; queued work still runs. */
API CUresult cuStreamDestroy_v2(CUstream handle) {
  ENTER(cuStreamDestroy_v2, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  if (stream == NULL || stream == &default_stream) return CUDA_ERROR_INVALID_HANDLE;
  CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  stream_destroy(stream);
  return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream handle) {
  ENTER(cuStreamSynchronize, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  stream_drain(stream, last_sequence);
  pools_trim(true);
  return result_after_work();
}

API CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  ENTER(cuStreamWaitEvent, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  const Event *event = event_of(event_handle);
  if (stream == NULL || event == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
  if (event->stream == NULL) return CUDA_SUCCESS;
  Operation *operation = operation_new(OPERATION_WAIT, 0);
  operation->work.wait = (WaitWork){event->stream, event->sequence};
  stream_push(stream, operation);
  return CUDA_SUCCESS;
}

API CUresult cuEventCreate(CUevent *handle, unsigned flags) {
  ENTER(cuEventCreate, NEED_CONTEXT);
  if (handle == NULL || flags > (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
    return CUDA_ERROR_INVALID_VALUE;
  Event *event = object_new(OBJECT_EVENT, sizeof *event);
  event->timing = !(flags & CU_EVENT_DISABLE_TIMING);
  *handle = (CUevent)event->base.handle;
  return CUDA_SUCCESS;
}

API CUresult cuEventDestroy_v2(CUevent handle) {
  ENTER(cuEventDestroy_v2, NEED_CONTEXT);
  Event *event = event_of(handle);
  if (event == NULL) return CUDA_ERROR_INVALID_HANDLE;
  event->base.alive = false;
  return CUDA_SUCCESS;
}

API CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  ENTER(cuEventRecord, NEED_CONTEXT);
  Event *event = event_of(handle);
  Stream *stream = stream_of(stream_handle);
  if (event == NULL || stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  event_record(event, stream);
  return CUDA_SUCCESS;
}

API CUresult cuEventQuery(CUevent handle) {
  ENTER(cuEventQuery, NEED_CONTEXT);
  Event *event = event_of(handle);
  if (event == NULL) return CUDA_ERROR_INVALID_HANDLE;
  const bool passed = event_poll(event);
  if (context_lost) return CUDA_ERROR_ILLEGAL_ADDRESS;
  return passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

API CUresult cuEventSynchronize(CUevent handle) {
  ENTER(cuEventSynchronize, NEED_CONTEXT);
  Event *event = event_of(handle);
  if (event == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (event->stream != NULL) stream_drain(event->stream, event->sequence);
  return result_after_work();
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent start_handle,
                                CUevent end_handle) {
  ENTER(cuEventElapsedTime, NEED_CONTEXT);
  const Event *start = event_of(start_handle), *end = event_of(end_handle);
  if (milliseconds == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (start == NULL || end == NULL || !start->timing || !end->timing ||
      start->stream == NULL || end->stream == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!event_passed(start) || !event_passed(end)) return CUDA_ERROR_NOT_READY;
  *milliseconds = (float)(end->time_ns - start->time_ns) / 1e6f;
  return CUDA_SUCCESS;
}

static CUresult load(CUmodule *handle, const void *image) {
  if (handle == NULL || image == NULL) return CUDA_ERROR_INVALID_VALUE;
  Module *module;
  const CUresult result = module_load(image, &module);
  if (result == CUDA_SUCCESS) *handle = (CUmodule)module->base.handle;
  return result;
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  ENTER(cuModuleLoadData, NEED_CONTEXT);
  return load(module, image);
}

API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                                const int *options, void **values) {
  ENTER(cuModuleLoadDataEx, NEED_CONTEXT);
  if (count != 0 && (options == NULL || values == NULL)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = load(module, image);
  char *log = NULL;
  size_t capacity = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = values[i];
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      capacity = (size_t)(uintptr_t)values[i];
  }
  if (log != NULL && capacity != 0)
    snprintf(log, capacity, "%s",
             result == CUDA_ERROR_INVALID_PTX ? "the image is no shared object" : "");
  return result;
}

/* Waits first: the code of queued kernels goes with the module. */
API CUresult cuModuleUnload(CUmodule handle) {
  ENTER(cuModuleUnload, NEED_CONTEXT);
  Module *module = object_find(OBJECT_MODULE, (uintptr_t)handle);
  if (module == NULL) return CUDA_ERROR_INVALID_HANDLE;
  streams_drain();
  module_unload(module);
  return result_after_work();
}

API CUresult cuModuleGetFunction(CUfunction *handle, CUmodule module_handle,
                                 const char *name) {
  ENTER(cuModuleGetFunction, NEED_CONTEXT);
  Module *module = object_find(OBJECT_MODULE, (uintptr_t)module_handle);
  if (module == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (handle == NULL || name == NULL) return CUDA_ERROR_INVALID_VALUE;
  Function *function;
  const CUresult result = module_function(module, name, &function);
  if (result == CUDA_SUCCESS) *handle = (CUfunction)function->base.handle;
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
static bool extra_block(void *const *extra, const void **block, size_t *bytes) {
  *block = NULL;
  *bytes = 0;
  if (extra == NULL) return true;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) *block = extra[1];
    else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1] != NULL)
      memcpy(bytes, extra[1], sizeof *bytes);
    else return false;
  }
  return (*block == NULL) == (*bytes == 0);
}

API CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y,
                            unsigned grid_z, unsigned block_x, unsigned block_y,
                            unsigned block_z, unsigned shared_bytes,
                            CUstream stream_handle, void **parameters, void **extra) {
  ENTER(cuLaunchKernel, NEED_CONTEXT);
  const Function *function = object_find(OBJECT_FUNCTION, (uintptr_t)handle);
  Stream *stream = stream_of(stream_handle);
  if (function == NULL || stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  const MbGeometry geometry = {
      {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  const void *block;
  size_t bytes;
  /* A shared object does not say what its kernels' parameters are: only blocks work. */
  if (parameters != NULL || !extra_block(extra, &block, &bytes) || bytes > 4096 ||
      !geometry_allowed(&geometry))
    return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_check_work(stream));
  Operation *operation = operation_new(OPERATION_LAUNCH, bytes);
  operation->work.launch = (LaunchWork){function->kernel, geometry, &function->base};
  if (bytes != 0) memcpy(operation->bytes, block, bytes);
  stream_push(stream, operation);
  return CUDA_SUCCESS;
}

API CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
  ENTER(cuStreamBeginCapture_v2, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  return capture_begin(stream, mode);
}

API CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  ENTER(cuStreamEndCapture, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
  return capture_end(stream, graph);
}

API CUresult cuStreamIsCapturing(CUstream handle, int *status) {
  ENTER(cuStreamIsCapturing, NEED_CONTEXT);
  const Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (status == NULL) return CUDA_ERROR_INVALID_VALUE;
  CHECK(stream == &default_stream ? capture_check_work(stream) : CUDA_SUCCESS);
  *status = (int)stream->capture;
  return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *handle, CUgraph graph_handle) {
  const Graph *graph = object_find(OBJECT_GRAPH, (uintptr_t)graph_handle);
  if (handle == NULL || graph == NULL) return CUDA_ERROR_INVALID_VALUE;
  *handle = (CUgraphExec)graph_instantiate(graph)->base.handle;
  return CUDA_SUCCESS;
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                         unsigned long long flags) {
  ENTER(cuGraphInstantiateWithFlags, NEED_CONTEXT);
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : instantiate(exec, graph);
}

API CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, void **error_node,
                                   char *log, size_t log_bytes) {
  ENTER(cuGraphInstantiate_v2, NEED_CONTEXT);
  if (error_node != NULL) *error_node = NULL;
  if (log != NULL && log_bytes != 0) *log = 0;
  return instantiate(exec, graph);
}

API CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  ENTER(cuGraphLaunch, NEED_CONTEXT);
  GraphExec *exec = object_find(OBJECT_GRAPH_EXEC, (uintptr_t)handle);
  Stream *stream = stream_of(stream_handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (exec == NULL) return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  graph_launch(exec, stream);
  return CUDA_SUCCESS;
}

API CUresult cuGraphExecDestroy(CUgraphExec handle) {
  ENTER(cuGraphExecDestroy, NEED_CONTEXT);
  GraphExec *exec = object_find(OBJECT_GRAPH_EXEC, (uintptr_t)handle);
  if (exec == NULL) return CUDA_ERROR_INVALID_VALUE;
  graph_exec_destroy(exec);
  return CUDA_SUCCESS;
}

API CUresult cuGraphDestroy(CUgraph handle) {
  ENTER(cuGraphDestroy, NEED_CONTEXT);
  Graph *graph = object_find(OBJECT_GRAPH, (uintptr_t)handle);
  if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
  graph_destroy(graph);
  return CUDA_SUCCESS;
}

static Pool *pool_of(CUmemoryPool handle) {
  return object_find(OBJECT_POOL, (uintptr_t)handle);
}

API CUresult cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *properties) {
  ENTER(cuMemPoolCreate, NEED_CONTEXT);
  if (handle == NULL || properties == NULL ||
      properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
  *handle = (CUmemoryPool)pool_create()->base.handle;
  return CUDA_SUCCESS;
}

API CUresult cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void *value) {
  ENTER(cuMemPoolSetAttribute, NEED_CONTEXT);
  Pool *pool = pool_of(handle);
  if (pool == NULL || value == NULL) return CUDA_ERROR_INVALID_VALUE;
  if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) return CUDA_ERROR_NOT_SUPPORTED;
  memcpy(&pool->threshold, value, sizeof pool->threshold);
  return CUDA_SUCCESS;
}

API CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  ENTER(cuMemPoolDestroy, NEED_CONTEXT);
  Pool *pool = pool_of(handle);
  if (pool == NULL) return CUDA_ERROR_INVALID_VALUE;
  pool->base.alive = false;
  pool_trim(pool, 0);
  return CUDA_SUCCESS;
}

API CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  ENTER(cuMemPoolTrimTo, NEED_CONTEXT);
  Pool *pool = pool_of(handle);
  if (pool == NULL) return CUDA_ERROR_INVALID_VALUE;
  pool_trim(pool, keep);
  return CUDA_SUCCESS;
}

API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes,
                                     CUmemoryPool pool_handle, CUstream stream_handle) {
  ENTER(cuMemAllocFromPoolAsync, NEED_CONTEXT);
  Pool *pool = pool_of(pool_handle);
  Stream *stream = stream_of(stream_handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (pool == NULL || address == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  return pool_alloc(pool, bytes, stream, address);
}

API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  ENTER(cuMemFreeAsync, NEED_CONTEXT);
  Stream *stream = stream_of(handle);
  if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
  CHECK(capture_forbid(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  return pool_free(address, stream);
}

/* Makes the kth next call (1: the next) of a function fail with a code; the name "*" is
 * for any function but those that report errors. k 0 disarms. Returns 0 for a name that
 * the library lacks. A later call for the same name replaces an earlier one. */
API uint32_t fakecuda_fail(const char *name, uint32_t kth, int32_t code) {
  const CallId id = call_find(name);
  const bool any = strcmp(name, "*") == 0;
  if (!any && id == CALL_COUNT) return 0;
  pthread_mutex_lock(&lock);
  *(any ? &any_call_fault : &call_faults[id]) = (Fault){kth, (CUresult)code};
  pthread_mutex_unlock(&lock);
  return 1;
}

/* Failures that were asked for and have not happened yet. */
API uint32_t fakecuda_armed(void) {
  pthread_mutex_lock(&lock);
  const uint32_t armed = faults_armed();
  pthread_mutex_unlock(&lock);
  return armed;
}

/* Calls of a function, also failed ones, since the last reset; -1 for an unknown name. */
API int32_t fakecuda_calls(const char *name) {
  const CallId id = call_find(name);
  if (id == CALL_COUNT) return -1;
  pthread_mutex_lock(&lock);
  const int32_t calls = (int32_t)call_counts[id];
  pthread_mutex_unlock(&lock);
  return calls;
}

/* How many there are of: 0 physical handles, 1 mappings, 2 reservations, 3 streams,
 * 4 events, 5 plain allocations, 6 pooled allocations, 7 pinned allocations, 8 modules,
 * 9 pools, 10 retains of the context, 11 queued operations, 12 objects that still lived
 * when their context went (since the last reset), 13 graphs, 14 executable graphs. -1 for
 * other numbers. */
API int32_t fakecuda_live(int32_t what) {
  int32_t live = -1;
  pthread_mutex_lock(&lock);
  switch (what) {
  case 0: live = objects_alive(OBJECT_PHYSICAL); break;
  case 1: live = range_count(&device_memory, RANGE_MAPPING); break;
  case 2: live = range_count(&reservations, RANGE_RESERVATION); break;
  case 3: live = objects_alive(OBJECT_STREAM); break;
  case 4: live = objects_alive(OBJECT_EVENT); break;
  case 5: live = range_count(&device_memory, RANGE_PLAIN); break;
  case 6: live = pooled_in_use(); break;
  case 7: live = range_count(&pinned_memory, RANGE_PINNED); break;
  case 8: live = objects_alive(OBJECT_MODULE); break;
  case 9: live = objects_alive(OBJECT_POOL); break;
  case 10: live = (int32_t)primary_retains; break;
  case 11: live = (int32_t)operations_pending; break;
  case 12: live = (int32_t)leaked_at_release; break;
  case 13: live = objects_alive(OBJECT_GRAPH); break;
  case 14: live = objects_alive(OBJECT_GRAPH_EXEC); break;
  }
  pthread_mutex_unlock(&lock);
  return live;
}

/* Bytes of device memory in use, also what a released handle's mappings still hold. */
API double fakecuda_used(void) {
  pthread_mutex_lock(&lock);
  const double used = (double)memory_used;
  pthread_mutex_unlock(&lock);
  return used;
}

/* Makes the context lost, as if a kernel had faulted. */
API void fakecuda_lose(void) {
  pthread_mutex_lock(&lock);
  context_lost = true;
  pthread_mutex_unlock(&lock);
}

API void fakecuda_seed(uint32_t seed) {
  pthread_mutex_lock(&lock);
  if (!environment_read) read_environment();
  random_seed(seed);
  pthread_mutex_unlock(&lock);
}

/* Forgets counts and failures, and reads the environment again. While no device is open,
 * it also gives back all that was left behind. */
API void fakecuda_reset(void) {
  pthread_mutex_lock(&lock);
  calls_reset();
  read_environment();
  leaked_at_release = 0;
  if (primary_retains == 0) {
    memory_wipe();
    context_lost = false;
  }
  pthread_mutex_unlock(&lock);
}
