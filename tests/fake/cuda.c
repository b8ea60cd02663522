/* A fake libcuda that is stricter than the real one, for tests without a GPU.
 *
 *   cc -std=c11 -O1 -g -fPIC -shared -pthread -o libfakecuda.so cuda.c -ldl
 *
 * It refuses what the real driver refuses, leaves work undone until it must be done and
 * does it in a random order (streams.h), checks addresses when work runs (a wrong one
 * loses the context, as on a GPU), and never reuses a handle. Kernels are shared objects
 * in the MbHostKernel convention. The fake_ functions (control.h) inject failures, count
 * calls and find leaks.
 *
 * FAKE_MEMORY: bytes of device memory (4 GiB); FAKE_SEED: of the random order (0). Both are
 * read when the library is first used, and again by fake_reset.
 */
#define _GNU_SOURCE

#include <elf.h>

#include "cuda_calls.h"
#define CLAIMED_MACHINE EM_CUDA

#include "control.h"
#include "cuda_types.h"

static Object *primary_context;
static _Thread_local uintptr_t current_context;

static Result check_need(Need need) {
  if (need == NEED_NOTHING) return RESULT_SUCCESS;
  if (initialized_by != getpid()) return RESULT_NOT_INITIALIZED;
  if (need == NEED_INIT) return RESULT_SUCCESS;
  if (need == NEED_CONTEXT && !object_find(OBJECT_CONTEXT, current_context))
    return RESULT_INVALID_CONTEXT;
  return context_lost ? RESULT_ILLEGAL_ADDRESS : RESULT_SUCCESS;
}

static void vendor_reset(void) {
  if (primary_retains != 0) return;
  memory_wipe();
  context_lost = false;
}

static int32_t vendor_violations(void) { return 0; }

static bool granular(uint64_t value) { return value % GRANULARITY == 0; }

API Result cuInit(unsigned flags) {
  ENTER(cuInit, NEED_NOTHING);
  if (flags != 0) return RESULT_INVALID_VALUE;
  if (initialized_by == 0) initialized_by = getpid();
  return check_need(NEED_INIT);
}

API Result cuDriverGetVersion(int *version) {
  ENTER(cuDriverGetVersion, NEED_NOTHING);
  if (version == NULL) return RESULT_INVALID_VALUE;
  *version = 12040;
  return RESULT_SUCCESS;
}

#define ERROR_NAME(code, name, text) case code: *found = name; return RESULT_SUCCESS;
#define ERROR_TEXT(code, name, text) case code: *found = text; return RESULT_SUCCESS;

API Result cuGetErrorName(Result error, const char **found) {
  ENTER(cuGetErrorName, NEED_NOTHING);
  switch ((int)error) { CUDA_ERRORS(ERROR_NAME) }
  *found = NULL;
  return RESULT_INVALID_VALUE;
}

API Result cuGetErrorString(Result error, const char **found) {
  ENTER(cuGetErrorString, NEED_NOTHING);
  switch ((int)error) { CUDA_ERRORS(ERROR_TEXT) }
  *found = NULL;
  return RESULT_INVALID_VALUE;
}

API Result cuDeviceGetCount(int *count) {
  ENTER(cuDeviceGetCount, NEED_INIT);
  if (count == NULL) return RESULT_INVALID_VALUE;
  *count = 1;
  return RESULT_SUCCESS;
}

API Result cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER(cuDeviceGet, NEED_INIT);
  if (device == NULL) return RESULT_INVALID_VALUE;
  if (ordinal != 0) return RESULT_INVALID_DEVICE;
  *device = 0;
  return RESULT_SUCCESS;
}

API Result cuDeviceGetName(char *name, int capacity, CUdevice device) {
  ENTER(cuDeviceGetName, NEED_INIT);
  if (device != 0) return RESULT_INVALID_DEVICE;
  if (name == NULL || capacity <= 0) return RESULT_INVALID_VALUE;
  snprintf(name, (size_t)capacity, "Fake CUDA device");
  return RESULT_SUCCESS;
}

API Result cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  ENTER(cuDeviceGetAttribute, NEED_INIT);
  if (device != 0) return RESULT_INVALID_DEVICE;
  if (value == NULL || attribute < 1 || attribute > CU_DEVICE_ATTRIBUTE_LAST_KNOWN)
    return RESULT_INVALID_VALUE;
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
  return RESULT_SUCCESS;
}

