/* The calling thread's last error: what mb_error_text and mb_driver_code report. */
#ifndef MOONBRIGHT_ERROR_H
#define MOONBRIGHT_ERROR_H

#include "moonbright.h"

typedef struct MbError {
  int32_t status, driver_code;
  char text[1024];
} MbError;

/* Notes an error and returns its status, so that callers can return the call. */
int32_t error_set(int32_t status, int32_t driver_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds to the text of the last error: what an undo could not restore. */
void error_append(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An undo runs calls that may fail themselves: keep the first error across them. */
void error_save(MbError *error);
int32_t error_restore(const MbError *error);

/* The last error's text, for building another from it. */
const char *error_last_text(void);

/* Length of a text cut to capacity without splitting a UTF-8 character. */
uint32_t error_cut(const char *text, uint32_t length, uint32_t capacity);

#endif
