/**
 * Retired mappings: no longer wanted, still installed, until a coherence point.
 *
 * A stitched extent gets its new mapping at once; the old one is only noted here with
 * the stream and epoch of its last use. At a coherence point (addresses or extents
 * are needed back, a threshold, or on request) those whose work has passed are
 * unmapped in one batch, which flushes their translations; only then are their
 * addresses recyclable.
 *
 * @module
 */

import type { Arena } from "./arena.ts";
import type { AddressRange } from "./driver.ts";
import type { Extents } from "./extents.ts";
import type { Mapper } from "./mapper.ts";
import type { Streams } from "./streams.ts";

/** A mapping that is no longer wanted. */
export interface RetiredMapping extends AddressRange {
  /** Slot of its extent. */
  extent: number;
  /** Stream of its last use. */
  stream: number;
  /** Epoch of its last use on that stream. */
  epoch: number;
  /** Whether its addresses go back to the arena, not to a block that may grow there again. */
  toArena: boolean;
}

/** The retired mappings of an instance. */
export class FlushQueue {
  /** Bytes of addresses in retired mappings. */
  retiredBytes = 0;
  /** Batches unmapped so far. */
  flushes = 0;
  #queue: RetiredMapping[] = [];
  /** Those at addresses where a block may grow again, by address. */
  readonly #revivable = new Map<number, RetiredMapping>();
  readonly #arena: Arena;
  readonly #extents: Extents;
  readonly #streams: Streams;
  readonly #mapper: Mapper;

  /** An empty queue. */
  constructor(
    arena: Arena,
    extents: Extents,
    streams: Streams,
    mapper: Mapper,
  ) {
    this.#arena = arena;
    this.#extents = extents;
    this.#streams = streams;
    this.#mapper = mapper;
  }

  /** Number of retired mappings. */
  get count(): number {
    return this.#queue.length;
  }

  /**
   * Retires the current mapping of an extent, last used on `stream` in `epoch`, and
   * leaves the extent loose. `toArena` false: a block may grow there again.
   */
  retire(extent: number, stream: number, epoch: number, toArena = true): void {
    this.#add(extent, stream, epoch, toArena);
    this.#extents.lift(extent, stream, epoch);
  }

  /** Retires the current mapping of an extent that is now mapped at `address`. */
  retireMoved(
    extent: number,
    stream: number,
    epoch: number,
    address: number,
  ): void {
    this.#add(extent, stream, epoch, true);
    this.#extents.move(extent, address);
  }

  /**
   * Puts a retired mapping at exactly this address back to use for `stream`, if its
   * extent has not been mapped elsewhere since: no driver call. Returns its extent's
   * slot, or 0.
   */
  revive(address: number, stream: number): number {
    const mapping = this.#revivable.get(address);
    if (!mapping || !this.#extents.loose.has(mapping.extent)) return 0;
    const visible = this.#streams.isVisibleTo(
      stream,
      this.#extents.lastStream[mapping.extent]!,
      this.#extents.lastEpoch[mapping.extent]!,
    );
    if (!visible) return 0;
    this.#forget([mapping]);
    this.#extents.place(mapping.extent, address);
    return mapping.extent;
  }

  /**
   * Unmaps retired mappings in one batch: those whose work is known to be done, or
   * all, waiting for that work, if `wait`. Returns the bytes of addresses flushed.
   *
   * @throws {DriverError} if the driver refuses; nothing is flushed then
   */
  flush(wait: boolean): number {
    return this.#flush(this.#queue, wait);
  }

  /** Waits for and unmaps the retired mappings in a range, so that it can be mapped again. */
  flushRange(address: number, size: number): void {
    this.#flush(this.within(address, size), true);
  }

  /** The retired mappings in a range of whole mappings, by address. */
  within(address: number, size: number): RetiredMapping[] {
    return this.#queue
      .filter((mapping) =>
        mapping.address >= address && mapping.address < address + size
      )
      .sort((a, b) => a.address - b.address);
  }

