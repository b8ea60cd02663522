/**
 * The translation plane: virtual pages whose table lies in device memory, written by
 * kernels in the caller's stream and read by the user's kernels.
 *
 * The host decides which frames a page gets; a kernel writes the entries. No operation
 * waits for the device, and all but those that move host data may be captured into a
 * graph; only under capture the host waits where a stream needs what others have freed.
 *
 * @module
 */

import type { Block } from "../block.ts";
import { bytesOf } from "../bytes.ts";
import { ClosedError, MoonBrightError } from "../errors.ts";
import type { MoonBright } from "../moonbright.ts";
import { checkBytes } from "../sizes.ts";
import type { Stream } from "../stream.ts";
import { type FrameCopy, MOST_RUNS } from "./argument_blocks.ts";
import {
  encode,
  type EntryFormat,
  type FormatName,
  FORMATS,
} from "./formats.ts";
import { type FrameRun, type Piece, slicePieces } from "./frame_run.ts";
import { FrameStore } from "./frame_store.ts";
import {
  type ForkOptions,
  type PagedAccess,
  PagedRange,
  type RangeState,
} from "./paged_range.ts";
import { type PagingImages, TableWriter } from "./table_writer.ts";
import { type PageSpan, VirtualPages } from "./virtual_pages.ts";

/** How a paged space is made. */
export interface PagedSpaceOptions {
  /** Virtual pages: entries of the table. */
  pages: number;
  /** Bytes of a page: a power of two from 4 KiB to 2 MiB; 64 KiB if left out. */
  pageSize?: number;
  /** Layout of the entries; MoonBright's own if left out. */
  format?: FormatName;
  /**
   * What entries hold: `device` addresses, which kernels follow (the default), or
   * addresses within the page `store`, for layouts too narrow for device addresses and for
   * tools.
   */
  addresses?: "device" | "store";
  /** Frames that there may be at most; as many as pages if left out. */
  maxFrames?: number;
  /** Frames to have memory for at once; 32 MiB of them if left out. */
  frames?: number;
  /** A name that shows in reports. */
  name?: string;
}

/** How to allocate pages. */
export interface PageAllocOptions {
  /** The stream whose order the range follows; the default stream if left out. */
  stream?: Stream;
  /** Pages that it may grow to; as many as it has if left out. */
  maxPages?: number;
}

/** Figures of a paged space. */
export interface PagedStats {
  /** Pages that have frames. */
  mappedPages: number;
  /** Frames in use; fewer than pages where forks share them. */
  usedFrames: number;
  /** Frames that there is memory for. */
  backedFrames: number;
  /** Live ranges. */
  ranges: number;
  /** Pages freed whose entries are still in the table. */
  retiredPages: number;
  /** Kernels launched to write the table or copy pages. */
  launches: number;
  /** Coherence points at which entries were cleared. */
  clearings: number;
}

/** What a kernel needs to translate: the fields of `MbPagedView` in `kernels/moonbright.h`. */
export interface PagedView {
  /** Device address of the table. */
  table: number;
  /** Entries of the table. */
  pages: number;
  /** log2 of the page size. */
  pageShift: number;
  /** The entries' layout. */
  format: EntryFormat;
}

/** Retired pages at which their entries are cleared. */
const CLEAR_AT_SHARE = 1 / 8;

/** What captured graphs may write: frames of a range or, without any, its pages. */
interface Parked {
  range: RangeState;
  pieces?: readonly Piece[];
}

/** Frames that no range has any more, but that can't be given out yet. */
interface HeldFrames {
  /** The range that had them last. */
  range: RangeState;
  run: FrameRun;
  first: number;
  count: number;
}

/** Paged device memory. */
export class PagedSpace {
  /** Bytes of a page. */
  readonly pageSize: number;
  /** Virtual pages. */
  readonly pages: number;
  /** Layout of the entries. */
  readonly format: EntryFormat;
  /** Device address that an entry's address 0 stands for. */
  readonly entryOrigin: number;
  readonly #mb: MoonBright;
  readonly #table: Block;
  readonly #virtual: VirtualPages;
  readonly #frames: FrameStore;
  readonly #writer: TableWriter;
  readonly #ranges = new Set<RangeState>();
  /** Frames and pages that captured graphs may write: kept until those are gone. */
  #parked: Parked[] = [];
  /**
   * Frames whose stream could not be made to wait for their former readers, one being
   * captured or the driver having refused.
   */
  #held: HeldFrames[] = [];
  #mappedPages = 0;
  #clearings = 0;
  /** Where entries were last cleared: whoever uses the pages anew comes after it. */
  #lastClearing = { stream: 0, epoch: 0 };
  #closed = false;
  #released = false;

