/* One C11 source, three targets: NVIDIA PTX, AMD code objects and the host.
 *
 * A kernel is written once, for one thread of a one-dimensional launch:
 *
 *   typedef struct { MB_GLOBAL uint64_t *words; uint64_t count; } ClearArgs;
 *   MB_KERNEL(clear, ClearArgs) {
 *     MB_EACH(i, args.count) args.words[i] = 0;
 *   }
 *
 * The argument block that the launcher passes is the struct itself on every target:
 * it is the kernel's single parameter on a GPU and is copied from `args` on the host.
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

#define MB_THREAD_BODY(name, parameter)                                        \
  MB_INLINE void name##_thread(parameter __attribute__((unused)),              \
                               MbThread mb_thread __attribute__((unused)))

/* MB_KERNEL's body has `args`, the argument block. MB_KERNEL_BY_POINTER's has a pointer to
 * it instead: for blocks with arrays indexed at run time, which the compiler would copy to
 * each thread's stack. */
#define MB_KERNEL(name, Args)                                                  \
  MB_INLINE void name##_thread(Args args, MbThread mb_thread);                 \
  MB_LAUNCHED(name, Args, args)                                                \
  MB_THREAD_BODY(name, Args args)

#define MB_KERNEL_BY_POINTER(name, Args)                                       \
  MB_INLINE void name##_thread(const Args *args, MbThread mb_thread);          \
  MB_LAUNCHED(name, Args, &args)                                               \
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
#define MB_SHARE(i, n, number, threads)                                        \
  for (uint64_t i = mb_share_begin((number), (threads), (n)),                  \
                i##_end = mb_share_begin((number) + 1, (threads), (n));        \
       i < i##_end; i++)

#define MB_EACH(i, n) MB_SHARE(i, n, mb_thread.index, mb_thread.count)
#define MB_EACH_IN_BLOCK(i, n) MB_SHARE(i, n, mb_thread.lane, mb_thread.lanes)

#define MB_LAUNCHED(name, Args, passed)                                        \
  __attribute__((visibility("default"))) void name(                            \
      const void *block, const MbGeometry *geometry);                          \
  void name(const void *block, const MbGeometry *geometry) {                   \
    Args args;                                                                 \
    memcpy(&args, block, sizeof args);                                         \
    const uint64_t blocks = mb_volume(geometry->grid);                         \
    const uint64_t lanes = mb_volume(geometry->block);                         \
    MbThread thread = {0, blocks * lanes, 0, blocks, 0, lanes};                \
    for (; thread.block < blocks; thread.block++)                              \
      for (thread.lane = 0; thread.lane < lanes; thread.lane++) {              \
        name##_thread(passed, thread);                                         \
        thread.index++;                                                        \
      }                                                                        \
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
#define MB_AXIS_SOURCE(axis)                                                   \
  MB_INLINE uint32_t mb_block_##axis(void) {                                   \
    return (uint32_t)__nvvm_read_ptx_sreg_ctaid_##axis();                      \
  }                                                                            \
  MB_INLINE uint32_t mb_blocks_##axis(void) {                                  \
    return (uint32_t)__nvvm_read_ptx_sreg_nctaid_##axis();                     \
  }                                                                            \
  MB_INLINE uint32_t mb_lane_##axis(void) {                                    \
    return (uint32_t)__nvvm_read_ptx_sreg_tid_##axis();                        \
  }                                                                            \
  MB_INLINE uint32_t mb_lanes_##axis(void) {                                   \
    return (uint32_t)__nvvm_read_ptx_sreg_ntid_##axis();                       \
  }                                                                            \
  MB_INLINE uint64_t mb_extent_##axis(void) {                                  \
    return (uint64_t)mb_blocks_##axis() * mb_lanes_##axis();                   \
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
#define MB_AXIS_SOURCE(axis)                                                   \
  MB_INLINE uint32_t mb_block_##axis(void) {                                   \
    return (uint32_t)__builtin_amdgcn_workgroup_id_##axis();                   \
  }                                                                            \
  MB_INLINE uint32_t mb_blocks_##axis(void) {                                  \
    return (uint32_t)__builtin_amdgcn_grid_size_##axis() /                     \
           (uint32_t)__builtin_amdgcn_workgroup_size_##axis();                 \
  }                                                                            \
  MB_INLINE uint32_t mb_lane_##axis(void) {                                    \
    return (uint32_t)__builtin_amdgcn_workitem_id_##axis();                    \
  }                                                                            \
  MB_INLINE uint32_t mb_lanes_##axis(void) {                                   \
    return (uint32_t)__builtin_amdgcn_workgroup_size_##axis();                 \
  }                                                                            \
  MB_INLINE uint64_t mb_extent_##axis(void) {                                  \
    return __builtin_amdgcn_grid_size_##axis();                                \
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

#define MB_AXIS(axis)                                                          \
  MB_AXIS_SOURCE(axis)                                                         \
  MB_INLINE uint64_t mb_index_##axis(void) {                                   \
    return (uint64_t)mb_block_##axis() * mb_lanes_##axis() + mb_lane_##axis(); \
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
#define MB_EACH(i, n)                                                          \
  for (uint64_t i = mb_thread.index; i < (n); i += mb_thread.count)
#define MB_EACH_IN_BLOCK(i, n)                                                 \
  for (uint64_t i = mb_thread.lane; i < (n); i += mb_thread.lanes)

#define MB_LAUNCHED(name, Args, passed)                                        \
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
#define MB_EACH_BLOCK(i, n)                                                    \
  for (uint64_t i = mb_thread.block; i < (n); i += mb_thread.blocks)

#endif
