/**
 * The heap: live and free blocks over the backed stretches of the arena.
 *
 * It finds, splits, and merges blocks; it never touches the driver. Blocks may cross
 * extents. Free blocks are indexed per stream, since a block freed on one stream may
 * serve that stream at once but another only later (see streams.ts). Neighbours of
 * different streams merge only when the other's work is known to be done, so that no
 * dependency is lost in a merge.
 *
 * @module
 */

import { type BlockFlag, Blocks, BlockState, WHOLE_UNKNOWN } from "./blocks.ts";
import type { Extents } from "./extents.ts";
import { FreeIndex } from "./free_index.ts";
import type { Streams } from "./streams.ts";

/** Blocks over mapped memory. */
export class Heap {
  /** The records. */
  readonly blocks: Blocks = new Blocks();
  /** Free blocks by stream number. */
  readonly free: FreeIndex[] = [];
  /** Record of the block that was mapped last at the arena's frontier, 0 if it is gone. */
  top = 0;
  /** Record of the block given back last, if it is neither merged nor indexed yet. */
  recent = 0;

  readonly #extents: Extents;
  readonly #streams: Streams;
  readonly #granularity: number;

  /** An empty heap over a table of extents and the streams' clocks. */
  constructor(extents: Extents, streams: Streams, granularity: number) {
    this.#extents = extents;
    this.#streams = streams;
    this.#granularity = granularity;
    this.free.push(new FreeIndex(this.blocks));
  }

  /** The index of a stream. */
  index(stream: number): FreeIndex {
    while (this.free.length <= stream) {
      this.free.push(new FreeIndex(this.blocks));
    }
    return this.free[stream]!;
  }

  /** Takes `size` bytes (a multiple of 512) from the stream's free blocks; 0 if none fits. */
  take(stream: number, size: number): number {
    const { recent } = this;
    if (recent !== 0) {
      if (
        this.blocks.size[recent] === size &&
        this.blocks.stream[recent] === stream
      ) {
        this.recent = 0;
        return this.#use(recent, stream, size);
      }
      this.settle();
    }
    const index = this.free[stream]!;
    const id = index.find(size);
    if (id === 0) return 0;
    if (this.blocks.size[id]! > size) return this.#takeFront(index, id, size);
    index.remove(id);
    return this.#use(id, stream, size);
  }

  /**
   * Makes a live block free, last used on `stream` up to now. It is merged and indexed
   * only when something else is asked of the heap: often the next request is for the
   * same size on the same stream.
   */
  giveBack(id: number, stream: number): void {
    if (this.recent !== 0) this.settle();
    const { blocks } = this;
    blocks.state[id] = BlockState.PENDING;
    blocks.stream[id] = stream;
    blocks.epoch[id] = this.#streams.clocks[stream]!.recorded;
    this.recent = id;
  }