  /**
   * Made by `mb.pagedSpace()`.
   *
   * @throws {RangeError} if pages or page size are out of range
   * @throws {OutOfMemoryError} if there is no memory for the table or the first frames
   */
  constructor(
    mb: MoonBright,
    images: PagingImages,
    options: PagedSpaceOptions,
  ) {
    const { pageSize = 64 * 1024, format = "moonbright", name = "pages" } =
      options;
    this.#mb = mb;
    this.pageSize = pageSize;
    this.format = FORMATS[format];
    if (!this.format) {
      throw new RangeError(
        `Cannot make a paged space: unknown format "${format}"; known are ${
          Object.keys(FORMATS).join(", ")
        }`,
      );
    }
    if (!this.format.flags.has(pageSize)) {
      throw new RangeError(
        `Cannot make a paged space: the format "${format}" has no pages of ${pageSize} bytes; it has ${
          [...this.format.flags.keys()].join(", ")
        }`,
      );
    }
    this.pages = checkCount(options.pages, "pages", 2 ** 31);
    const most = checkCount(
      options.maxFrames ?? this.pages,
      "maxFrames",
      2 ** 31,
    );
    const first = Math.min(
      most,
      checkCount(
        options.frames ?? Math.ceil(32 * 1024 ** 2 / pageSize),
        "frames",
        2 ** 31,
      ),
    );
    this.#virtual = new VirtualPages(this.pages);
    this.#table = mb.alloc(8 * this.pages, { name: `${name}: table` });
    let frames: FrameStore | undefined;
    let writer: TableWriter | undefined;
    try {
      frames = new FrameStore(mb, pageSize, first, most, `${name}: store`);
      this.#frames = frames;
      if (options.addresses !== "store") this.entryOrigin = 0;
      else this.entryOrigin = frames.addressOf(0);
      const entryBase = frames.addressOf(0) - this.entryOrigin;
      checkAddresses(this.format, entryBase, most, pageSize);
      writer = new TableWriter(
        mb,
        images,
        {
          table: this.#table.address,
          frames: this.#frames.addressOf(0),
          entryBase,
          pageSize,
          format: this.format,
        },
      );
      this.#writer = writer;
      writer.clear(0, [{ first: 0, count: this.pages }]);
    } catch (error) {
      writer?.close();
      frames?.close();
      this.#table.free();
      throw error;
    }
    this.#noteClearing(0);
  }

  /** Device address of the table: `pages` entries of 8 bytes. */
  get table(): number {
    this.assertOpen("read the table's address");
    return this.#table.address;
  }

  /** Device address of the page store: of its frame 0. */
  get store(): number {
    this.assertOpen("read the store's address");
    return this.#frames.addressOf(0);
  }

  /** Whether the space or its instance was closed. */
  get closed(): boolean {
    return this.#closed || this.#mb.closed;
  }

  /**
   * What kernels need to translate.
   *
   * @throws {MoonBrightError} code `unsupported` if entries hold addresses within the
   * store: followed by a kernel, they would lead elsewhere
   */
  get view(): PagedView {
    if (this.entryOrigin !== 0) {
      throw new MoonBrightError(
        "unsupported",
        "read the view",
        'Cannot give kernels a view: the entries hold addresses within the store; make the space with addresses: "device"',
      );
    }
    return {
      table: this.table,
      pages: this.pages,
      pageShift: Math.log2(this.pageSize),
      format: this.format,
    };
  }

  /** The figures. */
  stats(): PagedStats {
    this.assertOpen("read the figures");
    return {
      mappedPages: this.#mappedPages,
      usedFrames: this.#frames.used,
      backedFrames: this.#frames.backed,
      ranges: this.#ranges.size,
      retiredPages: this.#virtual.retiredPages,
      launches: this.#writer.launches,
      clearings: this.#clearings,
    };
  }

  /** Sees to it that there is memory for this many frames, ahead of need or of a capture. */
  reserve(frames: number): void {
    this.assertOpen("reserve frames");
    this.#frames.reserve(checkCount(frames, "frames", this.#frames.most));
  }

