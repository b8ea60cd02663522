#include "moonbright.h"

/* y[i] += a * x[i] for n values; x is paged, y is not. */
extern "C" __global__ void saxpy(MbPagedView x, float *y, float a, uint64_t n,
                                 uint64_t *report) {
  const uint64_t bytes = n * sizeof(float);
  for (uint64_t p = blockIdx.x; p < mb_pages_of(&x, 0, bytes); p += gridDim.x) {
    /* All threads of the block find the page, once; then they share its values. */
    const MbSpan span = mb_page_span(&x, 0, bytes, p);
    const float *values =
        (const float *)mb_translate_checked(&x, span.offset, MB_FOR_READ, report);
    if (!values) continue;
    const uint64_t first = span.offset / sizeof(float);
    for (uint64_t i = threadIdx.x; i < span.bytes / sizeof(float); i += blockDim.x)
      y[first + i] += a * values[i];
  }
}
