#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local MbError last;

int32_t error_set(int32_t status, int32_t driver_code, const char *format, ...) {
  /* Built aside: an argument may point into the text that is replaced. */
  char text[sizeof last.text];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  memcpy(last.text, text, sizeof text);
  last.status = status;
  last.driver_code = driver_code;
  return status;
}

void error_append(const char *format, ...) {
  char text[sizeof last.text];
  size_t length = strlen(last.text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(last.text + length, sizeof last.text - length, "%s", text);
}

void error_save(MbError *error) { *error = last; }

int32_t error_restore(const MbError *error) {
  last = *error;
  return last.status;
}

const char *error_last_text(void) { return last.text; }

uint32_t error_cut(const char *text, uint32_t length, uint32_t capacity) {
  if (length <= capacity) return length;
  length = capacity;
  while (length > 0 && ((unsigned char)text[length] & 0xC0u) == 0x80u) length--;
  return length;
}

int32_t mb_error_text(uint8_t *text, uint32_t capacity) {
  uint32_t length = (uint32_t)strlen(last.text);
  if (!text) return (int32_t)length;
  length = error_cut(last.text, length, capacity);
  memcpy(text, last.text, length);
  return (int32_t)length;
}

int32_t mb_driver_code(void) { return last.driver_code; }

int32_t mb_abi_version(void) { return MB_ABI_VERSION; }
