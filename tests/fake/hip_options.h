/* What the fake is like and what it does wrong: each known fault of a version can be turned
 * on. tests/fake/control.ts documents them. */
#ifndef FAKE_HIP_OPTIONS_H
#define FAKE_HIP_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifdef FAKE_ROCM_5
#define DEFAULT_VERSION 50221153
#define DEFAULT_NULL_RESERVATION 1
#else
#define DEFAULT_VERSION 71460850
#define DEFAULT_NULL_RESERVATION 0
#endif

/* X(name, value) */
#define OPTIONS(X)                              \
  X(version, DEFAULT_VERSION)                   \
  X(devices, 1)                                 \
  X(vmm, 1)                                     \
  X(recommended, 2 << 20)                       \
  X(nullReservation, DEFAULT_NULL_RESERVATION)  \
  X(misaligned, 0)                              \
  X(refusesReadOnly, 0)                         \
  X(refusesSecondAccess, 0)                     \
  X(mostHandles, 0)                             \
  X(lateUs, 0)                                  \
  X(silentMapFailure, 0)                        \
  X(memoryStays, 0)                             \
  X(reservable, 0)

#define OPTION_MEMBER(name, value) double name;
#define OPTION_DEFAULT(name, value) .name = value,
#define OPTION_SET(name, value)                                                \
  if (strcmp(option, #name) == 0) {                                            \
    options.name = number;                                                     \
    return true;                                                               \
  }

typedef struct Options {
  OPTIONS(OPTION_MEMBER)
} Options;

static const Options default_options = {OPTIONS(OPTION_DEFAULT)};
static Options options = {OPTIONS(OPTION_DEFAULT)};
static const char default_architecture[] = "gfx90a:sramecc+:xnack-";
static char architecture[256] = "gfx90a:sramecc+:xnack-";

static bool option_set(const char *option, double number) {
  OPTIONS(OPTION_SET)
  return false;
}

static void options_reset(void) {
  options = default_options;
  snprintf(architecture, sizeof architecture, "%s", default_architecture);
}

static int32_t violations;
static char last_violation[256];

/* Notes what would have crashed the real runtime, or spoiled its tables; returns what the
 * caller gets to hear here. */
static Result violate(const char *what, const void *address) {
  violations++;
  snprintf(last_violation, sizeof last_violation, "%s at %p", what, address);
  return RESULT_INVALID_VALUE;
}

#endif