API Result cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  ENTER(cuDeviceTotalMem_v2, NEED_INIT);
  if (device != 0) return RESULT_INVALID_DEVICE;
  if (bytes == NULL) return RESULT_INVALID_VALUE;
  *bytes = memory_limit;
  return RESULT_SUCCESS;
}

API Result cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER(cuDevicePrimaryCtxRetain, NEED_DEVICE);
  if (device != 0) return RESULT_INVALID_DEVICE;
  if (context == NULL) return RESULT_INVALID_VALUE;
  if (primary_retains++ == 0)
    primary_context = object_new(OBJECT_CONTEXT, sizeof *primary_context);
  *context = (CUcontext)primary_context->handle;
  return RESULT_SUCCESS;
}

/* The last release ends the context, and with it its being lost. A lost one takes mapped
 * memory along: nobody could give it back any more. */
API Result cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER(cuDevicePrimaryCtxRelease_v2, NEED_INIT);
  if (device != 0) return RESULT_INVALID_DEVICE;
  if (primary_retains == 0) return RESULT_INVALID_CONTEXT;
  if (primary_retains == 1) streams_drain();
  const Result result = result_after_work();
  if (--primary_retains == 0) {
    const int32_t leaked = context_wipe();
    if (context_lost) memory_wipe();
    else leaked_at_release += (uint32_t)leaked;
    primary_context->alive = false;
    context_lost = false;
  }
  return result;
}

API Result cuCtxSetCurrent(CUcontext context) {
  ENTER(cuCtxSetCurrent, NEED_DEVICE);
  if (context != NULL && !object_find(OBJECT_CONTEXT, (uintptr_t)context))
    return RESULT_INVALID_CONTEXT;
  current_context = (uintptr_t)context;
  return RESULT_SUCCESS;
}

API Result cuCtxSynchronize(void) {
  ENTER(cuCtxSynchronize, NEED_CONTEXT);
  return device_synchronize();
}

API Result cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER(cuMemGetInfo_v2, NEED_CONTEXT);
  if (free_bytes == NULL || total == NULL) return RESULT_INVALID_VALUE;
  *free_bytes = memory_limit - memory_used;
  *total = memory_limit;
  return RESULT_SUCCESS;
}

API Result cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment,
                                 CUdeviceptr hint, unsigned long long flags) {
  ENTER(cuMemAddressReserve, NEED_DEVICE);
  (void)hint; /* the real driver, too, may ignore it */
  if (address == NULL || size == 0 || !granular(size) || flags != 0 ||
      (alignment & (alignment - 1)) != 0)
    return RESULT_INVALID_VALUE;
  return reserve(size, alignment > GRANULARITY ? alignment : GRANULARITY, address);
}

API Result cuMemAddressFree(CUdeviceptr address, size_t size) {
  ENTER(cuMemAddressFree, NEED_DEVICE);
  return reservation_free(address, size);
}

static bool known_properties(const CUmemAllocationProp *properties) {
  return properties != NULL && properties->type == ALLOCATION_PINNED &&
         properties->location.type == LOCATION_DEVICE;
}

API Result cuMemGetAllocationGranularity(size_t *granularity,
                                           const CUmemAllocationProp *properties,
                                           int option) {
  ENTER(cuMemGetAllocationGranularity, NEED_DEVICE);
  if (granularity == NULL || !known_properties(properties) || option < 0 || option > 1)
    return RESULT_INVALID_VALUE;
  if (properties->location.id != 0) return RESULT_INVALID_DEVICE;
  *granularity = GRANULARITY;
  return RESULT_SUCCESS;
}

