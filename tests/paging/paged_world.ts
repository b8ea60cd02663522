/**
 * Random use of a paged space over the fake driver, beside a naive model that keeps the
 * contents of each range page by page. Kernels that read through the table, or through
 * translations that a reader had cached, run as late and in as odd an order as the driver
 * likes; what they found is compared with what the range held when they were queued.
 *
 * A step is four numbers, read against whatever exists when its turn comes: any list of
 * steps can run, so that a failing one can be cut down to what matters.
 */

import { assert, assertEquals } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import { MoonBrightError } from "../../lib/errors.ts";
import type { Graph } from "../../lib/graph.ts";
import { transferBlock } from "../../lib/paging/argument_blocks.ts";
import { decode } from "../../lib/paging/formats.ts";
import { readReport } from "../../lib/paging/page_report.ts";
import type { PagedRange } from "../../lib/paging/paged_range.ts";
import type { PagedSpace } from "../../lib/paging/paged_space.ts";
import type { Stream } from "../../lib/stream.ts";
import type { Step, World } from "../lib/random_walk.ts";
import { FAKE_CUDA, PagedBench, UNMEASURED } from "./paged_bench.ts";

/** How large a world is, and what happens in it. */
export interface PagedWorldOptions {
  /** Shown in the test's name. */
  name: string;
  /** Entries of the table. */
  pages: number;
  /** Most frames. */
  frames: number;
  /** Most pages of a new range. */
  largest: number;
  /** Most streams, without the default stream. */
  streams: number;
  /** Whether ranges change under capture too. */
  captures?: boolean;
}

/** A frame: how many ranges have it, and where it was seen to be. */
interface ModelFrame {
  references: number;
  address: bigint | undefined;
}

interface ModelPage {
  /** What its halves hold: rows of the palette, or nothing known. */
  tags: [number, number];
  readOnly: boolean;
  version: number;
  frame: ModelFrame;
}

interface ModelRange {
  /** Its number in the story. */
  number: number;
  range: PagedRange;
  stream: Stream;
  readOnly: boolean;
  captured: boolean;
  pages: ModelPage[];
  /** Its addresses as a reader has cached them, good for as long as the version is this. */
  cached: { version: number; addresses: bigint[] } | undefined;
}

interface PendingRead {
  slot: number;
  tags: number[];
  what: string;
}

interface HeldGraph {
  graph: Graph;
  /** What it writes. */
  ranges: ModelRange[];
}

const PAGE = 4096;
const HALF = PAGE / 2;
const UNKNOWN = -1;
/** Halves of pages that can be told apart. */
const PALETTE = 256;
/** Pages that one reader reads. */
const WINDOW = 8;
const SLOTS = 64;
const MOST_GRAPHS = 6;
/** Steps in which some of everything must have happened. */
const MANY_STEPS = 20_000;

/** What a capture is made to fail with. */
class FailedCapture extends Error {}

/** Runs steps against one space. */
export class PagedWorld implements World {
  /** Reads that were compared. */
  checked = 0;
  /** Requests refused for lack of pages or frames. */
  refused = 0;
  /** Nothing is known before the device is waited for. */
  readonly suspicious = false;
  /** What the steps did, a line each, if that is told. */
  readonly story: string[] = [];
  readonly #bench: PagedBench;
  readonly #space: PagedSpace;
  readonly #options: PagedWorldOptions;
  readonly #streams: Stream[];
  readonly #ranges: ModelRange[] = [];
  readonly #frames = new Set<ModelFrame>();
  readonly #graphs: HeldGraph[] = [];
  /** What is given back once graphs are forgotten. */
  #parked: (() => void)[] = [];
  /** Pages of freed ranges that graphs may still write. */
  #parkedPages: { first: number; count: number }[] = [];
  #capturing: HeldGraph | undefined;
  readonly #paletteBytes: Uint8Array;
  readonly #palette: Block;
  readonly #slots: Block;
  readonly #report: Block;
  #reads: PendingRead[] = [];
  #steps = 0;

  readonly #telling: boolean;
  #rangesMade = 0;

