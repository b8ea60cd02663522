/* As much of HIP's own headers as the example needs, where HIP is not installed. */
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))

struct HipIndex {
  unsigned x;
};

extern __device__ const HipIndex blockIdx, gridDim, threadIdx, blockDim;
__device__ unsigned long long atomicMin(unsigned long long *, unsigned long long);
