/* The functions by which a test steers a fake driver. */
#ifndef FAKE_CONTROL_H
#define FAKE_CONTROL_H

#include "operations.h"

/* The vendor's: forgets what its own part keeps, and gives back what was left behind if no
 * device can be open. */
static void vendor_reset(void);
/* Breaches of rules that the driver would not have survived. */
static int32_t vendor_violations(void);

/* Makes the kth next call (1: the next) of a function fail with a code; the name "*" is
 * for any function but those that report errors. k 0 disarms. Returns 0 for a name that
 * the library lacks. A later call for the same name replaces an earlier one. */
API uint32_t fake_fail(const char *name, uint32_t kth, int32_t code) {
  const CallId id = call_find(name);
  const bool any = strcmp(name, "*") == 0;
  if (!any && id == CALL_COUNT) return 0;
  pthread_mutex_lock(&lock);
  *(any ? &any_call_fault : &call_faults[id]) = (Fault){kth, (Result)code};
  pthread_mutex_unlock(&lock);
  return 1;
}

/* Failures that were asked for and have not happened yet. */
API uint32_t fake_armed(void) {
  pthread_mutex_lock(&lock);
  const uint32_t armed = faults_armed();
  pthread_mutex_unlock(&lock);
  return armed;
}

/* Calls of a function, also failed ones, since the last reset; -1 for an unknown name. */
API int32_t fake_calls(const char *name) {
  const CallId id = call_find(name);
  if (id == CALL_COUNT) return -1;
  pthread_mutex_lock(&lock);
  const int32_t calls = (int32_t)call_counts[id];
  pthread_mutex_unlock(&lock);
  return calls;
}

/* How many there are of: 0 physical handles, 1 mappings, 2 reservations, 3 streams,
 * 4 events, 5 plain allocations, 6 pooled allocations, 7 pinned allocations, 8 modules,
 * 9 pools, 10 retains of the context, 11 queued operations, 12 objects that still lived
 * when their context went (since the last reset), 13 graphs, 14 executable graphs,
 * 15 violations (since the last reset). -1 for other numbers. */
API int32_t fake_live(int32_t what) {
  int32_t live = -1;
  pthread_mutex_lock(&lock);
  switch (what) {
  case 0: live = objects_alive(OBJECT_PHYSICAL); break;
  case 1: live = range_count(&device_memory, RANGE_MAPPING); break;
  case 2: live = range_count(&reservations, RANGE_RESERVATION); break;
  case 3: live = objects_alive(OBJECT_STREAM); break;
  case 4: live = objects_alive(OBJECT_EVENT); break;
  case 5: live = range_count(&device_memory, RANGE_PLAIN); break;
  case 6: live = pooled_in_use(); break;
  case 7: live = range_count(&pinned_memory, RANGE_PINNED); break;
  case 8: live = objects_alive(OBJECT_MODULE); break;
  case 9: live = objects_alive(OBJECT_POOL); break;
  case 10: live = (int32_t)primary_retains; break;
  case 11: live = (int32_t)operations_pending; break;
  case 12: live = (int32_t)leaked_at_release; break;
  case 13: live = objects_alive(OBJECT_GRAPH); break;
  case 14: live = objects_alive(OBJECT_GRAPH_EXEC); break;
  case 15: live = vendor_violations(); break;
  }
  pthread_mutex_unlock(&lock);
  return live;
}

/* Bytes of device memory in use, also what a released handle's mappings still hold. */
API double fake_used(void) {
  pthread_mutex_lock(&lock);
  const double used = (double)memory_used;
  pthread_mutex_unlock(&lock);
  return used;
}

/* Makes the context lost, as if a kernel had faulted. */
API void fake_lose(void) {
  pthread_mutex_lock(&lock);
  context_lost = true;
  pthread_mutex_unlock(&lock);
}

API void fake_seed(uint32_t seed) {
  pthread_mutex_lock(&lock);
  if (!environment_read) read_environment();
  random_seed(seed);
  pthread_mutex_unlock(&lock);
}

/* Forgets counts and failures, and reads the environment again. While no device is open,
 * it also gives back all that was left behind. */
API void fake_reset(void) {
  pthread_mutex_lock(&lock);
  calls_reset();
  read_environment();
  leaked_at_release = 0;
  vendor_reset();
  pthread_mutex_unlock(&lock);
}

#endif