  /** A fresh device and a space on it. */
  constructor(options: PagedWorldOptions, seed: number, telling = false) {
    this.#options = options;
    this.#telling = telling;
    const bench = new PagedBench(FAKE_CUDA, { costs: UNMEASURED }, seed);
    this.#bench = bench;
    const { mb } = bench;
    this.#streams = [mb.defaultStream];
    const words = new Uint32Array(PALETTE * HALF / 4);
    words.forEach((_, at) => words[at] = wordOf(at));
    this.#paletteBytes = new Uint8Array(words.buffer);
    this.#palette = bench.linear(words.byteLength);
    this.#palette.write(words);
    this.#slots = bench.linear(SLOTS * WINDOW * PAGE);
    this.#report = bench.linear(8);
    this.#report.fill(0xFF);
    for (const name of ["mb_gather", "mb_scatter"]) {
      bench.kernel("paging_copy", name);
    }
    mb.synchronize();
    const { pages, frames } = options;
    this.#space = bench.space({ pages, maxFrames: frames, frames });
  }

  /** Does one step. Throws if anything goes wrong that must not. */
  run([kind, a, b, c]: Step): void {
    this.#steps++;
    if (kind < 110) this.#alloc(a, b, c);
    else if (kind < 190) this.#free(a);
    else if (kind < 270) this.#fork(a, b, c);
    else if (kind < 340) this.#grow(a, b);
    else if (kind < 390) this.#shrink(a, b);
    else if (kind < 560) this.#writeByKernel(a, b, c);
    else if (kind < 590) this.#writeByHost(a, b, c);
    else if (kind < 780) this.#readByKernel(a, b, c);
    else if (kind < 850) this.#readCached(a, b, c);
    else if (kind < 862) this.#readByHost(a, b);
    else if (kind < 885) this.#protect(a, b);
    else if (kind < 905) this.#writable(a, b, c);
    else if (kind < 912) this.#clear(this.#pick(a, this.#streams));
    else if (kind < 950) this.#letTimePass(a);
    else if (kind < 956) this.#openStream();
    else if (kind < 962) this.#closeStream(a);
    else if (kind < 970) this.settle(a);
    else if (kind < 975) this.#freeMany(a);
    else if (this.#options.captures) {
      if (kind < 985) this.#capture(a, b, c);
      else if (kind < 988) this.#failToCapture(a, b, c);
      else if (kind < 997) this.#relaunch(a, b);
      else this.#forgetGraphs();
    } else this.#readByKernel(a, b, c);
    this.#assertFigures();
  }

  /** Waits for everything and compares reads and table with the model. */
  settle(a = 0): void {
    // Any stream may be the first to get on.
    this.#pick(a, this.#streams).synchronize();
    this.#bench.mb.synchronize();
    this.#checkReads();
    this.#checkTable();
  }

  /** The figures are looked at after every step; memory only when the device is waited for. */
  assertSound(): void {
    this.#assertFigures();
  }

