/* A fake libamdhip64 that is stricter than the real one, for tests without a GPU.
 *
 *   cc -std=c11 -O1 -g -fPIC -shared -pthread -o libfakehip.so hip.c -ldl
 *
 * It shares all but its functions' names and its rules for mappings with the fake libcuda
 * (cuda.c says how that works). -DFAKE_ROCM_5 leaves out what ROCm 5 does not export.
 * hip_options.h has the faults that it can be told to have; what would crash the real
 * runtime is counted as a violation.
 */
#define _GNU_SOURCE

#include <elf.h>

#include "hip_calls.h"
#define CLAIMED_MACHINE EM_AMDGPU

#include "control.h"
#include "hip_mappings.h"
#include "hip_types.h"

/* There is no context to release: what is lost stays so until the reset. */
static Result check_need(Need need) {
  if (need == NEED_NOTHING) return RESULT_SUCCESS;
  if (initialized_by != getpid()) return RESULT_NOT_INITIALIZED;
  /* Nothing that is queued will run any more. */
  for (size_t i = 0; context_lost && i < stream_count; i++) stream_clear(streams[i]);
  if (need == NEED_INIT) return RESULT_SUCCESS;
  return context_lost ? RESULT_ILLEGAL_ADDRESS : RESULT_SUCCESS;
}

/* No device may be open: there is no way to tell. */
static void vendor_reset(void) {
  context_wipe();
  memory_wipe();
  while (kept != NULL) kept_free(kept->address, 1);
  context_lost = false;
  options_reset();
  violations = 0;
  last_violation[0] = 0;
}

static int32_t vendor_violations(void) { return violations; }

static bool is_device(int device) { return device >= 0 && device < (int)options.devices; }

static bool granular(uint64_t value) { return value % HIP_GRANULARITY == 0; }

API Result hipInit(unsigned flags) {
  ENTER(hipInit, NEED_NOTHING);
  if (flags != 0) return RESULT_INVALID_VALUE;
  if (options.devices == 0) return RESULT_INVALID_DEVICE;
  if (initialized_by == 0) initialized_by = getpid();
  return check_need(NEED_INIT);
}

API Result hipRuntimeGetVersion(int *version) {
  ENTER(hipRuntimeGetVersion, NEED_NOTHING);
  if (version == NULL) return RESULT_INVALID_VALUE;
  *version = (int)options.version;
  return RESULT_SUCCESS;
}

#define ERROR_NAME(code, name) case code: return name;

static const char *error_name(Result error) {
  switch ((int)error) { HIP_ERRORS(ERROR_NAME) }
  return "hipErrorUnknown";
}

API const char *hipGetErrorName(Result error) { return error_name(error); }

/* The same as the name, as in 5.2. */
API const char *hipGetErrorString(Result error) { return error_name(error); }

API Result hipGetDeviceCount(int *count) {
  ENTER(hipGetDeviceCount, NEED_INIT);
  if (count == NULL) return RESULT_INVALID_VALUE;
  *count = (int)options.devices;
  return *count == 0 ? RESULT_NO_DEVICE : RESULT_SUCCESS;
}

API Result hipDeviceGet(hipDevice_t *device, int ordinal) {
  ENTER(hipDeviceGet, NEED_INIT);
  if (device == NULL) return RESULT_INVALID_VALUE;
  if (!is_device(ordinal)) return RESULT_INVALID_DEVICE;
  *device = ordinal;
  return RESULT_SUCCESS;
}

API Result hipDeviceGetName(char *name, int capacity, hipDevice_t device) {
  ENTER(hipDeviceGetName, NEED_INIT);
  if (!is_device(device)) return RESULT_INVALID_DEVICE;
  if (name == NULL || capacity <= 0) return RESULT_INVALID_VALUE;
  snprintf(name, (size_t)capacity, "Fake AMD device");
  return RESULT_SUCCESS;
}

API Result hipDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER(hipDeviceGetAttribute, NEED_INIT);
  if (!is_device(device)) return RESULT_INVALID_DEVICE;
  if (value == NULL || attribute < 0 || attribute > HIP_ATTRIBUTE_LAST_KNOWN)
    return RESULT_INVALID_VALUE;
  switch (attribute) {
  case hipDeviceAttributeMultiprocessorCount: *value = 4; break;
  case hipDeviceAttributeMemoryPoolsSupported: *value = 1; break;
  case hipDeviceAttributeVirtualMemoryManagementSupported:
#ifdef FAKE_ROCM_5
    return RESULT_INVALID_VALUE;
#endif
    *value = options.vmm != 0;
    break;
  default: *value = 0;
  }
  return RESULT_SUCCESS;
}

