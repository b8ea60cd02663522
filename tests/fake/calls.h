/* Counts the calls of every function, and makes chosen ones fail. */
#ifndef FAKE_CUDA_CALLS_H
#define FAKE_CUDA_CALLS_H

#include <stdbool.h>
#include <string.h>

#include "cuda_types.h"

#define CALLS(X)                                                               \
  X(cuInit)                                                                    \
  X(cuDriverGetVersion)                                                        \
  X(cuGetErrorName)                                                            \
  X(cuGetErrorString)                                                          \
  X(cuDeviceGetCount)                                                          \
  X(cuDeviceGet)                                                               \
  X(cuDeviceGetName)                                                           \
  X(cuDeviceGetAttribute)                                                      \
  X(cuDeviceTotalMem_v2)                                                       \
  X(cuDevicePrimaryCtxRetain)                                                  \
  X(cuDevicePrimaryCtxRelease_v2)                                              \
  X(cuCtxSetCurrent)                                                           \
  X(cuCtxSynchronize)                                                          \
  X(cuMemGetInfo_v2)                                                           \
  X(cuMemAddressReserve)                                                       \
  X(cuMemAddressFree)                                                          \
  X(cuMemGetAllocationGranularity)                                             \
  X(cuMemCreate)                                                               \
  X(cuMemRelease)                                                              \
  X(cuMemMap)                                                                  \
  X(cuMemUnmap)                                                                \
  X(cuMemSetAccess)                                                            \
  X(cuMemAlloc_v2)                                                             \
  X(cuMemFree_v2)                                                              \
  X(cuMemHostAlloc)                                                            \
  X(cuMemFreeHost)                                                             \
  X(cuMemHostGetDevicePointer_v2)                                              \
  X(cuMemcpyHtoDAsync_v2)                                                      \
  X(cuMemcpyDtoHAsync_v2)                                                      \
  X(cuMemcpyDtoDAsync_v2)                                                      \
  X(cuMemsetD8Async)                                                           \
  X(cuMemsetD16Async)                                                          \
  X(cuMemsetD32Async)                                                          \
  X(cuStreamCreate)                                                            \
  X(cuStreamDestroy_v2)                                                        \
  X(cuStreamSynchronize)                                                       \
  X(cuStreamWaitEvent)                                                         \
  X(cuStreamBeginCapture_v2)                                                   \
  X(cuStreamEndCapture)                                                        \
  X(cuStreamIsCapturing)                                                       \
  X(cuGraphInstantiateWithFlags)                                               \
  X(cuGraphInstantiate_v2)                                                     \
  X(cuGraphLaunch)                                                             \
  X(cuGraphExecDestroy)                                                        \
  X(cuGraphDestroy)                                                            \
  X(cuEventCreate)                                                             \
  X(cuEventDestroy_v2)                                                         \
  X(cuEventRecord)                                                             \
  X(cuEventQuery)                                                              \
  X(cuEventSynchronize)                                                        \
  X(cuEventElapsedTime)                                                        \
  X(cuModuleLoadData)                                                          \
  X(cuModuleLoadDataEx)                                                        \
  X(cuModuleUnload)                                                            \
  X(cuModuleGetFunction)                                                       \
  X(cuLaunchKernel)                                                            \
  X(cuMemPoolCreate)                                                           \
  X(cuMemPoolSetAttribute)                                                     \
  X(cuMemPoolDestroy)                                                          \
  X(cuMemPoolTrimTo)                                                           \
  X(cuMemAllocFromPoolAsync)                                                   \
  X(cuMemFreeAsync)

#define CALL_ID(name) CALL_##name,
#define CALL_NAME(name) #name,
typedef enum CallId { CALLS(CALL_ID) CALL_COUNT } CallId;
static const char *const call_names[CALL_COUNT] = {CALLS(CALL_NAME)};

typedef struct Fault {
  uint64_t calls_left; /* the call that brings it to 0 fails; 0: not armed */
  CUresult code;
} Fault;

static uint64_t call_counts[CALL_COUNT];
static Fault call_faults[CALL_COUNT];
static Fault any_call_fault;

/* CALL_COUNT if there is none. */
static CallId call_find(const char *name) {
  unsigned id = 0;
  while (id < CALL_COUNT && strcmp(call_names[id], name) != 0) id++;
  return (CallId)id;
}

static bool fault_fires(Fault *fault) {
  return fault->calls_left != 0 && --fault->calls_left == 0;
}

/* Counts a call; returns what it must fail with, or CUDA_SUCCESS. */
static CUresult call_begin(CallId id) {
  /* Text and version are asked for while an error is reported, not as work. */
  const bool is_work = id != CALL_cuGetErrorName && id != CALL_cuGetErrorString &&
                       id != CALL_cuDriverGetVersion;
  call_counts[id]++;
  const bool any_fires = is_work && fault_fires(&any_call_fault);
  if (fault_fires(&call_faults[id])) return call_faults[id].code;
  return any_fires ? any_call_fault.code : CUDA_SUCCESS;
}

static void calls_reset(void) {
  memset(call_counts, 0, sizeof call_counts);
  memset(call_faults, 0, sizeof call_faults);
  memset(&any_call_fault, 0, sizeof any_call_fault);
}

static unsigned faults_armed(void) {
  unsigned armed = any_call_fault.calls_left != 0;
  for (unsigned id = 0; id < CALL_COUNT; id++)
    armed += call_faults[id].calls_left != 0;
  return armed;
}

#endif
