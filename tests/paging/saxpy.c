#include "target.h"

#include "moonbright.h"

typedef struct SaxpyArgs {
  MbPagedView x;
  MB_GLOBAL float *y;
  float a;
  uint64_t n;
  MB_GLOBAL uint64_t *report;
} SaxpyArgs;

/* y[i] += a * x[i] for n values; x is paged, y is not. */
MB_KERNEL(saxpy, SaxpyArgs) {
  const uint64_t bytes = args.n * sizeof(float);
  MB_EACH_BLOCK(p, mb_pages_of(&args.x, 0, bytes)) {
    /* All threads of the block find the page, once; then they share its values. */
    const MbSpan span = mb_page_span(&args.x, 0, bytes, p);
    MB_GLOBAL const float *values = (MB_GLOBAL const float *)mb_translate_checked(
        &args.x, span.offset, MB_FOR_READ, args.report);
    if (!values) continue;
    const uint64_t first = span.offset / sizeof(float);
    MB_EACH_IN_BLOCK(i, span.bytes / sizeof(float))
      args.y[first + i] += args.a * values[i];
  }
}