  /**
   * Allocates pages with frames of their own; a kernel in the stream writes the entries.
   * The contents are undefined.
   *
   * @throws {RangeError} if the numbers make no sense
   * @throws {MoonBrightError} code `limit` if the table or the space is full
   * @throws {OutOfMemoryError} if the device is
   */
  alloc(pages: number, options: PageAllocOptions = {}): PagedRange {
    this.assertOpen("alloc");
    checkCount(pages, "pages", this.pages);
    const stream = this.#streamNumber(options.stream, "alloc");
    const most = checkCount(
      options.maxPages ?? pages,
      "maxPages",
      this.pages,
    );
    if (most < pages) {
      throw new RangeError(
        `Cannot alloc: maxPages ${most} is less than the ${pages} pages asked for`,
      );
    }
    const captured = this.#isCapturing(stream);
    const first = this.#takePages(most, stream, captured);
    let pieces: Piece[];
    try {
      pieces = this.#takeFrames(stream, pages, captured);
    } catch (error) {
      this.#virtual.recycle([{ first, count: most }]);
      throw error;
    }
    const range: RangeState = {
      first,
      most,
      pages,
      pieces,
      owner: this.#mb.streamByNumber(stream),
      stream,
      users: undefined,
      version: 1,
      readOnly: false,
      captured,
      live: true,
    };
    this.#write(range, first, pieces, range.version, () => {
      this.#releaseNow(range, pieces);
      this.#virtual.recycle([{ first, count: most }]);
    });
    this.#add(range);
    return new PagedRange(this, range);
  }

  /** Clears the entries of freed ranges now, rather than when enough have come together. */
  clear(stream?: Stream): void {
    this.assertOpen("clear");
    this.#clear(this.#streamNumber(stream, "clear"));
  }

  /**
   * Gives back what ranges that were changed under capture hold. Only for when the
   * graphs are destroyed: launched again, they would write into other ranges' entries.
   *
   * @throws {RangeError} if a stream that uses the space is capturing
   */
  forgetGraphs(): void {
    this.assertOpen("forget graphs");
    this.#refuseCaptures("forget graphs");
    // First, since it can fail and must then have changed nothing.
    for (const { range } of this.#parked) {
      this.followOpenStream(range);
      this.#orderUsers(range);
    }
    for (const range of this.#ranges) range.captured = false;
    const parked = this.#parked;
    this.#parked = [];
    for (const { range, pieces } of parked) {
      if (pieces) this.#releaseNow(range, pieces);
      else this.#retireNow(range);
    }
    this.#giveHeld();
  }

  /**
   * Frees table and store. Kernels that use them must be done or ordered before.
   *
   * @throws {RangeError} if graphs hold work of the space, or a stream that uses it is
   * capturing; closing can be tried again then
   */
  close(): void {
    if (this.#released) return;
    if (!this.#mb.closed) {
      if (!this.#closed) {
        this.#refuseCaptures("close the paged space");
        // Work of every stream that used the space comes before the memory is used again.
        for (const stream of this.#writer.streams) this.#join(0, stream);
      }
      try {
        this.#writer.close();
      } finally {
        // Without its kernels nothing works: only closing is left to be done.
        if (!this.#writer.loaded) this.#closed = true;
      }
      this.#frames.close();
      this.#table[Symbol.dispose]();
    }
    this.#closed = true;
    this.#released = true;
  }

  /** Closes the space. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Throws unless the space is open; the message names the operation.
   *
   * @throws {ClosedError} if the space or its instance is closed
   */
  assertOpen(operation: string): void {
    if (this.closed) throw new ClosedError(operation, "the paged space");
  }

  /**
   * A range whose stream was closed follows the default stream from then on, as blocks do.
   *
   * @internal
   */
  followOpenStream(range: RangeState): void {
    if (range.stream === 0) return;
    const { clocks } = this.#mb.allocator.streams;
    // A new stream may have got the closed one's number.
    if (
      !clocks[range.stream]!.open ||
      this.#mb.streamByNumber(range.stream) !== range.owner
    ) range.stream = 0;
  }

  /**
   * See {@linkcode PagedRange.grow}.
   *
   * @internal
   */
  growRange(range: RangeState, pages: number): void {
    checkCount(pages, "pages", this.pages);
    if (range.pages + pages > range.most) {
      throw new RangeError(
        `Cannot grow by ${pages} pages: the range has ${range.pages} and may have ${range.most}; allocate it with more "maxPages"`,
      );
    }
    const undo = this.#undoIfFailed(range);
    const captured = this.#noteCapture(range);
    const pieces = this.#takeFrames(range.stream, pages, captured);
    const version = range.version + 1;
    this.#write(
      range,
      range.first + range.pages,
      pieces,
      version,
      () => this.#releaseNow(range, pieces),
    );
    range.version = version;
    appendPieces(range.pieces, pieces);
    range.pages += pages;
    this.#mappedPages += pages;
    undo(pieces);
  }

  /**
   * See {@linkcode PagedRange.shrink}.
   *
   * @internal
   */
  shrinkRange(range: RangeState, pages: number): void {
    checkCount(pages, "pages", range.pages);
    const left = range.pages - pages;
    const undo = this.#undoIfFailed(range);
    this.#noteCapture(range);
    this.#orderUsers(range);
    // Cleared at once: the range may grow there again.
    this.#writer.clear(range.stream, [{
      first: range.first + left,
      count: pages,
    }]);
    range.version++;
    const gone = slicePieces(range.pieces, left, range.pages);
    range.pieces = slicePieces(range.pieces, 0, left);
    range.pages = left;
    this.#mappedPages -= pages;
    this.#release(range, gone);
    undo();
  }

  /**
   * See {@linkcode PagedRange.fork}.
   *
   * @internal
   */
  forkRange(range: RangeState, options: ForkOptions): PagedRange {
    const stream = options.stream === undefined
      ? range.stream
      : this.#streamNumber(options.stream, "fork");
    const most = checkCount(
      options.maxPages ?? range.most,
      "maxPages",
      this.pages,
    );
    if (most < range.pages) {
      throw new RangeError(
        `Cannot fork: maxPages ${most} is less than the ${range.pages} pages of the range`,
      );
    }
    const undo = this.#undoIfFailed(range);
    const captured = this.#noteCapture(range) || this.#isCapturing(stream);
    // For the contents. The range need not wait for the fork: what either writes is its own.
    this.#join(stream, range.stream);
    const first = this.#takePages(most, stream, captured);
    for (const { run, offset, count } of range.pieces) {
      run.retain(offset, count);
    }
    const fork: RangeState = {
      first,
      most,
      pages: range.pages,
      pieces: range.pieces.slice(),
      owner: this.#mb.streamByNumber(stream),
      stream,
      users: undefined,
      version: 1,
      readOnly: false,
      captured,
      live: true,
    };
    let written = false;
    try {
      if (range.pages > 0) {
        // The fork's first: entries that nobody knows yet need no undoing.
        this.#writer.materialize(
          stream,
          first,
          fork.pieces,
          true,
          fork.version,
        );
        written = true;
        this.#writer.protect(
          range.stream,
          [{ first: range.first, count: range.pages }],
          true,
          range.version + 1,
        );
      }
    } catch (error) {
      for (const { run, offset, count } of range.pieces) {
        run.release(offset, count, () => {});
      }
      if (written) this.#retire(fork);
      else this.#virtual.recycle([{ first, count: most }]);
      throw error;
    }
    range.version++;
    undo();
    this.#add(fork);
    return new PagedRange(this, fork);
  }

  /**
   * See {@linkcode PagedRange.writable}.
   *
   * @internal
   */
  makeWritable(range: RangeState, first: number, count: number): void {
    if (
      !(Number.isInteger(first) && Number.isInteger(count) && first >= 0 &&
        count >= 0 && first + count <= range.pages)
    ) {
      throw new RangeError(
        `Cannot make pages ${first} to ${
          first + count
        } writable: the range has ${range.pages}`,
      );
    }
    if (count === 0) return;
    const before = slicePieces(range.pieces, first, first + count);
    const undo = this.#undoIfFailed(range);
    const captured = this.#noteCapture(range);
    this.#orderUsers(range);
    const after: Piece[] = [];
    const copies: FrameCopy[] = [];
    const dropped: Piece[] = [];
    const taken: Piece[] = [];
    let mayCopy = false;
    try {
      for (const piece of before) {
        for (const part of splitByShared(piece)) {
          if (!part.run.isShared(part.offset, part.count)) {
            this.#awaitFormerUsers(range, part.run);
            after.push(part);
            continue;
          }
          const fresh = this.#takeFrames(range.stream, part.count, captured);
          taken.push(...fresh);
          pairFrames(part, fresh, copies);
          after.push(...fresh);
          dropped.push(part);
        }
      }
      mayCopy = copies.length > 0;
      if (mayCopy) this.#writer.copyPages(range.stream, copies);
      this.#writer.materialize(
        range.stream,
        range.first + first,
        after,
        range.readOnly,
        range.version + 1,
      );
    } catch (error) {
      if (mayCopy) this.#release(range, taken);
      else this.#releaseNow(range, taken);
      throw error;
    }
    range.version++;
    const head = slicePieces(range.pieces, 0, first);
    const tail = slicePieces(range.pieces, first + count, range.pages);
    range.pieces = [];
    for (const part of [head, after, tail]) appendPieces(range.pieces, part);
    this.#release(range, dropped);
    undo(taken);
  }

  /**
   * See {@linkcode PagedRange.protect}.
   *
   * @internal
   */
  protectRange(range: RangeState, readOnly: boolean): void {
    const undo = this.#undoIfFailed(range);
    this.#noteCapture(range);
    this.#orderUsers(range);
    const spans = readOnly
      ? [{ first: range.first, count: range.pages }]
      : this.#ownPages(range);
    if (range.pages > 0) {
      try {
        this.#writer.protect(range.stream, spans, readOnly, range.version + 1);
      } catch (error) {
        this.#protectAgain(range, spans);
        throw error;
      }
    }
    range.version++;
    range.readOnly = readOnly;
    undo();
  }

  /** Undoes a change of rights whose later launches failed: of many stretches some are changed. */
  #protectAgain(range: RangeState, spans: readonly PageSpan[]): void {
    if (spans.length <= MOST_RUNS) return;
    try {
      this.#writer.protect(range.stream, spans, range.readOnly, range.version);
    } catch {
      // The first failure says more.
    }
  }

  /** The pages whose frames no other range has: shared ones stay read-only until they are copied. */
  #ownPages(range: RangeState): PageSpan[] {
    let page = range.first;
    const own: PageSpan[] = [];
    for (const piece of range.pieces) {
      for (const part of splitByShared(piece)) {
        const { count } = part;
        if (!part.run.isShared(part.offset, count)) {
          this.#awaitFormerUsers(range, part.run);
          own.push({ first: page, count });
        }
        page += count;
      }
    }
    return own;
  }

  /**
   * See {@linkcode PagedRange.write}.
   *
   * @internal
   */
  writeRange(
    range: RangeState,
    source: ArrayBufferView | ArrayBuffer,
    access: PagedAccess,
  ): void {
    const bytes = bytesOf(source);
    if (range.readOnly) {
      throw new MoonBrightError(
        "unsupported",
        "write",
        "Cannot write: the range was made read-only; protect(false) allows it again",
      );
    }
    const offset = this.#checkAccess(range, "write", bytes.byteLength, access);
    if (bytes.byteLength === 0) return;
    const firstPage = Math.floor(offset / this.pageSize);
    const endPage = Math.ceil((offset + bytes.byteLength) / this.pageSize);
    this.#refuseCapturing(range, "write", access);
    // What other streams still read must be read before it changes.
    this.#orderUsers(range);
    if (this.#sharesAny(range, firstPage, endPage)) {
      this.makeWritable(range, firstPage, endPage - firstPage);
    }
    // Only now: the stream must be known as a user when the range changes next.
    const stream = this.#accessStream(range, "write", access);
    const driverStream = this.#driverId(stream);
    this.#eachPart(
      range,
      offset,
      bytes.byteLength,
      (address, from, to) =>
        this.#mb.driver.copyIn(address, bytes.subarray(from, to), driverStream),
    );
  }

  /**
   * See {@linkcode PagedRange.read}.
   *
   * @internal
   */
  readRange(
    range: RangeState,
    destination: ArrayBufferView | ArrayBuffer | number,
    access: PagedAccess,
  ): Uint8Array {
    const bytes = typeof destination === "number"
      ? new Uint8Array(checkBytes(destination, "the length to read"))
      : bytesOf(destination);
    const offset = this.#checkAccess(range, "read", bytes.byteLength, access);
    this.#refuseCapturing(range, "read", access);
    const driverStream = this.#driverId(
      this.#accessStream(range, "read", access),
    );
    this.#eachPart(
      range,
      offset,
      bytes.byteLength,
      (address, from, to) =>
        this.#mb.driver.copyOut(
          bytes.subarray(from, to),
          address,
          driverStream,
        ),
    );
    return bytes;
  }

  /**
   * See {@linkcode PagedRange.useOn}.
   *
   * @internal
   */
  useRange(range: RangeState, stream: Stream): void {
    const number = this.#streamNumber(stream, "use");
    if (number === range.stream) return;
    this.#join(number, range.stream);
    (range.users ??= new Set()).add(number);
  }

  /**
   * See {@linkcode PagedRange.free}.
   *
   * @internal
   */
  freeRange(range: RangeState): void {
    const undo = this.#undoIfFailed(range);
    if (!this.#noteCapture(range)) this.#orderUsers(range);
    range.live = false;
    this.#ranges.delete(range);
    this.#mappedPages -= range.pages;
    const { pieces } = range;
    range.pieces = [];
    this.#release(range, pieces);
    this.#retire(range);
    undo();
  }

  /** Adds a range that was made; should that have been in a capture that fails, it goes again. */
  #add(range: RangeState): void {
    this.#ranges.add(range);
    this.#mappedPages += range.pages;
    const pieces = range.pieces.slice();
    this.#mb.allocator.graphs.onFailure(range.stream, () => {
      range.live = false;
      this.#ranges.delete(range);
      this.#mappedPages -= range.pages;
      this.#releaseNow(range, pieces);
      // Its entries were never written.
      this.#virtual.recycle([{ first: range.first, count: range.most }]);
    });
  }

  /**
   * Begins a change of a range; the function that it returns ends it. In a capture that
   * fails it is undone, its kernels never having run, and the frames that it gave the
   * range are given back.
   */
  #undoIfFailed(range: RangeState): (taken?: readonly Piece[]) => void {
    if (!this.#isCapturing(range.stream)) return () => {};
    const before = { ...range, pieces: range.pieces.slice() };
    const parkedBefore = this.#parked.length;
    return (taken = []) => {
      const parked = new Set(this.#parked.slice(parkedBefore));
      this.#mb.allocator.graphs.onFailure(range.stream, () => {
        this.#parked = this.#parked.filter((one) => !parked.has(one));
        if (!range.live) this.#mappedPages += before.pages;
        else this.#mappedPages += before.pages - range.pages;
        Object.assign(range, before);
        this.#ranges.add(range);
        this.#releaseNow(range, taken);
      });
    };
  }

  /** Retires the pages of a range that is gone, once no graph may write their entries. */
  #retire(range: RangeState): void {
    if (range.captured) this.#parked.push({ range });
    else this.#retireNow(range);
  }

  /** Never fails: what is due can as well be cleared at the next free, or when pages lack. */
  #retireNow(range: RangeState): void {
    this.#virtual.retire(range.first, range.most);
    if (this.#virtual.retiredPages <= this.pages * CLEAR_AT_SHARE) return;
    try {
      this.#clear(range.stream);
    } catch {
      // The pages stay retired.
    }
  }

  /** A coherence point: clears the entries of freed ranges in one batch, in stream order. */
  #clear(stream: number): void {
    // A stream that is captured can't be ordered before or after: later, then.
    if (this.#virtual.retiredPages === 0 || this.#isAnyCapturing(stream)) {
      return;
    }
    // Ranges of several streams may be among them: the clearing comes after all.
    for (const other of this.#writer.streams) this.#join(stream, other);
    const spans = this.#virtual.drain();
    try {
      this.#writer.clear(stream, spans);
    } catch (error) {
      for (const { first, count } of spans) this.#virtual.retire(first, count);
      throw error;
    }
    this.#noteClearing(stream);
    this.#clearings++;
    this.#virtual.recycle(spans);
    // So that they may use the pages anew also under capture.
    try {
      for (const other of this.#writer.streams) this.#join(other, stream);
    } catch {
      // Whoever takes the pages first waits for the clearing then.
    }
  }

  #noteClearing(stream: number): void {
    const { recorded } = this.#mb.allocator.streams.clocks[stream]!;
    this.#lastClearing = { stream, epoch: recorded };
  }

  /** Makes a stream that is new to the space wait for the last clearing of entries. */
  #awaitClearing(stream: number): void {
    const { streams } = this.#mb.allocator;
    const { stream: other, epoch } = this.#lastClearing;
    if (streams.isVisibleTo(stream, other, epoch)) return;
    // The host waits where the device can't be made to.
    if (this.#isCapturing(stream)) streams.waitPassed(other, epoch);
    else this.#join(stream, other);
  }

  #takePages(count: number, stream: number, captured: boolean): number {
    this.#awaitClearing(stream);
    let first = this.#virtual.take(count);
    if (first < 0 && !captured) {
      this.#clear(stream);
      first = this.#virtual.take(count);
    }
    if (first < 0) {
      throw new MoonBrightError(
        "limit",
        "take pages",
        `Cannot take ${count} pages: no such stretch is free in a table of ${this.pages}`,
      );
    }
    return first;
  }

  /** Writes the entries of newly taken pieces; undoes on failure. */
  #write(
    range: RangeState,
    firstPage: number,
    pieces: Piece[],
    version: number,
    undo: () => void,
  ): void {
    try {
      this.#writer.materialize(
        range.stream,
        firstPage,
        pieces,
        range.readOnly,
        version,
      );
    } catch (error) {
      undo();
      throw error;
    }
  }

  /** Gives back frames that no range has any more, once no graph may write them. */
  #release(range: RangeState, pieces: readonly Piece[]): void {
    if (range.captured) this.#parked.push({ range, pieces });
    else this.#releaseNow(range, pieces);
  }

  /**
   * Gives back frames that no range has any more, once all that shared them are ordered
   * before. The range's own users must be ordered. Never fails.
   */
  #releaseNow(range: RangeState, pieces: readonly Piece[]): void {
    this.followOpenStream(range);
    const { stream } = range;
    const { recorded } = this.#mb.allocator.streams.clocks[stream]!;
    for (const { run, offset, count } of pieces) {
      run.release(offset, count, (first, count) => {
        const frames = { range, run, first, count };
        if (!this.#tryGive(frames)) this.#held.push(frames);
      });
      run.addFormerUser(stream, recorded);
    }
  }

  /** Gives frames back behind their former users; false if no stream can wait for those now. */
  #tryGive({ range, run, first, count }: HeldFrames): boolean {
    this.followOpenStream(range);
    if (!this.#canAwaitFormerUsers(range, run)) return false;
    try {
      this.#awaitFormerUsers(range, run);
    } catch {
      // What the driver refuses now it may grant when frames are next asked for.
      return false;
    }
    this.#frames.give(range.stream, first, count);
    return true;
  }

  #takeFrames(stream: number, count: number, captured: boolean): Piece[] {
    this.#giveHeld();
    return this.#frames.take(stream, count, captured);
  }

  #giveHeld(): void {
    if (this.#held.length === 0 || this.#isAnyCapturing()) return;
    this.#held = this.#held.filter((frames) => !this.#tryGive(frames));
  }

  #canAwaitFormerUsers(range: RangeState, run: FrameRun): boolean {
    if (!run.formerUsers) return true;
    const { streams } = this.#mb.allocator;
    for (const [user, epoch] of run.formerUsers) {
      if (
        this.#isCapturing(user) &&
        !streams.isVisibleTo(range.stream, user, epoch)
      ) return false;
    }
    return true;
  }

  /** Makes the range's stream wait for others that read the run while it was shared. */
  #awaitFormerUsers(range: RangeState, run: FrameRun): void {
    if (!run.formerUsers) return;
    const { streams } = this.#mb.allocator;
    for (const [user, epoch] of run.formerUsers) {
      if (!streams.isVisibleTo(range.stream, user, epoch)) {
        this.#join(range.stream, user);
      }
    }
  }

  /** Whether others that read the run while it was shared may still do, as the range's stream sees it. */
  #hasFormerUsers(range: RangeState, run: FrameRun): boolean {
    if (!run.formerUsers) return false;
    const { streams } = this.#mb.allocator;
    for (const [user, epoch] of run.formerUsers) {
      if (!streams.isVisibleTo(range.stream, user, epoch)) return true;
    }
    return false;
  }

  /** Makes the range's stream wait for the others that read it, before entries or frames change. */
  #orderUsers(range: RangeState): void {
    if (!range.users) return;
    for (const user of range.users) this.#join(range.stream, user);
    range.users = undefined;
  }

  #sharesAny(range: RangeState, first: number, end: number): boolean {
    return slicePieces(range.pieces, first, end).some((
      { run, offset, count },
    ) => run.isShared(offset, count) || this.#hasFormerUsers(range, run));
  }

  #eachPart(
    range: RangeState,
    offset: number,
    bytes: number,
    part: (address: number, from: number, to: number) => void,
  ): void {
    let at = 0;
    let start = 0;
    for (const { run, offset: frame, count } of range.pieces) {
      const end = start + count * this.pageSize;
      const from = Math.max(offset, start);
      const to = Math.min(offset + bytes, end);
      if (from < to) {
        const address = this.#frames.addressOf(run.first + frame) +
          (from - start);
        part(address, at, at + (to - from));
        at += to - from;
      }
      start = end;
    }
  }

  #checkAccess(
    range: RangeState,
    operation: string,
    bytes: number,
    access: PagedAccess,
  ): number {
    const offset = checkBytes(access.offset ?? 0, "the offset");
    const size = range.pages * this.pageSize;
    if (offset + bytes > size) {
      throw new RangeError(
        `Cannot ${operation} ${bytes} bytes at offset ${offset}: the range has ${size}`,
      );
    }
    return offset;
  }

  /** Host data can't become part of a graph: refused before anything has changed. */
  #refuseCapturing(
    range: RangeState,
    operation: string,
    { stream }: PagedAccess,
  ): void {
    const number = stream === undefined
      ? range.stream
      : this.#streamNumber(stream, operation);
    if (this.#isCapturing(number) || this.#isCapturing(range.stream)) {
      throw new RangeError(
        `Cannot ${operation}: the stream is capturing, and host data can't be part of a graph; ${operation} before or after the capture, or use a kernel`,
      );
    }
  }

  #accessStream(
    range: RangeState,
    operation: string,
    { stream }: PagedAccess,
  ): number {
    if (stream === undefined) return range.stream;
    const number = this.#streamNumber(stream, operation);
    this.useRange(range, stream);
    return number;
  }

  #streamNumber(stream: Stream | undefined, operation: string): number {
    return stream === undefined ? 0 : this.#mb.streamNumber(stream, operation);
  }

  #driverId(stream: number): number {
    return this.#mb.streamByNumber(stream).driverId("use");
  }

  /** Makes later work of a stream wait for another's so far; that of a closed one is done. */
  #join(stream: number, other: number): void {
    const { streams } = this.#mb.allocator;
    const needed = stream !== other && streams.clocks[stream]!.open &&
      streams.clocks[other]!.open;
    if (needed) streams.join(stream, other);
  }

  /** Whether a stream, or any that the space was used on, is capturing. */
  #isAnyCapturing(stream = 0): boolean {
    if (this.#isCapturing(stream)) return true;
    for (const other of this.#writer.streams) {
      if (this.#isCapturing(other)) return true;
    }
    return false;
  }

  #refuseCaptures(operation: string): void {
    if (this.#isAnyCapturing()) {
      throw new RangeError(
        `Cannot ${operation}: a stream that uses the space is capturing; end the capture first`,
      );
    }
  }

  #isCapturing(stream: number): boolean {
    return this.#mb.allocator.streams.clocks[stream]!.capturing;
  }

  #noteCapture(range: RangeState): boolean {
    const captured = this.#isCapturing(range.stream);
    if (captured && !range.captured) {
      range.captured = true;
      this.#mb.allocator.graphs.onFailure(
        range.stream,
        () => range.captured = false,
      );
    }
    return captured;
  }
}

