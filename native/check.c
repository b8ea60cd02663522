#include "check.h"

#include <inttypes.h>
#include <string.h>

static const double numbers_end = 9007199254740992.0; /* 2^53 */

int32_t check_pointer(const char *what, const void *pointer) {
  if (pointer) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "%s must not be null", what);
}

int32_t check_count(const char *what, uint32_t count, uint32_t limit) {
  if (count > 0 && count <= limit) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0, "%s must be from 1 to %" PRIu32 ", got %" PRIu32, what,
                   limit, count);
}

int32_t check_whole(const char *what, double value, uint64_t *whole) {
  /* Written so that NaN fails too. */
  if (!(value >= 0 && value < numbers_end) || (double)(uint64_t)value != value) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "%s must be a whole number from 0 to below 2^53, got %.17g", what, value);
  }
  *whole = (uint64_t)value;
  return MB_OK;
}

int32_t check_size(const char *what, double value, uint64_t unit, uint64_t *size) {
  int32_t status = check_whole(what, value, size);
  if (status != MB_OK) return status;
  if (*size > 0 && *size % unit == 0) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0,
                   "%s must be a multiple of %" PRIu64 " bytes above 0, got %" PRIu64, what, unit,
                   *size);
}

int32_t check_address(const char *what, double value, uint64_t unit, uint64_t size,
                      uint64_t *address) {
  int32_t status = check_whole(what, value, address);
  if (status != MB_OK) return status;
  if (*address % unit) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "%s must be aligned to %" PRIu64 " bytes, got 0x%" PRIx64, what, unit,
                     *address);
  }
  if (size > (uint64_t)numbers_end - *address) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "%s 0x%" PRIx64 " and %" PRIu64 " bytes from there reach beyond 2^53", what,
                     *address, size);
  }
  return MB_OK;
}

int32_t check_access(int32_t access) {
  if (access == MB_ACCESS_NONE || access == MB_ACCESS_READ || access == MB_ACCESS_READ_WRITE) {
    return MB_OK;
  }
  return error_set(MB_BAD_ARGUMENT, 0, "access must be 0, 1 or 3, got %" PRId32, access);
}

int32_t check_text(const char *what, const uint8_t *text, uint32_t length, char *copy,
                   uint32_t capacity) {
  int32_t status = check_pointer(what, text);
  if (status == MB_OK) status = check_count(what, length, capacity - 1);
  if (status != MB_OK) return status;
  if (memchr(text, 0, length)) {
    return error_set(MB_BAD_ARGUMENT, 0, "%s must not hold a NUL byte", what);
  }
  memcpy(copy, text, length);
  copy[length] = 0;
  return MB_OK;
}
