#include "moonbright.h"

/* Host code that reads the same pages as a kernel. */
double sum(const MbPagedView &view, uint64_t bytes, uint64_t *report) {
  double total = 0;
  for (uint64_t p = 0; p < mb_pages_of(&view, 0, bytes); p++) {
    const MbSpan span = mb_page_span(&view, 0, bytes, p);
    const float *values = static_cast<const float *>(
        mb_translate_checked(&view, span.offset, MB_FOR_READ, report));
    if (!values) continue;
    for (uint64_t i = 0; i < span.bytes / sizeof(float); i++) total += values[i];
  }
  return total + *static_cast<const float *>(mb_translate(&view, 0));
}
