/**
 * Page-table entries encoded by the host: the peer of the kernels that write them, in the
 * quickest loop that can be had without them.
 *
 * @module
 */

import type { MaterializeTarget } from "../paging/argument_blocks.ts";
import { entryFlags } from "../paging/formats.ts";

/** Encodes the entry of each frame. */
export function encodeOnHost(
  target: MaterializeTarget,
  frames: Uint32Array,
  entries: BigUint64Array,
): void {
  const { format, pageSize } = target;
  // Bigints that are told to have 64 bits stay in registers: the loop is twice as quick
  // as one over halves of words.
  const u64 = BigInt.asUintN;
  const shift = BigInt(format.addressShift);
  // Addresses are multiples of the page size: shifting the parts is shifting the sum.
  const base = u64(64, BigInt(target.frames) >> shift);
  const step = u64(64, BigInt(pageSize) >> shift);
  const mask = u64(64, format.addressMask);
  const flags = u64(64, entryFlags(format, target));
  for (let i = 0; i < frames.length; i++) {
    const field = u64(64, base + u64(64, BigInt(frames[i]!) * step));
    entries[i] = u64(64, u64(64, field & mask) | flags);
  }
}
