/* The functions that the fake libamdhip64 counts and can make fail. */
#ifndef FAKE_HIP_CALLS_H
#define FAKE_HIP_CALLS_H

#define CALLS(X)                                                               \
  X(hipInit)                                                                   \
  X(hipRuntimeGetVersion)                                                      \
  X(hipGetDeviceCount)                                                         \
  X(hipDeviceGet)                                                              \
  X(hipDeviceGetName)                                                          \
  X(hipDeviceGetAttribute)                                                     \
  X(hipDeviceTotalMem)                                                         \
  X(hipGetDeviceProperties)                                                    \
  X(hipGetDevicePropertiesR0600)                                               \
  X(hipSetDevice)                                                              \
  X(hipDeviceSynchronize)                                                      \
  X(hipMemGetInfo)                                                             \
  X(hipMemAddressReserve)                                                      \
  X(hipMemAddressFree)                                                         \
  X(hipMemGetAllocationGranularity)                                            \
  X(hipMemCreate)                                                              \
  X(hipMemRelease)                                                             \
  X(hipMemMap)                                                                 \
  X(hipMemUnmap)                                                               \
  X(hipMemSetAccess)                                                           \
  X(hipMemGetAccess)                                                           \
  X(hipMalloc)                                                                 \
  X(hipFree)                                                                   \
  X(hipHostMalloc)                                                             \
  X(hipHostFree)                                                               \
  X(hipHostGetDevicePointer)                                                   \
  X(hipMemcpyHtoDAsync)                                                        \
  X(hipMemcpyDtoHAsync)                                                        \
  X(hipMemcpyDtoDAsync)                                                        \
  X(hipMemsetD8Async)                                                          \
  X(hipMemsetD16Async)                                                         \
  X(hipMemsetD32Async)                                                         \
  X(hipStreamCreateWithFlags)                                                  \
  X(hipStreamDestroy)                                                          \
  X(hipStreamSynchronize)                                                      \
  X(hipStreamWaitEvent)                                                        \
  X(hipStreamBeginCapture)                                                     \
  X(hipStreamEndCapture)                                                       \
  X(hipStreamIsCapturing)                                                      \
  X(hipGraphInstantiate)                                                       \
  X(hipGraphLaunch)                                                            \
  X(hipGraphExecDestroy)                                                       \
  X(hipGraphDestroy)                                                           \
  X(hipEventCreateWithFlags)                                                   \
  X(hipEventDestroy)                                                           \
  X(hipEventRecord)                                                            \
  X(hipEventQuery)                                                             \
  X(hipEventSynchronize)                                                       \
  X(hipEventElapsedTime)                                                       \
  X(hipModuleLoadData)                                                         \
  X(hipModuleUnload)                                                           \
  X(hipModuleGetFunction)                                                      \
  X(hipModuleLaunchKernel)                                                     \
  X(hipMemPoolCreate)                                                          \
  X(hipMemPoolSetAttribute)                                                    \
  X(hipMemPoolDestroy)                                                         \
  X(hipMemPoolTrimTo)                                                          \
  X(hipMallocFromPoolAsync)                                                    \
  X(hipFreeAsync)

/* The version is asked for as a fact, not as work. */
#define CALL_IS_WORK(id) ((id) != CALL_hipRuntimeGetVersion)

#endif
