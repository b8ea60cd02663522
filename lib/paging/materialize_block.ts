/**
 * The argument block of `mb_materialize`, filled in place: the block that is needed most
 * often costs no object but itself. `materializeBlock` makes the same block anew; a test
 * compares them.
 *
 * @module
 */

import { MOST_RUNS } from "./argument_blocks.ts";
import { entryFlags, type EntryFormat } from "./formats.ts";
import type { Piece } from "./frame_run.ts";

/** Half words before the runs: entries, frames, mask, flags, page size, shift, counts. */
const HEAD_HALVES = 12;
const FLAGS_AT = 6;
const COUNTS_AT = 10;

/** A block that is filled again and again; launches copy it. */
export class MaterializeBlock {
  /** The block. */
  readonly bytes: Uint8Array;
  readonly #halves = new Uint32Array(HEAD_HALVES + 2 * MOST_RUNS);
  readonly #format: EntryFormat;
  readonly #writable: readonly [number, number];
  readonly #readOnly: readonly [number, number];
  readonly #versionLimit: number;

  /** A block for tables of one layout; `frames` is the address of frame 0. */
  constructor(
    { frames, pageSize, format }: {
      frames: number;
      pageSize: number;
      format: EntryFormat;
    },
  ) {
    this.bytes = new Uint8Array(this.#halves.buffer);
    this.#format = format;
    const flags = (readOnly: boolean) =>
      halves(entryFlags(format, { pageSize, readOnly, inLeafTable: true }));
    this.#writable = flags(false);
    this.#readOnly = flags(true);
    this.#versionLimit = Number(
      format.versionMask >> BigInt(format.versionShift),
    ) + 1;
    this.#halves.set([frames >>> 0, frames / 2 ** 32], 2);
    this.#halves.set(halves(format.addressMask), 4);
    this.#halves.set([pageSize, format.addressShift], 8);
  }

  /**
   * Fills the block for entries from the address `entries` on; returns their number, 0 if
   * the frames are in more runs than a block holds.
   */
  fill(
    entries: number,
    pieces: readonly Piece[],
    readOnly: boolean,
    version: number,
  ): number {
    const block = this.#halves;
    let at = HEAD_HALVES;
    let count = 0;
    let next = -1;
    for (let i = 0; i < pieces.length; i++) {
      const { run, offset, count: frames } = pieces[i]!;
      const first = run.first + offset;
      if (first !== next) {
        if (at === block.length) return 0;
        block[at++] = count;
        block[at++] = first;
      }
      count += frames;
      next = first + frames;
    }
    const [low, high] = readOnly ? this.#readOnly : this.#writable;
    // Versions stand in the upper half, where there are any.
    const shift = this.#format.versionShift - 32;
    block[0] = entries;
    block[1] = entries / 2 ** 32;
    block[FLAGS_AT] = low;
    block[FLAGS_AT + 1] = this.#versionLimit === 1
      ? high
      : high | (version % this.#versionLimit) << shift;
    block[COUNTS_AT] = count;
    block[COUNTS_AT + 1] = (at - HEAD_HALVES) / 2;
    return count;
  }
}

function halves(word: bigint): [number, number] {
  return [Number(word & 0xFFFFFFFFn), Number(word >> 32n)];
}