API Result hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  ENTER(hipDeviceTotalMem, NEED_INIT);
  if (!is_device(device)) return RESULT_INVALID_DEVICE;
  if (bytes == NULL) return RESULT_INVALID_VALUE;
  *bytes = memory_limit;
  return RESULT_SUCCESS;
}

/* What is not filled in is no zeroes, so that nobody takes them for it. */
static Result fill_properties(char *properties, int device, size_t bytes, size_t at) {
  if (!is_device(device)) return RESULT_INVALID_DEVICE;
  if (properties == NULL) return RESULT_INVALID_VALUE;
  memset(properties, 0xA5, bytes);
  snprintf(properties, NAME_BYTES, "Fake AMD device");
  snprintf(properties + at, NAME_BYTES, "%s", architecture);
  return RESULT_SUCCESS;
}

API Result hipGetDeviceProperties(void *properties, int device) {
  ENTER(hipGetDeviceProperties, NEED_INIT);
  return fill_properties(properties, device, R0000_BYTES, R0000_ARCHITECTURE_AT);
}

#ifndef FAKE_ROCM_5
API Result hipGetDevicePropertiesR0600(void *properties, int device) {
  ENTER(hipGetDevicePropertiesR0600, NEED_INIT);
  return fill_properties(properties, device, R0600_BYTES, R0600_ARCHITECTURE_AT);
}
#endif

API Result hipSetDevice(int device) {
  ENTER(hipSetDevice, NEED_DEVICE);
  return is_device(device) ? RESULT_SUCCESS : RESULT_INVALID_DEVICE;
}

API Result hipDeviceSynchronize(void) {
  ENTER(hipDeviceSynchronize, NEED_CONTEXT);
  return device_synchronize();
}

API Result hipMemGetInfo(size_t *free_bytes, size_t *total) {
  ENTER(hipMemGetInfo, NEED_CONTEXT);
  if (free_bytes == NULL || total == NULL) return RESULT_INVALID_VALUE;
  *free_bytes = memory_limit - memory_used;
  *total = memory_limit;
  return RESULT_SUCCESS;
}

API Result hipMemAddressReserve(hipDeviceptr_t *address, size_t size, size_t alignment,
                                hipDeviceptr_t wanted, unsigned long long flags) {
  ENTER(hipMemAddressReserve, NEED_DEVICE);
  (void)wanted; /* the real runtime, too, may ignore it */
  if (address == NULL || size == 0 || !granular(size) || flags != 0 ||
      (alignment & (alignment - 1)) != 0)
    return RESULT_INVALID_VALUE;
  uint64_t got;
  const Result result = hip_reserve(size, alignment, &got);
  if (result == RESULT_SUCCESS) *address = (void *)got;
  return result;
}

API Result hipMemAddressFree(hipDeviceptr_t address, size_t size) {
  ENTER(hipMemAddressFree, NEED_INIT);
  return hip_address_free((uint64_t)address, size);
}

static bool known_properties(const hipMemAllocationProp *properties) {
  return properties != NULL && properties->type == ALLOCATION_PINNED &&
         properties->handle_types == 0 && properties->location.type == LOCATION_DEVICE;
}

API Result hipMemGetAllocationGranularity(size_t *granularity,
                                          const hipMemAllocationProp *properties,
                                          int option) {
  ENTER(hipMemGetAllocationGranularity, NEED_DEVICE);
  if (granularity == NULL || !known_properties(properties) ||
      !is_device(properties->location.id) || option < GRANULARITY_MINIMUM ||
      option > GRANULARITY_RECOMMENDED)
    return RESULT_INVALID_VALUE;
  *granularity = option == GRANULARITY_MINIMUM ? HIP_GRANULARITY : (size_t)options.recommended;
  return RESULT_SUCCESS;
}

API Result hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size,
                        const hipMemAllocationProp *properties, unsigned long long flags) {
  ENTER(hipMemCreate, NEED_DEVICE);
  if (handle == NULL || size == 0 || !granular(size) || flags != 0 ||
      !known_properties(properties))
    return RESULT_INVALID_VALUE;
  if (!is_device(properties->location.id)) return RESULT_INVALID_DEVICE;
  if (options.mostHandles != 0 && objects_alive(OBJECT_PHYSICAL) >= options.mostHandles)
    return RESULT_OUT_OF_MEMORY;
  Physical *physical;
  const Result result = physical_create(size, &physical);
  if (result == RESULT_SUCCESS) *handle = HANDLE(physical);
  return result;
}

