/* The part of AMD's HIP runtime that the hip backend calls, declared here because no header
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
#define HIP_SYMBOLS(X)                                                                         \
  X(HipResult, hipInit, (unsigned flags))                                                      \
  X(HipResult, hipRuntimeGetVersion, (int *version))                                           \
  X(const char *, hipGetErrorName, (HipResult result))                                         \
  X(const char *, hipGetErrorString, (HipResult result))                                       \
  X(HipResult, hipGetDeviceCount, (int *count))                                                \
  X(HipResult, hipDeviceGet, (HipDeviceId *device, int ordinal))                               \
  X(HipResult, hipDeviceGetName, (char *name, int capacity, HipDeviceId device))               \
  X(HipResult, hipDeviceGetAttribute, (int *value, int attribute, HipDeviceId device))         \
  X(HipResult, hipDeviceTotalMem, (size_t *bytes, HipDeviceId device))                         \
  X(HipResult, hipSetDevice, (HipDeviceId device))                                             \
  X(HipResult, hipMemGetInfo, (size_t *free_bytes, size_t *total_bytes))                       \
  X(HipResult, hipMalloc, (HipPointer *address, size_t bytes))                                 \
  X(HipResult, hipFree, (HipPointer address))                                                  \
  X(HipResult, hipHostMalloc, (void **memory, size_t bytes, unsigned flags))                   \
  X(HipResult, hipHostFree, (void *memory))                                                    \
  X(HipResult, hipHostGetDevicePointer, (HipPointer *address, void *memory, unsigned flags))   \
  X(HipResult, hipMemcpyHtoDAsync,                                                             \
    (HipPointer destination, const void *source, size_t bytes, HipStream stream))              \
  X(HipResult, hipMemcpyDtoHAsync,                                                             \
    (void *destination, HipPointer source, size_t bytes, HipStream stream))                    \
  X(HipResult, hipMemcpyDtoDAsync,                                                             \
    (HipPointer destination, HipPointer source, size_t bytes, HipStream stream))               \
  X(HipResult, hipMemsetD8Async,                                                               \
    (HipPointer address, unsigned char value, size_t count, HipStream stream))                 \
  X(HipResult, hipMemsetD16Async,                                                              \
    (HipPointer address, unsigned short value, size_t count, HipStream stream))                \
  X(HipResult, hipMemsetD32Async,                                                              \
    (HipPointer address, int value, size_t count, HipStream stream))                           \
  X(HipResult, hipStreamCreateWithFlags, (HipStream * stream, unsigned flags))                 \
  X(HipResult, hipStreamDestroy, (HipStream stream))                                           \
  X(HipResult, hipStreamSynchronize, (HipStream stream))                                       \
  X(HipResult, hipStreamWaitEvent, (HipStream stream, HipEvent event, unsigned flags))         \
  X(HipResult, hipEventCreateWithFlags, (HipEvent * event, unsigned flags))                    \
  X(HipResult, hipEventDestroy, (HipEvent event))                                              \
  X(HipResult, hipEventRecord, (HipEvent event, HipStream stream))                             \
  X(HipResult, hipEventQuery, (HipEvent event))                                                \
  X(HipResult, hipEventSynchronize, (HipEvent event))                                          \
  X(HipResult, hipEventElapsedTime, (float *milliseconds, HipEvent start, HipEvent end))       \
  X(HipResult, hipModuleLoadData, (HipModule * module, const void *image))                     \
  X(HipResult, hipModuleUnload, (HipModule module))                                            \
  X(HipResult, hipModuleGetFunction,                                                           \
    (HipFunction * function, HipModule module, const char *name))                              \
  X(HipResult, hipModuleLaunchKernel,                                                          \
    (HipFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, HipStream stream, void **args, \
     void **extra))

/* One of them is enough; the first is preferred. */
#define HIP_PROPERTIES_SYMBOLS(X)                                                              \
  X(HipResult, hipGetDevicePropertiesR0600, (void *properties, int device))                    \
  X(HipResult, hipGetDeviceProperties, (void *properties, int device))

/* All or none: versions before 5.2 can't map memory at chosen addresses. */
#define HIP_VMM_SYMBOLS(X)                                                                     \
  X(HipResult, hipMemGetAllocationGranularity,                                                 \
    (size_t *bytes, const HipAllocationProperties *properties, int option))                    \
  X(HipResult, hipMemAddressReserve,                                                           \
    (HipPointer *address, size_t bytes, size_t alignment, HipPointer wanted,                   \
     unsigned long long flags))                                                                \
  X(HipResult, hipMemAddressFree, (HipPointer address, size_t bytes))                          \
  X(HipResult, hipMemCreate,                                                                   \
    (HipAllocation * allocation, size_t bytes, const HipAllocationProperties *properties,      \
     unsigned long long flags))                                                                \
  X(HipResult, hipMemRelease, (HipAllocation allocation))                                      \
  X(HipResult, hipMemMap,                                                                      \
    (HipPointer address, size_t bytes, size_t offset, HipAllocation allocation,                \
     unsigned long long flags))                                                                \
  X(HipResult, hipMemUnmap, (HipPointer address, size_t bytes))                                \
  X(HipResult, hipMemSetAccess,                                                                \
    (HipPointer address, size_t bytes, const HipAccess *accesses, size_t count))               \
  X(HipResult, hipMemGetAccess,                                                                \
    (unsigned long long *flags, const HipLocation *location, HipPointer address))

/* All or none. */
#define HIP_POOL_SYMBOLS(X)                                                                    \
  X(HipResult, hipMemPoolCreate, (HipPool * pool, const HipPoolProperties *properties))        \
  X(HipResult, hipMemPoolDestroy, (HipPool pool))                                              \
  X(HipResult, hipMemPoolSetAttribute, (HipPool pool, int attribute, void *value))             \
  X(HipResult, hipMemPoolTrimTo, (HipPool pool, size_t kept_bytes))                            \
  X(HipResult, hipMallocFromPoolAsync,                                                         \
    (HipPointer *address, size_t bytes, HipPool pool, HipStream stream))                       \
  X(HipResult, hipFreeAsync, (HipPointer address, HipStream stream))

/* All or none. */
#define HIP_GRAPH_SYMBOLS(X)                                                                   \
  X(HipResult, hipStreamBeginCapture, (HipStream stream, int mode))                            \
  X(HipResult, hipStreamEndCapture, (HipStream stream, HipGraph *graph))                       \
  X(HipResult, hipStreamIsCapturing, (HipStream stream, int *status))                          \
  X(HipResult, hipGraphInstantiate,                                                            \
    (HipGraphExec * exec, HipGraph graph, void **error_node, char *log, size_t log_bytes))     \
  X(HipResult, hipGraphLaunch, (HipGraphExec exec, HipStream stream))                          \
  X(HipResult, hipGraphExecDestroy, (HipGraphExec exec))                                       \
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
