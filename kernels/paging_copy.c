/* Kernels that move data: between paged and linear memory, and from frame to frame. */
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
