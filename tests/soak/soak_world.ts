/**
 * Random use of one instance on real memory, all of it checked: blocks of any size and
 * lifetime on several streams, resizes, graphs, paged ranges and their forks, under a
 * budget that is nearly full.
 *
 * @module
 */

import type { Block } from "../../lib/block.ts";
import { MoonBrightError, OutOfMemoryError } from "../../lib/errors.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import type { PagedRange } from "../../lib/paging/paged_range.ts";
import { PagedSpace } from "../../lib/paging/paged_space.ts";
import type { PagingImages } from "../../lib/paging/table_writer.ts";
import type { Stream } from "../../lib/stream.ts";
import { type PatternDevice, Patterns } from "../contract/patterns.ts";
import { randomSize } from "../contract/instance_harness.ts";
import type { Random } from "../model/random.ts";

/** What was done, and what went wrong. */
export interface SoakCounts {
  /** Steps. */
  steps: number;
  /** Blocks allocated. */
  blocks: number;
  /** Bytes of them. */
  bytes: number;
  /** Requests refused for lack of memory or room. */
  refused: number;
  /** Blocks resized. */
  resizes: number;
  /** Graphs launched. */
  graphs: number;
  /** Paged ranges allocated or forked. */
  ranges: number;
  /** Checks of a block or a range. */
  checks: number;
  /** Checks that found other data. */
  mismatches: number;
}

/** Counts of nothing done. */
export function noCounts(): SoakCounts {
  return {
    steps: 0,
    blocks: 0,
    bytes: 0,
    refused: 0,
    resizes: 0,
    graphs: 0,
    ranges: 0,
    checks: 0,
    mismatches: 0,
  };
}

/** What a world is made of. */
export interface SoakOptions {
  /** The instance; it has a budget. */
  mb: MoonBright;
  /** Kernels that fill and check. */
  patterns: PatternDevice;
  /** Kernels of paged spaces. */
  paging: PagingImages;
  /** Decides everything. */
  random: Random;
  /** Added up over worlds. */
  counts: SoakCounts;
  /** Told what did not match. */
  report: (damage: string) => void;
}

interface SoakBlock {
  block: Block;
  /** What it holds, in whole. */
  seed: number;
  /** Streams that have read it since it was written. */
  readers: Set<Stream>;
}

interface SoakRange {
  range: PagedRange;
  /** What it holds. */
  bytes: Uint8Array;
}

const STREAMS = 8;
const PAGE_BYTES = 4096;
const MOST_PAGES = 24;
const MOST_RANGES = 40;
const MOST_BLOCKS = 600;
/** Codes of refusals, besides a lack of memory. */
const REFUSALS: readonly string[] = [
  "cannot-grow",
  "limit",
  "out-of-addresses",
];
/** Small enough that the time goes into many blocks rather than few large ones. */
const LARGEST_SHARE = 1 / 16;

/** A course of random steps. */
export class SoakWorld {
  readonly #mb: MoonBright;
  readonly #random: Random;
  readonly #counts: SoakCounts;
  readonly #report: (damage: string) => void;
  readonly #patterns: Patterns;
  readonly #space: PagedSpace;
  readonly #streams: Stream[];
  readonly #blocks: SoakBlock[] = [];
  readonly #ranges: SoakRange[] = [];
  #seed = 1;

