/**
 * Argument blocks of the paging kernels, as `kernels/README.md` lays them out.
 *
 * Addresses are device addresses, numbers below 2^53. Each function makes a block of its
 * own, which the launch copies.
 *
 * @module
 */

import type { KernelArgument } from "../kernel.ts";
import { entryFlags, type EntryFormat, type PageKind } from "./formats.ts";

/** Runs or ranges that one block holds. */
export const MOST_RUNS = 64;

/** Neighbouring items by number: frames, or entries of a table. */
export interface Span {
  /** Number of the first. */
  readonly first: number;
  /** How many. */
  readonly count: number;
}

/** Entries to write, one after another from `entries` on. */
export interface MaterializeTarget extends PageKind {
  /** Address of the first entry to write. */
  entries: number;
  /** Address of frame 0: of frame n it is `frames + n * pageSize`. */
  frames: number;
  /** Layout of the entries. */
  format: EntryFormat;
}

/** A page table as kernels read it: `MbPagedView` in `kernels/moonbright.h`. */
export interface PagedViewFields {
  /** Address of the entry of page 0. */
  table: number;
  /** Pages that may be used. */
  pages: number;
  /** log2 of the page size. */
  pageShift: number;
  /** Layout of the entries. */
  format: EntryFormat;
}

/** Bytes between a paged range and linear memory. */
export interface Transfer {
  /** The paged range. */
  view: PagedViewFields;
  /** First byte in the paged range. */
  offset: number;
  /** Number of bytes. */
  bytes: number;
  /** Address of the linear memory. */
  linear: number;
  /** Address of a report word, see `page_report.ts`; none if left out. */
  report?: number;
}

/** A frame to copy and where to. */
export interface FrameCopy {
  /** Number of the frame that is read. */
  readonly source: number;
  /** Number of the frame that is written. */
  readonly destination: number;
}

/** Number of 64-bit words in an `MbPagedView`. */
const VIEW_WORDS = 7;

/** Number of 64-bit words in an `MbEncoder`. */
const ENCODER_WORDS = 4;

/** Words of an argument block, written from the beginning. Little-endian, as all targets. */
class BlockWriter {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly #halves: Uint32Array<ArrayBuffer>;
  #next = 0;

