/**
 * Frames in an order without pattern, the worst for a page table, the same in every run.
 *
 * @module
 */

import type { RunList } from "../paging/argument_blocks.ts";

/**
 * All frames below `count`, a power of two up to 2^30, each once.
 *
 * @throws {RangeError} if it is no such number
 */
export function scatteredFrames(count: number): Uint32Array {
  const bits = Math.log2(count);
  if (!(Number.isInteger(bits) && bits >= 0 && bits <= 30)) {
    throw new RangeError(
      `Cannot scatter frames: ${count} is no power of two up to 2^30`,
    );
  }
  // Each step can be undone within the bits, so no number comes twice. Shuffling would
  // take seconds where frames are many.
  const mask = count - 1;
  const shift = Math.max(1, Math.ceil(bits / 2));
  const frames = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    let x = Math.imul(i + 1, 0x9E3779B1) & mask;
    x ^= x >>> shift;
    x = Math.imul(x, 0x85EBCA6B) & mask;
    x ^= x >>> shift;
    frames[i] = x;
  }
  return frames;
}

/** Frames as a list for `mb_materialize_list`, each a run of its own. */
export function singleFrameRuns(frames: Uint32Array): RunList {
  const halves = new Uint32Array(2 * frames.length);
  for (let i = 0; i < frames.length; i++) {
    halves[2 * i] = i;
    halves[2 * i + 1] = frames[i]!;
  }
  return {
    bytes: new Uint8Array(halves.buffer),
    runCount: frames.length,
    count: frames.length,
  };
}
