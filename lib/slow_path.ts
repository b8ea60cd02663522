/**
 * Serving a request that no free block of its stream can serve: other streams' blocks,
 * then mapping more, then, under pressure, waiting and giving back.
 *
 * @module
 */

import type { Allocator } from "./allocator.ts";
import { DriverError, MoonBrightError, OutOfMemoryError } from "./errors.ts";
import { type Plan, plan, type PlanInput, type Way } from "./planner.ts";
import { growPlainly } from "./plain_extents.ts";
import { formatSize, roundUp } from "./sizes.ts";
import {
  extendableTop,
  type GatheredExtents,
  gatherExtents,
  mapPlanned,
  takeAddresses,
} from "./stitch.ts";
import { releaseCached } from "./trim.ts";

interface Served {
  id: number;
  way: Way;
}

/**
 * Allocates `size` bytes when reuse has failed; returns the block's record.
 *
 * @throws {OutOfMemoryError} if no way is left; nothing is lost then
 */
export function allocateSlowly(
  a: Allocator,
  requested: number,
  size: number,
  stream: number,
): number {
  const start = performance.now();
  flushIfDue(a);
  const { id, way } = reuseFreed(a, size, stream) ??
    tryMapMore(a, size, stream) ?? underPressure(a, requested, size, stream);
  if (way === "reuse") {
    a.counters.reuses++;
    a.counters.reuseBytes += requested;
  } else {
    const stats = a.counters.ways[way];
    stats.count++;
    stats.bytes += requested;
    stats.ns += (performance.now() - start) * 1e6;
  }
  return id;
}

/** Where a block that lies alone is to lie. Multiples of the granularity. */
export interface LonePlace {
  /** Bytes to back. */
  size: number;
  /** Bytes of addresses to keep for it, `size` and what it may grow by. */
  room: number;
  /** Bytes of addresses to leave unmapped on either side of the room. */
  guard: number;
  /** Number of the stream whose order it follows. */
  stream: number;
}

/**
 * Allocates a block in a stretch of addresses with nothing else in it; returns its record.
 *
 * @throws {OutOfMemoryError} if no way is left
 * @throws {MoonBrightError} code `out-of-addresses` if the arena has no such range,
 * `unsupported` if the device can't map memory
 */
export function allocateAlone(
  a: Allocator,
  requested: number,
  { size, room, guard, stream }: LonePlace,
): number {
  if (a.plain) {
    throw new MoonBrightError(
      "unsupported",
      "alloc",
      `Cannot alloc a block with addresses of its own, as "maxSize" and the quarantine need them: this device can't map memory; ${a.plain.reason}`,
    );
  }
  const start = performance.now();
  flushIfDue(a);
  const stretch = takeAddressesReleasing(a, guard + room + guard);
  const address = stretch + guard;
  let way: Exclude<Way, "reuse">;
  try {
    way = backRange(a, address, size, requested, stream);
  } catch (error) {
    a.arena.giveBack(stretch, guard + room + guard);
    throw error;
  }
  const free = a.heap.add(address, size, stream, false);
  const id = a.heap.takeBlock(free, stream, size);
  const stats = a.counters.ways[way];
  stats.count++;
  stats.bytes += requested;
  stats.ns += (performance.now() - start) * 1e6;
  return id;
}

/**
 * Backs exactly `bytes` from `address` on with stitched and new extents, by whatever
 * way is left.
 *
 * @throws {OutOfMemoryError} if no way is left; nothing is mapped then
 */
export function backRange(
  a: Allocator,
  address: number,
  bytes: number,
  requested: number,
  stream: number,
): Exclude<Way, "reuse"> {
  const attempt = () => {
    const found = gatherExtents(a, stream, bytes, 0);
    const budget = Math.max(a.budget - a.extents.totalBytes, 0);
    // With no budget the second time: the device may be full where the budget is not.
    for (const budgetLeft of budget > 0 ? [budget, 0] : [0]) {
      const input = planInput(a, bytes, 0, found, true, budgetLeft);
      const planned = plan(input);
      if (planned && tryMap(a, planned, found, address)) return planned.way;
    }
    return undefined;
  };
  a.streams.pollAll();
  a.pending.settle();
  a.heap.adopt(stream);
  const way = attempt();
  if (way) return way;
  for (const relief of reliefs(a, stream)) {
    if (!relief()) continue;
    const way = attempt();
    if (way) return way;
  }
  throw outOfMemory(a, "alloc", requested, stream);
}

