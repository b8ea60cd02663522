/**
 * Changing a block's size without moving it.
 *
 * @module
 */

import type { Allocator } from "./allocator.ts";
import { BlockFlag, WHOLE_UNKNOWN } from "./blocks.ts";
import { MoonBrightError } from "./errors.ts";
import { hasFlag } from "./heap.ts";
import { BLOCK_ALIGNMENT, formatSize, roundUp } from "./sizes.ts";
import { backRange } from "./slow_path.ts";
import { zeroFrom } from "./zero.ts";

/**
 * Resizes a live block in place to `requested` bytes (at least 1). Growing maps more
 * behind the same address; shrinking makes whatever is no longer used free at once,
 * unless a graph uses the block.
 *
 * @throws {MoonBrightError} code `cannot-grow` if something else lies behind the block
 * @throws {OutOfMemoryError} if there is room but no memory
 */
export function resizeBlock(
  a: Allocator,
  id: number,
  requested: number,
): void {
  a.copies.assertNone(a.blocks, id, "resize");
  a.watch?.beforeResize(id);
  try {
    changeSize(a, id, requested);
  } finally {
    // Also of a resize that failed half-way: the block may have more set aside for it.
    a.watch?.resized(id);
  }
}

function changeSize(a: Allocator, id: number, requested: number): void {
  const { blocks, counters, watch } = a;
  const growable = hasFlag(blocks, id, BlockFlag.GROWABLE);
  const size = growable
    ? roundUp(requested, a.driver.info.granularity)
    : watch?.capacityFor(requested) ?? roundUp(requested, BLOCK_ALIGNMENT);
  const before = blocks.size[id]!;
  const requestedBefore = blocks.requested[id]!;
  const zeroes = requested > requestedBefore &&
    hasFlag(blocks, id, BlockFlag.ZEROED);
  // Before anything changes, since a stream that is capturing can't be waited for.
  if (size < before || zeroes || watch?.marks(id)) orderSharedUses(a, id);
  if (size > before) {
    if (growable) growInto(a, id, size, requested);
    else if (!a.heap.widen(id, size) && !extendTop(a, id, size, requested)) {
      throw new MoonBrightError(
        "cannot-grow",
        "resize",
        `Cannot resize the block to ${formatSize(requested)} in place: ${
          a.plain
            ? `this device can't map memory behind it; ${a.plain.reason}`
            : 'other memory lies behind it; allocate it with "maxSize" to keep room for growth'
        }`,
      );
    }
    a.pending.grown(id);
  } else if (size < before && !hasFlag(blocks, id, BlockFlag.CAPTURED)) {
    if (growable) shrinkGrowable(a, id, size);
    // A quarantined block's end would otherwise serve others.
    else if (!watch?.quarantine) {
      a.heap.release(a.heap.cut(id, size), blocks.stream[id]!);
    }
  }
  counters.live += blocks.size[id]! - before;
  counters.peakLive = Math.max(counters.peakLive, counters.live);
  blocks.whole[id] = WHOLE_UNKNOWN;
  if (zeroes) {
    // Before the program sees them: if this fails, it never does.
    zeroFrom(a, id, requestedBefore);
    a.pending.grown(id);
  }
  const { observer } = a;
  if (observer !== undefined) {
    observer.freed(blocks.address[id]!, requestedBefore, blocks.stream[id]!);
  }
  counters.requested += requested - requestedBefore;
  blocks.requested[id] = requested;
  if (observer !== undefined) observer.allocated(id);
}

/** Makes the block's stream wait for the others that used it, so that its order covers theirs. */
function orderSharedUses(a: Allocator, id: number): void {
  if (!hasFlag(a.blocks, id, BlockFlag.SHARED)) return;
  const stream = a.blocks.stream[id]!;
  for (const user of a.pending.usersOf(id)) {
    if (user !== stream) a.streams.join(stream, user);
  }
}

/** Grows a block that ends at the frontier; false if it doesn't. */
function extendTop(
  a: Allocator,
  id: number,
  size: number,
  requested: number,
): boolean {
  const { heap, blocks, arena } = a;
  const stream = blocks.stream[id]!;
  const end = blocks.address[id]! + blocks.size[id]!;
  const next = blocks.next[id]!;
  // What is mapped next is chained to the top block only.
  if (heap.top !== (next === 0 ? id : next)) return false;
  const freeBehind = next === 0 ? 0 : heap.freeBytesFor(next, stream);
  if (next !== 0 && freeBehind === 0) return false;
  if (end + freeBehind !== arena.frontier) return false;
  const bytes = roundUp(
    blocks.address[id]! + size - arena.frontier,
    a.driver.info.granularity,
  );
  const address = arena.frontier;
  if (!arena.extend(bytes)) return false;
  // Held back while extents are gathered: the free rest must not be stitched away.
  if (next !== 0) heap.hold(next, stream);
  try {
    backRange(a, address, bytes, requested, stream);
  } catch (error) {
    arena.giveBack(address, bytes);
    throw error;
  } finally {
    if (next !== 0) heap.unhold(next);
  }
  heap.add(address, bytes, stream, true);
  heap.widen(id, size);
  return true;
}

/** Backs more of a growable block's addresses. */
function growInto(
  a: Allocator,
  id: number,
  size: number,
  requested: number,
): void {
  const { blocks, extents, flushQueue } = a;
  const address = blocks.address[id]!;
  const stream = blocks.stream[id]!;
  const limit = a.growables.endOf(id) - address;
  if (size > limit) {
    throw new MoonBrightError(
      "cannot-grow",
      "resize",
      `Cannot resize the block to ${
        formatSize(requested)
      }: it was allocated with a "maxSize" of ${formatSize(limit)}`,
    );
  }
  const before = blocks.size[id]!;
  try {
    // What a shrink left installed comes back without a driver call.
    while (blocks.size[id]! < size) {
      const slot = flushQueue.revive(address + blocks.size[id]!, stream);
      if (slot === 0) break;
      blocks.size[id]! += extents.size[slot]!;
    }
    const missing = size - blocks.size[id]!;
    if (missing <= 0) return;
    const end = address + blocks.size[id]!;
    flushQueue.flushRange(end, missing);
    backRange(a, end, missing, requested, stream);
    blocks.size[id]! += missing;
  } catch (error) {
    shrinkGrowable(a, id, before);
    throw error;
  }
}

/** Makes the extents behind the new end loose. */
function shrinkGrowable(a: Allocator, id: number, size: number): void {
  const { blocks, extents, flushQueue, streams } = a;
  const address = blocks.address[id]!;
  const stream = blocks.stream[id]!;
  const { recorded } = streams.clocks[stream]!;
  // Extents are never split: one that reaches over the new end stays.
  let end = address + blocks.size[id]!;
  while (end > address) {
    const slot = extents.at(end - 1);
    const start = extents.address[slot]!;
    if (start < address + size) break;
    flushQueue.retire(slot, stream, recorded, false);
    end = start;
  }
  blocks.size[id] = end - address;
}