/**
 * @throws {MoonBrightError} code `unsupported` if entries have no room for the addresses
 * of all frames: cut, they would silently lead elsewhere
 */
function checkAddresses(
  format: EntryFormat,
  entryBase: number,
  frames: number,
  pageSize: number,
): void {
  const address = entryBase + (frames - 1) * pageSize;
  try {
    encode(format, { pageSize, address });
  } catch (cause) {
    throw new MoonBrightError(
      "unsupported",
      "make a paged space",
      `Cannot make a paged space: the format "${format.name}" can't name the memory of this device, up to 0x${
        address.toString(16)
      }; use another format, or addresses: "store"`,
      { cause },
    );
  }
}

/** The parts of a piece whose frames are all shared or all not. */
function splitByShared({ run, offset, count }: Piece): Piece[] {
  const parts: Piece[] = [];
  const end = offset + count;
  for (let from = offset; from < end;) {
    const shared = run.referencesAt(from) > 1;
    let to = from + 1;
    while (to < end && run.referencesAt(to) > 1 === shared) to++;
    parts.push({ run, offset: from, count: to - from });
    from = to;
  }
  return parts;
}

/** Pairs the frames of a part with fresh ones, in order. */
function pairFrames(
  part: Piece,
  fresh: readonly Piece[],
  pairs: FrameCopy[],
): void {
  let from = part.run.first + part.offset;
  for (const { run, offset, count } of fresh) {
    for (let i = 0; i < count; i++) {
      pairs.push({ source: from++, destination: run.first + offset + i });
    }
  }
}

/** Appends pieces, joining those that continue the last. */
function appendPieces(pieces: Piece[], more: readonly Piece[]): void {
  for (const piece of more) {
    const last = pieces[pieces.length - 1];
    if (
      last && last.run === piece.run &&
      last.offset + last.count === piece.offset
    ) {
      const { run, offset, count } = last;
      pieces[pieces.length - 1] = { run, offset, count: count + piece.count };
    } else pieces.push(piece);
  }
}

function checkCount(count: number, what: string, most: number): number {
  if (!(Number.isInteger(count) && count >= 1 && count <= most)) {
    throw new RangeError(
      `Cannot use ${what}: ${count} is not a whole number from 1 to ${most}`,
    );
  }
  return count;
}
