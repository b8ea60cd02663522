/* What the shim does in a forked child.
 *
 *   fork_test BACKEND LIBRARY
 *
 * BACKEND is a number of MbBackendId, LIBRARY "" the usual place. Forks before and after
 * the library was used, also while other threads are inside it. Prints what is wrong and
 * exits with 1 if anything is. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../native/moonbright.h"

static int32_t backend;
static const uint8_t *library;
static uint32_t library_length;
static int failures;

static void expect(int line, const char *what, int32_t wanted, int32_t got) {
  uint8_t text[1025];
  if (got == wanted) return;
  text[mb_error_text(text, sizeof text - 1)] = 0;
  printf("  line %d, process %d: %s: wanted %d, got %d (%s)\n", line, getpid(), what, wanted, got,
         (char *)text);
  fflush(stdout);
  failures++;
}

#define EXPECT(wanted, call) expect(__LINE__, #call, wanted, call)
#define OK(call) EXPECT(MB_OK, call)
#define REFUSED(call) EXPECT(MB_UNSUPPORTED, call)
#define CHECK(condition) expect(__LINE__, #condition, 1, (condition) ? 1 : 0)

typedef struct Open {
  uint32_t device, stream, event;
  double address, granularity;
} Open;

static Open open_device(void) {
  Open open;
  double properties[MB_PROP_COUNT];
  uint8_t name[256];
  uint32_t extent;
  OK(mb_device_properties(backend, library, library_length, 0, properties, name, sizeof name));
  open.granularity = properties[MB_PROP_GRANULARITY];
  OK(mb_open(backend, library, library_length, 0, &open.device));
  OK(mb_stream_create(open.device, &open.stream));
  OK(mb_event_create(open.device, 0, &open.event));
  OK(mb_reserve(open.device, open.granularity, &open.address));
  OK(mb_extents_create(open.device, 1, &open.granularity, &extent));
  OK(mb_map(open.device, open.address, 1, &extent, MB_ACCESS_READ_WRITE, NULL));
  return open;
}

/* Work of all kinds, whose result is known. */
static void use(Open open, uint8_t value) {
  uint8_t bytes[64];
  OK(mb_memset(open.device, open.address, value, 1, 64, open.stream));
  OK(mb_event_record(open.device, open.event, open.stream));
  OK(mb_event_synchronize(open.device, open.event));
  OK(mb_copy_out(open.device, bytes, open.address, 64, open.stream));
  for (int i = 0; i < 64; i++) CHECK(bytes[i] == value);
}

static void check_refused(Open open) {
  uint8_t bytes[64] = {0}, text[1025];
  double pair[2], properties[MB_PROP_COUNT];
  uint32_t id;
  REFUSED(mb_memory_info(open.device, pair));
  text[mb_error_text(text, sizeof text - 1)] = 0;
  CHECK(strstr((char *)text, "forked") != NULL && strstr((char *)text, "exec") != NULL);
  REFUSED(mb_synchronize(open.device));
  REFUSED(mb_reserve(open.device, open.granularity, pair));
  REFUSED(mb_extents_create(open.device, 1, &open.granularity, &id));
  REFUSED(mb_unmap(open.device, 1, &open.address, &open.granularity));
  REFUSED(mb_stream_create(open.device, &id));
  REFUSED(mb_stream_synchronize(open.device, open.stream));
  REFUSED(mb_event_query(open.device, open.event));
  REFUSED(mb_memset(open.device, open.address, 0, 1, 64, open.stream));
  REFUSED(mb_copy_in(open.device, open.address, bytes, 64, open.stream));
  REFUSED(mb_copy_out(open.device, bytes, open.address, 64, open.stream));
  REFUSED(mb_capture_begin(open.device, open.stream));
  REFUSED(mb_device_count(backend, library, library_length, &id));
  REFUSED(mb_device_properties(backend, library, library_length, 0, properties, text, 256));
  REFUSED(mb_open(backend, library, library_length, 0, &id));
  OK(mb_close(open.device));
  OK(mb_close(open.device));
}

/* Forks; the child does `body` and fails if anything in it does. */
static void in_child(void (*body)(Open), Open open) {
  int status = 0;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    failures = 0;
    alarm(20); /* a child that waits for a lock that nobody will give up */
    body(open);
    _exit(failures ? 1 : 0);
  }
  CHECK(child > 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void open_anew(Open unused) {
  Open open = open_device();
  (void)unused;
  use(open, 7);
  OK(mb_close(open.device));
}

static void fork_again(Open open) { in_child(check_refused, open); }

static atomic_bool stop;

static void *keep_calling(void *argument) {
  const Open *open = argument;
  double pair[2];
  while (!atomic_load(&stop)) mb_memory_info(open->device, pair);
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t threads[4];
  Open open = {0};
  if (count != 3) return 2;
  backend = atoi(arguments[1]);
  library = (const uint8_t *)arguments[2];
  library_length = (uint32_t)strlen(arguments[2]);
  in_child(open_anew, open);
  open = open_device();
  use(open, 1);
  in_child(check_refused, open);
  in_child(fork_again, open);
  use(open, 2);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, keep_calling, &open);
  for (int round = 0; round < 50; round++) in_child(check_refused, open);
  atomic_store(&stop, true);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  use(open, 3);
  OK(mb_close(open.device));
  return failures ? 1 : 0;
}
