/* The part of the CUDA driver's interface that the fake implements, declared anew. */
#ifndef FAKE_CUDA_TYPES_H
#define FAKE_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* X(code, name, text) */
#define CUDA_ERRORS(X)                                                           \
  X(0, CUDA_SUCCESS, "no error")                                                 \
  X(1, CUDA_ERROR_INVALID_VALUE, "invalid argument")                             \
  X(2, CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                                \
  X(3, CUDA_ERROR_NOT_INITIALIZED, "initialization error")                       \
  X(4, CUDA_ERROR_DEINITIALIZED, "driver shutting down")                         \
  X(100, CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")             \
  X(101, CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")                    \
  X(201, CUDA_ERROR_INVALID_CONTEXT, "invalid device context")                   \
  X(218, CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed")                 \
  X(304, CUDA_ERROR_OPERATING_SYSTEM, "OS call failed")                          \
  X(400, CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                   \
  X(401, CUDA_ERROR_ILLEGAL_STATE, "not permitted in the present state")         \
  X(500, CUDA_ERROR_NOT_FOUND, "named symbol not found")                         \
  X(600, CUDA_ERROR_NOT_READY, "device not ready")                               \
  X(700, CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered") \
  X(719, CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure")                 \
  X(801, CUDA_ERROR_NOT_SUPPORTED, "operation not supported")                    \
  X(900, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,                                  \
    "operation not permitted when stream is capturing")                          \
  X(901, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,                                  \
    "operation failed due to a previous error during capture")                   \
  X(905, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,                                    \
    "dependency created on uncaptured work in another stream")                   \
  X(906, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,                                     \
    "operation would create a legacy stream dependency on a capturing stream")   \
  X(999, CUDA_ERROR_UNKNOWN, "unknown error")

#define CUDA_ERROR_VALUE(code, name, text) name = code,
typedef enum CUresult { CUDA_ERRORS(CUDA_ERROR_VALUE) } CUresult;
#undef CUDA_ERROR_VALUE

/* Every handle is an Object's number in disguise (objects.h), never a real pointer. */
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct FakeContext *CUcontext;
typedef struct FakeStream *CUstream;
typedef struct FakeEvent *CUevent;
typedef struct FakeModule *CUmodule;
typedef struct FakeFunction *CUfunction;
typedef struct FakePool *CUmemoryPool;
typedef struct FakeGraph *CUgraph;
typedef struct FakeGraphExec *CUgraphExec;
typedef unsigned long long CUmemGenericAllocationHandle;

enum {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
  CU_DEVICE_ATTRIBUTE_LAST_KNOWN = 160
};

enum { CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum { CU_MEM_ACCESS_NONE = 0, CU_MEM_ACCESS_READ = 1, CU_MEM_ACCESS_READWRITE = 3 };
enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 };
enum { CU_MEMHOSTALLOC_DEVICEMAP = 2, CU_MEMHOSTALLOC_ALL = 7 };
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

typedef struct CUmemLocation {
  int type, id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
  int type, handle_types;
  CUmemLocation location;
  void *win32;
  uint8_t compression, gpu_direct_rdma;
  uint16_t usage;
  uint8_t reserved[4];
} CUmemAllocationProp;

typedef struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
} CUmemAccessDesc;

typedef struct CUmemPoolProps {
  int type, handle_types;
  CUmemLocation location;
  void *win32;
  size_t max_size;
  uint16_t usage;
  uint8_t reserved[54];
} CUmemPoolProps;

_Static_assert(sizeof(CUmemAllocationProp) == 32, "as in cuda.h");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "as in cuda.h");
_Static_assert(sizeof(CUmemPoolProps) == 88, "as in cuda.h");

#endif
