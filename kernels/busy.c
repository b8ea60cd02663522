/* Kernels that only take time: one for a given while, one for as short as a launch can. */
#include "target.h"

typedef struct MbSpin {
  uint64_t duration_ns;
} MbSpin;

/* Never read. One word, because C has no empty struct and launchers no empty block. */
typedef struct MbEmpty {
  uint64_t unused;
} MbEmpty;

MB_KERNEL(mb_spin, MbSpin) {
  if (MB_THREAD != 0) return;
  const uint64_t start = mb_clock_ns();
  while (mb_clock_ns() - start < args.duration_ns) {
  }
}

MB_KERNEL(mb_empty, MbEmpty) {}
