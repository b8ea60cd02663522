/* Kernels that write and check page tables: arrays of 8-byte entries, one a page. */
#include "target.h"

enum { MB_RUNS = 64 };

/* The items from number `from` on, up to the next run, stand for those from `to` on. */
typedef struct MbRun {
  uint32_t from, to;
} MbRun;

/* How the number of a frame becomes an entry. */
typedef struct MbEncoder {
  uint64_t frames; /* address of frame 0 */
  uint64_t mask;   /* the entry's address bits */
  uint64_t flags;  /* all its other bits */
  uint32_t page_size;
  uint32_t address_shift; /* to the right */
} MbEncoder;

typedef struct MbMaterialize {
  MB_GLOBAL uint64_t *entries;
  MbEncoder encoder;
  uint32_t count; /* entries */
  uint32_t run_count;
  MbRun runs[MB_RUNS]; /* from entries to frames; the first is from entry 0 */
} MbMaterialize;

typedef struct MbMaterializeList {
  MB_GLOBAL uint64_t *entries;
  MbEncoder encoder;
  uint32_t count; /* entries */
  uint32_t run_count;
  MB_GLOBAL const uint64_t *runs; /* MbRun, as one word: `from` in the low half */
} MbMaterializeList;

typedef struct MbInvalidate {
  MB_GLOBAL uint64_t *entries;
  uint64_t invalid; /* the entry to write */
  uint32_t count;   /* entries of all ranges together */
  uint32_t range_count;
  MbRun ranges[MB_RUNS]; /* from places in the ranges laid end to end to entries */
} MbInvalidate;

typedef struct MbProtect {
  MB_GLOBAL uint64_t *entries;
  uint64_t valid; /* only entries with all these bits change */
  uint64_t clear;
  uint64_t set;
  uint32_t count; /* entries of all ranges together */
  uint32_t range_count;
  MbRun ranges[MB_RUNS]; /* as in MbInvalidate */
} MbProtect;

typedef struct MbChecksum {
  MB_GLOBAL const uint64_t *entries;
  uint64_t count; /* entries */
  uint64_t first; /* index of the first: sums of parts add up to the sum of the whole */
  MB_GLOBAL uint64_t *sum; /* added to */
} MbChecksum;

#ifdef MB_HOST
/* Long enough that finding its runs costs nothing. */
#define TILE_ITEMS(items, thread) 4096u
#else
/* Few items: one a thread, over as many blocks as there are. Many: enough for each thread
 * to have several accesses under way, close together. */
#define TILE_ITEMS(items, thread)                                              \
  ((items) <= (thread).count ? (thread).lanes : 8 * (thread).lanes)
#endif

