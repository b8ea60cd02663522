/* The part of NVIDIA's driver API that the cuda backend calls, declared here because no
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
#define CUDA_SYMBOLS(X)                                                                        \
  X(cuInit, "cuInit", (unsigned flags))                                                        \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                  \
  X(cuGetErrorName, "cuGetErrorName", (CuResult result, const char **name))                    \
  X(cuGetErrorString, "cuGetErrorString", (CuResult result, const char **text))                \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                        \
  X(cuDeviceGet, "cuDeviceGet", (CuDevice *device, int ordinal))                               \
  X(cuDeviceGetName, "cuDeviceGetName", (char *name, int capacity, CuDevice device))           \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CuDevice device)) \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *bytes, CuDevice device))                 \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                                      \
    (CuContext *context, CuDevice device))                                                     \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CuDevice device))              \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CuContext context))                                   \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *free_bytes, size_t *total_bytes))                \
  X(cuMemAlloc, "cuMemAlloc_v2", (CuPointer *address, size_t bytes))                           \
  X(cuMemFree, "cuMemFree_v2", (CuPointer address))                                            \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void **memory, size_t bytes, unsigned flags))           \
  X(cuMemFreeHost, "cuMemFreeHost", (void *memory))                                            \
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                 \
    (CuPointer *address, void *memory, unsigned flags))                                        \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                 \
    (CuPointer destination, const void *source, size_t bytes, CuStream stream))                \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                 \
    (void *destination, CuPointer source, size_t bytes, CuStream stream))                      \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                 \
    (CuPointer destination, CuPointer source, size_t bytes, CuStream stream))                  \
  X(cuMemsetD8Async, "cuMemsetD8Async",                                                        \
    (CuPointer address, unsigned char value, size_t count, CuStream stream))                   \
  X(cuMemsetD16Async, "cuMemsetD16Async",                                                      \
    (CuPointer address, unsigned short value, size_t count, CuStream stream))                  \
  X(cuMemsetD32Async, "cuMemsetD32Async",                                                      \
    (CuPointer address, unsigned value, size_t count, CuStream stream))                        \
  X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity",                            \
    (size_t *bytes, const CuAllocationProperties *properties, int option))                     \
  X(cuMemAddressReserve, "cuMemAddressReserve",                                                \
    (CuPointer *address, size_t bytes, size_t alignment, CuPointer wanted, uint64_t flags))    \
  X(cuMemAddressFree, "cuMemAddressFree", (CuPointer address, size_t bytes))                   \
  X(cuMemCreate, "cuMemCreate",                                                                \
    (CuAllocation *allocation, size_t bytes, const CuAllocationProperties *properties,         \
     uint64_t flags))                                                                          \
  X(cuMemRelease, "cuMemRelease", (CuAllocation allocation))                                   \
  X(cuMemMap, "cuMemMap",                                                                      \
    (CuPointer address, size_t bytes, size_t offset, CuAllocation allocation, uint64_t flags)) \
  X(cuMemUnmap, "cuMemUnmap", (CuPointer address, size_t bytes))                               \
  X(cuMemSetAccess, "cuMemSetAccess",                                                          \
    (CuPointer address, size_t bytes, const CuAccess *accesses, size_t count))                 \
  X(cuStreamCreate, "cuStreamCreate", (CuStream *stream, unsigned flags))                      \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CuStream stream))                                  \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CuStream stream))                             \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (CuStream stream, CuEvent event, unsigned flags))  \
  X(cuEventCreate, "cuEventCreate", (CuEvent *event, unsigned flags))                          \
  X(cuEventDestroy, "cuEventDestroy_v2", (CuEvent event))                                      \
  X(cuEventRecord, "cuEventRecord", (CuEvent event, CuStream stream))                          \
  X(cuEventQuery, "cuEventQuery", (CuEvent event))                                             \
  X(cuEventSynchronize, "cuEventSynchronize", (CuEvent event))                                 \
  X(cuEventElapsedTime, "cuEventElapsedTime",                                                  \
    (float *milliseconds, CuEvent start, CuEvent end))                                         \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                  \
    (CuModule *module, const void *image, unsigned count, int *options, void **values))        \
  X(cuModuleUnload, "cuModuleUnload", (CuModule module))                                       \
  X(cuModuleGetFunction, "cuModuleGetFunction",                                                \
    (CuFunction *function, CuModule module, const char *name))                                 \
  X(cuLaunchKernel, "cuLaunchKernel",                                                          \
    (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream stream, void **args,  \
     void **extra))

/* All or none: drivers before 11.2 have no pools. */
#define CUDA_POOL_SYMBOLS(X)                                                                   \
  X(cuMemPoolCreate, "cuMemPoolCreate", (CuPool *pool, const CuPoolProperties *properties))    \
  X(cuMemPoolDestroy, "cuMemPoolDestroy", (CuPool pool))                                       \
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", (CuPool pool, int attribute, void *value)) \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", (CuPool pool, size_t kept_bytes))                      \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync",                                        \
    (CuPointer *address, size_t bytes, CuPool pool, CuStream stream))                          \
  X(cuMemFreeAsync, "cuMemFreeAsync", (CuPointer address, CuStream stream))

/* All or none: drivers before 10.1 have no graphs that a program may capture relaxed. */
#define CUDA_GRAPH_SYMBOLS(X)                                                                  \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CuStream stream, int mode))              \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CuStream stream, CuGraph *graph))               \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (CuStream stream, int *status))                \
  X(cuGraphLaunch, "cuGraphLaunch", (CuGraphExec exec, CuStream stream))                       \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CuGraphExec exec))                              \
  X(cuGraphDestroy, "cuGraphDestroy", (CuGraph graph))

/* One of them is enough: the first came with 11.4, the second is older. */
#define CUDA_INSTANTIATE_SYMBOLS(X)                                                            \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                                \
    (CuGraphExec *exec, CuGraph graph, unsigned long long flags))                              \
  X(cuGraphInstantiate, "cuGraphInstantiate_v2",                                               \
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
