/* Runs a kernel so that a fault in it ends the kernel and not the process.
 *
 * Each runs on a thread of its own. Jumping out of a signal handler loses the thread's
 * memory protection keys, on which JavaScript engines rely: their threads stay untouched.
 */
#ifndef FAKE_KERNEL_GUARD_H
#define FAKE_KERNEL_GUARD_H

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* As in native/moonbright.h. */
typedef struct MbGeometry {
  uint32_t grid[3], block[3], shared_bytes;
} MbGeometry;
typedef void (*MbHostKernel)(const void *args, const MbGeometry *geometry);

static sigjmp_buf guard_return;
static pthread_t guarded_thread;
static volatile sig_atomic_t guard_active;
static struct sigaction guard_old_segv, guard_old_bus;

static void guard_on_fault(int signal, siginfo_t *info, void *context) {
  if (guard_active && pthread_equal(pthread_self(), guarded_thread))
    siglongjmp(guard_return, 1);
  /* Another thread's: whoever was there before handles it (a runtime has handlers). */
  const struct sigaction *old = signal == SIGBUS ? &guard_old_bus : &guard_old_segv;
  if (old->sa_flags & SA_SIGINFO) old->sa_sigaction(signal, info, context);
  else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)
    sigaction(signal, old, NULL); /* it faults again, and dies */
  else old->sa_handler(signal);
}

typedef struct GuardedRun {
  MbHostKernel kernel;
  const void *args;
  const MbGeometry *geometry;
  bool finished;
} GuardedRun;

static void *guard_thread(void *argument) {
  GuardedRun *run = argument;
  guarded_thread = pthread_self();
  if (sigsetjmp(guard_return, 1) == 0) {
    guard_active = 1;
    run->kernel(run->args, run->geometry);
    run->finished = true;
  }
  guard_active = 0;
  return NULL;
}

/* Returns false if the kernel touched what it may not. One at a time. */
static bool kernel_run_guarded(MbHostKernel kernel, const void *args,
                               const MbGeometry *geometry) {
  GuardedRun run = {kernel, args, geometry, false};
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  action.sa_sigaction = guard_on_fault;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &guard_old_segv);
  sigaction(SIGBUS, &action, &guard_old_bus);
  pthread_t thread;
  if (pthread_create(&thread, NULL, guard_thread, &run) != 0) abort();
  pthread_join(thread, NULL);
  sigaction(SIGSEGV, &guard_old_segv, NULL);
  sigaction(SIGBUS, &guard_old_bus, NULL);
  return run.finished;
}

#endif
