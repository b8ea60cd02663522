/* Fills memory with words that depend on their index, and finds those that changed. */
#include "target.h"

typedef struct MbPatternFill {
  MB_GLOBAL uint64_t *words; /* 8-byte aligned */
  uint64_t count;            /* words */
  uint64_t seed;
} MbPatternFill;

/* The caller sets it to {0, UINT64_MAX} before a launch, or lets launches add up. */
typedef struct MbPatternResult {
  uint64_t mismatches;
  uint64_t first_bad; /* the lowest index of a word that differs */
} MbPatternResult;

typedef struct MbPatternVerify {
  MB_GLOBAL const uint64_t *words; /* 8-byte aligned */
  uint64_t count;                  /* words */
  uint64_t seed;
  MB_GLOBAL MbPatternResult *result;
} MbPatternVerify;

/* The finalizer of SplitMix64: a bijection, so that no two words of a range are equal.
 * It sees only seed + index: the part of a range from word k on has the seed + k. */
MB_INLINE uint64_t pattern_word(uint64_t seed, uint64_t index) {
  uint64_t x = (seed + index) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* Words before the first 16-byte boundary. */
MB_INLINE uint64_t words_before_pairs(MB_GLOBAL const void *words, uint64_t count) {
  const uint64_t head = ((uint64_t)words >> 3) & 1;
  return head < count ? head : count;
}

MB_KERNEL(mb_pattern_fill, MbPatternFill) {
  const uint64_t head = words_before_pairs(args.words, args.count);
  MB_GLOBAL MbPair *pairs = (MB_GLOBAL MbPair *)(args.words + head);
  MB_EACH(p, (args.count - head) / 2) {
    const uint64_t i = head + 2 * p;
    pairs[p] = (MbPair){pattern_word(args.seed, i), pattern_word(args.seed, i + 1)};
  }
  if (MB_THREAD == 0) {
    if (head != 0) args.words[0] = pattern_word(args.seed, 0);
    if ((args.count - head) % 2 != 0)
      args.words[args.count - 1] = pattern_word(args.seed, args.count - 1);
  }
}

MB_INLINE void check_word(uint64_t word, uint64_t seed, uint64_t index,
                          MbPatternResult *found) {
  if (word == pattern_word(seed, index)) return;
  found->mismatches++;
  if (index < found->first_bad) found->first_bad = index;
}

MB_KERNEL(mb_pattern_verify, MbPatternVerify) {
  MbPatternResult found = {0, UINT64_MAX};
  const uint64_t head = words_before_pairs(args.words, args.count);
  MB_GLOBAL const MbPair *pairs = (MB_GLOBAL const MbPair *)(args.words + head);
  MB_EACH(p, (args.count - head) / 2) {
    const uint64_t i = head + 2 * p;
    const MbPair pair = pairs[p];
    check_word(pair[0], args.seed, i, &found);
    check_word(pair[1], args.seed, i + 1, &found);
  }
  if (MB_THREAD == 0) {
    if (head != 0) check_word(args.words[0], args.seed, 0, &found);
    if ((args.count - head) % 2 != 0)
      check_word(args.words[args.count - 1], args.seed, args.count - 1, &found);
  }
  if (found.mismatches != 0) {
    mb_atomic_add(&args.result->mismatches, found.mismatches);
    mb_atomic_min(&args.result->first_bad, found.first_bad);
  }
}