  /** Frees all ranges; nothing may be left in use. */
  finish(): void {
    this.settle();
    if (this.#steps >= MANY_STEPS) {
      assert(this.checked > this.#steps / 8 && this.refused > 10);
    }
    if (this.#options.captures) this.#forgetGraphs();
    this.#freeMany(0, 0);
    assertEquals(this.#space.stats().usedFrames, 0);
    this.#space.clear();
    assert(this.#bench.entries(this.#space).every((entry) => entry === 0n));
    this.#space.close();
    this.#bench.finish();
  }

  [Symbol.dispose](): void {
    this.#bench[Symbol.dispose]();
  }

  #alloc(a: number, b: number, c: number): void {
    const count = 1 + a % this.#options.largest;
    const maxPages = b % 3 === 0
      ? Math.min(this.#options.pages, count + (b >> 2) % 6)
      : count;
    const stream = this.#pick(c, this.#streams);
    const made = this.#attempt(
      count,
      maxPages,
      () => this.#space.alloc(count, { maxPages, stream }),
    );
    if (!made) return;
    const number = ++this.#rangesMade;
    this.#tell(() =>
      `alloc range ${number}: ${count} of ${maxPages} pages on ${
        nameOf(stream)
      }`
    );
    const one: ModelRange = {
      number,
      range: made,
      stream,
      readOnly: false,
      captured: this.#isCaptured(stream),
      pages: [],
      cached: undefined,
    };
    this.#addPages(one, count);
    this.#ranges.push(one);
    this.#noteCaptured(one);
  }

  #free(a: number): void {
    if (this.#ranges.length === 0) return;
    const at = a % this.#ranges.length;
    const one = this.#ranges[at]!;
    this.#noteCaptured(one);
    const { firstPage: first, maxPages: count } = one.range;
    this.#tell(() => `free range ${one.number}`);
    if (!this.#tryChange(() => one.range.free())) return;
    this.#ranges.splice(at, 1);
    if (one.captured) this.#parkedPages.push({ first, count });
    this.#drop(one, one.pages);
    one.pages = [];
  }

  #freeMany(a: number, left = 2): void {
    while (this.#ranges.length > left) this.#free(a++);
  }

  #fork(a: number, b: number, c: number): void {
    const one = this.#some(a);
    if (!one) return;
    const stream = b % 3 === 0 ? one.stream : this.#pick(b >> 2, this.#streams);
    const maxPages = Math.min(
      this.#options.pages,
      one.pages.length + c % 4 || 1,
    );
    this.#noteCaptured(one);
    const made = this.#attempt(
      0,
      maxPages,
      () => one.range.fork({ stream, maxPages }),
    );
    if (!made) return;
    for (const page of one.pages) {
      page.readOnly = true;
      page.version = one.range.version;
      page.frame.references++;
    }
    const number = ++this.#rangesMade;
    this.#tell(() =>
      `fork range ${one.number} as range ${number} on ${nameOf(stream)}`
    );
    const fork: ModelRange = {
      number,
      range: made,
      stream,
      readOnly: false,
      captured: one.captured && this.#isCaptured(stream),
      pages: one.pages.map((page) => ({
        ...page,
        tags: [...page.tags],
        version: 1,
      })),
      cached: undefined,
    };
    this.#ranges.push(fork);
    this.#noteCaptured(fork);
    // What a graph writes into shared frames the fork would see as well.
    for (const { ranges } of this.#graphs) {
      if (ranges.includes(one)) ranges.push(fork);
    }
  }

