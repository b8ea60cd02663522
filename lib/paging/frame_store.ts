/**
 * The page store: frames of one size in a linear window of device memory that grows in
 * place, and which of them are free, in stream order.
 *
 * @module
 */

import type { Block } from "../block.ts";
import { MoonBrightError, OutOfMemoryError } from "../errors.ts";
import type { MoonBright } from "../moonbright.ts";
import { roundUp } from "../sizes.ts";
import { FrameRun, type Piece } from "./frame_run.ts";

/** The window grows by at least this much, so that growing is rare. */
const GROW_BYTES = 32 * 1024 ** 2;

interface FreeRun {
  first: number;
  count: number;
  /** Epoch of its last use on its stream. */
  epoch: number;
}

/** Frames of a paged space. */
export class FrameStore {
  /** Bytes of a frame. */
  readonly pageSize: number;
  /** Most frames that there may be. */
  readonly most: number;
  /** Frames in use. */
  used = 0;
  /** Frames that the window has memory for. */
  backed = 0;
  readonly #mb: MoonBright;
  readonly #window: Block;
  readonly #address: number;
  /** Free runs by stream, the last freed last. */
  readonly #free: FreeRun[][] = [[]];
  /** Frames in those runs, by stream. */
  readonly #freeFrames: number[] = [0];