API Result cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                         const CUmemAllocationProp *properties,
                         unsigned long long flags) {
  ENTER(cuMemCreate, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  if (handle == NULL || size == 0 || !granular(size) || flags != 0 ||
      !known_properties(properties))
    return RESULT_INVALID_VALUE;
  if (properties->location.id != 0) return RESULT_INVALID_DEVICE;
  Physical *physical;
  const Result result = physical_create(size, &physical);
  if (result == RESULT_SUCCESS) *handle = physical->base.handle;
  return result;
}

API Result cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER(cuMemRelease, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  Physical *physical = object_find(OBJECT_PHYSICAL, (uintptr_t)handle);
  if (physical == NULL) return RESULT_INVALID_VALUE;
  physical_release(physical);
  return RESULT_SUCCESS;
}

API Result cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags) {
  ENTER(cuMemMap, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  Physical *physical = object_find(OBJECT_PHYSICAL, (uintptr_t)handle);
  if (physical == NULL || !granular(address) || size != physical->size || offset != 0 ||
      flags != 0)
    return RESULT_INVALID_VALUE;
  return mapping_create(address, physical);
}

API Result cuMemUnmap(CUdeviceptr address, size_t size) {
  ENTER(cuMemUnmap, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  return mappings_remove(address, size);
}

API Result cuMemSetAccess(CUdeviceptr address, size_t size,
                            const MemAccess *access, size_t count) {
  ENTER(cuMemSetAccess, NEED_DEVICE);
  CHECK(capture_forbid_unless_relaxed());
  if (access == NULL || count != 1 ||
      access->location.type != LOCATION_DEVICE ||
      (access->flags != ACCESS_NONE && access->flags != ACCESS_READ &&
       access->flags != ACCESS_READ_WRITE))
    return RESULT_INVALID_VALUE;
  if (access->location.id != 0) return RESULT_INVALID_DEVICE;
  return mappings_set_access(address, size, access->flags);
}

API Result cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  ENTER(cuMemAlloc_v2, NEED_CONTEXT);
  return plain_alloc(size, address);
}

API Result cuMemFree_v2(CUdeviceptr address) {
  ENTER(cuMemFree_v2, NEED_CONTEXT);
  return plain_free(address);
}

API Result cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
  ENTER(cuMemHostAlloc, NEED_CONTEXT);
  if (flags > CU_MEMHOSTALLOC_ALL) return RESULT_INVALID_VALUE;
  return pinned_alloc(memory, size, flags & HOST_DEVICE_MAP);
}

API Result cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *memory,
                                        unsigned flags) {
  ENTER(cuMemHostGetDevicePointer_v2, NEED_CONTEXT);
  return pinned_device_address(address, memory, flags);
}

API Result cuMemFreeHost(void *memory) {
  ENTER(cuMemFreeHost, NEED_CONTEXT);
  return pinned_free(memory);
}

API Result cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void *source, size_t bytes,
                                CUstream stream) {
  ENTER(cuMemcpyHtoDAsync_v2, NEED_CONTEXT);
  return copy_in(destination, source, bytes, stream);
}

API Result cuMemcpyDtoHAsync_v2(void *destination, CUdeviceptr source, size_t bytes,
                                CUstream stream) {
  ENTER(cuMemcpyDtoHAsync_v2, NEED_CONTEXT);
  return copy_out(destination, source, bytes, stream);
}

API Result cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
                                CUstream stream) {
  ENTER(cuMemcpyDtoDAsync_v2, NEED_CONTEXT);
  return copy_on_device(destination, source, bytes, stream);
}

API Result cuMemsetD8Async(CUdeviceptr destination, unsigned char value, size_t count,
                           CUstream stream) {
  ENTER(cuMemsetD8Async, NEED_CONTEXT);
  return fill(destination, value, 1, count, stream);
}

API Result cuMemsetD16Async(CUdeviceptr destination, unsigned short value, size_t count,
                            CUstream stream) {
  ENTER(cuMemsetD16Async, NEED_CONTEXT);
  return fill(destination, value, 2, count, stream);
}

API Result cuMemsetD32Async(CUdeviceptr destination, unsigned value, size_t count,
                            CUstream stream) {
  ENTER(cuMemsetD32Async, NEED_CONTEXT);
  return fill(destination, value, 4, count, stream);
}

API Result cuStreamCreate(CUstream *stream, unsigned flags) {
  ENTER(cuStreamCreate, NEED_CONTEXT);
  return new_stream(stream, flags);
}

API Result cuStreamDestroy_v2(CUstream stream) {
  ENTER(cuStreamDestroy_v2, NEED_CONTEXT);
  return destroy_stream(stream, RESULT_INVALID_HANDLE);
}

API Result cuStreamSynchronize(CUstream stream) {
  ENTER(cuStreamSynchronize, NEED_CONTEXT);
  return synchronize_stream(stream);
}

API Result cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  ENTER(cuStreamWaitEvent, NEED_CONTEXT);
  return wait_for_event(stream, event, flags);
}

API Result cuEventCreate(CUevent *event, unsigned flags) {
  ENTER(cuEventCreate, NEED_CONTEXT);
  return new_event(event, flags);
}

API Result cuEventDestroy_v2(CUevent event) {
  ENTER(cuEventDestroy_v2, NEED_CONTEXT);
  return destroy_event(event, RESULT_INVALID_HANDLE);
}

API Result cuEventRecord(CUevent event, CUstream stream) {
  ENTER(cuEventRecord, NEED_CONTEXT);
  return record_event(event, stream);
}