  /** Streams, kernels and a paged space on an instance. */
  constructor({ mb, patterns, paging, random, counts, report }: SoakOptions) {
    this.#mb = mb;
    this.#random = random;
    this.#counts = counts;
    this.#report = report;
    this.#patterns = new Patterns(mb, patterns);
    this.#space = new PagedSpace(mb, paging, {
      pages: MOST_RANGES * MOST_PAGES,
      pageSize: PAGE_BYTES,
      frames: 64,
    });
    this.#streams = [
      mb.defaultStream,
      ...Array.from({ length: STREAMS - 1 }, () => mb.createStream()),
    ];
  }

  /** Does one step. Throws at whatever must not happen, but for data that do not match. */
  step(): void {
    this.#counts.steps++;
    const kind = this.#random.below(1000);
    if (kind < 330) this.#allocate();
    else if (kind < 560) this.#free();
    else if (kind < 680) this.#check();
    else if (kind < 740) this.#rewrite();
    else if (kind < 800) this.#resize();
    else if (kind < 815) this.#graph();
    else if (kind < 850) this.#allocateRange();
    else if (kind < 880) this.#forkRange();
    else if (kind < 920) this.#changeRange();
    else if (kind < 955) this.#freeRange();
    else if (kind < 970) this.#mb.flush({ wait: kind % 2 === 0 });
    else if (kind < 973) this.#mb.trim({ wait: kind % 2 === 0 });
    else if (kind < 980) this.#replaceStream();
    else if (kind < 990) this.#settle();
    else this.#freeSome();
  }

  /** Frees all, and checks that nothing is left. */
  finish(): void {
    for (const one of [...this.#blocks]) this.#freeOne(one, true);
    for (const one of [...this.#ranges]) this.#dropRange(one);
    this.#settle();
    this.#mb.checkCanaries();
    this.#space.close();
    this.#mb.synchronize();
    this.#mb.trim();
    this.#mb.allocator.assertInvariants();
    const { live, pending, mapped } = this.#mb.stats();
    if (live + pending + mapped > 0) {
      throw new Error(`left: ${JSON.stringify({ live, pending, mapped })}`);
    }
  }

  #allocate(): void {
    const { budget } = this.#mb;
    const size = randomSize(this.#random, Math.floor(budget * LARGEST_SHARE));
    const growable = this.#random.below(12) === 0;
    const own = this.#pick(this.#streams)!;
    if (this.#blocks.length >= MOST_BLOCKS) this.#freeSome();
    const block = this.#unlessRefused(() =>
      this.#mb.alloc(size, {
        stream: own,
        ...(growable ? { maxSize: 4 * size } : {}),
        ...(size % 4 === 0 ? { name: `soak ${size}` } : {}),
      })
    );
    if (!block) return this.#freeSome();
    this.#counts.blocks++;
    this.#counts.bytes += size;
    const one = { block, seed: 0, readers: new Set<Stream>() };
    this.#blocks.push(one);
    this.#write(one);
  }

  #write(one: SoakBlock): void {
    const own = one.block.stream;
    for (const reader of one.readers) own.wait(reader.record());
    one.readers.clear();
    one.seed = this.#seed++;
    this.#patterns.fill(one.block, one.seed);
  }

  /** Has a block checked by its own stream or another; what that finds shows later. */
  #checkOne(one: SoakBlock): void {
    const own = one.block.stream;
    const stream = this.#pick(this.#streams)!;
    if (stream !== own) {
      stream.wait(own.record());
      one.readers.add(stream);
    }
    this.#counts.checks++;
    this.#noting(() =>
      this.#patterns.check(one.block, one.seed, "soak", { stream })
    );
  }

  #check(): void {
    const one = this.#pick(this.#blocks);
    if (one) this.#checkOne(one);
  }

  #rewrite(): void {
    const one = this.#pick(this.#blocks);
    if (one) this.#write(one);
  }

  #free(): void {
    const one = this.#pick(this.#blocks);
    if (one) this.#freeOne(one, this.#random.below(3) > 0);
  }

  #freeOne(one: SoakBlock, check: boolean): void {
    if (check) this.#checkOne(one);
    this.#blocks.splice(this.#blocks.indexOf(one), 1);
    one.block.free();
  }

  #freeSome(): void {
    const count = this.#random.below(1 + this.#blocks.length / 2);
    for (let i = 0; i < count; i++) this.#free();
  }

  #resize(): void {
    const one = this.#pick(this.#blocks);
    if (!one) return;
    const size = 1 + this.#random.below(2 * one.block.size);
    const resized = this.#unlessRefused(() => {
      one.block.resize(size);
      return true;
    });
    if (!resized) return;
    this.#counts.resizes++;
    this.#write(one);
  }

  #graph(): void {
    const one = this.#pick(this.#blocks);
    if (!one || one.block.size % 8 !== 0) return;
    const { stream } = one.block;
    if (stream.number === 0) return;
    this.#write(one);
    this.#settle();
    const { seed, block } = one;
    using graph = stream.capture(() => {
      this.#patterns.fill(block, seed);
      this.#patterns.check(block, seed, "soak, in a graph");
    });
    const launches = 1 + this.#random.below(3);
    for (let i = 0; i < launches; i++) graph.launch();
    this.#counts.graphs += launches;
    this.#counts.checks += launches;
    this.#settle();
  }

  #allocateRange(): void {
    if (this.#ranges.length >= MOST_RANGES / 2) return this.#freeRange();
    const pages = 1 + this.#random.below(MOST_PAGES / 2);
    const stream = this.#pick(this.#streams)!;
    const range = this.#unlessRefused(() =>
      this.#space.alloc(pages, { stream, maxPages: MOST_PAGES })
    );
    if (!range) return this.#freeRange();
    this.#counts.ranges++;
    const one = { range, bytes: new Uint8Array(range.size) };
    this.#ranges.push(one);
    this.#writeRange(one, 0, range.size);
  }

  #forkRange(): void {
    const one = this.#pick(this.#ranges);
    if (!one || this.#ranges.length >= MOST_RANGES / 2) return;
    const range = this.#unlessRefused(() => one.range.fork());
    if (!range) return this.#freeRange();
    this.#counts.ranges++;
    this.#ranges.push({ range, bytes: one.bytes.slice() });
  }

  #changeRange(): void {
    const one = this.#pick(this.#ranges);
    if (!one) return;
    const { range } = one;
    const kind = this.#random.below(4);
    if (kind < 2) {
      const offset = this.#random.below(range.size);
      const most = Math.min(range.size - offset, 2 * PAGE_BYTES);
      this.#unlessRefused(() =>
        this.#writeRange(one, offset, 1 + this.#random.below(most))
      );
    } else if (kind === 2 && range.pages > 1) {
      range.shrink();
      one.bytes = one.bytes.slice(0, range.size);
    } else if (range.pages < range.maxPages) {
      this.#growRange(one);
    }
  }

  #growRange(one: SoakRange): void {
    const { range } = one;
    const before = range.size;
    const grown = this.#unlessRefused(() => {
      range.grow();
      return true;
    });
    if (!grown) return;
    const bytes = new Uint8Array(range.size);
    bytes.set(one.bytes);
    one.bytes = bytes;
    this.#writeRange(one, before, PAGE_BYTES);
  }

  #writeRange(one: SoakRange, offset: number, bytes: number): void {
    const value = this.#random.below(256);
    const source = new Uint8Array(bytes).fill(value);
    one.range.write(source, { offset });
    one.bytes.set(source, offset);
  }

  #freeRange(): void {
    const one = this.#pick(this.#ranges);
    if (one) this.#dropRange(one);
  }

  #dropRange(one: SoakRange): void {
    this.#counts.checks++;
    const found = one.range.read();
    const wrong = found.findIndex((byte, at) => byte !== one.bytes[at]);
    if (wrong >= 0) {
      this.#mismatch(
        `byte ${wrong} of a range of ${found.length} is ${found[wrong]}, not ${
          one.bytes[wrong]
        }`,
      );
    }
    this.#ranges.splice(this.#ranges.indexOf(one), 1);
    one.range.free();
  }

  #replaceStream(): void {
    const index = 1 + this.#random.below(STREAMS - 1);
    this.#settle();
    const old = this.#streams[index]!;
    old.close();
    for (const one of this.#blocks) one.readers.delete(old);
    this.#streams[index] = this.#mb.createStream();
  }

  /** Waits for all work, and notes what checks have found since the last time. */
  #settle(): void {
    this.#noting(() => this.#patterns.settle());
  }

  #noting(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof Error && error.name === "AssertionError")) {
        throw error;
      }
      this.#mismatch(error.message);
    }
  }

  #mismatch(what: string): void {
    this.#counts.mismatches++;
    this.#report(what);
  }

  /** Undefined if memory, addresses, pages or the room behind a block do not suffice. */
  #unlessRefused<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      const refused = error instanceof OutOfMemoryError ||
        error instanceof MoonBrightError &&
          REFUSALS.includes(error.code);
      if (!refused) throw error;
      this.#counts.refused++;
      return undefined;
    }
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items.length === 0
      ? undefined
      : items[this.#random.below(items.length)];
  }
}