/** Before a request rather than after it: a failed flush must not lose a served block. */
function flushIfDue(a: Allocator): void {
  if (a.flushQueue.count > a.maxRetired) a.flushQueue.flush(false);
}

/** Takes addresses; if there are none, those of cached extents, which are released. */
function takeAddressesReleasing(a: Allocator, size: number): number {
  try {
    return takeAddresses(a, size, "alloc");
  } catch (error) {
    if (!isOutOfAddresses(error) || releaseCached(a, true) === 0) throw error;
    return takeAddresses(a, size, "alloc");
  }
}

/** Looks again for a free block, after learning what has passed; only then are others' looked at. */
function reuseFreed(
  a: Allocator,
  size: number,
  stream: number,
): Served | undefined {
  const { heap, streams, pending } = a;
  if (streams.count === 1 && pending.count === 0) return undefined;
  streams.pollAll();
  pending.settle();
  const id = heap.take(stream, size) || heap.takeFromOthers(stream, size);
  if (id !== 0) return { id, way: "reuse" };
  heap.adopt(stream);
  const merged = heap.take(stream, size);
  return merged === 0 ? undefined : { id: merged, way: "reuse" };
}

/** Extends, stitches or grows; undefined if budget, device and free extents don't suffice. */
function mapMore(
  a: Allocator,
  size: number,
  stream: number,
  top: number = extendableTop(a, stream),
  budgetLeft: number = Math.max(a.budget - a.extents.totalBytes, 0),
): Served | undefined {
  if (a.plain) {
    const id = growPlainly(a, a.plain, size, stream, budgetLeft);
    return id === 0 ? undefined : { id, way: "grow" };
  }
  const { arena, blocks, heap } = a;
  const topBytes = top === 0 ? 0 : blocks.size[top]!;
  const missing = roundUp(size - topBytes, a.driver.info.granularity);
  const start = performance.now();
  const found = gatherExtents(a, stream, missing, top);
  const planned = plan(
    planInput(a, size, topBytes, found, false, budgetLeft),
  );
  a.counters.planning.count++;
  a.counters.planning.ns += (performance.now() - start) * 1e6;
  if (!planned) return undefined;
  const { mapBytes } = planned;
  // The frontier nears the arena's end: without the top, a flushed range may fit.
  if (top !== 0 && !arena.extend(mapBytes)) {
    return mapMore(a, size, stream, 0, budgetLeft);
  }
  const address = top === 0
    ? takeAddresses(a, mapBytes, "alloc")
    : arena.frontier - mapBytes;
  const atFrontier = address + mapBytes === arena.frontier;
  try {
    if (!tryMap(a, planned, found, address)) {
      arena.giveBack(address, mapBytes);
      // The device is full: free extents may still serve, though growing was cheaper.
      return budgetLeft > 0 ? mapMore(a, size, stream, top, 0) : undefined;
    }
  } catch (error) {
    arena.giveBack(address, mapBytes);
    throw error;
  }
  if (top !== 0) heap.lengthen(top, mapBytes);
  const free = top !== 0
    ? top
    : heap.add(address, mapBytes, stream, atFrontier);
  return { id: heap.takeBlock(free, stream, size), way: planned.way };
}

/** As `mapMore`, but undefined too if addresses don't suffice. */
function tryMapMore(
  a: Allocator,
  size: number,
  stream: number,
): Served | undefined {
  try {
    return mapMore(a, size, stream);
  } catch (error) {
    if (isOutOfAddresses(error)) return undefined;
    throw error;
  }
}

/** Waits and gives back, step by step, until the request can be served. */
function underPressure(
  a: Allocator,
  requested: number,
  size: number,
  stream: number,
): Served {
  for (const relief of reliefs(a, stream)) {
    if (!relief()) continue;
    const id = a.heap.take(stream, size);
    if (id !== 0) return { id, way: "reuse" };
    const served = tryMapMore(a, size, stream);
    if (served) return served;
  }
  // Once more, to tell a lack of addresses from a lack of memory.
  const served = mapMore(a, size, stream);
  if (served) return served;
  throw outOfMemory(a, "alloc", requested, stream);
}