  /** Merges and indexes the block that was given back last. Must precede any look at free blocks. */
  settle(): void {
    const { recent } = this;
    if (recent === 0) return;
    this.recent = 0;
    this.#release(
      recent,
      this.blocks.stream[recent]!,
      this.blocks.epoch[recent]!,
    );
  }

  /** Takes from the free blocks of other streams that the stream need not wait for. */
  takeFromOthers(stream: number, size: number): number {
    this.settle();
    const { blocks } = this;
    for (let other = 0; other < this.free.length; other++) {
      if (other === stream) continue;
      const index = this.free[other]!;
      if (index.bytes < size) continue;
      for (const id of index.ascending(size)) {
        if (!this.#streams.isVisibleTo(stream, other, blocks.epoch[id]!)) {
          continue;
        }
        index.remove(id);
        blocks.state[id] = BlockState.LIVE;
        // The rest changes streams with it, and so may merge with what lies behind.
        if (blocks.size[id]! > size) {
          this.release(this.#split(id, size), stream);
        }
        blocks.stream[id] = stream;
        return this.#use(id, stream, size);
      }
    }
    return 0;
  }

  /** Moves to the stream all free blocks of others that it need not wait for, merging them. */
  adopt(stream: number): void {
    this.settle();
    const { blocks } = this;
    for (let other = 0; other < this.free.length; other++) {
      if (other === stream || this.free[other]!.count === 0) continue;
      const visible: number[] = [];
      for (const id of this.free[other]!.ascending(0)) {
        if (this.#streams.isVisibleTo(stream, other, blocks.epoch[id]!)) {
          visible.push(id);
        }
      }
      for (const id of visible) {
        // A merge with an earlier one may have swallowed it.
        if (
          blocks.state[id] !== BlockState.FREE || blocks.stream[id] !== other
        ) continue;
        this.free[other]!.remove(id);
        this.release(id, stream);
      }
    }
  }

  /** Merges neighbours that are free on different streams and whose work is known to be done. */
  mergePassed(): void {
    this.settle();
    const { blocks } = this;
    for (let id = 1; id < blocks.end; id++) {
      const previous = blocks.previous[id]!;
      if (!this.#isPassed(id) || this.#isPassed(previous)) continue;
      const run = [id];
      let behind = blocks.next[id]!;
      for (; this.#isPassed(behind); behind = blocks.next[behind]!) {
        run.push(behind);
      }
      // As if last used on any stream, but none on whose account it would have to wait.
      const stream = [0, ...run.map((one) => blocks.stream[one]!)].find((one) =>
        !this.#isFreeOn(previous, one) && !this.#isFreeOn(behind, one)
      );
      if (run.length === 1 || stream === undefined) continue;
      for (const one of run) this.index(blocks.stream[one]!).remove(one);
      for (const next of run.slice(1)) this.#absorbNext(id, next);
      blocks.stream[id] = stream;
      blocks.epoch[id] = -1;
      this.#list(id);
    }
  }

  /**
   * Makes a block free, last used on `stream` up to now, and merges it with its
   * neighbours. Returns the record of the resulting free block.
   */
  release(id: number, stream: number): number {
    this.settle();
    return this.#release(id, stream, this.#streams.clocks[stream]!.recorded);
  }

  #release(id: number, stream: number, epoch: number): number {
    const { blocks } = this;
    const previous = blocks.previous[id]!;
    const next = blocks.next[id]!;
    const before = previous !== 0 && this.#canMerge(previous, stream);
    const behind = next !== 0 && this.#canMerge(next, stream);
    let first = id;
    if (before !== behind) {
      const neighbour = before ? previous : next;
      if (blocks.stream[neighbour] === stream) {
        this.#joinListed(id, neighbour, before);
        blocks.epoch[neighbour] = epoch;
        return neighbour;
      }
    }
    if (before || behind) first = this.#mergeAll(id, stream);
    blocks.stream[first] = stream;
    blocks.epoch[first] = epoch;
    this.#list(first);
    return first;
  }

  /**
   * Adds a free block over a newly backed stretch of addresses. At the arena's
   * frontier it is chained to, and if possible merged with, what ends there.
   */
  add(
    address: number,
    size: number,
    stream: number,
    atFrontier: boolean,
  ): number {
    this.settle();
    const { blocks, top } = this;
    const id = blocks.add(address, size);
    if (atFrontier) {
      if (top !== 0 && blocks.address[top]! + blocks.size[top]! === address) {
        blocks.next[top] = id;
        blocks.previous[id] = top;
      }
      this.top = id;
    }
    return this.release(id, stream);
  }

  /** Bytes of a block if it is free and work of `stream` may use it at once, else 0. */
  freeBytesFor(id: number, stream: number): number {
    this.settle();
    const { blocks } = this;
    const usable = blocks.state[id] === BlockState.FREE &&
      this.#streams.isVisibleTo(
        stream,
        blocks.stream[id]!,
        blocks.epoch[id]!,
      );
    return usable ? blocks.size[id]! : 0;
  }

  /** Takes a free block that `stream` may use out of every index, until `unhold`. */
  hold(id: number, stream: number): void {
    const { blocks } = this;
    this.index(blocks.stream[id]!).remove(id);
    blocks.stream[id] = stream;
    blocks.epoch[id] = this.#streams.clocks[stream]!.recorded;
    blocks.state[id] = BlockState.PENDING;
  }

  /** Puts a held block back. */
  unhold(id: number): void {
    this.#list(id);
  }

  /** Lengthens a free block over newly backed addresses behind it, for its stream. */
  lengthen(id: number, bytes: number): void {
    const { blocks } = this;
    const stream = blocks.stream[id]!;
    this.index(stream).remove(id);
    blocks.size[id]! += bytes;
    blocks.whole[id] = WHOLE_UNKNOWN;
    // What was stitched behind it may have been in use until now.
    blocks.epoch[id] = this.#streams.clocks[stream]!.recorded;
    this.#list(id);
  }

  /** Takes a given free block for the stream, all but its first `size` bytes. */
  takeBlock(id: number, stream: number, size: number): number {
    this.index(this.blocks.stream[id]!).remove(id);
    this.blocks.stream[id] = stream;
    return this.#use(id, stream, size);
  }

  /**
   * Cuts [from, to) out of a free block; what is left on either side stays free, and
   * the chain ends at the hole.
   */
  carve(id: number, from: number, to: number): void {
    const { blocks } = this;
    const start = blocks.address[id]!;
    const end = start + blocks.size[id]!;
    const stream = blocks.stream[id]!;
    const epoch = blocks.epoch[id]!;
    const previous = blocks.previous[id]!;
    const next = blocks.next[id]!;
    this.index(stream).remove(id);
    let tail = 0;
    if (to < end) {
      tail = blocks.add(to, end - to);
      blocks.stream[tail] = stream;
      blocks.epoch[tail] = epoch;
      blocks.next[tail] = next;
      this.#list(tail);
    }
    if (next !== 0) blocks.previous[next] = tail;
    if (this.top === id) this.top = tail;
    if (from > start) {
      blocks.size[id] = from - start;
      blocks.whole[id] = WHOLE_UNKNOWN;
      blocks.next[id] = 0;
      this.#list(id);
    } else {
      if (previous !== 0) blocks.next[previous] = 0;
      blocks.remove(id);
    }
  }

  /** Cuts a live block to `size` bytes; returns the rest as a live block of its own. */
  cut(id: number, size: number): number {
    this.settle();
    const { blocks } = this;
    const rest = this.#split(id, size);
    blocks.stream[rest] = blocks.stream[id]!;
    blocks.state[rest] = BlockState.LIVE;
    return rest;
  }

  /** Lengthens a live block to `size` bytes if what lies behind it is free for its stream. */
  widen(id: number, size: number): boolean {
    this.settle();
    const { blocks } = this;
    const next = blocks.next[id]!;
    const stream = blocks.stream[id]!;
    if (next === 0) return false;
    if (blocks.size[id]! + this.freeBytesFor(next, stream) < size) return false;
    this.index(blocks.stream[next]!).remove(next);
    this.#absorbNext(id, next);
    if (blocks.size[id]! > size) this.release(this.#split(id, size), stream);
    return true;
  }

  /** Bytes of the extents that lie wholly inside [address, address + size). */
  wholeBytes(address: number, size: number): number {
    if (size < this.#granularity) return 0;
    const whole = this.#extents.wholeEnd(address + size) -
      this.#extents.wholeStart(address);
    return whole > 0 ? whole : 0;
  }

  /**
   * Bytes of the extents that lie wholly under free blocks but under none alone: several
   * streams share them. No index counts them.
   */
  sharedWholeBytes(): number {
    if (this.free.filter(({ count }) => count > 0).length < 2) return 0;
    const { blocks } = this;
    const isFree = (id: number) => blocks.state[id] === BlockState.FREE;
    let shared = 0;
    for (let id = 1; id < blocks.end; id++) {
      if (!isFree(id) || isFree(blocks.previous[id]!)) continue;
      let size = 0;
      for (let at = id; isFree(at); at = blocks.next[at]!) {
        size += blocks.size[at]!;
        shared -= blocks.whole[at]!;
      }
      shared += this.wholeBytes(blocks.address[id]!, size);
    }
    return shared;
  }

  /** Throws if blocks, chains and indices contradict each other. For tests. */
  assertInvariants(): void {
    this.settle();
    const { blocks } = this;
    let listed = 0;
    let free = 0;
    for (const index of this.free) {
      index.assertInvariants();
      listed += index.count;
    }
    for (let id = 1; id < blocks.end; id++) {
      const state = blocks.state[id]!;
      if (state === BlockState.NONE) continue;
      const address = blocks.address[id]!;
      const size = blocks.size[id]!;
      if (size <= 0 || size % 512 !== 0) {
        throw new Error(`block ${id} has ${size} bytes`);
      }
      for (let at = address; at < address + size;) {
        const slot = this.#extents.at(at);
        if (slot === 0) throw new Error(`block ${id} is not backed at ${at}`);
        at = this.#extents.address[slot]! + this.#extents.size[slot]!;
      }
      const next = blocks.next[id]!;
      if (next !== 0) {
        if (
          blocks.previous[next] !== id ||
          blocks.address[next] !== address + size ||
          blocks.state[next] === BlockState.NONE
        ) throw new Error(`blocks ${id} and ${next} are chained wrongly`);
      }
      const previous = blocks.previous[id]!;
      if (previous !== 0 && blocks.next[previous] !== id) {
        throw new Error(`blocks ${previous} and ${id} are chained wrongly`);
      }
      if (state === BlockState.FREE) {
        free++;
        if (blocks.whole[id] !== this.wholeBytes(address, size)) {
          throw new Error(`block ${id} counts its whole extents wrongly`);
        }
        if (
          next !== 0 && blocks.state[next] === BlockState.FREE &&
          blocks.stream[next] === blocks.stream[id]
        ) throw new Error(`free blocks ${id} and ${next} are not merged`);
      }
    }
    if (free !== listed) {
      throw new Error(`${free} free blocks, ${listed} listed`);
    }
  }

  /** Whether a block is free and the work in it is known to be done. Record 0 is no block. */
  #isPassed(id: number): boolean {
    const { blocks } = this;
    return blocks.state[id] === BlockState.FREE &&
      this.#streams.isPassed(blocks.stream[id]!, blocks.epoch[id]!);
  }

  #isFreeOn(id: number, stream: number): boolean {
    return this.blocks.state[id] === BlockState.FREE &&
      this.blocks.stream[id] === stream;
  }

  /** Whether a neighbour is free and may join a block that is free for `stream`. */
  #canMerge(neighbour: number, stream: number): boolean {
    const { blocks } = this;
    if (blocks.state[neighbour] !== BlockState.FREE) return false;
    const other = blocks.stream[neighbour]!;
    return other === stream ||
      this.#streams.isPassed(other, blocks.epoch[neighbour]!);
  }

  /** Marks an unlisted block as free, counts its whole extents and lists it. */
  #list(id: number): void {
    const { blocks } = this;
    const size = blocks.size[id]!;
    blocks.state[id] = BlockState.FREE;
    // Still known if the block was live meanwhile: mappings change only under free ones.
    if (blocks.whole[id]! < 0) {
      blocks.whole[id] = this.wholeBytes(blocks.address[id]!, size);
    }
    this.index(blocks.stream[id]!).insert(id);
  }

  /**
   * Takes the front of a listed block of the same stream, which stays listed as the
   * rest: on the hot path it nearly always stays in its size class.
   */
  #takeFront(index: FreeIndex, rest: number, size: number): number {
    const { blocks } = this;
    const address = blocks.address[rest]!;
    const id = blocks.add(address, size);
    const previous = blocks.previous[rest]!;
    blocks.previous[id] = previous;
    if (previous !== 0) blocks.next[previous] = id;
    blocks.next[id] = rest;
    blocks.previous[rest] = id;
    this.#resizeListed(
      index,
      rest,
      address + size,
      blocks.size[rest]! - size,
    );
    blocks.stream[id] = blocks.stream[rest]!;
    blocks.state[id] = BlockState.LIVE;
    blocks.generation[id]!++;
    return id;
  }

  /** Joins an unlisted block to a listed free neighbour, which can so stay listed. */
  #joinListed(id: number, neighbour: number, before: boolean): void {
    const { blocks } = this;
    const previous = blocks.previous[id]!;
    const next = blocks.next[id]!;
    if (previous !== 0) blocks.next[previous] = next;
    if (next !== 0) blocks.previous[next] = previous;
    if (this.top === id) this.top = neighbour;
    this.#resizeListed(
      this.free[blocks.stream[neighbour]!]!,
      neighbour,
      blocks.address[before ? neighbour : id]!,
      blocks.size[id]! + blocks.size[neighbour]!,
    );
    blocks.remove(id);
  }

  /** Merges an unlisted block with all it can; returns the record of the result, unlisted. */
  #mergeAll(id: number, stream: number): number {
    const { blocks } = this;
    let first = id;
    // Loops, since swallowing another stream's block can uncover one of the same.
    let next = blocks.next[id]!;
    while (next !== 0 && this.#canMerge(next, stream)) {
      this.index(blocks.stream[next]!).remove(next);
      this.#absorbNext(id, next);
      next = blocks.next[id]!;
    }
    let previous = blocks.previous[id]!;
    while (previous !== 0 && this.#canMerge(previous, stream)) {
      this.index(blocks.stream[previous]!).remove(previous);
      this.#absorbNext(previous, first);
      first = previous;
      previous = blocks.previous[first]!;
    }
    return first;
  }

  #resizeListed(
    index: FreeIndex,
    id: number,
    address: number,
    size: number,
  ): void {
    this.blocks.address[id] = address;
    index.resize(id, size, this.wholeBytes(address, size));
  }

  /** Turns an unlisted free block into a live one of `size` bytes; the rest stays free. */
  #use(id: number, stream: number, size: number): number {
    const { blocks } = this;
    if (blocks.size[id]! > size) {
      const rest = this.#split(id, size);
      blocks.stream[rest] = stream;
      blocks.epoch[rest] = blocks.epoch[id]!;
      this.#list(rest);
    }
    blocks.state[id] = BlockState.LIVE;
    blocks.generation[id]!++;
    blocks.flags[id] = 0;
    return id;
  }

  /** Cuts a block in two; returns the part behind, with no state yet. */
  #split(id: number, size: number): number {
    const { blocks } = this;
    const rest = blocks.add(
      blocks.address[id]! + size,
      blocks.size[id]! - size,
    );
    const next = blocks.next[id]!;
    blocks.size[id] = size;
    blocks.whole[id] = WHOLE_UNKNOWN;
    blocks.next[id] = rest;
    blocks.previous[rest] = id;
    blocks.next[rest] = next;
    if (next !== 0) blocks.previous[next] = rest;
    if (this.top === id) this.top = rest;
    return rest;
  }

  /** Joins the block behind, which is in no index, to a block. */
  #absorbNext(id: number, next: number): void {
    const { blocks } = this;
    const after = blocks.next[next]!;
    blocks.size[id]! += blocks.size[next]!;
    blocks.whole[id] = WHOLE_UNKNOWN;
    blocks.next[id] = after;
    if (after !== 0) blocks.previous[after] = id;
    if (this.top === next) this.top = id;
    blocks.remove(next);
  }
}

/** Whether a record is of a live block with this generation. */
export function isLive(
  blocks: Blocks,
  id: number,
  generation: number,
): boolean {
  return id > 0 && blocks.state[id] === BlockState.LIVE &&
    blocks.generation[id] === generation;
}

/** Whether a block has a flag of {@linkcode BlockFlag}. */
export function hasFlag(
  blocks: Blocks,
  id: number,
  flag: typeof BlockFlag[keyof typeof BlockFlag],
): boolean {
  return (blocks.flags[id]! & flag) !== 0;
}
