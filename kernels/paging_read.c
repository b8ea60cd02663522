/* Kernels that only read, to measure what translation costs. */
#include "target.h"

#include "moonbright.h"

/* Both kinds of sum add up all words of the memory, modulo 2^64. */
typedef struct MbReadDirect {
  MB_GLOBAL const MbPair *pairs;
  uint64_t bytes; /* a multiple of 16 */
  MB_GLOBAL uint64_t *sum; /* added to */
} MbReadDirect;

typedef struct MbReadPaged {
  MbPagedView view; /* all pages valid */
  uint64_t bytes; /* a multiple of 16, from the beginning of the range */
  MB_GLOBAL uint64_t *sum; /* added to */
} MbReadPaged;

/* Loads under way in each thread: a GPU's memory answers late, and only many loads at a
 * time keep it busy. */
enum { MB_AHEAD = 4 };

MB_INLINE uint64_t mb_pair_sum(MbPair pair) { return pair[0] + pair[1]; }

MB_KERNEL(mb_read_direct, MbReadDirect) {
  const uint64_t count = args.bytes / sizeof(MbPair);
  uint64_t sum = 0;
  MB_EACH(first, (count + MB_AHEAD - 1) / MB_AHEAD) {
    /* Neighbouring threads read neighbouring pairs, in each of the parts. */
    const uint64_t part = (count + MB_AHEAD - 1) / MB_AHEAD;
    MbPair pairs[MB_AHEAD] = {{0}};
    for (uint32_t k = 0; k < MB_AHEAD; k++) {
      const uint64_t i = first + k * part;
      if (i < count) pairs[k] = args.pairs[i];
    }
    for (uint32_t k = 0; k < MB_AHEAD; k++) sum += mb_pair_sum(pairs[k]);
  }
  mb_atomic_sum(args.sum, sum);
}

/* A block takes several pages at a time: it translates each once, all before it reads. */
MB_KERNEL(mb_read_paged, MbReadPaged) {
  const uint64_t page_size = mb_page_size(&args.view);
  const uint64_t pages = mb_pages_of(&args.view, 0, args.bytes);
  uint64_t sum = 0;
  MB_EACH_BLOCK(group, (pages + MB_AHEAD - 1) / MB_AHEAD) {
    MB_GLOBAL const MbPair *frames[MB_AHEAD];
    uint64_t counts[MB_AHEAD];
    for (uint32_t k = 0; k < MB_AHEAD; k++) {
      const uint64_t page = group * MB_AHEAD + k;
      const uint64_t offset = page * page_size;
      counts[k] = 0;
      frames[k] = (MB_GLOBAL const MbPair *)0;
      if (page >= pages) continue;
      counts[k] = (args.bytes - offset < page_size ? args.bytes - offset : page_size) /
                  sizeof(MbPair);
      frames[k] = (MB_GLOBAL const MbPair *)mb_translate(&args.view, offset);
    }
    /* The first page of a group is the fullest. */
    MB_EACH_IN_BLOCK(i, counts[0]) {
      MbPair pairs[MB_AHEAD] = {{0}};
      for (uint32_t k = 0; k < MB_AHEAD; k++) {
        if (i < counts[k]) pairs[k] = frames[k][i];
      }
      for (uint32_t k = 0; k < MB_AHEAD; k++) sum += mb_pair_sum(pairs[k]);
    }
  }
  mb_atomic_sum(args.sum, sum);
}

/* Translates each access by itself, as a kernel with a random pattern has to. */
MB_KERNEL(mb_translate_each, MbReadPaged) {
  const uint64_t count = args.bytes / sizeof(MbPair);
  const uint64_t part = (count + MB_AHEAD - 1) / MB_AHEAD;
  uint64_t sum = 0;
  MB_EACH(first, part) {
    MbPair pairs[MB_AHEAD] = {{0}};
    for (uint32_t k = 0; k < MB_AHEAD; k++) {
      const uint64_t i = first + k * part;
      if (i < count) {
        pairs[k] = *(MB_GLOBAL const MbPair *)mb_translate(&args.view, i * sizeof(MbPair));
      }
    }
    for (uint32_t k = 0; k < MB_AHEAD; k++) sum += mb_pair_sum(pairs[k]);
  }
  mb_atomic_sum(args.sum, sum);
}
