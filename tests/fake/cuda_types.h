/* The part of the CUDA driver's interface that the fake implements, declared anew. */
#ifndef FAKE_CUDA_TYPES_H
#define FAKE_CUDA_TYPES_H

#include "results.h"

/* X(result, name, text) */
#define CUDA_ERRORS(X)                                                                \
  X(RESULT_SUCCESS, "CUDA_SUCCESS", "no error")                                       \
  X(RESULT_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument")             \
  X(RESULT_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                \
  X(RESULT_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")     \
  X(RESULT_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down")         \
  X(RESULT_NO_DEVICE, "CUDA_ERROR_NO_DEVICE",                                         \
    "no CUDA-capable device is detected")                                             \
  X(RESULT_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")     \
  X(RESULT_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context")   \
  X(RESULT_INVALID_IMAGE, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed")   \
  X(RESULT_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed")         \
  X(RESULT_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle")    \
  X(RESULT_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",                                 \
    "not permitted in the present state")                                             \
  X(RESULT_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found")               \
  X(RESULT_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready")                     \
  X(RESULT_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",                             \
    "an illegal memory access was encountered")                                       \
  X(RESULT_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure")   \
  X(RESULT_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported")      \
  X(RESULT_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",              \
    "operation not permitted when stream is capturing")                               \
  X(RESULT_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",              \
    "operation failed due to a previous error during capture")                        \
  X(RESULT_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",                  \
    "dependency created on uncaptured work in another stream")                        \
  X(RESULT_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",                    \
    "operation would create a legacy stream dependency on a capturing stream")        \
  X(RESULT_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error")

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

enum { CU_MEMHOSTALLOC_ALL = 7 };
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

#define CU_LAUNCH_PARAM_END ((void *)0)

typedef struct CUmemAllocationProp {
  int type, handle_types;
  MemLocation location;
  void *win32;
  uint8_t compression, gpu_direct_rdma;
  uint16_t usage;
  uint8_t reserved[4];
} CUmemAllocationProp;

typedef struct CUmemPoolProps {
  int type, handle_types;
  MemLocation location;
  void *win32;
  size_t max_size;
  uint16_t usage;
  uint8_t reserved[54];
} CUmemPoolProps;

_Static_assert(sizeof(CUmemAllocationProp) == 32, "as in cuda.h");
_Static_assert(sizeof(CUmemPoolProps) == 88, "as in cuda.h");

#endif