  /**
   * Gives a range that a block could have grown into back to the arena: at once where
   * nothing is mapped, after the next flush where a retired mapping is installed.
   */
  abandon(address: number, size: number): void {
    let from = address;
    for (const mapping of this.within(address, size)) {
      mapping.toArena = true;
      this.#revivable.delete(mapping.address);
      this.#arena.recycle(from, mapping.address - from);
      from = mapping.address + mapping.size;
    }
    this.#arena.recycle(from, address + size - from);
  }

  /** The retired mappings, for reports. */
  mappings(): readonly Readonly<RetiredMapping>[] {
    return this.#queue;
  }

  /** Throws if the queue contradicts the extents. For tests. */
  assertInvariants(): void {
    let bytes = 0;
    const retired = new Map<number, number>();
    for (const mapping of this.#queue) {
      const { address } = mapping;
      if (mapping.toArena === this.#revivable.has(address)) {
        throw new Error(`retired mapping at ${address} is listed wrongly`);
      }
      if (this.#extents.size[mapping.extent] !== mapping.size) {
        throw new Error(`retired mapping at ${address} of another extent`);
      }
      if (this.#extents.at(address) !== 0) {
        throw new Error(`retired mapping at ${address} is also current`);
      }
      bytes += mapping.size;
      retired.set(mapping.extent, (retired.get(mapping.extent) ?? 0) + 1);
    }
    for (const slot of this.#extents.slots()) {
      if ((retired.get(slot) ?? 0) !== this.#extents.retired[slot]) {
        throw new Error(`extent ${slot} counts its retired mappings wrongly`);
      }
    }
    if (bytes !== this.retiredBytes) {
      throw new Error(
        `${bytes} retired bytes, counted as ${this.retiredBytes}`,
      );
    }
  }

  #add(
    extent: number,
    stream: number,
    epoch: number,
    toArena: boolean,
  ): void {
    const address = this.#extents.address[extent]!;
    const size = this.#extents.size[extent]!;
    const mapping = { address, size, extent, stream, epoch, toArena };
    this.#queue.push(mapping);
    if (!toArena) this.#revivable.set(address, mapping);
    this.retiredBytes += size;
  }

  #flush(mappings: RetiredMapping[], wait: boolean): number {
    if (mappings.length === 0) return 0;
    this.#settle(mappings, wait);
    const ready = mappings.filter(({ stream, epoch }) =>
      this.#streams.isPassed(stream, epoch)
    );
    if (ready.length === 0) return 0;
    this.#mapper.unmap(mergeRanges(ready));
    this.flushes++;
    this.#forget(ready);
    let bytes = 0;
    for (const mapping of ready) {
      if (mapping.toArena) {
        this.#arena.recycle(mapping.address, mapping.size);
      }
      bytes += mapping.size;
    }
    return bytes;
  }

  /** Learns which work has passed, recording events where none covers it yet. */
  #settle(mappings: RetiredMapping[], wait: boolean): void {
    const last = new Map<number, number>();
    for (const { stream, epoch } of mappings) {
      if (epoch > (last.get(stream) ?? -1)) last.set(stream, epoch);
    }
    for (const [stream, epoch] of last) {
      if (this.#streams.isPassed(stream, epoch)) continue;
      if (wait) this.#streams.waitPassed(stream, epoch);
      else {
        this.#streams.ensureTicked(stream, epoch);
        this.#streams.poll(stream);
      }
    }
  }

  #forget(mappings: readonly RetiredMapping[]): void {
    const gone = new Set(mappings);
    this.#queue = this.#queue.filter((mapping) => !gone.has(mapping));
    for (const mapping of mappings) {
      this.#revivable.delete(mapping.address);
      this.#extents.retired[mapping.extent]!--;
      this.retiredBytes -= mapping.size;
    }
  }
}

/** Sorts ranges by address and joins contiguous ones: fewer calls, the same unmapping. */
export function mergeRanges(ranges: readonly AddressRange[]): AddressRange[] {
  const sorted = ranges.toSorted((a, b) => a.address - b.address);
  const merged: AddressRange[] = [];
  for (const { address, size } of sorted) {
    const last = merged[merged.length - 1];
    if (last && last.address + last.size === address) last.size += size;
    else merged.push({ address, size });
  }
  return merged;
}
