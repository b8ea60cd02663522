/* sum[i] = a[i] + b[i], for every target: see kernels/README.md. */
#include "target.h"

typedef struct VectorAddArgs {
  MB_GLOBAL const float *a;
  MB_GLOBAL const float *b;
  MB_GLOBAL float *sum;
  uint64_t count;
} VectorAddArgs;

MB_KERNEL(vector_add, VectorAddArgs) {
  MB_EACH(i, args.count) args.sum[i] = args.a[i] + args.b[i];
}
