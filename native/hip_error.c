#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hip.h"

static int32_t status_of(HipResult result) {
  switch (result) {
    case HIP_RESULT_SUCCESS:
      return MB_OK;
    case HIP_RESULT_OUT_OF_MEMORY:
      return MB_OUT_OF_MEMORY;
    case HIP_RESULT_NO_DEVICE:
    case HIP_RESULT_INVALID_DEVICE:
      return MB_NO_DEVICE;
    case HIP_RESULT_NOT_FOUND:
      return MB_NOT_FOUND;
    case HIP_RESULT_NOT_READY:
      return MB_NOT_READY;
    case HIP_RESULT_NOT_SUPPORTED:
    case HIP_RESULT_NO_BINARY_FOR_GPU:
      return MB_UNSUPPORTED;
    /* After any of these the device refuses everything, if the process lives on: a fault in
     * a kernel usually ends it. "Context is destroyed" is not among them: destroying an
     * unknown stream or event gives that here. */
    case HIP_RESULT_DEINITIALIZED:
    case HIP_RESULT_ECC_UNCORRECTABLE:
    case HIP_RESULT_ILLEGAL_ADDRESS:
    case HIP_RESULT_LAUNCH_TIMEOUT:
    case HIP_RESULT_ASSERT:
    case HIP_RESULT_LAUNCH_FAILURE:
      return MB_LOST;
    default:
      return MB_DRIVER;
  }
}

int32_t hip_check(const HipApi *api, HipResult result, const char *format, ...) {
  char call[512];
  const char *name, *text;
  va_list arguments;
  if (result == HIP_RESULT_SUCCESS) return MB_OK;
  va_start(arguments, format);
  vsnprintf(call, sizeof call, format, arguments);
  va_end(arguments);
  name = api->hipGetErrorName(result);
  text = api->hipGetErrorString(result);
  if (!name) name = "unknown error";
  error_set(status_of(result), result, "%s: %s (%d)", call, name, result);
  /* Old versions describe an error by its name. */
  if (text && strcmp(text, name) != 0) error_append(": %s", text);
  if (status_of(result) == MB_LOST) {
    error_append(": this process can't use the device any more, start a new one");
  }
  return status_of(result);
}
