/* What every function of a fake driver begins with: the lock, the environment, the failure
 * that a test asked for, and whether the caller may call it now. */
#ifndef FAKE_WORLD_H
#define FAKE_WORLD_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "streams.h"

#define API __attribute__((visibility("default")))

/* What has to be in order before a function does anything. */
typedef enum Need {
  NEED_NOTHING,
  NEED_INIT,
  NEED_DEVICE, /* and a device that is not lost, but no current context */
  NEED_CONTEXT /* and, on CUDA, a context that is current to the thread */
} Need;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool environment_read;
static pid_t initialized_by; /* a forked child inherits nothing usable */
static uint32_t primary_retains;
static uint32_t leaked_at_release;

/* The vendor's. */
static Result check_need(Need need);

static void read_environment(void) {
  const char *memory = getenv("FAKE_MEMORY"), *seed = getenv("FAKE_SEED");
  memory_limit = memory ? strtoull(memory, NULL, 10) : DEFAULT_MEMORY_LIMIT;
  random_seed(seed ? strtoull(seed, NULL, 10) : 0);
  if (stream_count == 0) streams_add(&default_stream);
  environment_read = true;
}

static Result enter(CallId id, Need need) {
  pthread_mutex_lock(&lock);
  if (!environment_read) read_environment();
  const Result injected = call_begin(id);
  return injected != RESULT_SUCCESS ? injected : check_need(need);
}

static void leave(const Result *entered) {
  (void)entered;
  pthread_mutex_unlock(&lock);
}

/* First line of every function: holds the lock until the function returns. */
#define ENTER(name, need)                                                        \
  const Result entered __attribute__((cleanup(leave))) = enter(CALL_##name, need); \
  if (entered != RESULT_SUCCESS) return entered

/* Work that ran meanwhile may have lost the context. */
static Result result_after_work(void) {
  return context_lost ? RESULT_ILLEGAL_ADDRESS : RESULT_SUCCESS;
}

/* Passes an error on. */
#define CHECK(result)                                                            \
  do {                                                                           \
    const Result checked = (result);                                             \
    if (checked != RESULT_SUCCESS) return checked;                               \
  } while (0)

/* NULL for a handle that is no living stream's. */
static Stream *stream_of(const void *handle) {
  /* 0, and 1 for the vendors' explicit name of it. */
  if ((uintptr_t)handle <= 1) return &default_stream;
  return object_find(OBJECT_STREAM, (uintptr_t)handle);
}

static Event *event_of(const void *handle) {
  return object_find(OBJECT_EVENT, (uintptr_t)handle);
}

#endif
