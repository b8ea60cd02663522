/**
 * The extents an instance owns and where each is mapped.
 *
 * An extent has at most one *current* mapping; it may have older ones that are
 * retired but still installed (see flush.ts). An extent without a current mapping
 * is *loose*: the cheapest to stitch, since nothing has to be carved out.
 *
 * @module
 */

import { grown } from "./growable.ts";

/** Table of extents, indexed by slot; slot 0 is unused. */
export class Extents {
  /** The driver's id. */
  driverId: Uint32Array = new Uint32Array(64);
  /** Bytes; 0 for an unused slot. */
  size: Float64Array = new Float64Array(64);
  /** Address of the current mapping, -1 when loose. */
  address: Float64Array = new Float64Array(64);
  /** Retired mappings of the extent that are still installed. */
  retired: Uint32Array = new Uint32Array(64);
  /** Of a loose extent: the stream of its last use. */
  lastStream: Uint16Array = new Uint16Array(64);
  /** Of a loose extent: the epoch of its last use on that stream. */
  lastEpoch: Float64Array = new Float64Array(64);
  /** Bytes of all extents. */
  totalBytes = 0;
  /** Number of extents. */
  count = 0;
  /** Bytes of loose extents. */
  looseBytes = 0;
  /** Slots of loose extents, oldest first. */
  readonly loose: Set<number> = new Set();

  #base: number;
  readonly #granularity: number;
  /** Slot of the extent currently mapped at each granule of the arena, 0 for none. */
  #granules: Int32Array = new Int32Array(1024);
  readonly #unused: number[] = [];
  #next = 1;

  /** A table for mappings in an arena at `base`. */
  constructor(base: number, granularity: number) {
    this.#base = base;
    this.#granularity = granularity;
  }

  /** Makes room so that adding `count` extents below `end` can't fail half-way. */
  prepare(count: number, end: number): void {
    const slots = this.#next + count;
    this.driverId = grown(this.driverId, slots);
    this.size = grown(this.size, slots);
    this.address = grown(this.address, slots);
    this.retired = grown(this.retired, slots);
    this.lastStream = grown(this.lastStream, slots);
    this.lastEpoch = grown(this.lastEpoch, slots);
    this.prepareIndex(end);
  }

  /** Moves the table, while it is empty, to an arena at another base. */
  rebase(base: number): void {
    this.#base = base;
  }

  /** Adds a loose extent; returns its slot. Room must have been prepared. */
  add(driverId: number, size: number): number {
    const slot = this.#unused.pop() ?? this.#next++;
    this.driverId[slot] = driverId;
    this.size[slot] = size;
    this.address[slot] = -1;
    this.retired[slot] = 0;
    this.lastStream[slot] = 0;
    this.lastEpoch[slot] = -1;
    this.totalBytes += size;
    this.count++;
    this.loose.add(slot);
    this.looseBytes += size;
    return slot;
  }

  /** Forgets a loose extent with no installed mapping. */
  remove(slot: number): void {
    const size = this.size[slot]!;
    this.loose.delete(slot);
    this.looseBytes -= size;
    this.totalBytes -= size;
    this.count--;
    this.size[slot] = 0;
    this.#unused.push(slot);
  }

  /** Notes the current mapping of a loose extent. */
  place(slot: number, address: number): void {
    const size = this.size[slot]!;
    this.loose.delete(slot);
    this.looseBytes -= size;
    this.address[slot] = address;
    this.mark(address, size, slot);
  }

  /**
   * Makes a mapped extent, last used on `stream` in `epoch`, loose. Its mapping stays
   * installed as a retired one.
   */
  lift(slot: number, stream: number, epoch: number): void {
    const size = this.size[slot]!;
    this.mark(this.address[slot]!, size, 0);
    this.address[slot] = -1;
    this.retired[slot]!++;
    this.lastStream[slot] = stream;
    this.lastEpoch[slot] = epoch;
    this.loose.add(slot);
    this.looseBytes += size;
  }

  /** Gives a mapped extent another current mapping; the old one stays installed, retired. */
  move(slot: number, address: number): void {
    const size = this.size[slot]!;
    this.mark(this.address[slot]!, size, 0);
    this.mark(address, size, slot);
    this.address[slot] = address;
    this.retired[slot]!++;
  }

  /** Slot of the extent currently mapped at an address of the arena, 0 for none. */
  at(address: number): number {
    return this.#granules[
      Math.floor((address - this.#base) / this.#granularity)
    ] ?? 0;
  }

  /** The first address from `address` on at which an extent starts, in a backed range. */
  wholeStart(address: number): number {
    const slot = this.at(address);
    const start = this.address[slot]!;
    return start === address ? start : start + this.size[slot]!;
  }

  /** The last address up to `end` at which an extent ends, in a backed range. */
  wholeEnd(end: number): number {
    const slot = this.at(end - 1);
    const start = this.address[slot]!;
    const after = start + this.size[slot]!;
    return after === end ? end : start;
  }

  /** Slots in use. */
  *slots(): Generator<number> {
    for (let slot = 1; slot < this.#next; slot++) {
      if (this.size[slot]! > 0) yield slot;
    }
  }

  /** Throws if the table contradicts itself. For tests. */
  assertInvariants(): void {
    let total = 0;
    let loose = 0;
    let count = 0;
    let mapped = 0;
    for (const slot of this.slots()) {
      const size = this.size[slot]!;
      count++;
      total += size;
      if (this.address[slot] === -1) {
        loose += size;
        if (!this.loose.has(slot)) throw new Error(`extent ${slot} lost`);
      } else {
        const address = this.address[slot]!;
        mapped += size;
        for (let at = address; at < address + size; at += this.#granularity) {
          if (this.at(at) !== slot) {
            throw new Error(`address ${at} is not in extent ${slot}`);
          }
        }
      }
    }
    if (this.indexedBytes() !== mapped) {
      throw new Error(`${this.indexedBytes()} bytes indexed, ${mapped} mapped`);
    }
    if (total !== this.totalBytes || count !== this.count) {
      throw new Error(`${count} extents of ${total} bytes, counted otherwise`);
    }
    if (loose !== this.looseBytes) {
      throw new Error(`${loose} loose bytes, counted as ${this.looseBytes}`);
    }
  }

  /** Makes room so that noting a mapping below `end` can't fail. */
  protected prepareIndex(end: number): void {
    this.#granules = grown(
      this.#granules,
      (end - this.#base) / this.#granularity,
    );
  }

  /** Notes by address which extent is mapped there, 0 for none. */
  protected mark(address: number, size: number, slot: number): void {
    const first = (address - this.#base) / this.#granularity;
    const granules = size / this.#granularity;
    // Calling fill costs more than it does for the commonest size.
    if (granules === 1) this.#granules[first] = slot;
    else this.#granules.fill(slot, first, first + granules);
  }

  /** Bytes at which an extent is noted. For tests. */
  protected indexedBytes(): number {
    let marked = 0;
    for (const slot of this.#granules) if (slot !== 0) marked++;
    return marked * this.#granularity;
  }
}
