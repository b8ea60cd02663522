/* Counts the calls of every function, and makes chosen ones fail. CALLS and CALL_IS_WORK of
 * the vendor must be defined before. */
#ifndef FAKE_CALLS_H
#define FAKE_CALLS_H

#include <stdbool.h>
#include <string.h>

#include "results.h"

#define CALL_ID(name) CALL_##name,
#define CALL_NAME(name) #name,
typedef enum CallId { CALLS(CALL_ID) CALL_COUNT } CallId;
static const char *const call_names[CALL_COUNT] = {CALLS(CALL_NAME)};

typedef struct Fault {
  uint64_t calls_left; /* the call that brings it to 0 fails; 0: not armed */
  Result code;
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

/* Counts a call; returns what it must fail with, or RESULT_SUCCESS. */
static Result call_begin(CallId id) {
  call_counts[id]++;
  const bool any_fires = CALL_IS_WORK(id) && fault_fires(&any_call_fault);
  if (fault_fires(&call_faults[id])) return call_faults[id].code;
  return any_fires ? any_call_fault.code : RESULT_SUCCESS;
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