API Result cuEventQuery(CUevent event) {
  ENTER(cuEventQuery, NEED_CONTEXT);
  return query_event(event);
}

API Result cuEventSynchronize(CUevent event) {
  ENTER(cuEventSynchronize, NEED_CONTEXT);
  return synchronize_event(event);
}

API Result cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  ENTER(cuEventElapsedTime, NEED_CONTEXT);
  return elapsed_time(milliseconds, start, end);
}

API Result cuModuleLoadData(CUmodule *module, const void *image) {
  ENTER(cuModuleLoadData, NEED_CONTEXT);
  return load_module(module, image);
}

API Result cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                              const int *options, void **values) {
  ENTER(cuModuleLoadDataEx, NEED_CONTEXT);
  if (count != 0 && (options == NULL || values == NULL)) return RESULT_INVALID_VALUE;
  const Result result = load_module(module, image);
  char *log = NULL;
  size_t capacity = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = values[i];
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      capacity = (size_t)(uintptr_t)values[i];
  }
  if (log != NULL && capacity != 0)
    snprintf(log, capacity, "%s",
             result == RESULT_INVALID_IMAGE ? "the image is no shared object" : "");
  return result;
}

API Result cuModuleUnload(CUmodule module) {
  ENTER(cuModuleUnload, NEED_CONTEXT);
  return unload_module(module);
}

API Result cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  ENTER(cuModuleGetFunction, NEED_CONTEXT);
  return get_function(function, module, name);
}

API Result cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared_bytes, CUstream stream,
                          void **parameters, void **extra) {
  ENTER(cuLaunchKernel, NEED_CONTEXT);
  const MbGeometry geometry = {
      {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  const void *block;
  size_t bytes;
  /* A shared object does not say what its kernels' parameters are: only blocks work. */
  if (parameters != NULL || !extra_block(extra, CU_LAUNCH_PARAM_END, &block, &bytes))
    return RESULT_INVALID_VALUE;
  return launch(function, geometry, stream, block, bytes);
}

API Result cuStreamBeginCapture_v2(CUstream stream, int mode) {
  ENTER(cuStreamBeginCapture_v2, NEED_CONTEXT);
  return begin_capture(stream, mode);
}

API Result cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  ENTER(cuStreamEndCapture, NEED_CONTEXT);
  return end_capture(stream, graph);
}

API Result cuStreamIsCapturing(CUstream stream, int *status) {
  ENTER(cuStreamIsCapturing, NEED_CONTEXT);
  return is_capturing(stream, status);
}

API Result cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                       unsigned long long flags) {
  ENTER(cuGraphInstantiateWithFlags, NEED_CONTEXT);
  return flags != 0 ? RESULT_INVALID_VALUE : instantiate(exec, graph);
}

API Result cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, void **error_node,
                                 char *log, size_t log_bytes) {
  ENTER(cuGraphInstantiate_v2, NEED_CONTEXT);
  if (error_node != NULL) *error_node = NULL;
  if (log != NULL && log_bytes != 0) *log = 0;
  return instantiate(exec, graph);
}

API Result cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  ENTER(cuGraphLaunch, NEED_CONTEXT);
  return launch_graph(exec, stream);
}

API Result cuGraphExecDestroy(CUgraphExec exec) {
  ENTER(cuGraphExecDestroy, NEED_CONTEXT);
  return destroy_graph_exec(exec);
}

API Result cuGraphDestroy(CUgraph graph) {
  ENTER(cuGraphDestroy, NEED_CONTEXT);
  return destroy_graph(graph);
}

API Result cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  ENTER(cuMemPoolCreate, NEED_CONTEXT);
  if (properties == NULL) return RESULT_INVALID_VALUE;
  return new_pool(pool, properties->type, properties->location);
}

API Result cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
  ENTER(cuMemPoolSetAttribute, NEED_CONTEXT);
  return set_pool_attribute(pool, attribute, value);
}

API Result cuMemPoolDestroy(CUmemoryPool pool) {
  ENTER(cuMemPoolDestroy, NEED_CONTEXT);
  return destroy_pool(pool);
}

API Result cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  ENTER(cuMemPoolTrimTo, NEED_CONTEXT);
  return trim_pool(pool, keep);
}

API Result cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                   CUstream stream) {
  ENTER(cuMemAllocFromPoolAsync, NEED_CONTEXT);
  return alloc_from_pool(address, bytes, pool, stream);
}

API Result cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  ENTER(cuMemFreeAsync, NEED_CONTEXT);
  return free_to_pool(address, stream);
}