/** What can be done under pressure, cheapest first; each tells whether it changed anything. */
function reliefs(a: Allocator, stream: number): (() => boolean)[] {
  return [
    // The device waits, not the host.
    () => joinOthers(a, stream),
    () => {
      if (!a.pending.wait()) return false;
      // Their memory is free on the streams that freed them, and only now.
      if (!joinOthers(a, stream)) a.heap.adopt(stream);
      return true;
    },
    // Wholly free extents could have been stitched, unless they were too small for it
    // or the device itself has no memory left.
    () => releaseCached(a, true) > 0,
  ];
}

/** Makes the stream wait, on the device, for others that hold free memory, and takes that over. */
function joinOthers(a: Allocator, stream: number): boolean {
  const { streams, heap, extents } = a;
  let joined = false;
  for (let other = 0; other < streams.count; other++) {
    if (other === stream || !streams.clocks[other]!.open) continue;
    if (!streams.canJoin(stream, other)) continue;
    const looseThere = [...extents.loose].some((slot) =>
      extents.lastStream[slot] === other
    );
    if ((heap.free[other]?.count ?? 0) === 0 && !looseThere) continue;
    streams.join(stream, other);
    joined = true;
  }
  if (joined) heap.adopt(stream);
  return joined;
}

function planInput(
  a: Allocator,
  bytes: number,
  topBytes: number,
  candidates: GatheredExtents,
  exact: boolean,
  budgetLeft: number,
): PlanInput {
  return {
    bytes,
    topBytes,
    candidates,
    exact,
    granularity: a.driver.info.granularity,
    budgetLeft,
    mapped: a.extents.totalBytes,
    costs: a.costs,
    growth: a.growth,
  };
}

function isOutOfAddresses(error: unknown): boolean {
  return error instanceof MoonBrightError && error.code === "out-of-addresses";
}

/** False if the device has no memory left; other failures are thrown. */
function tryMap(
  a: Allocator,
  planned: Plan,
  found: GatheredExtents,
  address: number,
): boolean {
  try {
    mapPlanned(a, planned, found, address);
    return true;
  } catch (error) {
    if (error instanceof DriverError && error.code === "out-of-memory") {
      return false;
    }
    throw error;
  }
}

/** What else keeps an allocator from serving a request, where anything does. */
function limitsOf({ driver, extents, plain }: Allocator): string {
  const { extentLimit = 0 } = driver.info;
  const limits = extentLimit === 0
    ? ""
    : `, ${extents.count} of at most ${extentLimit} extents`;
  if (!plain) return limits;
  return `${limits}; free pieces can't be put together: ${plain.reason}`;
}

/** The error that says what was there and what to try. */
export function outOfMemory(
  a: Allocator,
  operation: string,
  requested: number,
  stream: number,
): OutOfMemoryError {
  const { counters, extents, heap, blocks, driver } = a;
  heap.settle();
  let free = extents.looseBytes;
  let largestFree = 0;
  let stitchable = extents.looseBytes + heap.sharedWholeBytes();
  for (const index of heap.free) {
    free += index.bytes;
    stitchable += index.wholeBytes;
    largestFree = Math.max(largestFree, blocks.size[index.largest()] ?? 0);
  }
  let deviceFree = 0;
  try {
    deviceFree = driver.memoryInfo().free;
  } catch {
    // The figures are a help, never a second failure.
  }
  if (a.observer !== undefined) {
    a.observer.refused(requested, deviceFree, stream);
  }
  const captured = a.capturedBytes;
  const device = `${driver.info.backend}:${driver.info.ordinal}`;
  const budget = a.budget === Infinity ? "none" : formatSize(a.budget);
  return new OutOfMemoryError(
    operation,
    `Cannot ${operation} ${formatSize(requested)} on ${device}: live ${
      formatSize(counters.live)
    }, free ${formatSize(free)} (largest piece ${formatSize(largestFree)}, ${
      formatSize(stitchable)
    } in wholly free extents), pending ${formatSize(counters.pending)}${
      captured > 0 ? ` (${formatSize(captured)} used by open graphs)` : ""
    }, mapped ${
      formatSize(extents.totalBytes)
    }, budget ${budget}, free on the device ${formatSize(deviceFree)}${
      limitsOf(a)
    }; free blocks, raise the budget, or look at snapshot() for what holds memory`,
    {
      requested,
      live: counters.live,
      free,
      largestFree,
      stitchable,
      pending: counters.pending,
      captured,
      mapped: extents.totalBytes,
      budget: a.budget,
      deviceFree,
      device,
    },
  );
}