/* Stretches of neighbouring items, one after another for each block. */
#define EACH_TILE(begin, items)                                                \
  for (uint64_t begin##_size = TILE_ITEMS((items), mb_thread),                 \
                begin = mb_thread.block * begin##_size;                        \
       begin < (items); begin += mb_thread.blocks * begin##_size)

#define TILE_END(begin, items)                                                 \
  ((items) - (begin) < begin##_size ? (items) : (begin) + begin##_size)

/* Entries before the first 16-byte boundary. */
MB_INLINE uint64_t entries_before_pairs(MB_GLOBAL const void *entries, uint64_t count) {
  const uint64_t head = ((uint64_t)entries >> 3) & 1;
  return head < count ? head : count;
}

MB_INLINE uint64_t encode(const MbEncoder *encoder, uint32_t frame) {
  const uint64_t address = encoder->frames + (uint64_t)frame * encoder->page_size;
  return ((address >> encoder->address_shift) & encoder->mask) | encoder->flags;
}

/* The run of [low, high] that holds an item. */
MB_INLINE uint32_t find_run(const MbRun *runs, uint32_t low, uint32_t high, uint32_t item) {
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (runs[middle].from <= item)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

MB_INLINE uint32_t through_run(const MbRun *run, uint32_t item) {
  return run->to + (item - run->from);
}

MB_INLINE uint64_t find_entry(const MbMaterialize *args, uint32_t low, uint32_t high,
                              uint32_t index) {
  const uint32_t run = find_run(args->runs, low, high, index);
  return encode(&args->encoder, through_run(&args->runs[run], index));
}

MB_KERNEL_BY_POINTER(mb_materialize, MbMaterialize) {
  const uint32_t last_run = args->run_count - 1;
  const uint64_t head = entries_before_pairs(args->entries, args->count);
  const uint64_t pair_count = (args->count - head) / 2;
  MB_GLOBAL MbPair *pairs = (MB_GLOBAL MbPair *)(args->entries + head);
  EACH_TILE(begin, pair_count) {
    const uint64_t end = TILE_END(begin, pair_count);
    const uint32_t first = (uint32_t)(head + 2 * begin);
    const uint32_t low = find_run(args->runs, 0, last_run, first);
    const uint32_t high =
        find_run(args->runs, low, last_run, (uint32_t)(head + 2 * end - 1));
    if (low == high) {
      const uint32_t frame = through_run(&args->runs[low], first);
      MB_EACH_IN_BLOCK(p, end - begin) {
        const uint32_t here = frame + 2 * (uint32_t)p;
        pairs[begin + p] =
            (MbPair){encode(&args->encoder, here), encode(&args->encoder, here + 1)};
      }
    } else {
      MB_EACH_IN_BLOCK(p, end - begin) {
        const uint32_t index = first + 2 * (uint32_t)p;
        pairs[begin + p] = (MbPair){find_entry(args, low, high, index),
                                    find_entry(args, low, high, index + 1)};
      }
    }
  }
  if (MB_THREAD == 0) {
    if (head != 0) args->entries[0] = find_entry(args, 0, 0, 0);
    if ((args->count - head) % 2 != 0)
      args->entries[args->count - 1] = find_entry(args, last_run, last_run, args->count - 1);
  }
}

/* Longer runs are written by a whole warp. */
enum { OWN_ENTRIES = 4 };

/* A thread reads one run, so that a list in the host's memory is read once and in one
 * round trip; a search would take one for each of its steps. */
MB_KERNEL(mb_materialize_list, MbMaterializeList) {
  const uint32_t lane = (uint32_t)(mb_thread.lane % MB_WARP);
  /* The whole warp goes on while one of its threads has a run. */
  for (uint64_t base = mb_thread.index - lane; base < args.run_count;
       base += mb_thread.count) {
    const uint64_t r = base + lane;
    uint32_t from = 0, frame = 0, count = 0;
    if (r < args.run_count) {
      const uint64_t run = args.runs[r];
      from = (uint32_t)run;
      frame = (uint32_t)(run >> 32);
      count = (r + 1 < args.run_count ? (uint32_t)args.runs[r + 1] : args.count) - from;
    }
    if (count <= OWN_ENTRIES)
      for (uint32_t i = 0; i < count; i++)
        args.entries[from + i] = encode(&args.encoder, frame + i);
    for (uint64_t rest = mb_warp_ballot(count > OWN_ENTRIES); rest != 0;
         rest &= rest - 1) {
      const uint32_t owner = (uint32_t)__builtin_ctzll(rest);
      MB_GLOBAL uint64_t *entries = args.entries + mb_warp_read(from, owner);
      const uint32_t first = mb_warp_read(frame, owner);
      const uint32_t entry_count = mb_warp_read(count, owner);
      for (uint32_t i = lane; i < entry_count; i += MB_WARP)
        entries[i] = encode(&args.encoder, first + i);
    }
  }
}

/* By all threads of a block. */
MB_INLINE void fill(MbThread mb_thread, MB_GLOBAL uint64_t *entries, uint64_t count,
                    uint64_t entry) {
  const uint64_t head = entries_before_pairs(entries, count);
  MB_GLOBAL MbPair *pairs = (MB_GLOBAL MbPair *)(entries + head);
  MB_EACH_IN_BLOCK(p, (count - head) / 2) pairs[p] = (MbPair){entry, entry};
  if (mb_thread.lane == 0) {
    if (head != 0) entries[0] = entry;
    if ((count - head) % 2 != 0) entries[count - 1] = entry;
  }
}

MB_KERNEL_BY_POINTER(mb_invalidate, MbInvalidate) {
  const uint32_t last_range = args->range_count - 1;
  EACH_TILE(begin, (uint64_t)args->count) {
    const uint64_t end = TILE_END(begin, args->count);
    const uint32_t first = (uint32_t)begin;
    const uint32_t low = find_run(args->ranges, 0, last_range, first);
    const uint32_t high = find_run(args->ranges, low, last_range, (uint32_t)(end - 1));
    if (low == high) {
      fill(mb_thread, args->entries + through_run(&args->ranges[low], first), end - begin,
           args->invalid);
    } else {
      MB_EACH_IN_BLOCK(i, end - begin) {
        const uint32_t item = first + (uint32_t)i;
        const uint32_t range = find_run(args->ranges, low, high, item);
        args->entries[through_run(&args->ranges[range], item)] = args->invalid;
      }
    }
  }
}

MB_KERNEL_BY_POINTER(mb_protect, MbProtect) {
  const uint32_t last_range = args->range_count - 1;
  EACH_TILE(begin, (uint64_t)args->count) {
    const uint64_t end = TILE_END(begin, args->count);
    const uint32_t first = (uint32_t)begin;
    const uint32_t low = find_run(args->ranges, 0, last_range, first);
    const uint32_t high = find_run(args->ranges, low, last_range, (uint32_t)(end - 1));
    MB_EACH_IN_BLOCK(i, end - begin) {
      const uint32_t item = first + (uint32_t)i;
      const uint32_t range = find_run(args->ranges, low, high, item);
      MB_GLOBAL uint64_t *entry =
          args->entries + through_run(&args->ranges[range], item);
      const uint64_t before = *entry;
      if ((before & args->valid) == args->valid) *entry = (before & ~args->clear) | args->set;
    }
  }
}

/* The finalizer of SplitMix64: a bijection in which every bit depends on every other. */
MB_INLINE uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* Mixing the index too makes entries count that changed places. It starts at 1, since 0
 * mixes to 0. */
MB_INLINE uint64_t mix_entry(uint64_t entry, uint64_t index) {
  return mix(entry ^ mix(index + 1));
}

MB_KERNEL(mb_checksum, MbChecksum) {
  const uint64_t head = entries_before_pairs(args.entries, args.count);
  MB_GLOBAL const MbPair *pairs = (MB_GLOBAL const MbPair *)(args.entries + head);
  uint64_t sum = 0;
  MB_EACH(p, (args.count - head) / 2) {
    const MbPair pair = pairs[p];
    const uint64_t index = args.first + head + 2 * p;
    sum += mix_entry(pair[0], index) + mix_entry(pair[1], index + 1);
  }
  if (MB_THREAD == 0) {
    const uint64_t last = args.count - 1;
    if (head != 0) sum += mix_entry(args.entries[0], args.first);
    if ((args.count - head) % 2 != 0)
      sum += mix_entry(args.entries[last], args.first + last);
  }
  mb_atomic_sum(args.sum, sum);
}
