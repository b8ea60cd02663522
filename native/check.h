/* Checks of single arguments. Each returns MB_OK or notes what is wrong. */
#ifndef MOONBRIGHT_CHECK_H
#define MOONBRIGHT_CHECK_H

#include "error.h"

/* Most elements of any array that crosses: as many as there can be ids. */
#define CHECK_LARGEST_COUNT 0xFFFFFu

int32_t check_pointer(const char *what, const void *pointer);
/* From 1 to limit. */
int32_t check_count(const char *what, uint32_t count, uint32_t limit);
/* A whole number from 0 to below 2^53. */
int32_t check_whole(const char *what, double value, uint64_t *whole);
/* A whole number above 0, a multiple of unit. */
int32_t check_size(const char *what, double value, uint64_t unit, uint64_t *size);
/* A whole number, a multiple of unit, such that address + size stays below 2^53. */
int32_t check_address(const char *what, double value, uint64_t unit, uint64_t size,
                      uint64_t *address);
int32_t check_access(int32_t access);
/* Copies text with a final NUL; text must hold none itself and be shorter than capacity. */
int32_t check_text(const char *what, const uint8_t *text, uint32_t length, char *copy,
                   uint32_t capacity);

#endif
