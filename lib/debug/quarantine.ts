/**
 * Quarantine: a freed block is unmapped as soon as the work that used it has passed, and
 * its addresses are never used again.
 *
 * Each block lies alone in a stretch of addresses: perhaps a guard, its extents, perhaps
 * room to grow, perhaps a guard. With guards a block that can't grow lies at the end of
 * its extents, and what is mapped before it is its *padding*.
 *
 * @module
 */

import type { Allocator } from "../allocator.ts";
import { BlockFlag, BlockState } from "../blocks.ts";
import { DriverError, OutOfMemoryError } from "../errors.ts";
import { hasFlag } from "../heap.ts";
import { BLOCK_ALIGNMENT, roundUp } from "../sizes.ts";
import { allocateAlone } from "../slow_path.ts";

/** A block's addresses, guards included. */
interface Stretch {
  start: number;
  end: number;
  /** Record of what is mapped before the block, 0 if nothing is. */
  padding: number;
}

interface Waiting {
  id: number;
  padding: number;
  waits: { stream: number; epoch: number }[];
}

/** Blocks that lie alone, and what becomes of them when they are freed. */
export class Quarantine {
  readonly #allocator: Allocator;
  readonly #guard: number;
  readonly #stretches = new Map<number, Stretch>();
  #waiting: Waiting[] = [];

  /** An empty quarantine for an allocator; `guard` is a multiple of its granularity. */
  constructor(allocator: Allocator, guard: number) {
    this.#allocator = allocator;
    this.#guard = guard;
  }

  /** Freed blocks that are not unmapped yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Bytes of those that graphs may use. */
  get capturedBytes(): number {
    const { blocks } = this.#allocator;
    let bytes = 0;
    for (const { id } of this.#waiting) {
      if (hasFlag(blocks, id, BlockFlag.CAPTURED)) bytes += blocks.size[id]!;
    }
    return bytes;
  }

  /**
   * Allocates a block that lies alone and, with `maxSize`, can grow to that in place.
   * Returns its record.
   *
   * @throws {OutOfMemoryError} if no way is left; nothing has changed then
   */
  allocate(
    requested: number,
    maxSize: number | undefined,
    stream: number,
  ): number {
    this.settle(false);
    try {
      return this.#allocate(requested, maxSize, stream);
    } catch (error) {
      if (!(error instanceof OutOfMemoryError)) throw error;
      if (this.#waiting.length === 0) throw error;
      this.settle(true);
      return this.#allocate(requested, maxSize, stream);
    }
  }

  /**
   * Defers the free of a live block, last used on `stream` and on the streams noted.
   *
   * @throws {DriverError} if an event can't be recorded; nothing has changed then
   */
  add(id: number, stream: number): void {
    const { blocks, streams, counters, pending, growables } = this.#allocator;
    const waits = [];
    const users = [stream, blocks.stream[id]!, ...pending.usersOf(id)];
    for (const user of new Set(users)) {
      waits.push({ stream: user, epoch: streams.tick(user) - 1 });
    }
    pending.forgetBlock(id);
    if (hasFlag(blocks, id, BlockFlag.GROWABLE)) growables.remove(id);
    blocks.state[id] = BlockState.PENDING;
    counters.pending += blocks.size[id]!;
    const { padding } = this.#stretches.get(id)!;
    this.#stretches.delete(id);
    this.#waiting.push({ id, padding, waits });
  }

  /**
   * Unmaps the freed blocks whose work has passed or, with `wait`, all, waiting for that
   * work; but for work of a stream that is capturing, which nothing can wait for.
   *
   * @throws {DriverError} if the driver refuses; what it refused is tried again later
   */
  settle(wait: boolean): void {
    const { blocks, streams, flushQueue } = this.#allocator;
    if (this.#waiting.length > 0) {
      if (!wait) streams.pollAll();
      const waiting: Waiting[] = [];
      for (const freed of this.#waiting) {
        // What a graph may use stays mapped until the graph is closed.
        const passed = !hasFlag(blocks, freed.id, BlockFlag.CAPTURED) &&
          freed.waits.every(({ stream, epoch }) => {
            if (wait) streams.waitPassed(stream, epoch);
            else streams.ensureTicked(stream, epoch);
            return streams.isPassed(stream, epoch);
          });
        if (passed) this.#retire(freed);
        else waiting.push(freed);
      }
      this.#waiting = waiting;
    }
    if (flushQueue.count > 0) flushQueue.flush(wait);
  }

  /** Notes that freed blocks were used on streams until the given epochs: by a graph's launches. */
  usedUntil(
    ids: ReadonlySet<number>,
    epochs: ReadonlyMap<number, number>,
  ): void {
    for (const { id, waits } of this.#waiting) {
      if (!ids.has(id)) continue;
      for (const [stream, epoch] of epochs) waits.push({ stream, epoch });
    }
  }

  /** As `settle(false)`, for callers that must not fail because a driver refuses to unmap. */
  trySettle(): void {
    try {
      this.settle(false);
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
    }
  }

  /** Bytes of padding before a live block. */
  paddingOf(id: number): number {
    const padding = this.#stretches.get(id)?.padding ?? 0;
    return padding === 0 ? 0 : this.#allocator.blocks.size[padding]!;
  }

  /** All addresses of a live block, guards and room included. */
  reachOf(id: number): { start: number; end: number } {
    const { start, end } = this.#stretches.get(id)!;
    return { start, end };
  }

  #allocate(
    requested: number,
    maxSize: number | undefined,
    stream: number,
  ): number {
    const a = this.#allocator;
    const { granularity } = a.driver.info;
    const size = roundUp(requested, granularity);
    const room = maxSize === undefined ? size : roundUp(maxSize, granularity);
    let id = allocateAlone(a, requested, {
      size,
      room,
      guard: this.#guard,
      stream,
    });
    const start = a.blocks.address[id]! - this.#guard;
    let padding = 0;
    if (maxSize !== undefined) {
      a.blocks.flags[id]! |= BlockFlag.GROWABLE;
      a.growables.add(id, start + this.#guard + room);
    } else if (this.#guard > 0) {
      const before = size - roundUp(requested, BLOCK_ALIGNMENT);
      if (before > 0) {
        padding = id;
        id = a.heap.cut(id, before);
        // As for every block that is handed out: an old owner of the record is noticed.
        a.blocks.generation[id]!++;
        a.blocks.state[padding] = BlockState.PADDING;
      }
    }
    a.blocks.flags[id]! |= BlockFlag.WATCHED;
    const end = start + room + 2 * this.#guard;
    this.#stretches.set(id, { start, end, padding });
    return id;
  }

  /** Retires a block's mappings; their addresses don't go back to the arena. */
  #retire({ id, padding, waits }: Waiting): void {
    const { blocks, extents, flushQueue, counters } = this.#allocator;
    const { stream, epoch } = waits[0]!;
    const end = blocks.address[id]! + blocks.size[id]!;
    for (let at = blocks.address[padding === 0 ? id : padding]!; at < end;) {
      const slot = extents.at(at);
      at += extents.size[slot]!;
      flushQueue.retire(slot, stream, epoch, false);
    }
    counters.pending -= blocks.size[id]!;
    if (padding !== 0) blocks.remove(padding);
    blocks.remove(id);
  }
}
