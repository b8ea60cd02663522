/* Paged memory in kernels of your own: include this, nothing else of MoonBright is needed.
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

/* The memory that an entry names, `within` bytes from its frame's beginning. */
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
#if defined(__cplusplus) && \
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

/* The piece number `piece` of the part of a range that begins at `offset`: pieces end at
 * multiples of `piece_size`, a power of two that is not larger than a page. No bytes: past
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

/* The part of a range that lies in the page of its piece number `page`: for a block of
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
