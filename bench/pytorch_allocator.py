"""Times PyTorch's CUDA caching allocator in a C++ loop, as a peer for `moonbright bench`.

    python3 bench/pytorch_allocator.py [--json]

Prints, per size, the median of allocate-and-free pairs in nanoseconds, over 200
batches of 1000 pairs each, with one warm block of the size in the allocator's cache.
Needs PyTorch with CUDA and a C++ compiler.
"""

import json
import sys

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/extension.h>
#include <algorithm>
#include <chrono>
#include <vector>

double pair_ns(int64_t bytes, int64_t batches, int64_t pairs) {
  using clock = std::chrono::steady_clock;
  auto* allocator = c10::cuda::CUDACachingAllocator::get();
  allocator->raw_deallocate(allocator->raw_allocate(bytes));
  std::vector<double> samples;
  for (int64_t b = 0; b < batches; b++) {
    auto start = clock::now();
    for (int64_t i = 0; i < pairs; i++)
      allocator->raw_deallocate(allocator->raw_allocate(bytes));
    std::chrono::duration<double, std::nano> spent = clock::now() - start;
    samples.push_back(spent.count() / pairs);
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("pair_ns", &pair_ns); }
"""

SIZES = [512, 64 << 10, 2 << 20, 16 << 20, 128 << 20, 1 << 30, 8 << 30]


def main() -> None:
    torch.cuda.init()
    torch.empty(1, device="cuda")
    module = load_inline(
        name="moonbright_pytorch_peer",
        cpp_sources=SOURCE,
        with_cuda=True,
        extra_cflags=["-O2"],
    )
    rows = [
        {"size": size, "pair_ns": module.pair_ns(size, 200, 1000)}
        for size in SIZES
    ]
    if "--json" in sys.argv[1:]:
        print(json.dumps({"torch": torch.__version__, "rows": rows}))
        return
    print(f"PyTorch {torch.__version__} caching allocator, pair, median ns")
    for row in rows:
        print(f"{row['size']:>12} {row['pair_ns']:>8.0f}")


if __name__ == "__main__":
    main()
