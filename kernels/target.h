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
  uint64_t index, count; /* this thread's number, threads in the launch */
} MbThread;

#define MB_INLINE static inline __attribute__((always_inline, unused))

#define MB_THREAD_BODY(name, Args)                                             \
  MB_INLINE void name##_thread(Args args __attribute__((unused)),              \
                               MbThread mb_thread __attribute__((unused)))

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

MB_INLINE uint64_t mb_launch_threads(const MbGeometry *geometry) {
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; axis++)
    threads *= (uint64_t)geometry->grid[axis] * geometry->block[axis];
  return threads;
}

/* Where the part of n items begins that this thread handles; the last parts may be empty. */
MB_INLINE uint64_t mb_share_begin(uint64_t index, uint64_t threads, uint64_t n) {
  const uint64_t share = n / threads + (n % threads != 0);
  return index * share < n ? index * share : n;
}

/* Neighbouring words go to one thread, not to neighbouring threads as on a GPU: threads
 * run one after another here, and each walks its own cache lines. */
#define MB_EACH(i, n)                                                          \
  for (uint64_t i = mb_share_begin(mb_thread.index, mb_thread.count, (n)),     \
                i##_end =                                                      \
                    mb_share_begin(mb_thread.index + 1, mb_thread.count, (n)); \
       i < i##_end; i++)

#define MB_KERNEL(name, Args)                                                  \
  MB_INLINE void name##_thread(Args args, MbThread mb_thread);                 \
  __attribute__((visibility("default"))) void name(                            \
      const void *block, const MbGeometry *geometry);                          \
  void name(const void *block, const MbGeometry *geometry) {                   \
    Args args;                                                                 \
    memcpy(&args, block, sizeof args);                                         \
    MbThread thread = {0, mb_launch_threads(geometry)};                        \
    for (; thread.index < thread.count; thread.index++)                        \
      name##_thread(args, thread);                                             \
  }                                                                            \
  MB_THREAD_BODY(name, Args)

MB_INLINE void mb_atomic_add(uint64_t *target, uint64_t value) {
  __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
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
#define MB_AXIS(axis)                                                          \
  MB_INLINE uint64_t mb_index_##axis(void) {                                   \
    return (uint64_t)__nvvm_read_ptx_sreg_ctaid_##axis() *                     \
               (uint32_t)__nvvm_read_ptx_sreg_ntid_##axis() +                  \
           (uint32_t)__nvvm_read_ptx_sreg_tid_##axis();                        \
  }                                                                            \
  MB_INLINE uint64_t mb_extent_##axis(void) {                                  \
    return (uint64_t)__nvvm_read_ptx_sreg_nctaid_##axis() *                    \
           (uint32_t)__nvvm_read_ptx_sreg_ntid_##axis();                       \
  }

MB_INLINE uint64_t mb_clock_ns(void) {
  uint64_t now;
  __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

#else

/* Hidden is the default here, and the loader finds only symbols that are exported. */
#define MB_ENTRY __attribute__((amdgpu_kernel, visibility("protected")))
#define MB_AXIS(axis)                                                          \
  MB_INLINE uint64_t mb_index_##axis(void) {                                   \
    return (uint64_t)__builtin_amdgcn_workgroup_id_##axis() *                  \
               __builtin_amdgcn_workgroup_size_##axis() +                      \
           __builtin_amdgcn_workitem_id_##axis();                              \
  }                                                                            \
  MB_INLINE uint64_t mb_extent_##axis(void) {                                  \
    return __builtin_amdgcn_grid_size_##axis();                                \
  }

/* The constant clock that every supported architecture runs at 100 MHz. */
MB_INLINE uint64_t mb_clock_ns(void) {
  return __builtin_readsteadycounter() * 10u;
}

#endif

MB_AXIS(x)
MB_AXIS(y)
MB_AXIS(z)

MB_INLINE MbThread mb_this_thread(void) {
  MbThread thread = {
      mb_index_x() + mb_extent_x() * (mb_index_y() + mb_extent_y() * mb_index_z()),
      mb_extent_x() * mb_extent_y() * mb_extent_z()};
  return thread;
}

/* Neighbouring threads take neighbouring items, so that accesses coalesce. */
#define MB_EACH(i, n)                                                          \
  for (uint64_t i = mb_thread.index; i < (n); i += mb_thread.count)

#define MB_KERNEL(name, Args)                                                  \
  MB_INLINE void name##_thread(Args args, MbThread mb_thread);                 \
  MB_ENTRY void name(Args args) { name##_thread(args, mb_this_thread()); }     \
  MB_THREAD_BODY(name, Args)

MB_INLINE void mb_atomic_add(MB_GLOBAL uint64_t *target, uint64_t value) {
  __scoped_atomic_fetch_add(target, value, __ATOMIC_RELAXED,
                            __MEMORY_SCOPE_DEVICE);
}

MB_INLINE void mb_atomic_min(MB_GLOBAL uint64_t *target, uint64_t value) {
  __scoped_atomic_fetch_min(target, value, __ATOMIC_RELAXED,
                            __MEMORY_SCOPE_DEVICE);
}

#endif

/* The linear number of this thread, for work that only one thread does. */
#define MB_THREAD (mb_thread.index)

#endif
