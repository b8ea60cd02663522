/* The part of the HIP runtime's interface that the fake implements, declared anew. */
#ifndef FAKE_HIP_TYPES_H
#define FAKE_HIP_TYPES_H

#include "results.h"

/* X(result, name) */
#define HIP_ERRORS(X)                                              \
  X(RESULT_SUCCESS, "hipSuccess")                                  \
  X(RESULT_INVALID_VALUE, "hipErrorInvalidValue")                  \
  X(RESULT_OUT_OF_MEMORY, "hipErrorOutOfMemory")                   \
  X(RESULT_NOT_INITIALIZED, "hipErrorNotInitialized")              \
  X(RESULT_NO_DEVICE, "hipErrorNoDevice")                          \
  X(RESULT_INVALID_DEVICE, "hipErrorInvalidDevice")                \
  X(RESULT_NO_BINARY_FOR_GPU, "hipErrorNoBinaryForGpu")            \
  X(RESULT_INVALID_IMAGE, "hipErrorInvalidKernelFile")             \
  X(RESULT_OPERATING_SYSTEM, "hipErrorOperatingSystem")            \
  X(RESULT_INVALID_HANDLE, "hipErrorInvalidHandle")                \
  X(RESULT_ILLEGAL_STATE, "hipErrorIllegalState")                  \
  X(RESULT_NOT_FOUND, "hipErrorNotFound")                          \
  X(RESULT_NOT_READY, "hipErrorNotReady")                          \
  X(RESULT_ILLEGAL_ADDRESS, "hipErrorIllegalAddress")              \
  X(RESULT_CONTEXT_IS_DESTROYED, "hipErrorContextIsDestroyed")     \
  X(RESULT_LAUNCH_FAILED, "hipErrorLaunchFailure")                 \
  X(RESULT_NOT_SUPPORTED, "hipErrorNotSupported")                  \
  X(RESULT_CAPTURE_UNSUPPORTED, "hipErrorStreamCaptureUnsupported") \
  X(RESULT_CAPTURE_INVALIDATED, "hipErrorStreamCaptureInvalidated") \
  X(RESULT_CAPTURE_ISOLATION, "hipErrorStreamCaptureIsolation")    \
  X(RESULT_CAPTURE_IMPLICIT, "hipErrorStreamCaptureImplicit")

/* Every handle is an Object's number in disguise (objects.h), never a real pointer. */
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct FakeAllocation *hipMemGenericAllocationHandle_t;
typedef struct FakeStream *hipStream_t;
typedef struct FakeEvent *hipEvent_t;
typedef struct FakeModule *hipModule_t;
typedef struct FakeFunction *hipFunction_t;
typedef struct FakePool *hipMemPool_t;
typedef struct FakeGraph *hipGraph_t;
typedef struct FakeGraphExec *hipGraphExec_t;

enum {
  hipDeviceAttributeIntegrated = 16,
  hipDeviceAttributeMultiprocessorCount = 63,
  hipDeviceAttributeMemoryPoolsSupported = 88,
  hipDeviceAttributeVirtualMemoryManagementSupported = 89,
  HIP_ATTRIBUTE_LAST_KNOWN = 98
};

#define HIP_LAUNCH_PARAM_END ((void *)3)

typedef struct hipMemAllocationProp {
  int type, handle_types;
  MemLocation location;
  void *win32;
  uint8_t compression, gpu_direct_rdma;
  uint16_t usage;
} hipMemAllocationProp;

typedef struct hipMemPoolProps {
  int type, handle_types;
  MemLocation location;
  void *win32;
  size_t max_size;
  uint8_t reserved[56];
} hipMemPoolProps;

_Static_assert(sizeof(hipMemAllocationProp) == 32, "as in hip_runtime_api.h");
_Static_assert(sizeof(hipMemPoolProps) == 88, "as in hip_runtime_api.h");

/* hipDeviceProp_t, of which only the names are filled in. */
enum {
  R0600_BYTES = 1472,
  R0600_ARCHITECTURE_AT = 1160,
  R0000_BYTES = 792,
  R0000_ARCHITECTURE_AT = 396,
  NAME_BYTES = 256
};

#endif
