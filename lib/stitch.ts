/**
 * Carries out a plan: gathers wholly free extents, has them mapped side by side with
 * new ones, and brings the tables in step. Old mappings are retired, not unmapped, so
 * nothing waits.
 *
 * @module
 */

import type { Allocator } from "./allocator.ts";
import { BlockState } from "./blocks.ts";
import { MoonBrightError } from "./errors.ts";
import type { Plan, StitchCandidates } from "./planner.ts";
import { formatSize } from "./sizes.ts";

/** Candidates with where they are. */
export interface GatheredExtents extends StitchCandidates {
  /** Slot of each extent. */
  slots: number[];
  /** Free block that holds it, 0 for a loose extent. */
  holders: number[];
  sizes: number[];
  bytes: number;
}

/** The free block at the frontier if `stream` may extend it, else 0. */
export function extendableTop(a: Allocator, stream: number): number {
  const { heap, blocks, arena } = a;
  const { top } = heap;
  return top !== 0 && blocks.state[top] === BlockState.FREE &&
      blocks.stream[top] === stream &&
      blocks.address[top]! + blocks.size[top]! === arena.frontier
    ? top
    : 0;
}

/**
 * Wholly free extents that `stream` may use at once, until they hold `bytes`: loose
 * ones first, then those in the smallest free blocks, which leaves large blocks whole
 * for reuse. Extents in the block `except` are left out.
 */
export function gatherExtents(
  a: Allocator,
  stream: number,
  bytes: number,
  except: number,
): GatheredExtents {
  const { extents, heap, blocks, streams } = a;
  const least = a.growth.leastStitched;
  const found: GatheredExtents = {
    slots: [],
    holders: [],
    sizes: [],
    bytes: 0,
  };
  for (const slot of extents.loose) {
    if (found.bytes >= bytes) return found;
    const visible = streams.isVisibleTo(
      stream,
      extents.lastStream[slot]!,
      extents.lastEpoch[slot]!,
    );
    if (visible) addCandidate(found, slot, 0, extents.size[slot]!, least);
  }
  const index = heap.index(stream);
  if (index.wholeBytes === 0) return found;
  // Steps from block to block rather than a generator: hundreds of steps, on the way of
  // a request.
  let id = index.first(a.driver.info.granularity);
  for (; id !== 0 && found.bytes < bytes; id = index.after(id)) {
    if (blocks.whole[id] === 0 || id === except) continue;
    const start = blocks.address[id]!;
    const end = extents.wholeEnd(start + blocks.size[id]!);
    let at = extents.wholeStart(start);
    while (at < end && found.bytes < bytes) {
      const slot = extents.at(at);
      const size = extents.size[slot]!;
      addCandidate(found, slot, id, size, least);
      at += size;
    }
  }
  return found;
}

function addCandidate(
  found: GatheredExtents,
  slot: number,
  holder: number,
  size: number,
  least: number,
): void {
  if (size < least) return;
  found.slots.push(slot);
  found.holders.push(holder);
  found.sizes.push(size);
  found.bytes += size;
}

/**
 * Maps what the plan says at `address` (the frontier, a fresh range, or the end of a
 * growable block, already taken from the arena) and updates the extents. The caller
 * makes a block of it.
 *
 * @throws {DriverError} if the driver refuses; nothing has changed then, but where it did
 * not take new extents back either: those are loose
 */
export function mapPlanned(
  a: Allocator,
  plan: Plan,
  found: GatheredExtents,
  address: number,
): void {
  const { extents, heap, blocks, mapper, flushQueue } = a;
  extents.prepare(plan.create.length, address + plan.mapBytes);
  blocks.prepare(2 * plan.stitch.length + 4);
  const slots: number[] = [];
  const driverIds: number[] = [];
  let stitched = 0;
  for (const index of plan.stitch) {
    const slot = found.slots[index]!;
    slots.push(slot);
    driverIds.push(extents.driverId[slot]!);
    stitched += extents.size[slot]!;
  }
  const created = mapper.install(
    address,
    driverIds,
    stitched,
    plan.create,
    // They are memory all the same: the next request may stitch them.
    (kept) => kept.forEach((id, i) => extents.add(id, plan.create[i]!)),
  );

  let at = address + stitched;
  for (let i = 0; i < created.length; i++) {
    const slot = extents.add(created[i]!, plan.create[i]!);
    extents.place(slot, at);
    at += plan.create[i]!;
  }
  // Backwards: a carved block keeps its record for the part before the hole, and the
  // extents of a block were gathered by rising address.
  for (let i = slots.length - 1, at = address + stitched; i >= 0; i--) {
    const slot = slots[i]!;
    const size = extents.size[slot]!;
    const holder = found.holders[plan.stitch[i]!]!;
    at -= size;
    if (holder === 0) {
      extents.place(slot, at);
      continue;
    }
    const from = extents.address[slot]!;
    const stream = blocks.stream[holder]!;
    const epoch = blocks.epoch[holder]!;
    heap.carve(holder, from, from + size);
    flushQueue.retireMoved(slot, stream, epoch, at);
  }
  a.counters.peakMapped = Math.max(a.counters.peakMapped, extents.totalBytes);
}

/**
 * Takes `size` bytes of addresses, flushing retired mappings if none are left.
 *
 * @throws {MoonBrightError} code `out-of-addresses` if there are none even so
 */
export function takeAddresses(
  a: Allocator,
  size: number,
  operation: string,
): number {
  let address = a.arena.take(size);
  if (address < 0 && a.flushQueue.count > 0) {
    a.flushQueue.flush(true);
    address = a.arena.take(size);
  }
  if (address < 0) {
    throw new MoonBrightError(
      "out-of-addresses",
      operation,
      `Cannot ${operation}: no ${
        formatSize(size)
      } of contiguous addresses left in an arena of ${
        formatSize(a.arena.size)
      }; free growable blocks, ask for a smaller "maxSize", or open with more "addressSpace"`,
    );
  }
  return address;
}
