/**
 * Giving wholly free extents back to the device.
 *
 * @module
 */

import type { Allocator } from "./allocator.ts";

/**
 * Releases wholly free extents whose work is done; with `wait`, waits for that work
 * first. Returns the bytes released.
 *
 * @throws {DriverError} if the driver refuses; what was not released stays usable
 */
export function releaseCached(a: Allocator, wait: boolean): number {
  const { streams, heap, pending, extents, flushQueue, mapper } = a;
  heap.settle();
  if (wait) {
    pending.wait();
    mergeStreams(a);
  } else mergePassed(a);
  for (let stream = 0; stream < heap.free.length; stream++) {
    const index = heap.free[stream]!;
    if (index.wholeBytes === 0 && extents.looseBytes === 0) continue;
    const { recorded, open } = streams.clocks[stream]!;
    // Work of a closed stream is done, and no event can be recorded in it.
    if (!open) continue;
    if (wait) streams.waitPassed(stream, recorded);
    retireWholeExtents(a, stream);
  }
  flushQueue.flush(wait);
  const slots = [...extents.loose].filter((slot) =>
    extents.retired[slot] === 0
  );
  if (slots.length === 0) return 0;
  let bytes = 0;
  for (const slot of slots) bytes += extents.size[slot]!;
  mapper.release(slots.map((slot) => extents.driverId[slot]!), bytes);
  for (const slot of slots) extents.remove(slot);
  renewAddresses(a);
  return bytes;
}

/**
 * Gives the arena's addresses back for others where memory stays in use until then; only
 * what is mapped nowhere can be given back.
 */
function renewAddresses({ profile, arena, extents, driver }: Allocator): void {
  if (!profile.memoryFollowsAddresses || extents.count > 0) return;
  if (arena.renew(driver)) extents.rebase(arena.base);
}

/**
 * Waits for all streams but the default one and gives it their free blocks: an extent
 * that lies under free blocks of several streams is wholly free only once they merge.
 */
function mergeStreams({ streams, heap }: Allocator): void {
  for (let stream = 1; stream < heap.free.length; stream++) {
    const { recorded, open } = streams.clocks[stream]!;
    if (!open || heap.free[stream]!.count === 0) continue;
    streams.waitPassed(stream, recorded);
  }
  heap.adopt(0);
}

/** Learns what all streams have done, waiting for none, and merges their free blocks as far. */
function mergePassed({ streams, heap, pending, extents }: Allocator): void {
  streams.pollAll();
  pending.settle();
  for (let stream = 0; stream < heap.free.length; stream++) {
    const { recorded, open } = streams.clocks[stream]!;
    if (!open) continue;
    if (heap.free[stream]!.count === 0 && extents.looseBytes === 0) continue;
    streams.ensureTicked(stream, recorded);
    streams.poll(stream);
  }
  heap.mergePassed();
}

/** Retires the mappings of all wholly free extents of a stream whose work is done. */
function retireWholeExtents(a: Allocator, stream: number): void {
  const { streams, heap, blocks, extents, flushQueue } = a;
  const holders = [
    ...heap.index(stream).ascending(a.driver.info.granularity),
  ].filter((id) =>
    blocks.whole[id]! > 0 && streams.isPassed(stream, blocks.epoch[id]!)
  );
  for (const id of holders) {
    const start = blocks.address[id]!;
    const epoch = blocks.epoch[id]!;
    const from = extents.wholeStart(start);
    const to = extents.wholeEnd(start + blocks.size[id]!);
    heap.carve(id, from, to);
    for (let at = from; at < to;) {
      const slot = extents.at(at);
      at += extents.size[slot]!;
      flushQueue.retire(slot, stream, epoch);
    }
  }
}
