#include "forks.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_bool forked;

/* Of the child's only thread, before fork returns in it. */
static void note_fork(void) { atomic_store(&forked, 1); }

static void watch(void) { pthread_atfork(NULL, NULL, note_fork); }

void forks_watch(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
}

int32_t forks_check(void) {
  if (!atomic_load(&forked)) return MB_OK;
  return error_set(MB_UNSUPPORTED, 0,
                   "this process was forked from one that used MoonBright, and a driver can't "
                   "be used in a forked child: start a new program in the child (exec) and "
                   "open the device there");
}
