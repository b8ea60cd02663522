/**
 * Records of blocks, live and free, in typed arrays: about 80 bytes each, nothing for
 * the garbage collector to trace.
 *
 * Blocks of one backed stretch of addresses are chained in address order. A hole
 * (never mapped, or retired) ends a chain: neighbours in a chain are always
 * contiguous and backed.
 *
 * @module
 */

import { grown } from "./growable.ts";

/** What a record stands for. */
export const BlockState = {
  /** Not in use. */
  NONE: 0,
  /** Free: in the index of its stream. */
  FREE: 1,
  /** Owned by the program. */
  LIVE: 2,
  /** Freed, but other streams have not passed yet, or graphs may use it: in no index. */
  PENDING: 3,
  /** Mapped before a block that is to end where its extents end: owned by nobody. */
  PADDING: 4,
} as const;

/** Bits of {@linkcode Blocks.flags}. */
export const BlockFlag = {
  /** Has a name in the side table. */
  NAMED: 1,
  /** Was used on other streams than its own. */
  SHARED: 2,
  /** Lies alone in a stretch of addresses that it may grow into. */
  GROWABLE: 4,
  /** Is used by captured work: keeps its memory until the graph is gone. */
  CAPTURED: 8,
  /** Is watched: see debug/watch.ts. */
  WATCHED: 16,
  /** Was handed out zeroed, and stays so where it grows. */
  ZEROED: 32,
  /** Copies on another thread use it: it can be neither freed nor resized. */
  COPYING: 64,
} as const;

/** Value of {@linkcode Blocks.whole} before it is worked out. */
export const WHOLE_UNKNOWN = -1;

/** Table of block records; record 0 means "none". */
export class Blocks {
  /** First byte. */
  address: Float64Array = new Float64Array(256);
  /** Bytes, a multiple of 512. */
  size: Float64Array = new Float64Array(256);
  /** Bytes asked for, of a live block. */
  requested: Float64Array = new Float64Array(256);
  /** Of a free block: bytes of the extents it covers wholly; else that or unknown. */
  whole: Float64Array = new Float64Array(256);
  /** Of a free block: number of the stream's event that its last use comes before. */
  epoch: Float64Array = new Float64Array(256);
  /** The block before and the block behind in the chain. */
  previous: Int32Array = new Int32Array(256);
  /** The block behind in the chain. */
  next: Int32Array = new Int32Array(256);
  /** Neighbours in the list of a size class. */
  listPrevious: Int32Array = new Int32Array(256);
  /** The next in the list of a size class; of an unused record the next unused one. */
  listNext: Int32Array = new Int32Array(256);
  /** Counts uses of the record, so that a stale owner is noticed. */
  generation: Uint32Array = new Uint32Array(256);
  /** The stream whose order the block follows. */
  stream: Uint16Array = new Uint16Array(256);
  /** One of {@linkcode BlockState}. */
  state: Uint8Array = new Uint8Array(256);
  /** Bits of {@linkcode BlockFlag}. */
  flags: Uint8Array = new Uint8Array(256);

  #unused = 0;
  #end = 1;

  /** One more than the highest record ever used. */
  get end(): number {
    return this.#end;
  }

  /** Makes room so that the next `count` calls of `add` can't fail. */
  prepare(count: number): void {
    const end = this.#end + count;
    if (end <= this.address.length) return;
    this.address = grown(this.address, end);
    this.size = grown(this.size, end);
    this.requested = grown(this.requested, end);
    this.whole = grown(this.whole, end);
    this.epoch = grown(this.epoch, end);
    this.previous = grown(this.previous, end);
    this.next = grown(this.next, end);
    this.listPrevious = grown(this.listPrevious, end);
    this.listNext = grown(this.listNext, end);
    this.generation = grown(this.generation, end);
    this.stream = grown(this.stream, end);
    this.state = grown(this.state, end);
    this.flags = grown(this.flags, end);
  }

  /** Takes an unused record. */
  add(address: number, size: number): number {
    let id = this.#unused;
    if (id !== 0) this.#unused = this.listNext[id]!;
    else {
      if (this.#end >= this.address.length) this.prepare(1);
      id = this.#end++;
    }
    this.address[id] = address;
    this.size[id] = size;
    this.whole[id] = WHOLE_UNKNOWN;
    this.previous[id] = 0;
    this.next[id] = 0;
    this.flags[id] = 0;
    return id;
  }

  /** Gives a record back. */
  remove(id: number): void {
    this.state[id] = BlockState.NONE;
    this.listNext[id] = this.#unused;
    this.#unused = id;
  }
}
