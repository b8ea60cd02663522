// Written by "deno task embed" from kernels/: change the files there, not this one.

/** Texts of files of `kernels/`, by name. */
export const KERNELS = {
  "busy.c": `/* Kernels that only take time: one for a given while, one for as short as a launch can. */
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
`,
  "moonbright.h": `/* Paged memory in kernels of your own: include this, nothing else of MoonBright is needed.
 *
 * For CUDA C++ (nvcc, clang), HIP, C11 and C++ on the host, and C11 that clang compiles for
 * a GPU. docs/paged-kernels.md is its guide, with a complete kernel.
 *
 *   words              what they mean
 *   page               a stretch of a paged range, of the space's page size
 *   frame              the memory behind a page, contiguous and aligned to its size
 *   entry              8 bytes per page: where its frame is and what is allowed
 *   offset             bytes from the beginning of the range
 *   report             a 64-bit word in device memory that keeps the first bad page
 */
#ifndef MOONBRIGHT_PAGED_H
#define MOONBRIGHT_PAGED_H

#include <stdint.h>

#if defined(__CUDACC__) || defined(__HIPCC__) || defined(__CUDA__) || defined(__HIP__)
#define MB_PAGED static __host__ __device__ inline __attribute__((unused))
#else
#define MB_PAGED static inline __attribute__((unused))
#endif

/* In C, clang must be told that device memory is no stack. */
#if (defined(__NVPTX__) || defined(__AMDGCN__)) && !defined(__cplusplus)
#define MB_MEMORY __attribute__((address_space(1)))
#else
#define MB_MEMORY
#endif

/* How to read a page table: a kernel's argument, 56 bytes, as the host hands it out. */
typedef struct MbPagedView {
  MB_MEMORY const uint64_t *entries; /* of the range's first page */
  uint64_t pages;                    /* in the range */
  uint64_t address_mask;             /* the entry's address bits */
  uint64_t valid_mask;               /* all set in an entry that may be read */
  uint64_t write_mask;               /* of these bits ... */
  uint64_t write_bits;               /* ... those set in an entry that may be written */
  uint32_t page_shift;               /* log2 of the page size */
  uint32_t address_shift;            /* to the left, gives the frame's address */
} MbPagedView;

/* What may be wrong with a page. */
enum { MB_PAGE_INVALID = 1, MB_PAGE_READ_ONLY = 2, MB_PAGE_OUT_OF_RANGE = 3 };

/* An access may be for reading or writing. */
enum { MB_FOR_READ = 0, MB_FOR_WRITE = 1 };

/* A report with nothing to say: write it before a launch. */
#define MB_REPORT_NONE UINT64_MAX

/* Define MB_TRAP to end the kernel with an error at the first bad page: the device's
 * context is lost then. Without it a checked access returns a null pointer. */
#ifndef MB_TRAP
#define MB_ON_BAD_PAGE() ((void)0)
#elif defined(__CUDACC__) && defined(__CUDA_ARCH__) && !defined(__clang__)
#define MB_ON_BAD_PAGE() __trap()
#else
#define MB_ON_BAD_PAGE() __builtin_trap()
#endif

/* Bytes of a page. */
MB_PAGED uint64_t mb_page_size(const MbPagedView *view) {
  return (uint64_t)1 << view->page_shift;
}

/* The memory that an entry names, \`within\` bytes from its frame's beginning. */
MB_PAGED MB_MEMORY void *mb_frame(const MbPagedView *view, uint64_t entry, uint64_t within) {
  return (MB_MEMORY void *)(uintptr_t)(
      ((entry & view->address_mask) << view->address_shift) + within);
}

/* The memory at an offset. Nothing is checked: the page must be valid, and what is read or
 * written must not go past its end. */
MB_PAGED MB_MEMORY void *mb_translate(const MbPagedView *view, uint64_t offset) {
  return mb_frame(view, view->entries[offset >> view->page_shift],
                  offset & (mb_page_size(view) - 1));
}

/* Lowers the report to this page, if it is the lowest so far. */
MB_PAGED void mb_report_page(MB_MEMORY uint64_t *report, uint64_t page, uint32_t fault) {
  const uint64_t word = page << 8 | fault;
#if defined(__cplusplus) && \\
    (defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__))
  atomicMin((unsigned long long *)report, (unsigned long long)word);
#elif defined(__NVPTX__) || defined(__AMDGCN__)
  __scoped_atomic_fetch_min(report, word, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
#else
  uint64_t seen = __atomic_load_n(report, __ATOMIC_RELAXED);
  while (word < seen && !__atomic_compare_exchange_n(report, &seen, word, 1,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}

/* What is wrong with a page for an access: 0 if nothing is, else one of MB_PAGE_*. */
MB_PAGED uint32_t mb_page_fault(const MbPagedView *view, uint64_t entry, int for_write) {
  if ((entry & view->valid_mask) != view->valid_mask) return MB_PAGE_INVALID;
  if (for_write && (entry & view->write_mask) != view->write_bits) return MB_PAGE_READ_ONLY;
  return 0;
}

/* The memory at an offset, or null if the page can't be accessed: the lowest such page then
 * goes into the report (which may be null). */
MB_PAGED MB_MEMORY void *mb_translate_checked(const MbPagedView *view, uint64_t offset,
                                              int for_write, MB_MEMORY uint64_t *report) {
  const uint64_t page = offset >> view->page_shift;
  uint32_t fault = MB_PAGE_OUT_OF_RANGE;
  if (page < view->pages) {
    const uint64_t entry = view->entries[page];
    fault = mb_page_fault(view, entry, for_write);
    if (fault == 0) return mb_frame(view, entry, offset & (mb_page_size(view) - 1));
  }
  if (report) mb_report_page(report, page, fault);
  MB_ON_BAD_PAGE();
  return (MB_MEMORY void *)0;
}

/* Part of a range that lies in one page. */
typedef struct MbSpan {
  uint64_t offset; /* in the range */
  uint64_t bytes;
} MbSpan;

/* The piece number \`piece\` of the part of a range that begins at \`offset\`: pieces end at
 * multiples of \`piece_size\`, a power of two that is not larger than a page. No bytes: past
 * the end. A block of threads that takes a piece translates once for all of it. */
MB_PAGED MbSpan mb_piece(uint64_t offset, uint64_t bytes, uint64_t piece_size,
                         uint64_t piece) {
  const uint64_t end = offset + bytes;
  MbSpan span;
  uint64_t stop = (offset & ~(piece_size - 1)) + (piece + 1) * piece_size;
  span.offset = piece == 0 ? offset : stop - piece_size;
  if (stop > end) stop = end;
  span.bytes = stop > span.offset ? stop - span.offset : 0;
  return span;
}

/* How many pieces a part of a range has. */
MB_PAGED uint64_t mb_pieces(uint64_t offset, uint64_t bytes, uint32_t piece_shift) {
  if (bytes == 0) return 0;
  return ((offset + bytes - 1) >> piece_shift) - (offset >> piece_shift) + 1;
}

/* The part of a range that lies in the page of its piece number \`page\`: for a block of
 * threads, or a thread, that goes through a range page by page.
 *
 *   for (uint64_t p = block; p < mb_pages_of(&view, offset, bytes); p += blocks) {
 *     const MbSpan span = mb_page_span(&view, offset, bytes, p);
 *     float *values = (float *)mb_translate(&view, span.offset);
 *     for (uint64_t i = thread; i < span.bytes / sizeof *values; i += threads) ...
 *   }
 */
MB_PAGED MbSpan mb_page_span(const MbPagedView *view, uint64_t offset, uint64_t bytes,
                             uint64_t page) {
  return mb_piece(offset, bytes, mb_page_size(view), page);
}

/* How many pages a part of a range touches. */
MB_PAGED uint64_t mb_pages_of(const MbPagedView *view, uint64_t offset, uint64_t bytes) {
  return mb_pieces(offset, bytes, view->page_shift);
}

#endif
`,
  "paging_copy.c": `/* Kernels that move data: between paged and linear memory, and from frame to frame. */
#include "target.h"

#include "moonbright.h"

typedef struct MbTransfer {
  MbPagedView view;
  uint64_t offset; /* of the first byte in the paged range */
  uint64_t bytes;
  MB_GLOBAL uint8_t *linear;
  MB_GLOBAL uint64_t *report; /* keeps the lowest page left out; may be null */
} MbTransfer;

enum { MB_COPIES = 64 };

typedef struct MbPageCopy {
  uint32_t source, destination; /* numbers of frames */
} MbPageCopy;

typedef struct MbCopyPages {
  uint64_t frames; /* address of frame 0, 16-byte aligned */
  uint32_t page_shift;
  uint32_t count; /* pages to copy */
  MbPageCopy copies[MB_COPIES];
} MbCopyPages;

/* log2 of the bytes that a block moves at a time: four 16-byte accesses for each of 256
 * threads, and enough pieces for all processors also where pages are few and large. */
enum { PIECE_SHIFT = 14 };

MB_INLINE uint32_t piece_shift(uint32_t page_shift) {
  return page_shift < PIECE_SHIFT ? page_shift : PIECE_SHIFT;
}

/* By all threads of a block. */
MB_INLINE void copy_pairs(MbThread mb_thread, MB_GLOBAL MbPair *to,
                          MB_GLOBAL const MbPair *from, uint64_t count) {
#ifdef MB_HOST
  MB_EACH_IN_BLOCK(i, count) to[i] = from[i];
#else
  const uint64_t lanes = mb_thread.lanes;
  uint64_t i = mb_thread.lane;
  /* The compiler can't move a load before a store: what may be under way at the same time
   * has to be written so. */
  for (; i + 3 * lanes < count; i += 4 * lanes) {
    const MbPair a = from[i], b = from[i + lanes];
    const MbPair c = from[i + 2 * lanes], d = from[i + 3 * lanes];
    to[i] = a;
    to[i + lanes] = b;
    to[i + 2 * lanes] = c;
    to[i + 3 * lanes] = d;
  }
  for (; i < count; i += lanes) to[i] = from[i];
#endif
}

MB_INLINE void copy_bytes(MbThread mb_thread, MB_GLOBAL uint8_t *to,
                          MB_GLOBAL const uint8_t *from, uint64_t bytes) {
  MB_EACH_IN_BLOCK(i, bytes) to[i] = from[i];
}

/* By all threads of a block. 16 bytes at a time where both sides allow it. */
MB_INLINE void copy(MbThread mb_thread, MB_GLOBAL uint8_t *to,
                    MB_GLOBAL const uint8_t *from, uint64_t bytes) {
  if ((((uint64_t)to ^ (uint64_t)from) & 15) != 0) {
    copy_bytes(mb_thread, to, from, bytes);
    return;
  }
  const uint64_t to_boundary = -(uint64_t)to & 15;
  const uint64_t head = to_boundary < bytes ? to_boundary : bytes;
  const uint64_t body = (bytes - head) & ~(uint64_t)15;
  copy_bytes(mb_thread, to, from, head);
  copy_pairs(mb_thread, (MB_GLOBAL MbPair *)(to + head),
             (MB_GLOBAL const MbPair *)(from + head), body / sizeof(MbPair));
  copy_bytes(mb_thread, to + head + body, from + head + body, bytes - head - body);
}

/* Where a piece lies in its page; null if it can't be accessed. */
MB_INLINE MB_GLOBAL uint8_t *translate_piece(const MbTransfer *args, MbThread mb_thread,
                                             MbSpan span, int for_write) {
  MB_GLOBAL uint64_t *report = mb_thread.lane == 0 ? args->report : 0;
  return (MB_GLOBAL uint8_t *)mb_translate_checked(&args->view, span.offset, for_write,
                                                   report);
}

MB_KERNEL_BY_POINTER(mb_gather, MbTransfer) {
  const uint32_t shift = piece_shift(args->view.page_shift);
  MB_EACH_BLOCK(piece, mb_pieces(args->offset, args->bytes, shift)) {
    const MbSpan span =
        mb_piece(args->offset, args->bytes, (uint64_t)1 << shift, piece);
    MB_GLOBAL const uint8_t *from =
        translate_piece(args, mb_thread, span, MB_FOR_READ);
    if (from) copy(mb_thread, args->linear + (span.offset - args->offset), from, span.bytes);
  }
}

MB_KERNEL_BY_POINTER(mb_scatter, MbTransfer) {
  const uint32_t shift = piece_shift(args->view.page_shift);
  MB_EACH_BLOCK(piece, mb_pieces(args->offset, args->bytes, shift)) {
    const MbSpan span =
        mb_piece(args->offset, args->bytes, (uint64_t)1 << shift, piece);
    MB_GLOBAL uint8_t *to = translate_piece(args, mb_thread, span, MB_FOR_WRITE);
    if (to) copy(mb_thread, to, args->linear + (span.offset - args->offset), span.bytes);
  }
}

MB_KERNEL_BY_POINTER(mb_copy_pages, MbCopyPages) {
  const uint32_t shift = piece_shift(args->page_shift);
  const uint32_t pieces_shift = args->page_shift - shift;
  MB_EACH_BLOCK(piece, (uint64_t)args->count << pieces_shift) {
    const MbPageCopy pages = args->copies[piece >> pieces_shift];
    const uint64_t within = (piece & (((uint64_t)1 << pieces_shift) - 1)) << shift;
    const uint64_t from =
        args->frames + ((uint64_t)pages.source << args->page_shift) + within;
    const uint64_t to =
        args->frames + ((uint64_t)pages.destination << args->page_shift) + within;
    copy_pairs(mb_thread, (MB_GLOBAL MbPair *)to, (MB_GLOBAL const MbPair *)from,
               ((uint64_t)1 << shift) / sizeof(MbPair));
  }
}
`,
  "paging_entries.c": `/* Kernels that write and check page tables: arrays of 8-byte entries, one a page. */
#include "target.h"

enum { MB_RUNS = 64 };

/* The items from number \`from\` on, up to the next run, stand for those from \`to\` on. */
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
  MB_GLOBAL const uint64_t *runs; /* MbRun, as one word: \`from\` in the low half */
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
#define TILE_ITEMS(items, thread)                                              \\
  ((items) <= (thread).count ? (thread).lanes : 8 * (thread).lanes)
#endif

/* Stretches of neighbouring items, one after another for each block. */
#define EACH_TILE(begin, items)                                                \\
  for (uint64_t begin##_size = TILE_ITEMS((items), mb_thread),                 \\
                begin = mb_thread.block * begin##_size;                        \\
       begin < (items); begin += mb_thread.blocks * begin##_size)

#define TILE_END(begin, items)                                                 \\
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
`,
  "paging_read.c": `/* Kernels that only read, to measure what translation costs. */
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
`,
  "pattern.c": `/* Fills memory with words that depend on their index, and finds those that changed. */
#include "target.h"

typedef struct MbPatternFill {
  MB_GLOBAL uint64_t *words; /* 8-byte aligned */
  uint64_t count;            /* words */
  uint64_t seed;
} MbPatternFill;

/* The caller sets it to {0, UINT64_MAX} before a launch, or lets launches add up. */
typedef struct MbPatternResult {
  uint64_t mismatches;
  uint64_t first_bad; /* the lowest index of a word that differs */
} MbPatternResult;

typedef struct MbPatternVerify {
  MB_GLOBAL const uint64_t *words; /* 8-byte aligned */
  uint64_t count;                  /* words */
  uint64_t seed;
  MB_GLOBAL MbPatternResult *result;
} MbPatternVerify;

/* The finalizer of SplitMix64: a bijection, so that no two words of a range are equal.
 * It sees only seed + index: the part of a range from word k on has the seed + k. */
MB_INLINE uint64_t pattern_word(uint64_t seed, uint64_t index) {
  uint64_t x = (seed + index) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* Words before the first 16-byte boundary. */
MB_INLINE uint64_t words_before_pairs(MB_GLOBAL const void *words, uint64_t count) {
  const uint64_t head = ((uint64_t)words >> 3) & 1;
  return head < count ? head : count;
}

MB_KERNEL(mb_pattern_fill, MbPatternFill) {
  const uint64_t head = words_before_pairs(args.words, args.count);
  MB_GLOBAL MbPair *pairs = (MB_GLOBAL MbPair *)(args.words + head);
  MB_EACH(p, (args.count - head) / 2) {
    const uint64_t i = head + 2 * p;
    pairs[p] = (MbPair){pattern_word(args.seed, i), pattern_word(args.seed, i + 1)};
  }
  if (MB_THREAD == 0) {
    if (head != 0) args.words[0] = pattern_word(args.seed, 0);
    if ((args.count - head) % 2 != 0)
      args.words[args.count - 1] = pattern_word(args.seed, args.count - 1);
  }
}

MB_INLINE void check_word(uint64_t word, uint64_t seed, uint64_t index,
                          MbPatternResult *found) {
  if (word == pattern_word(seed, index)) return;
  found->mismatches++;
  if (index < found->first_bad) found->first_bad = index;
}

MB_KERNEL(mb_pattern_verify, MbPatternVerify) {
  MbPatternResult found = {0, UINT64_MAX};
  const uint64_t head = words_before_pairs(args.words, args.count);
  MB_GLOBAL const MbPair *pairs = (MB_GLOBAL const MbPair *)(args.words + head);
  MB_EACH(p, (args.count - head) / 2) {
    const uint64_t i = head + 2 * p;
    const MbPair pair = pairs[p];
    check_word(pair[0], args.seed, i, &found);
    check_word(pair[1], args.seed, i + 1, &found);
  }
  if (MB_THREAD == 0) {
    if (head != 0) check_word(args.words[0], args.seed, 0, &found);
    if ((args.count - head) % 2 != 0)
      check_word(args.words[args.count - 1], args.seed, args.count - 1, &found);
  }
  if (found.mismatches != 0) {
    mb_atomic_add(&args.result->mismatches, found.mismatches);
    mb_atomic_min(&args.result->first_bad, found.first_bad);
  }
}
`,
  "target.h": `/* One C11 source, three targets: NVIDIA PTX, AMD code objects and the host.
 *
 * A kernel is written once, for one thread of a one-dimensional launch:
 *
 *   typedef struct { MB_GLOBAL uint64_t *words; uint64_t count; } ClearArgs;
 *   MB_KERNEL(clear, ClearArgs) {
 *     MB_EACH(i, args.count) args.words[i] = 0;
 *   }
 *
 * The argument block that the launcher passes is the struct itself on every target:
 * it is the kernel's single parameter on a GPU and is copied from \`args\` on the host.
 * Grids and blocks of two and three dimensions are numbered linearly, x fastest.
 */
#ifndef MOONBRIGHT_TARGET_H
#define MOONBRIGHT_TARGET_H

#if !defined(__NVPTX__) && !defined(__AMDGCN__)
#define MB_HOST 1
/* clock_gettime is hidden under -std=c11 without it; must precede every include. */
#define _POSIX_C_SOURCE 200809L
#endif

#include <stdint.h>

typedef struct MbThread {
  uint64_t index, count;  /* this thread's number, threads in the launch */
  uint64_t block, blocks; /* its block's number, blocks in the launch */
  uint64_t lane, lanes;   /* its number within its block, threads in a block */
} MbThread;

#define MB_INLINE static inline __attribute__((always_inline, unused))

#define MB_THREAD_BODY(name, parameter)                                        \\
  MB_INLINE void name##_thread(parameter __attribute__((unused)),              \\
                               MbThread mb_thread __attribute__((unused)))

/* MB_KERNEL's body has \`args\`, the argument block. MB_KERNEL_BY_POINTER's has a pointer to
 * it instead: for blocks with arrays indexed at run time, which the compiler would copy to
 * each thread's stack. */
#define MB_KERNEL(name, Args)                                                  \\
  MB_INLINE void name##_thread(Args args, MbThread mb_thread);                 \\
  MB_LAUNCHED(name, Args, args)                                                \\
  MB_THREAD_BODY(name, Args args)

#define MB_KERNEL_BY_POINTER(name, Args)                                       \\
  MB_INLINE void name##_thread(const Args *args, MbThread mb_thread);          \\
  MB_LAUNCHED(name, Args, &args)                                               \\
  MB_THREAD_BODY(name, const Args *args)

/* Two words moved by one access; may_alias because the memory also holds single words. */
typedef uint64_t MbPair __attribute__((vector_size(16), may_alias));

#ifdef MB_HOST

#include <string.h>
#include <time.h>

#define MB_GLOBAL

/* Laid out as MbGeometry in native/moonbright.h; repeated so that kernels build alone. */
typedef struct MbGeometry {
  uint32_t grid[3], block[3], shared_bytes;
} MbGeometry;

MB_INLINE uint64_t mb_volume(const uint32_t *axes) {
  return (uint64_t)axes[0] * axes[1] * axes[2];
}

/* Where the part of n items begins that this thread handles; the last parts may be empty. */
MB_INLINE uint64_t mb_share_begin(uint64_t index, uint64_t threads, uint64_t n) {
  const uint64_t share = n / threads + (n % threads != 0);
  return index * share < n ? index * share : n;
}

/* Neighbouring words go to one thread, not to neighbouring threads as on a GPU: threads
 * run one after another here, and each walks its own cache lines. */
#define MB_SHARE(i, n, number, threads)                                        \\
  for (uint64_t i = mb_share_begin((number), (threads), (n)),                  \\
                i##_end = mb_share_begin((number) + 1, (threads), (n));        \\
       i < i##_end; i++)

#define MB_EACH(i, n) MB_SHARE(i, n, mb_thread.index, mb_thread.count)
#define MB_EACH_IN_BLOCK(i, n) MB_SHARE(i, n, mb_thread.lane, mb_thread.lanes)

#define MB_LAUNCHED(name, Args, passed)                                        \\
  __attribute__((visibility("default"))) void name(                            \\
      const void *block, const MbGeometry *geometry);                          \\
  void name(const void *block, const MbGeometry *geometry) {                   \\
    Args args;                                                                 \\
    memcpy(&args, block, sizeof args);                                         \\
    const uint64_t blocks = mb_volume(geometry->grid);                         \\
    const uint64_t lanes = mb_volume(geometry->block);                         \\
    MbThread thread = {0, blocks * lanes, 0, blocks, 0, lanes};                \\
    for (; thread.block < blocks; thread.block++)                              \\
      for (thread.lane = 0; thread.lane < lanes; thread.lane++) {              \\
        name##_thread(passed, thread);                                         \\
        thread.index++;                                                        \\
      }                                                                        \\
  }

MB_INLINE void mb_atomic_add(uint64_t *target, uint64_t value) {
  __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
}

/* A warp is the threads that run in step; here, each for itself. */
#define MB_WARP 1u

MB_INLINE uint64_t mb_warp_ballot(int condition) { return condition != 0; }

MB_INLINE uint32_t mb_warp_read(uint32_t value,
                                uint32_t lane __attribute__((unused))) {
  return value;
}

MB_INLINE void mb_atomic_sum(uint64_t *target, uint64_t value) {
  mb_atomic_add(target, value);
}

MB_INLINE void mb_atomic_min(uint64_t *target, uint64_t value) {
  uint64_t seen = __atomic_load_n(target, __ATOMIC_RELAXED);
  while (value < seen && !__atomic_compare_exchange_n(target, &seen, value, 1,
                                                      __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
}

MB_INLINE uint64_t mb_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#else

#define MB_GLOBAL __attribute__((address_space(1)))

#ifdef __NVPTX__

#define MB_ENTRY __attribute__((nvptx_kernel))
#define MB_AXIS_SOURCE(axis)                                                   \\
  MB_INLINE uint32_t mb_block_##axis(void) {                                   \\
    return (uint32_t)__nvvm_read_ptx_sreg_ctaid_##axis();                      \\
  }                                                                            \\
  MB_INLINE uint32_t mb_blocks_##axis(void) {                                  \\
    return (uint32_t)__nvvm_read_ptx_sreg_nctaid_##axis();                     \\
  }                                                                            \\
  MB_INLINE uint32_t mb_lane_##axis(void) {                                    \\
    return (uint32_t)__nvvm_read_ptx_sreg_tid_##axis();                        \\
  }                                                                            \\
  MB_INLINE uint32_t mb_lanes_##axis(void) {                                   \\
    return (uint32_t)__nvvm_read_ptx_sreg_ntid_##axis();                       \\
  }                                                                            \\
  MB_INLINE uint64_t mb_extent_##axis(void) {                                  \\
    return (uint64_t)mb_blocks_##axis() * mb_lanes_##axis();                   \\
  }

/* A warp is the threads that run in step: the next three are for all of its threads at
 * once, in launches of one dimension with blocks of whole warps. */
#define MB_WARP 32u

/* One bit per thread: whether its condition holds. */
MB_INLINE uint64_t mb_warp_ballot(int condition) {
  return (uint32_t)__nvvm_vote_ballot_sync(UINT32_MAX, condition != 0);
}

/* The value that the thread with this number in the warp has; all name the same one. */
MB_INLINE uint32_t mb_warp_read(uint32_t value, uint32_t lane) {
  return (uint32_t)__nvvm_shfl_sync_idx_i32(UINT32_MAX, (int)value, (int)lane, 31);
}

MB_INLINE uint64_t mb_warp_total(uint64_t value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const uint32_t low = (uint32_t)__nvvm_shfl_sync_bfly_i32(
        UINT32_MAX, (int)(uint32_t)value, distance, 31);
    const uint32_t high = (uint32_t)__nvvm_shfl_sync_bfly_i32(
        UINT32_MAX, (int)(uint32_t)(value >> 32), distance, 31);
    value += (uint64_t)high << 32 | low;
  }
  return value;
}

MB_INLINE uint64_t mb_clock_ns(void) {
  uint64_t now;
  __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

#else

/* Hidden is the default here, and the loader finds only symbols that are exported. */
#define MB_ENTRY __attribute__((amdgpu_kernel, visibility("protected")))
#define MB_AXIS_SOURCE(axis)                                                   \\
  MB_INLINE uint32_t mb_block_##axis(void) {                                   \\
    return (uint32_t)__builtin_amdgcn_workgroup_id_##axis();                   \\
  }                                                                            \\
  MB_INLINE uint32_t mb_blocks_##axis(void) {                                  \\
    return (uint32_t)__builtin_amdgcn_grid_size_##axis() /                     \\
           (uint32_t)__builtin_amdgcn_workgroup_size_##axis();                 \\
  }                                                                            \\
  MB_INLINE uint32_t mb_lane_##axis(void) {                                    \\
    return (uint32_t)__builtin_amdgcn_workitem_id_##axis();                    \\
  }                                                                            \\
  MB_INLINE uint32_t mb_lanes_##axis(void) {                                   \\
    return (uint32_t)__builtin_amdgcn_workgroup_size_##axis();                 \\
  }                                                                            \\
  MB_INLINE uint64_t mb_extent_##axis(void) {                                  \\
    return __builtin_amdgcn_grid_size_##axis();                                \\
  }

#if __AMDGCN_WAVEFRONT_SIZE__ == 64
#define MB_WARP 64u
#define MB_BALLOT __builtin_amdgcn_ballot_w64
#else
#define MB_WARP 32u
#define MB_BALLOT __builtin_amdgcn_ballot_w32
#endif

MB_INLINE uint64_t mb_warp_ballot(int condition) {
  return MB_BALLOT(condition != 0);
}

MB_INLINE uint32_t mb_warp_read(uint32_t value, uint32_t lane) {
  return (uint32_t)__builtin_amdgcn_readlane((int)value, (int)lane);
}

/* The constant clock that every supported architecture runs at 100 MHz. */
MB_INLINE uint64_t mb_clock_ns(void) {
  return __builtin_readsteadycounter() * 10u;
}

#endif

#define MB_AXIS(axis)                                                          \\
  MB_AXIS_SOURCE(axis)                                                         \\
  MB_INLINE uint64_t mb_index_##axis(void) {                                   \\
    return (uint64_t)mb_block_##axis() * mb_lanes_##axis() + mb_lane_##axis(); \\
  }

MB_AXIS(x)
MB_AXIS(y)
MB_AXIS(z)

MB_INLINE uint64_t mb_linear(uint32_t x, uint32_t y, uint32_t z, uint32_t extent_x,
                             uint32_t extent_y) {
  return x + (uint64_t)extent_x * (y + (uint64_t)extent_y * z);
}

MB_INLINE MbThread mb_this_thread(void) {
  MbThread thread = {
      mb_index_x() + mb_extent_x() * (mb_index_y() + mb_extent_y() * mb_index_z()),
      mb_extent_x() * mb_extent_y() * mb_extent_z(),
      mb_linear(mb_block_x(), mb_block_y(), mb_block_z(), mb_blocks_x(), mb_blocks_y()),
      (uint64_t)mb_blocks_x() * mb_blocks_y() * mb_blocks_z(),
      mb_linear(mb_lane_x(), mb_lane_y(), mb_lane_z(), mb_lanes_x(), mb_lanes_y()),
      (uint64_t)mb_lanes_x() * mb_lanes_y() * mb_lanes_z()};
  return thread;
}

/* Neighbouring threads take neighbouring items, so that accesses coalesce. */
#define MB_EACH(i, n)                                                          \\
  for (uint64_t i = mb_thread.index; i < (n); i += mb_thread.count)
#define MB_EACH_IN_BLOCK(i, n)                                                 \\
  for (uint64_t i = mb_thread.lane; i < (n); i += mb_thread.lanes)

#define MB_LAUNCHED(name, Args, passed)                                        \\
  MB_ENTRY void name(Args args) { name##_thread(passed, mb_this_thread()); }

MB_INLINE void mb_atomic_add(MB_GLOBAL uint64_t *target, uint64_t value) {
  __scoped_atomic_fetch_add(target, value, __ATOMIC_RELAXED,
                            __MEMORY_SCOPE_DEVICE);
}

/* Adds what all threads of a warp have, with one access where that is quicker. */
MB_INLINE void mb_atomic_sum(MB_GLOBAL uint64_t *target, uint64_t value) {
#ifdef __NVPTX__
  value = mb_warp_total(value);
  if (mb_lane_x() % MB_WARP == 0) mb_atomic_add(target, value);
#else
  /* The compiler itself adds up a wavefront's values. */
  mb_atomic_add(target, value);
#endif
}

MB_INLINE void mb_atomic_min(MB_GLOBAL uint64_t *target, uint64_t value) {
  __scoped_atomic_fetch_min(target, value, __ATOMIC_RELAXED,
                            __MEMORY_SCOPE_DEVICE);
}

#endif

/* The linear number of this thread, for work that only one thread does. */
#define MB_THREAD (mb_thread.index)

/* Pieces of work that a block takes as a whole; MB_EACH_IN_BLOCK then spreads the items of
 * one over the block's threads. */
#define MB_EACH_BLOCK(i, n)                                                    \\
  for (uint64_t i = mb_thread.block; i < (n); i += mb_thread.blocks)

#endif
`,
};