API Result hipMemRelease(hipMemGenericAllocationHandle_t handle) {
  ENTER(hipMemRelease, NEED_INIT);
  Physical *physical = object_find(OBJECT_PHYSICAL, (uintptr_t)handle);
  if (physical == NULL) return violate("hipMemRelease of an unknown handle", handle);
  physical_release(physical);
  return RESULT_SUCCESS;
}

API Result hipMemMap(hipDeviceptr_t address, size_t size, size_t offset,
                     hipMemGenericAllocationHandle_t handle, unsigned long long flags) {
  ENTER(hipMemMap, NEED_DEVICE);
  Physical *physical = object_find(OBJECT_PHYSICAL, (uintptr_t)handle);
  if (physical == NULL) return violate("hipMemMap of an unknown handle", handle);
  if (!granular((uint64_t)address) || size != physical->size || offset != 0 || flags != 0)
    return RESULT_INVALID_VALUE;
  return hip_map((uint64_t)address, physical);
}

API Result hipMemUnmap(hipDeviceptr_t address, size_t size) {
  ENTER(hipMemUnmap, NEED_INIT);
  return hip_unmap((uint64_t)address, size);
}

API Result hipMemSetAccess(hipDeviceptr_t address, size_t size, const MemAccess *access,
                           size_t count) {
  ENTER(hipMemSetAccess, NEED_DEVICE);
  if (access == NULL || count == 0) return RESULT_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    if (access[i].location.type != LOCATION_DEVICE || !is_device(access[i].location.id) ||
        (access[i].flags != ACCESS_NONE && access[i].flags != ACCESS_READ &&
         access[i].flags != ACCESS_READ_WRITE))
      return RESULT_INVALID_VALUE;
    /* All memory is the first device's here. */
    if (access[i].location.id == 0 && i != count - 1)
      return violate("hipMemSetAccess with a peer after the local device", address);
  }
  return hip_grant((uint64_t)address, size, access[count - 1].flags);
}

API Result hipMemGetAccess(unsigned long long *flags, const MemLocation *location,
                           hipDeviceptr_t address) {
  ENTER(hipMemGetAccess, NEED_INIT);
  const Range *range = range_at(&device_memory, (uint64_t)address);
  if (flags == NULL || location == NULL || location->type != LOCATION_DEVICE ||
      !is_device(location->id) || range == NULL || range->kind != RANGE_MAPPING)
    return RESULT_INVALID_VALUE;
  *flags = (unsigned long long)range->access;
  return RESULT_SUCCESS;
}

API Result hipMalloc(hipDeviceptr_t *address, size_t size) {
  ENTER(hipMalloc, NEED_CONTEXT);
  uint64_t got;
  if (address == NULL) return RESULT_INVALID_VALUE;
  const Result result = plain_alloc(size, &got);
  if (result == RESULT_SUCCESS) *address = (void *)got;
  return result;
}

API Result hipFree(hipDeviceptr_t address) {
  ENTER(hipFree, NEED_INIT);
  const Result result = plain_free((uint64_t)address);
  return result == RESULT_ILLEGAL_ADDRESS ? RESULT_SUCCESS : result;
}

API Result hipHostMalloc(void **memory, size_t size, unsigned flags) {
  ENTER(hipHostMalloc, NEED_CONTEXT);
  return pinned_alloc(memory, size, flags & HOST_DEVICE_MAP);
}

API Result hipHostGetDevicePointer(hipDeviceptr_t *address, void *memory, unsigned flags) {
  ENTER(hipHostGetDevicePointer, NEED_CONTEXT);
  uint64_t got;
  if (address == NULL) return RESULT_INVALID_VALUE;
  const Result result = pinned_device_address(&got, memory, flags);
  if (result == RESULT_SUCCESS) *address = (void *)got;
  return result;
}

API Result hipHostFree(void *memory) {
  ENTER(hipHostFree, NEED_INIT);
  return pinned_free(memory);
}

API Result hipMemcpyHtoDAsync(hipDeviceptr_t destination, void *source, size_t bytes,
                              hipStream_t stream) {
  ENTER(hipMemcpyHtoDAsync, NEED_CONTEXT);
  return copy_in((uint64_t)destination, source, bytes, stream);
}