  /**
   * A store of up to `most` frames, with memory for `first` of them now.
   *
   * @throws {OutOfMemoryError} if there is no memory for those
   */
  constructor(
    mb: MoonBright,
    pageSize: number,
    first: number,
    most: number,
    name: string,
  ) {
    this.#mb = mb;
    this.pageSize = pageSize;
    this.most = most;
    this.#window = mb.alloc(this.#bytesFor(first), {
      maxSize: most * pageSize,
      name,
    });
    this.#address = this.#window.address;
    this.#noteBacked();
  }

  /** Device address of a frame. */
  addressOf(frame: number): number {
    return this.#address + frame * this.pageSize;
  }

  /**
   * Takes frames that work of `stream` may write at once. `captured`: the stream is
   * being captured and can't be made to wait for others.
   *
   * @throws {OutOfMemoryError} if there is no memory for more; nothing is taken then
   * @throws {MoonBrightError} code `limit` if the space may have no more
   */
  take(stream: number, count: number, captured: boolean): Piece[] {
    // What the stream itself freed it may always use.
    if ((this.#freeFrames[stream] ?? 0) < count) {
      this.#ensure(stream, count, captured);
    }
    const pieces: Piece[] = [];
    let missing = this.#takeFrom(stream, stream, count, pieces);
    for (let other = 0; missing > 0 && other < this.#free.length; other++) {
      if (other === stream) continue;
      missing = this.#takeFrom(stream, other, missing, pieces);
    }
    this.used += count;
    return pieces;
  }

  /** Takes back frames last used on `stream` before now. */
  give(stream: number, first: number, count: number): void {
    this.used -= count;
    this.#add(stream, first, count);
  }

  /** Makes sure that there is memory for this many frames in all. */
  reserve(frames: number): void {
    if (frames <= this.backed) return;
    this.#window.resize(this.#bytesFor(frames));
    this.#noteBacked();
  }

  /** Frees the window. */
  close(): void {
    this.#window[Symbol.dispose]();
  }

  /** Bytes to ask for: whole granules where there may be as many frames, for use to the full. */
  #bytesFor(frames: number): number {
    const { granularity } = this.#mb.device;
    return Math.min(
      roundUp(frames * this.pageSize, granularity),
      this.most * this.pageSize,
    );
  }

  /** Takes up to `count` frames that were last used on `from`; returns how many lack. */
  #takeFrom(
    stream: number,
    from: number,
    count: number,
    pieces: Piece[],
  ): number {
    const { streams } = this.#mb.allocator;
    const runs = this.#runsOf(from);
    let missing = count;
    // The last freed first: of the stream's own, all are usable.
    for (let i = runs.length - 1; i >= 0 && missing > 0; i--) {
      const run = runs[i]!;
      if (!streams.isVisibleTo(stream, from, run.epoch)) continue;
      const frames = Math.min(run.count, missing);
      pieces.push(new FrameRun(run.first, frames));
      run.first += frames;
      run.count -= frames;
      missing -= frames;
      if (run.count > 0) continue;
      if (i === runs.length - 1) runs.pop();
      else runs.splice(i, 1);
    }
    this.#freeFrames[from]! -= count - missing;
    return missing;
  }

  /** Frames that `stream` may use without waiting for anything. */
  #available(stream: number): number {
    const { streams } = this.#mb.allocator;
    let frames = 0;
    for (let from = 0; from < this.#free.length; from++) {
      const runs = this.#free[from]!;
      for (let i = runs.length - 1; i >= 0; i--) {
        if (!streams.isVisibleTo(stream, from, runs[i]!.epoch)) continue;
        frames += runs[i]!.count;
      }
    }
    return frames;
  }

  /** Sees to it that `count` frames are available, at the least cost. */
  #ensure(stream: number, count: number, captured: boolean): void {
    const { streams } = this.#mb.allocator;
    if (this.#available(stream) >= count) return;
    streams.pollAll();
    let missing = count - this.#available(stream);
    if (missing <= 0) return;
    let full: OutOfMemoryError | undefined;
    if (this.backed < this.most && !captured) {
      try {
        this.#growBy(missing);
      } catch (error) {
        // What other streams have freed may still do.
        if (!(error instanceof OutOfMemoryError)) throw error;
        full = error;
      }
      missing = count - this.#available(stream);
    }
    // The device waits, not the host, unless the stream is captured.
    for (let other = 0; missing > 0 && other < this.#free.length; other++) {
      if (other === stream || this.#free[other]!.length === 0) continue;
      // Of a closed stream everything is done, and can be taken already.
      if (!streams.clocks[other]!.open) continue;
      if (captured) streams.waitPassed(other, this.#lastEpochOf(other));
      else if (streams.canJoin(stream, other)) streams.join(stream, other);
      missing = count - this.#available(stream);
    }
    if (missing <= 0) return;
    if (full) throw full;
    throw new MoonBrightError(
      "limit",
      "take frames",
      captured
        ? `Cannot take ${count} frames while the stream is captured: ${missing} lack; call reserve() before the capture`
        : `Cannot take ${count} frames: the space may have ${this.most}, and ${this.used} are in use`,
    );
  }

  #lastEpochOf(stream: number): number {
    let last = 0;
    for (const { epoch } of this.#free[stream]!) last = Math.max(last, epoch);
    return last;
  }

  /** Gets memory for more frames: for many, so that it is rare, or for those that lack. */
  #growBy(missing: number): void {
    const step = Math.ceil(GROW_BYTES / this.pageSize);
    try {
      this.reserve(this.backed + Math.max(missing, step));
    } catch (error) {
      if (!(error instanceof OutOfMemoryError) || missing >= step) throw error;
      this.reserve(this.backed + missing);
    }
  }

  #noteBacked(): void {
    const backed = Math.min(
      this.most,
      Math.floor(this.#window.size / this.pageSize),
    );
    // The window follows the default stream: so does memory new to it.
    this.#add(0, this.backed, backed - this.backed, true);
    this.backed = backed;
  }

  #add(stream: number, first: number, count: number, atBottom = false): void {
    if (count === 0) return;
    const epoch = this.#mb.allocator.streams.clocks[stream]!.recorded;
    const runs = this.#runsOf(stream);
    const last = runs[runs.length - 1];
    this.#freeFrames[stream]! += count;
    if (atBottom) runs.unshift({ first, count, epoch });
    else if (last && last.first + last.count === first) {
      last.count += count;
      last.epoch = epoch;
    } else runs.push({ first, count, epoch });
  }

  #runsOf(stream: number): FreeRun[] {
    while (this.#free.length <= stream) {
      this.#free.push([]);
      this.#freeFrames.push(0);
    }
    return this.#free[stream]!;
  }
}
