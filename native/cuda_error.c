#include <stdarg.h>
#include <stdio.h>

#include "cuda.h"

static int32_t status_of(CuResult result) {
  switch (result) {
    case CU_SUCCESS:
      return MB_OK;
    case CU_ERROR_OUT_OF_MEMORY:
      return MB_OUT_OF_MEMORY;
    case CU_ERROR_NO_DEVICE:
    case CU_ERROR_INVALID_DEVICE:
      return MB_NO_DEVICE;
    case CU_ERROR_NOT_FOUND:
      return MB_NOT_FOUND;
    case CU_ERROR_NOT_READY:
      return MB_NOT_READY;
    case CU_ERROR_NOT_PERMITTED:
    case CU_ERROR_NOT_SUPPORTED:
      return MB_UNSUPPORTED;
    /* After any of these the context refuses everything. */
    case CU_ERROR_DEINITIALIZED:
    case CU_ERROR_ECC_UNCORRECTABLE:
    case CU_ERROR_NVLINK_UNCORRECTABLE:
    case CU_ERROR_ILLEGAL_ADDRESS:
    case CU_ERROR_LAUNCH_TIMEOUT:
    case CU_ERROR_CONTEXT_IS_DESTROYED:
    case CU_ERROR_ASSERT:
    case CU_ERROR_HARDWARE_STACK:
    case CU_ERROR_ILLEGAL_INSTRUCTION:
    case CU_ERROR_MISALIGNED_ADDRESS:
    case CU_ERROR_INVALID_ADDRESS_SPACE:
    case CU_ERROR_INVALID_PC:
    case CU_ERROR_LAUNCH_FAILED:
      return MB_LOST;
    default:
      return MB_DRIVER;
  }
}

int32_t cuda_check(const CudaApi *api, CuResult result, const char *format, ...) {
  char call[512];
  const char *name = NULL, *text = NULL;
  va_list arguments;
  if (result == CU_SUCCESS) return MB_OK;
  va_start(arguments, format);
  vsnprintf(call, sizeof call, format, arguments);
  va_end(arguments);
  if (api->cuGetErrorName(result, &name) != CU_SUCCESS || !name) name = "unknown error";
  if (api->cuGetErrorString(result, &text) != CU_SUCCESS || !text) text = "no description";
  error_set(status_of(result), result, "%s: %s (%d): %s", call, name, result, text);
  if (status_of(result) == MB_LOST) {
    error_append(": this process can't use the device any more, start a new one");
  }
  return status_of(result);
}