  #grow(a: number, b: number): void {
    const one = this.#some(a);
    if (!one) return;
    const room = one.range.maxPages - one.pages.length;
    if (room === 0) return;
    const count = 1 + b % room;
    this.#tell(() => `grow range ${one.number} by ${count}`);
    this.#noteCaptured(one);
    const grown = this.#attempt(count, 0, () => {
      one.range.grow(count);
      return true;
    });
    if (grown) this.#addPages(one, count);
  }

  #shrink(a: number, b: number): void {
    const one = this.#some(a);
    if (!one || one.pages.length === 0) return;
    const count = 1 + b % one.pages.length;
    this.#tell(() => `shrink range ${one.number} by ${count}`);
    this.#noteCaptured(one);
    if (!this.#tryChange(() => one.range.shrink(count))) return;
    this.#drop(one, one.pages.splice(-count));
  }

  #protect(a: number, b: number): void {
    const one = this.#some(a);
    if (!one) return;
    const readOnly = b % 2 === 0;
    this.#tell(() =>
      `${readOnly ? "protect" : "unprotect"} range ${one.number}`
    );
    this.#noteCaptured(one);
    if (!this.#tryChange(() => one.range.protect(readOnly))) return;
    one.readOnly = readOnly;
    for (const page of one.pages) {
      // What is shared stays read-only.
      if (!readOnly && page.frame.references > 1) continue;
      page.readOnly = readOnly;
      page.version = one.range.version;
    }
  }

  #writable(a: number, b: number, c: number): void {
    const one = this.#some(a);
    if (!one || one.pages.length === 0) return;
    const first = b % one.pages.length;
    this.#makeWritable(one, first, 1 + c % (one.pages.length - first));
  }

  /** Makes pages writable; whether it could be done. */
  #makeWritable(one: ModelRange, first: number, count: number): boolean {
    this.#tell(() =>
      `make pages ${first} to ${first + count} of range ${one.number} writable`
    );
    this.#noteCaptured(one);
    const pages = one.pages.slice(first, first + count);
    const shared = pages.filter(({ frame }) => frame.references > 1);
    const done = this.#attempt(shared.length, 0, () => {
      one.range.writable(first, count);
      return true;
    });
    if (!done) return false;
    this.#noteWritable(one, pages);
    return true;
  }

  #noteWritable(one: ModelRange, pages: readonly ModelPage[]): void {
    for (const page of pages) {
      if (page.frame.references > 1) {
        this.#drop(one, [page]);
        page.frame = this.#newFrame();
      }
      page.readOnly = one.readOnly;
      page.version = one.range.version;
    }
  }

  #writeByKernel(a: number, b: number, c: number): void {
    const one = this.#some(a);
    if (!one || one.pages.length === 0 || one.readOnly) return;
    const halves = this.#someHalves(one, b, c);
    const { first, count } = halves;
    const firstPage = first >> 1;
    const pages = ((first + count + 1) >> 1) - firstPage;
    if (!this.#makeWritable(one, firstPage, pages)) return;
    const row = (a ^ c) % (PALETTE - count);
    this.#tell(() => `write halves ${first} to ${first + count} by a kernel`);
    const { driver } = this.#bench.mb;
    driver.launch(
      this.#bench.kernel("paging_copy", "mb_scatter"),
      { grid: [1], block: [1] },
      transferBlock({
        view: one.range.view,
        offset: first * HALF,
        bytes: count * HALF,
        linear: this.#palette.address + row * HALF,
        report: this.#report.address,
      }),
      one.stream.driverId("write"),
    );
    this.#setTags(one, first, count, row);
  }

  #writeByHost(a: number, b: number, c: number): void {
    const one = this.#some(a);
    if (
      !one || one.pages.length === 0 || one.readOnly || this.#capturing
    ) return;
    const { first, count } = this.#someHalves(one, b, c);
    const row = (a ^ c) % (PALETTE - count);
    const stream = c % 2 === 0 ? undefined : this.#pick(c >> 1, this.#streams);
    this.#tell(() =>
      `write halves ${first} to ${
        first + count
      } of range ${one.number} by the host${
        stream ? ` on ${nameOf(stream)}` : ""
      }`
    );
    const firstPage = first >> 1;
    const pages = one.pages.slice(firstPage, (first + count + 1) >> 1);
    const shared = pages.filter(({ frame }) => frame.references > 1);
    const { version } = one.range;
    const done = this.#attempt(shared.length, 0, () => {
      one.range.write(
        this.#paletteBytes.subarray(row * HALF, (row + count) * HALF),
        { offset: first * HALF, stream },
      );
      return true;
    });
    if (!done) return;
    // Pages that it owns alone need no new entries.
    if (one.range.version !== version) this.#noteWritable(one, pages);
    else assertEquals(shared.length, 0);
    this.#setTags(one, first, count, row);
    if (stream && stream !== one.stream) one.stream.wait(stream.record());
  }

  #readByKernel(a: number, b: number, c: number): void {
    const one = this.#some(a);
    if (!one || one.pages.length === 0 || this.#capturing) return;
    const first = b % one.pages.length;
    const count = Math.min(WINDOW, 1 + c % (one.pages.length - first));
    const stream = this.#readOn(one, a >> 3);
    this.#tell(() =>
      `read range ${one.number} by a kernel on ${nameOf(stream)}`
    );
    const slot = this.#nextSlot(one, first, count, "through the table");
    this.#bench.mb.driver.launch(
      this.#bench.kernel("paging_copy", "mb_gather"),
      { grid: [1], block: [1] },
      transferBlock({
        view: one.range.view,
        offset: first * PAGE,
        bytes: count * PAGE,
        linear: this.#slots.address + slot * WINDOW * PAGE,
        report: this.#report.address,
      }),
      stream.driverId("read"),
    );
  }

  /** Reads as a reader does that keeps translations for as long as the version is theirs. */
  #readCached(a: number, b: number, c: number): void {
    const one = this.#some(a);
    if (!one?.cached || one.cached.version !== one.range.version) return;
    if (this.#capturing || one.pages.length === 0) return;
    const first = b % one.pages.length;
    const count = Math.min(WINDOW, 1 + c % (one.pages.length - first));
    const stream = this.#readOn(one, a >> 3);
    this.#tell(() => `read range ${one.number} cached on ${nameOf(stream)}`);
    const slot = this.#nextSlot(one, first, count, "through its cache");
    for (let page = 0; page < count; page++) {
      this.#bench.mb.driver.copy(
        this.#slots.address + (slot * WINDOW + page) * PAGE,
        Number(one.cached.addresses[first + page]!),
        PAGE,
        stream.driverId("read"),
      );
    }
  }

  #readByHost(a: number, b: number): void {
    const one = this.#some(a);
    if (!one || this.#capturing) return;
    const stream = b % 2 === 0 ? undefined : this.#pick(b >> 1, this.#streams);
    this.#tell(() => `read range ${one.number} by the host`);
    const words = new Uint32Array(one.range.read(undefined, { stream }).buffer);
    this.#checkWords(
      words,
      0,
      one.pages.flatMap(({ tags }) => tags),
      "by the host",
    );
  }

  #readOn(one: ModelRange, a: number): Stream {
    const stream = a % 3 === 0 ? one.stream : this.#pick(a, this.#streams);
    if (stream !== one.stream || a % 2 === 0) one.range.useOn(stream);
    return stream;
  }

  #letTimePass(a: number): void {
    const stream = this.#pick(a >> 1, this.#streams);
    if (this.#isCaptured(stream)) return;
    if (a % 16 === 0) stream.synchronize();
    using event = stream.record();
    void event.passed;
  }

  #openStream(): void {
    if (this.#streams.length > this.#options.streams) return;
    const stream = this.#bench.mb.createStream();
    this.#tell(() => `open ${nameOf(stream)}`);
    this.#streams.push(stream);
  }

  #closeStream(a: number): void {
    if (this.#streams.length < 2 || this.#capturing) return;
    const at = 1 + a % (this.#streams.length - 1);
    const [stream] = this.#streams.splice(at, 1);
    this.#tell(() => `close ${nameOf(stream!)}`);
    stream!.close();
    for (const one of this.#ranges) {
      if (one.stream === stream) one.stream = this.#bench.mb.defaultStream;
    }
  }

  /** A capture that fails at its end: all is as before. */
  #failToCapture(a: number, b: number, c: number): void {
    if (this.#streams.length < 2) return;
    const restore = this.#saved();
    try {
      this.#capture(a, b, c, true);
    } catch (error) {
      if (!(error instanceof FailedCapture)) throw error;
      restore();
    }
  }

  /** Remembers the model; returns what puts it back. */
  #saved(): () => void {
    const ranges = [...this.#ranges];
    const states = ranges.map((one) => ({
      ...one,
      pages: one.pages.map((page) => ({
        ...page,
        tags: [...page.tags] as [number, number],
      })),
    }));
    const frames = [...this.#frames].map((frame) => ({ frame, ...frame }));
    const [parked, parkedPages] = [this.#parked, this.#parkedPages].map((
      list,
    ) => list.length);
    return () => {
      this.#capturing = undefined;
      this.#capturedStream = undefined;
      this.#ranges.splice(0, Infinity, ...ranges);
      ranges.forEach((one, at) => Object.assign(one, states[at]));
      this.#frames.clear();
      for (const { frame, references } of frames) {
        frame.references = references;
        this.#frames.add(frame);
      }
      this.#parked.length = parked!;
      this.#parkedPages.length = parkedPages!;
    };
  }

  /** Changes ranges of a stream under capture, and launches the graph. */
  #capture(a: number, b: number, c: number, failing = false): void {
    if (this.#streams.length < 2) return;
    if (this.#graphs.length >= MOST_GRAPHS) return;
    const stream = this.#streams[1 + a % (this.#streams.length - 1)]!;
    const ranges: ModelRange[] = [];
    this.#tell(() =>
      `capture on ${nameOf(stream)}${
        failing ? ", which fails at its end" : ""
      }:`
    );
    const graph = stream.capture(() => {
      this.#capturing = { graph: undefined!, ranges };
      this.#capturedStream = stream;
      let [x, y] = [b, c];
      for (let step = 0; step < 1 + c % 6; step++) {
        x = (x * 31 + 7) % 2 ** 16;
        y = (y * 17 + 3) % 2 ** 16;
        const mine = this.#ranges.findIndex((one) => one.stream === stream);
        const what = (x >> 4) % 8;
        // What other streams do meanwhile is done, whatever becomes of the capture.
        if (failing && mine < 0 && what > 0) continue;
        const which = x % 3 === 0 && !failing ? x : Math.max(mine, 0);
        if (what === 0) this.#alloc(x, y, this.#streams.indexOf(stream));
        if (what === 1) this.#grow(which, y);
        if (what === 2) this.#shrink(which, y);
        if (what === 3) this.#fork(which, 0, y);
        if (what === 4) this.#protect(which, y);
        if (what === 5) this.#free(which);
        if (what >= 6) this.#writeByKernel(which, y, x);
        this.#assertFigures();
      }
      if (failing) throw new FailedCapture();
    });
    this.#capturing = undefined;
    this.#capturedStream = undefined;
    this.#tell(() =>
      `launch graph ${this.#graphs.length} of what was captured`
    );
    this.#graphs.push({ graph, ranges });
    graph.launch();
  }

  #capturedStream: Stream | undefined;

  /** Launches a graph again whose ranges are all gone: it may harm nobody. */
  #relaunch(a: number, b: number): void {
    if (this.#graphs.length === 0) return;
    const { graph, ranges } = this.#pick(a, this.#graphs);
    const gone = ranges.every((one) => !one.range.live);
    if (!gone) return;
    this.#tell(() => `launch a graph again whose ranges are gone`);
    graph.launch(this.#pick(b, this.#streams));
  }

  #forgetGraphs(): void {
    this.#tell(() => "close all graphs and forget them");
    for (const { graph } of this.#graphs.splice(0)) graph.close();
    // Launches may still be under way, on any stream.
    this.#bench.mb.synchronize();
    this.#space.forgetGraphs();
    for (const one of this.#ranges) one.captured = false;
    for (const drop of this.#parked.splice(0)) drop();
    this.#parkedPages = [];
  }

  #isCaptured(stream: Stream): boolean {
    return this.#capturedStream === stream;
  }

  #noteCaptured(one: ModelRange): void {
    if (!this.#capturing || one.stream !== this.#capturedStream) return;
    one.captured = true;
    if (!this.#capturing.ranges.includes(one)) {
      this.#capturing.ranges.push(one);
    }
  }

  #addPages(one: ModelRange, count: number): void {
    for (let i = 0; i < count; i++) {
      one.pages.push({
        tags: [UNKNOWN, UNKNOWN],
        readOnly: one.readOnly,
        version: one.range.version,
        frame: this.#newFrame(),
      });
    }
  }

  #newFrame(): ModelFrame {
    const frame = { references: 1, address: undefined };
    this.#frames.add(frame);
    return frame;
  }

  /** Drops a range's references, at once or when graphs are forgotten. */
  #drop(one: ModelRange, pages: readonly ModelPage[]): void {
    const frames = pages.map(({ frame }) => frame);
    const drop = () => {
      for (const frame of frames) {
        if (--frame.references === 0) this.#frames.delete(frame);
      }
    };
    if (one.captured) this.#parked.push(drop);
    else drop();
  }

  /** Does what needs frames and a stretch of pages: it must succeed just if there are. */
  #attempt<Result>(
    frames: number,
    pages: number,
    body: () => Result,
  ): Result | undefined {
    const enough = frames <= this.#options.frames - this.#frames.size &&
      this.#hasStretch(pages);
    try {
      const result = body();
      assert(enough, `${frames} frames and ${pages} pages came from nowhere`);
      return result;
    } catch (error) {
      if (this.#acceptUnderCapture(error)) return undefined;
      if (enough || !(error instanceof MoonBrightError)) throw error;
      assertEquals(error.code, "limit");
      this.refused++;
      return undefined;
    }
  }

  /** Does a change that needs nothing; under capture it may be refused all the same. */
  #tryChange(body: () => void): boolean {
    try {
      body();
      return true;
    } catch (error) {
      if (!this.#acceptUnderCapture(error)) throw error;
      return false;
    }
  }

  /** Under capture nothing is cleared, and no other stream can be waited for. */
  #acceptUnderCapture(error: unknown): boolean {
    if (!this.#capturing) return false;
    this.refused++;
    return error instanceof RangeError ||
      error instanceof MoonBrightError && error.code === "limit";
  }

  /** Whether so many pages lie side by side that no range has. */
  #hasStretch(count: number): boolean {
    const used = this.#ranges.map(({ range }) => ({
      first: range.firstPage,
      count: range.maxPages,
    })).concat(this.#parkedPages).sort((x, y) => x.first - y.first);
    let end = 0;
    for (const span of used) {
      if (span.first - end >= count) return true;
      end = span.first + span.count;
    }
    return this.#options.pages - end >= count;
  }

  #someHalves(one: ModelRange, b: number, c: number) {
    const first = b % (2 * one.pages.length);
    const count = 1 + c % Math.min(2 * one.pages.length - first, 2 * WINDOW);
    return { first, count };
  }

  #setTags(one: ModelRange, first: number, count: number, row: number): void {
    for (let i = 0; i < count; i++) {
      one.pages[(first + i) >> 1]!.tags[(first + i) & 1] = row + i;
    }
  }

  #nextSlot(one: ModelRange, first: number, count: number, how: string) {
    if (this.#reads.length === SLOTS) this.settle(first);
    const slot = this.#reads.length;
    this.#reads.push({
      slot,
      tags: one.pages.slice(first, first + count).flatMap(({ tags }) => tags),
      what: `${how}, queued at step ${this.#steps}`,
    });
    return slot;
  }

  #checkReads(): void {
    const words = new Uint32Array(
      this.#slots.read(this.#reads.length * WINDOW * PAGE).buffer,
    );
    for (const { slot, tags, what } of this.#reads) {
      this.#checkWords(words, slot * WINDOW * PAGE / 4, tags, what);
    }
    this.#reads = [];
    const word = new BigUint64Array(this.#report.read().buffer)[0]!;
    assertEquals(readReport(word), undefined);
  }

  #checkWords(
    words: Uint32Array,
    from: number,
    tags: readonly number[],
    what: string,
  ): void {
    this.checked++;
    tags.forEach((tag, half) => {
      if (tag === UNKNOWN) return;
      for (const at of [0, 300, HALF / 4 - 1]) {
        const found = words[from + half * (HALF / 4) + at]!;
        if (found === wordOf(tag * (HALF / 4) + at)) continue;
        throw new Error(
          `half page ${half} read ${what}, does not hold ${tag}`,
        );
      }
    });
  }

  /** The table must say what the model does; readers cache what it says. */
  #checkTable(): void {
    const space = this.#space;
    const entries = this.#bench.entries(space);
    const places = new Map<bigint, ModelFrame>();
    for (const one of this.#ranges) {
      const { firstPage, maxPages, version } = one.range;
      const addresses: bigint[] = [];
      for (let page = 0; page < maxPages; page++) {
        const entry = decode(space.format, entries[firstPage + page]!);
        const expected = one.pages[page];
        assertEquals(entry.valid, expected !== undefined);
        if (!expected) continue;
        const { frame, readOnly } = expected;
        assertEquals(
          [entry.readOnly, entry.version],
          [readOnly, expected.version % 4096],
          `page ${page} of ${one.pages.length}`,
        );
        frame.address ??= entry.address;
        assertEquals(entry.address, frame.address);
        assertEquals(places.get(entry.address) ?? frame, frame);
        places.set(entry.address, frame);
        const number = Number(entry.address - BigInt(space.store)) / PAGE;
        assert(number >= 0 && number < this.#options.frames);
        assertEquals(number, Math.floor(number));
        addresses.push(entry.address);
      }
      one.cached = { version, addresses };
    }
  }

  #assertFigures(): void {
    const { mappedPages, usedFrames, ranges } = this.#space.stats();
    let pages = 0;
    for (const one of this.#ranges) pages += one.pages.length;
    // What is freed during another stream's capture comes back a little later.
    const held = usedFrames - this.#frames.size;
    if (
      mappedPages !== pages || ranges !== this.#ranges.length ||
      (this.#options.captures ? held < 0 : held !== 0)
    ) {
      throw new Error(
        `the figures are ${[mappedPages, usedFrames, ranges]}, not ${[
          pages,
          this.#frames.size,
          this.#ranges.length,
        ]}`,
      );
    }
  }

  #clear(stream: Stream): void {
    this.#tell(() => `clear on ${nameOf(stream)}`);
    this.#space.clear(stream);
  }

  #tell(line: () => string): void {
    if (this.#telling) this.story.push(line());
  }

  #some(a: number): ModelRange | undefined {
    if (this.#ranges.length === 0) return undefined;
    return this.#pick(a, this.#ranges);
  }

  #pick<Item>(a: number, items: readonly Item[]): Item {
    return items[a % items.length]!;
  }
}

function nameOf(stream: Stream): string {
  return `stream ${stream.number}`;
}

/** The word at a place of the palette. */
function wordOf(at: number): number {
  return Math.imul(at + 1, 0x9E3779B1) >>> 0;
}