API Result hipMemcpyDtoHAsync(void *destination, hipDeviceptr_t source, size_t bytes,
                              hipStream_t stream) {
  ENTER(hipMemcpyDtoHAsync, NEED_CONTEXT);
  return copy_out(destination, (uint64_t)source, bytes, stream);
}

API Result hipMemcpyDtoDAsync(hipDeviceptr_t destination, hipDeviceptr_t source,
                              size_t bytes, hipStream_t stream) {
  ENTER(hipMemcpyDtoDAsync, NEED_CONTEXT);
  return copy_on_device((uint64_t)destination, (uint64_t)source, bytes, stream);
}

API Result hipMemsetD8Async(hipDeviceptr_t destination, unsigned char value, size_t count,
                            hipStream_t stream) {
  ENTER(hipMemsetD8Async, NEED_CONTEXT);
  return fill((uint64_t)destination, value, 1, count, stream);
}

API Result hipMemsetD16Async(hipDeviceptr_t destination, unsigned short value, size_t count,
                             hipStream_t stream) {
  ENTER(hipMemsetD16Async, NEED_CONTEXT);
  return fill((uint64_t)destination, value, 2, count, stream);
}

API Result hipMemsetD32Async(hipDeviceptr_t destination, int value, size_t count,
                             hipStream_t stream) {
  ENTER(hipMemsetD32Async, NEED_CONTEXT);
  return fill((uint64_t)destination, (uint32_t)value, 4, count, stream);
}

API Result hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
  ENTER(hipStreamCreateWithFlags, NEED_CONTEXT);
  return new_stream(stream, flags);
}

API Result hipStreamDestroy(hipStream_t stream) {
  ENTER(hipStreamDestroy, NEED_INIT);
  return destroy_stream(stream, RESULT_CONTEXT_IS_DESTROYED);
}

API Result hipStreamSynchronize(hipStream_t stream) {
  ENTER(hipStreamSynchronize, NEED_CONTEXT);
  return synchronize_stream(stream);
}

API Result hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  ENTER(hipStreamWaitEvent, NEED_CONTEXT);
  return wait_for_event(stream, event, flags);
}

API Result hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  ENTER(hipEventCreateWithFlags, NEED_CONTEXT);
  return new_event(event, flags);
}

API Result hipEventDestroy(hipEvent_t event) {
  ENTER(hipEventDestroy, NEED_INIT);
  return destroy_event(event, RESULT_CONTEXT_IS_DESTROYED);
}

API Result hipEventRecord(hipEvent_t event, hipStream_t stream) {
  ENTER(hipEventRecord, NEED_CONTEXT);
  return record_event(event, stream);
}

API Result hipEventQuery(hipEvent_t event) {
  ENTER(hipEventQuery, NEED_CONTEXT);
  return query_event(event);
}

API Result hipEventSynchronize(hipEvent_t event) {
  ENTER(hipEventSynchronize, NEED_CONTEXT);
  return synchronize_event(event);
}

API Result hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t end) {
  ENTER(hipEventElapsedTime, NEED_CONTEXT);
  return elapsed_time(milliseconds, start, end);
}

API Result hipModuleLoadData(hipModule_t *module, const void *image) {
  ENTER(hipModuleLoadData, NEED_CONTEXT);
  const Elf64_Ehdr *header = image;
  if (image == NULL) return RESULT_INVALID_VALUE;
  if (memcmp(image, ELFMAG, SELFMAG) == 0 && header->e_machine != EM_AMDGPU)
    return RESULT_NO_BINARY_FOR_GPU;
  return load_module(module, image);
}

/* The runtime reads a module's image as long as the module lives. */
static Result check_image_kept(hipModule_t handle) {
  const Module *module = object_find(OBJECT_MODULE, (uintptr_t)handle);
  if (module == NULL || module_image_is_kept(module)) return RESULT_SUCCESS;
  return violate("a module's image is gone before the module", module->image);
}

API Result hipModuleUnload(hipModule_t module) {
  ENTER(hipModuleUnload, NEED_INIT);
  CHECK(check_image_kept(module));
  const Result result = unload_module(module);
  return result == RESULT_ILLEGAL_ADDRESS ? RESULT_SUCCESS : result;
}

API Result hipModuleGetFunction(hipFunction_t *function, hipModule_t module,
                                const char *name) {
  ENTER(hipModuleGetFunction, NEED_CONTEXT);
  CHECK(check_image_kept(module));
  return get_function(function, module, name);
}

