/**
 * Size classes of the two-level segregated-fit index: powers of two, each cut into
 * 32 steps, so that a class spans about 3 %. After M. Masmano et al., "TLSF: a new
 * dynamic memory allocator for real-time systems", ECRTS 2004.
 *
 * @module
 */

import { BLOCK_ALIGNMENT } from "./sizes.ts";

/** log2 of the steps per power of two. */
export const STEP_BITS = 5;
/** Steps per power of two. */
export const STEPS = 1 << STEP_BITS;
/** Powers of two told apart: the first holds all sizes below 16 KiB exactly. */
export const LEVELS = 32;
/** Number of classes. */
export const CLASSES: number = LEVELS * STEPS;

const PER_UNIT = 1 / BLOCK_ALIGNMENT;

/**
 * The class of a size, a multiple of 512 bytes. Larger sizes never have a smaller
 * class. Sizes from 2 TiB on share the last class of their size.
 */
export function classOf(size: number): number {
  const scaled = size * PER_UNIT;
  const units = scaled < 0xffffffff ? scaled >>> 0 : 0xffffffff;
  if (units < STEPS) return units;
  const log = 31 - Math.clz32(units);
  return ((log - STEP_BITS + 1) << STEP_BITS) |
    ((units >>> (log - STEP_BITS)) & (STEPS - 1));
}
