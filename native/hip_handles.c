/* How many extents a process may hold. ROCm 7.14 keeps a file descriptor for each handle
 * (ROCm/rocm-systems#10604), and reports a lack of descriptors as a lack of memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hip.h"
#include "ids.h"

/* Left to the program for files and sockets, and to the driver for what it opens besides. */
enum { FEWEST_LEFT = 64, PART_LEFT = 8, FEWEST_HANDLES = 16 };

static atomic_uint handles;

uint32_t hip_most_handles(void) {
  struct rlimit limit;
  uint64_t left;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > ID_SLOT_MASK) return 0;
  left = limit.rlim_cur / PART_LEFT;
  if (left < FEWEST_LEFT) left = FEWEST_LEFT;
  if (limit.rlim_cur < left + FEWEST_HANDLES) return FEWEST_HANDLES;
  return (uint32_t)(limit.rlim_cur - left);
}

bool hip_handle_take(uint32_t most) {
  if (atomic_fetch_add(&handles, 1) < most || !most) return true;
  hip_handle_give();
  return false;
}

void hip_handle_give(void) { atomic_fetch_sub(&handles, 1); }

bool hip_descriptors_used_up(void) {
  int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno == EMFILE;
  close(descriptor);
  return false;
}