  constructor(words: number) {
    this.#halves = new Uint32Array(2 * words);
    this.bytes = new Uint8Array(this.#halves.buffer);
  }

  u32(value: number): this {
    this.#halves[this.#next++] = value;
    return this;
  }

  /** A number must be whole and below 2^53. */
  u64(value: number | bigint): this {
    if (typeof value === "bigint") {
      this.u32(Number(value & 0xFFFFFFFFn));
      return this.u32(Number(value >> 32n));
    }
    this.u32(value);
    return this.u32(value / 2 ** 32);
  }

  /** Runs that lie end to end on one side: where each begins there, and its number. */
  runs(spans: readonly Span[]): this {
    let from = 0;
    for (const { first, count } of spans) {
      this.u32(from).u32(first);
      from += count;
    }
    return this;
  }

  encoder(target: MaterializeTarget): this {
    return this.u64(target.frames)
      .u64(target.format.addressMask)
      .u64(entryFlags(target.format, target))
      .u32(target.pageSize)
      .u32(target.format.addressShift);
  }

  view({ table, pages, pageShift, format }: PagedViewFields): this {
    return this.u64(table)
      .u64(pages)
      .u64(format.addressMask)
      .u64(format.validMask)
      .u64(format.validMask | format.readOnlySet | format.readOnlyClear)
      .u64(format.validMask | format.readOnlyClear)
      .u32(pageShift)
      .u32(format.addressShift);
  }
}

/** How many items spans have together. */
export function countItems(spans: readonly Span[]): number {
  return spans.reduce((sum, { count }) => sum + count, 0);
}

/** Spans must be as many as a block holds, none of them empty. */
function checkSpans(spans: readonly Span[], most: number): number {
  if (spans.length === 0 || spans.length > most) {
    throw new RangeError(
      `Cannot make an argument block: it holds 1 to ${most} runs, not ${spans.length}`,
    );
  }
  for (const { first, count } of spans) {
    if (
      !(Number.isInteger(first) && Number.isInteger(count) && first >= 0 &&
        count > 0 && first + count <= 2 ** 32)
    ) {
      throw new RangeError(
        `Cannot make an argument block: ${count} items from ${first} on are no run of 32-bit numbers`,
      );
    }
  }
  const count = countItems(spans);
  if (count >= 2 ** 32) {
    throw new RangeError(
      `Cannot make an argument block: its runs have ${count} items, 2^32 or more`,
    );
  }
  return count;
}

/**
 * The block of `mb_materialize`: up to {@linkcode MOST_RUNS} runs of frames become entries.
 *
 * @throws {RangeError} if the runs are too many or none, or a run is empty
 */
export function materializeBlock(
  target: MaterializeTarget,
  runs: readonly Span[],
): Uint8Array {
  const count = checkSpans(runs, MOST_RUNS);
  return new BlockWriter(2 + ENCODER_WORDS + MOST_RUNS)
    .u64(target.entries).encoder(target)
    .u32(count).u32(runs.length).runs(runs).bytes;
}

/** A list of runs for memory that `mb_materialize_list` reads. */
export interface RunList {
  /** Its bytes, 8 for each run, to be placed at a multiple of 8. */
  bytes: Uint8Array;
  /** Number of runs in the list. */
  runCount: number;
  /** Entries that they become. */
  count: number;
}

/** A warp takes as many runs as it has threads: pieces keep its share small. */
const LIST_PIECE = 128;

/** Enough pieces to keep every processor busy. */
const LIST_PIECES = 16384;

/**
 * Any number of runs of frames as a list. Long runs are cut in pieces, since the kernel
 * spreads runs over its threads.
 *
 * @throws {RangeError} if there are no runs, or a run is empty
 */
export function runList(runs: readonly Span[]): RunList {
  const count = checkSpans(runs, 2 ** 31);
  const piece = Math.max(LIST_PIECE, Math.ceil(count / LIST_PIECES));
  let runCount = 0;
  for (const run of runs) runCount += Math.ceil(run.count / piece);
  const halves = new Uint32Array(2 * runCount);
  let next = 0;
  let from = 0;
  for (const run of runs) {
    for (let done = 0; done < run.count; done += piece) {
      halves[next++] = from + done;
      halves[next++] = run.first + done;
    }
    from += run.count;
  }
  return { bytes: new Uint8Array(halves.buffer), runCount, count };
}

/** The block of `mb_materialize_list`; `address` is where the list is. */
export function materializeListBlock(
  target: MaterializeTarget,
  list: RunList,
  address: number,
): Uint8Array {
  return new BlockWriter(3 + ENCODER_WORDS)
    .u64(target.entries).encoder(target)
    .u32(list.count).u32(list.runCount).u64(address).bytes;
}

/**
 * The block of `mb_invalidate`: entries of a table become invalid.
 *
 * @throws {RangeError} if the ranges are too many or none, or one is empty
 */
export function invalidateBlock(
  table: number,
  format: EntryFormat,
  ranges: readonly Span[],
): Uint8Array {
  const count = checkSpans(ranges, MOST_RUNS);
  return new BlockWriter(3 + MOST_RUNS)
    .u64(table).u64(format.invalid)
    .u32(count).u32(ranges.length).runs(ranges).bytes;
}

/**
 * The block of `mb_protect`: the valid ones among entries of a table change. The bits come
 * from `protectBits`.
 *
 * @throws {RangeError} if the ranges are too many or none, or one is empty
 */
export function protectBlock(
  table: number,
  format: EntryFormat,
  change: { clear: bigint; set: bigint },
  ranges: readonly Span[],
): Uint8Array {
  const count = checkSpans(ranges, MOST_RUNS);
  return new BlockWriter(5 + MOST_RUNS)
    .u64(table).u64(format.validMask).u64(change.clear).u64(change.set)
    .u32(count).u32(ranges.length).runs(ranges).bytes;
}

/**
 * The block of `mb_checksum`: adds the checksum of entries to the word at `sum`. `first`
 * is the index of the first of them in their table.
 */
export function checksumBlock(
  entries: number,
  count: number,
  sum: number,
  first = 0,
): Uint8Array {
  return new BlockWriter(4).u64(entries).u64(count).u64(first).u64(sum).bytes;
}

/** A view as the argument of a kernel: the `MbPagedView` of `kernels/moonbright.h`. */
export function viewBlock(view: PagedViewFields): Uint8Array<ArrayBuffer> {
  return new BlockWriter(VIEW_WORDS).view(view).bytes;
}

/**
 * A view among the arguments of a kernel of the user's, where it takes an `MbPagedView`.
 *
 * The fields in their order are laid out as the struct is.
 */
export function viewArguments(view: PagedViewFields): KernelArgument[] {
  const words = new BigUint64Array(viewBlock(view).buffer);
  return Array.from(words, (word) => ({ u64: word }));
}

/** The block of `mb_gather` and of `mb_scatter`. */
export function transferBlock(transfer: Transfer): Uint8Array {
  return new BlockWriter(VIEW_WORDS + 4).view(transfer.view)
    .u64(transfer.offset).u64(transfer.bytes)
    .u64(transfer.linear).u64(transfer.report ?? 0).bytes;
}

/**
 * The block of `mb_copy_pages`: up to {@linkcode MOST_RUNS} frames are copied, each to
 * another. `frames` is the address of frame 0.
 *
 * @throws {RangeError} if the copies are too many
 */
export function copyPagesBlock(
  frames: number,
  pageSize: number,
  copies: readonly FrameCopy[],
): Uint8Array {
  if (copies.length > MOST_RUNS) {
    throw new RangeError(
      `Cannot make an argument block: it holds ${MOST_RUNS} copies, not ${copies.length}`,
    );
  }
  const block = new BlockWriter(2 + MOST_RUNS)
    .u64(frames).u32(Math.log2(pageSize)).u32(copies.length);
  for (const { source, destination } of copies) {
    block.u32(source).u32(destination);
  }
  return block.bytes;
}

/** The block of `mb_read_direct`: adds the sum of all words to the word at `sum`. */
export function readDirectBlock(
  address: number,
  bytes: number,
  sum: number,
): Uint8Array {
  return new BlockWriter(3).u64(address).u64(bytes).u64(sum).bytes;
}

/** The block of `mb_read_paged` and of `mb_translate_each`. */
export function readPagedBlock(
  view: PagedViewFields,
  bytes: number,
  sum: number,
): Uint8Array {
  return new BlockWriter(VIEW_WORDS + 2).view(view).u64(bytes).u64(sum).bytes;
}
