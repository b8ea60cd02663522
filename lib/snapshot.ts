/**
 * Reports of an allocator's state: figures, and every extent and block.
 *
 * @module
 */

import type { Allocator } from "./allocator.ts";
import { BlockFlag, BlockState } from "./blocks.ts";
import type { DeviceInfo } from "./driver.ts";
import { hasFlag } from "./heap.ts";
import type { BlockStory } from "./debug/history.ts";
import type { CallCount, CallKind } from "./mapper.ts";
import type { Stats } from "./stats.ts";

/** A block, in a {@linkcode Snapshot}. */
export interface BlockSnapshot {
  /** First byte. */
  address: number;
  /** Bytes. */
  size: number;
  /** Bytes asked for; 0 of a free block. */
  requested: number;
  /** What it is: `pending` is freed, but still used by work on another stream or by a graph. */
  state: "free" | "live" | "pending";
  /** Number of the stream whose order it follows. */
  stream: number;
  /** Its name, if it has one. */
  name?: string;
  /** Whether a graph that was not closed yet uses it. */
  captured?: true;
  /** Bytes it can grow to in place, if room was kept for it. */
  maxSize?: number;
}

/** An extent, in a {@linkcode Snapshot}. */
export interface ExtentSnapshot {
  /** Bytes. */
  size: number;
  /** Address of its current mapping, `null` if it has none. */
  address: number | null;
  /** Retired mappings of it that are still installed. */
  retiredMappings: number;
}

/** Everything an instance holds, as JSON. Sizes in bytes. */
export interface Snapshot {
  /** Version of this layout. */
  schemaVersion: 1;
  /** When it was taken, ISO 8601. */
  time: string;
  /** The device. */
  device: DeviceInfo;
  /** The figures. */
  stats: Stats;
  /** The reserved addresses. */
  arena: { base: number; size: number; frontier: number };
  /** All extents. */
  extents: ExtentSnapshot[];
  /** All blocks by address. */
  blocks: BlockSnapshot[];
  /** Mappings no longer wanted but still installed. */
  retired: { address: number; size: number; stream: number }[];
  /** With `debug: "quarantine"`: the freed blocks that are remembered, the oldest first. */
  quarantined?: BlockStory[];
}

const STATES: Record<number, BlockSnapshot["state"]> = {
  [BlockState.FREE]: "free",
  [BlockState.LIVE]: "live",
  [BlockState.PENDING]: "pending",
};

/** The figures of an allocator. */
export function takeStats(a: Allocator): Stats {
  const { counters, extents, heap, blocks, flushQueue, arena, budget } = a;
  heap.settle();
  let free = extents.looseBytes;
  let largestFree = 0;
  let stitchable = extents.looseBytes + heap.sharedWholeBytes();
  for (const index of heap.free) {
    free += index.bytes;
    stitchable += index.wholeBytes;
    const largest = index.largest();
    if (largest !== 0) {
      largestFree = Math.max(largestFree, blocks.size[largest]!);
    }
  }
  return {
    schemaVersion: 1,
    live: counters.live,
    requested: counters.requested,
    liveBlocks: counters.liveBlocks,
    free,
    largestFree,
    stitchable,
    pending: counters.pending,
    captured: a.capturedBytes,
    mapped: extents.totalBytes,
    extents: extents.count,
    anchor: a.anchorBytes,
    reserved: arena.size,
    retired: flushQueue.retiredBytes,
    retiredMappings: flushQueue.count,
    recyclable: arena.recyclableBytes,
    budget: budget === Infinity ? null : budget,
    peak: { live: counters.peakLive, mapped: counters.peakMapped },
    ways: counters.wayStats(),
    planning: { ...counters.planning },
    frees: counters.frees,
    flushes: flushQueue.flushes,
    driver: structuredClone(a.mapper.calls) as Record<CallKind, CallCount>,
  };
}

/** Everything an allocator holds. */
export function takeSnapshot(a: Allocator): Snapshot {
  const { blocks, extents, arena } = a;
  const snapshot: Snapshot = {
    schemaVersion: 1,
    time: new Date().toISOString(),
    device: { ...a.driver.info },
    stats: takeStats(a),
    arena: { base: arena.base, size: arena.size, frontier: arena.frontier },
    extents: [],
    blocks: [],
    retired: [],
  };
  for (const slot of extents.slots()) {
    const address = extents.address[slot]!;
    snapshot.extents.push({
      size: extents.size[slot]!,
      address: address < 0 ? null : address,
      retiredMappings: extents.retired[slot]!,
    });
  }
  const ends = new Map(a.growables.entries());
  for (let id = 1; id < blocks.end; id++) {
    const state = STATES[blocks.state[id]!];
    if (!state) continue;
    const name = a.names.get(id);
    const captured = hasFlag(blocks, id, BlockFlag.CAPTURED) || undefined;
    const end = ends.get(id);
    snapshot.blocks.push({
      address: blocks.address[id]!,
      size: blocks.size[id]!,
      requested: state === "free" ? 0 : blocks.requested[id]!,
      state,
      stream: blocks.stream[id]!,
      ...(name === undefined ? {} : { name }),
      ...(captured ? { captured } : {}),
      ...(end === undefined ? {} : { maxSize: end - blocks.address[id]! }),
    });
  }
  snapshot.blocks.sort((x, y) => x.address - y.address);
  for (const { address, size, stream } of a.flushQueue.mappings()) {
    snapshot.retired.push({ address, size, stream });
  }
  if (a.watch?.quarantine) {
    snapshot.quarantined = [...a.watch.history.freedBlocks()];
  }
  return snapshot;
}