API Result hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_bytes,
                                 hipStream_t stream, void **parameters, void **extra) {
  ENTER(hipModuleLaunchKernel, NEED_CONTEXT);
  const MbGeometry geometry = {
      {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  const void *block;
  size_t bytes;
  for (int axis = 0; axis < 3; axis++)
    if ((uint64_t)geometry.grid[axis] * geometry.block[axis] > UINT32_MAX)
      return RESULT_INVALID_VALUE;
  /* A shared object does not say what its kernels' parameters are: only blocks work. */
  if (parameters != NULL || !extra_block(extra, HIP_LAUNCH_PARAM_END, &block, &bytes))
    return RESULT_INVALID_VALUE;
  return launch(function, geometry, stream, block, bytes);
}

API Result hipStreamBeginCapture(hipStream_t stream, int mode) {
  ENTER(hipStreamBeginCapture, NEED_CONTEXT);
  return begin_capture(stream, mode);
}

API Result hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph) {
  ENTER(hipStreamEndCapture, NEED_CONTEXT);
  return end_capture(stream, graph);
}

API Result hipStreamIsCapturing(hipStream_t stream, int *status) {
  ENTER(hipStreamIsCapturing, NEED_CONTEXT);
  return is_capturing(stream, status);
}

API Result hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, void **error_node,
                               char *log, size_t log_bytes) {
  ENTER(hipGraphInstantiate, NEED_CONTEXT);
  if (error_node != NULL) *error_node = NULL;
  if (log != NULL && log_bytes != 0) *log = 0;
  return instantiate(exec, graph);
}

API Result hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  ENTER(hipGraphLaunch, NEED_CONTEXT);
  return launch_graph(exec, stream);
}

API Result hipGraphExecDestroy(hipGraphExec_t exec) {
  ENTER(hipGraphExecDestroy, NEED_INIT);
  return destroy_graph_exec(exec);
}

API Result hipGraphDestroy(hipGraph_t graph) {
  ENTER(hipGraphDestroy, NEED_INIT);
  return destroy_graph(graph);
}

API Result hipMemPoolCreate(hipMemPool_t *pool, const hipMemPoolProps *properties) {
  ENTER(hipMemPoolCreate, NEED_CONTEXT);
  if (properties == NULL) return RESULT_INVALID_VALUE;
  return new_pool(pool, properties->type, properties->location);
}

API Result hipMemPoolSetAttribute(hipMemPool_t pool, int attribute, void *value) {
  ENTER(hipMemPoolSetAttribute, NEED_CONTEXT);
  return set_pool_attribute(pool, attribute, value);
}

API Result hipMemPoolDestroy(hipMemPool_t pool) {
  ENTER(hipMemPoolDestroy, NEED_INIT);
  return destroy_pool(pool);
}

API Result hipMemPoolTrimTo(hipMemPool_t pool, size_t keep) {
  ENTER(hipMemPoolTrimTo, NEED_CONTEXT);
  return trim_pool(pool, keep);
}

API Result hipMallocFromPoolAsync(hipDeviceptr_t *address, size_t bytes, hipMemPool_t pool,
                                  hipStream_t stream) {
  ENTER(hipMallocFromPoolAsync, NEED_CONTEXT);
  uint64_t got;
  if (address == NULL) return RESULT_INVALID_VALUE;
  const Result result = alloc_from_pool(&got, bytes, pool, stream);
  if (result == RESULT_SUCCESS) *address = (void *)got;
  return result;
}

API Result hipFreeAsync(hipDeviceptr_t address, hipStream_t stream) {
  ENTER(hipFreeAsync, NEED_INIT);
  return free_to_pool((uint64_t)address, stream);
}

/* Sets an option (hip_options.h) until the next reset; 0 if there is none of that name. */
API uint32_t fakehip_set(const char *option, double value) {
  pthread_mutex_lock(&lock);
  const uint32_t known = option_set(option, value);
  pthread_mutex_unlock(&lock);
  return known;
}

/* Name and features, until the next reset. */
API void fakehip_set_architecture(const char *name) {
  pthread_mutex_lock(&lock);
  snprintf(architecture, sizeof architecture, "%s", name);
  pthread_mutex_unlock(&lock);
}

/* What the last violation was, empty if there was none. */
API void fakehip_violation(char *text, uint32_t capacity) {
  pthread_mutex_lock(&lock);
  snprintf(text, capacity, "%s", last_violation);
  pthread_mutex_unlock(&lock);
}
