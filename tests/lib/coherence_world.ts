/**
 * Random use of the whole allocator over the model device. Every block holds a tag of
 * its own; kernels that run as late as the device likes write and check it, so that
 * memory handed out too early, or seen through a stale translation, shows. Graphs write
 * the blocks that they were captured with again, whatever has become of those.
 *
 * A step is four numbers, read against whatever exists when its turn comes: any list
 * of steps can run, so that a failing one can be cut down to what matters.
 */

import type { Block } from "../../lib/block.ts";
import { MoonBrightError, OutOfMemoryError } from "../../lib/errors.ts";
import type { Graph } from "../../lib/graph.ts";
import type { Kernel } from "../../lib/kernel.ts";
import { MoonBright, type MoonBrightOptions } from "../../lib/moonbright.ts";
import type { Stream } from "../../lib/stream.ts";
import { modelImage } from "../model/kernels.ts";
import { ModelDriver, type ModelOptions } from "../model/model_driver.ts";
import { Faults, faulty } from "../faults/faulty_driver.ts";
import { Random } from "../model/random.ts";
import type { Step, World } from "./random_walk.ts";
import { GRANULE } from "./support.ts";

/** One way to set the allocator and the device up. */
export interface WorldOptions {
  /** Shown in the test's name. */
  name: string;
  /** The allocator. */
  allocator: MoonBrightOptions;
  /** The device. */
  device: ModelOptions;
  /** The backend whose profile applies; the model's by default. */
  backend?: string;
  /** Whether a request may be refused for lack of addresses. */
  scarceAddresses?: boolean;
  /** Most streams open at once, without the default stream. */
  mostStreams: number;
  /** One in so many calls of the driver fails; none by default. */
  faultOneIn?: number;
  /** Breaks the allocator on purpose, before its first use. */
  sabotage?(mb: MoonBright): void;
}

interface TaggedBlock {
  /** Its number in the story. */
  number: number;
  block: Block;
  tag: number;
  /** Bytes from the first on that hold the tag. */
  tagged: number;
  maxSize: number;
  /** The stream whose order the block follows; undefined once that was closed. */
  own: Stream;
  /** Stream of the last write. */
  writer: Stream;
  /** Streams that have read since. */
  readers: Set<Stream>;
  /** Streams that `useOn` was called for. */
  users: Set<Stream>;
}

/** A graph and what each of its launches writes. */
interface HeldGraph {
  number: number;
  graph: Graph;
  writes: { one: TaggedBlock; tag: number; bytes: number }[];
}

const LONGEST_KERNEL_NS = 120_000;
const TAG_STEP = 0x9e3779b1;
const MOST_BLOCKS = 120;
const MOST_GRAPHS = 4;

/** The word that a granule of a block with this tag is filled with. */
function wordOf(tag: number, granule: number): number {
  return (tag + Math.imul(granule, TAG_STEP)) >>> 0;
}

/** Runs steps against one instance. */
export class CoherenceWorld implements World {
  readonly model: ModelDriver;
  readonly mb: MoonBright;
  /** Makes calls fail, where some are to. */
  readonly faults = new Faults();
  /** What a check has found that was not there. */
  readonly damage: string[] = [];
  /** Requests refused for lack of memory. */
  refused = 0;
  /** Checks that kernels have finished. */
  checked = 0;
  /** What the steps did, a line each, if that is told. */
  readonly story: string[] = [];
  readonly #options: WorldOptions;
  readonly #streams: Stream[];
  readonly #blocks: TaggedBlock[] = [];
  readonly #graphs: HeldGraph[] = [];
  readonly #write: Kernel;
  readonly #check: Kernel;
  #nextTag = 1;
  #nextNumber = 1;

  readonly #telling: boolean;

  /** A fresh device and an instance over it. */
  constructor(options: WorldOptions, seed: number, telling = false) {
    this.#options = options;
    this.#telling = telling;
    this.model = new ModelDriver({
      granularity: GRANULE,
      seed,
      ...options.device,
    });
    this.model.info.backend = options.backend ?? "model";
    const { faultOneIn } = options;
    this.mb = new MoonBright(
      faultOneIn ? faulty(this.model, this.faults) : this.model,
      options.allocator,
    );
    options.sabotage?.(this.mb);
    this.#streams = [this.mb.defaultStream];
    const durationNs = (args: DataView) => args.getFloat64(24, true);
    this.model.registerKernel("world_write", {
      durationNs,
      run: (args, memory) => {
        const [address, bytes, tag] = argumentsOf(args);
        for (let at = 0; at < bytes; at += GRANULE) {
          const length = Math.min(GRANULE, bytes - at);
          memory.fill(address + at, wordOf(tag, at / GRANULE), length);
        }
      },
    });
    this.model.registerKernel("world_check", {
      durationNs,
      run: (args, memory) => {
        const [address, bytes, tag] = argumentsOf(args);
        this.checked++;
        this.#compare(address, memory.read(address, bytes), tag);
      },
    });
    const module = this.mb.loadModule(modelImage);
    this.#write = module.kernel("world_write");
    this.#check = module.kernel("world_check");
    if (faultOneIn) this.faults.failNowAndThen(faultOneIn, new Random(seed));
  }

  /** Does one step. Throws if anything goes wrong that must not. */
  run(step: Step): void {
    try {
      this.#do(step);
    } catch (error) {
      if (!this.#isExpected(error)) throw error;
      this.#tell(() => `  which fails: ${(error as Error).message}`);
    }
  }

  /** Whether an error comes of the calls that are made to fail, if any are. */
  #isExpected(error: unknown): boolean {
    return this.#options.faultOneIn !== undefined &&
      error instanceof MoonBrightError && error.code === "driver";
  }

  #do([kind, a, b, c]: Step): void {
    if (kind < 300) this.#alloc(a, b, c);
    else if (kind < 560) this.#free(a, b, c);
    else if (kind < 630) this.#checkSome(a, b, c);
    else if (kind < 636) this.#capture(a, b, c);
    else if (kind < 646) this.#relaunch(a, b);
    else if (kind < 650) this.#closeGraph(a);
    else if (kind < 740) this.#rewrite(a, b, c);
    else if (kind < 790) this.#copyThroughHost(a, b, c);
    else if (kind < 880) this.#resize(a, b, c);
    else if (kind < 940) this.#letRun(a % 24);
    else if (kind < 960) this.#prefetch(a, b);
    else if (kind < 966) this.#flush(a % 2 === 0);
    else if (kind < 972) this.#trim(a % 2 === 0);
    else if (kind < 982) this.#openStream();
    else if (kind < 990) this.#closeStream(a);
    else if (kind < 994) this.#setBudget(a);
    else if (kind < 997) this.#synchronize(this.#pick(a, this.#streams));
    else this.#freeMany(a);
  }

  get suspicious(): boolean {
    return this.damage.length > 0;
  }

  [Symbol.dispose](): void {
    this.mb.close();
  }

  /** Throws if the tables contradict each other or a check has failed. */
  assertSound(): void {
    this.mb.allocator.assertInvariants();
    const { damage, model } = this;
    if (damage.length > 0) throw new Error(damage[0]);
    if (model.hazards.length > 0) throw new Error(model.hazards[0]);
    if (model.lostReason !== undefined) throw new Error(model.lostReason);
    for (const { block, tagged } of this.#blocks) {
      if (!block.live || block.size < tagged || block.capacity < block.size) {
        throw new Error("a block has shrunk by itself");
      }
    }
  }

  /** Frees everything, trims and closes, with nothing left over. */
  finish(): void {
    this.faults.clear();
    while (this.#blocks.length > 0) this.#free(0, 0, 1);
    while (this.#graphs.length > 0) this.#closeGraph(0);
    this.mb.synchronize();
    this.assertSound();
    while (this.#streams.length > 1) this.#closeStream(0);
    this.mb.trim();
    this.assertSound();
    const { live, mapped, pending, retired, anchor } = this.mb.stats();
    const { extents, mappings, streams, graphs } = this.model.live();
    const anchors = anchor > 0 ? 1 : 0;
    const left = JSON.stringify({
      live,
      mapped,
      pending,
      retired,
      streams,
      graphs,
      extents: extents - anchors,
      mappings: mappings - anchors,
    });
    if (/[1-9]/.test(left)) throw new Error(`left over: ${left}`);
    this.mb.close();
    const after = JSON.stringify(this.model.live());
    if (/[1-9]/.test(after)) throw new Error(`left after close: ${after}`);
  }

  #alloc(a: number, b: number, c: number): void {
    if (this.#blocks.length >= MOST_BLOCKS) return this.#free(a, b, c);
    const own = this.#pick(b, this.#streams);
    const size = 1 + a % SIZE_LIMITS[c % SIZE_LIMITS.length]!;
    const maxSize = (b >> 8) % 12 === 0 ? size + (c >> 4) % (8 * GRANULE) : 0;
    let block: Block;
    try {
      block = this.mb.alloc(size, {
        stream: own,
        ...(maxSize > 0 ? { maxSize } : {}),
        ...(c % 16 === 0 ? { name: `block ${this.#nextTag}` } : {}),
      });
    } catch (error) {
      return this.#acceptRefusal(error, size, maxSize);
    }
    if (block.size !== size || block.address % 512 !== 0) {
      throw new Error(`asked for ${size} bytes, got ${block.size}`);
    }
    const tagged: TaggedBlock = {
      number: this.#nextNumber++,
      block,
      tag: 0,
      tagged: 0,
      maxSize,
      own,
      writer: own,
      readers: new Set(),
      users: new Set(),
    };
    this.#blocks.push(tagged);
    this.#tell(() =>
      `alloc block ${tagged.number}: ${size} bytes at ${
        hex(block.address)
      } on ${nameOf(own)}${maxSize > 0 ? `, maxSize ${maxSize}` : ""}`
    );
    this.#writeTag(tagged, own, c);
  }

  #free(a: number, b: number, c: number): void {
    const one = this.#pick(a, this.#blocks);
    if (!one) return;
    if (c % 2 === 1) this.#checkTag(one, this.#pick(b >> 4, this.#streams), c);
    const last = b % 4 === 0 ? this.#pick(b >> 4, this.#streams) : undefined;
    // Noted uses are the allocator's to order; those it was not told of are ours.
    if (last && one.users.size === 0 && last !== one.own) {
      last.wait(one.own.record());
    }
    this.#tell(() =>
      `free block ${one.number}${last ? ` on ${nameOf(last)}` : ""}`
    );
    one.block.free(last);
    if (one.block.live) throw new Error("a freed block is live");
    this.#blocks.splice(this.#blocks.indexOf(one), 1);
  }

  #freeMany(a: number): void {
    for (let count = a % 60; count > 0; count--) this.#free(a * count, a, 1);
  }

  #checkSome(a: number, b: number, c: number): void {
    const one = this.#pick(a, this.#blocks);
    if (one) this.#checkTag(one, this.#pick(b, this.#streams), c);
  }

  #rewrite(a: number, b: number, c: number): void {
    const one = this.#pick(a, this.#blocks);
    if (one) this.#writeTag(one, this.#pick(b, this.#streams), c);
  }

  /** Reads a block to the host, or fills it from there, by the driver's own copies. */
  #copyThroughHost(a: number, b: number, c: number): void {
    const one = this.#pick(a, this.#blocks);
    if (!one) return;
    const stream = this.#pick(b, this.#streams);
    const options = stream === one.own && b % 2 === 0 ? {} : { stream };
    this.#tell(() =>
      `${c % 3 === 0 ? "read" : "write"} block ${one.number} by the host on ${
        nameOf(stream)
      }`
    );
    if (c % 3 === 0) {
      this.#orderRead(one, stream, c);
      const bytes = one.block.read(one.tagged, options);
      this.#compare(one.block.address, bytes, one.tag);
    } else {
      this.#orderWrite(one, stream, c);
      const { size } = one.block;
      one.tag = this.#newTag();
      // Until all of it is written.
      one.tagged = 0;
      this.#noteUse(one, stream, true);
      const head = Math.min(512, size);
      const words = new Uint32Array(Math.ceil(head / 4));
      words.fill(wordOf(one.tag, 0));
      const source = new Uint8Array(words.buffer, 0, head);
      one.block.write(source, options);
      for (let at = 0; at < size; at += GRANULE) {
        const from = Math.max(at, 512);
        const whole = Math.min(GRANULE + at, size) - from;
        const bytes = whole - whole % 4;
        const value = wordOf(one.tag, at / GRANULE);
        if (bytes > 0) {
          one.block.fill(value, { ...options, offset: from, bytes, width: 4 });
        }
      }
      one.tagged = size - (size > head ? size % 4 : 0);
    }
    this.#noteUse(one, stream, c % 3 !== 0);
  }

  #resize(a: number, b: number, c: number): void {
    const one = this.#pick(a, this.#blocks);
    if (!one) return;
    const limit = one.maxSize > 0 && c % 8 !== 0
      ? one.maxSize
      : SIZE_LIMITS[c % SIZE_LIMITS.length]!;
    const size = 1 + b % limit;
    const { address, size: before } = one.block;
    this.#tell(() =>
      `resize block ${one.number} from ${before} to ${size} bytes`
    );
    try {
      one.block.resize(size);
    } catch (error) {
      if (one.block.size !== before || one.block.address !== address) {
        throw new Error("a failed resize has changed the block");
      }
      if (error instanceof MoonBrightError && error.code === "cannot-grow") {
        return;
      }
      return this.#acceptRefusal(error, size, one.maxSize);
    }
    if (one.block.address !== address || one.block.size !== size) {
      throw new Error("a resize has moved the block or missed the size");
    }
    one.tagged = Math.min(one.tagged, size);
    this.#checkTag(one, this.#pick(c >> 8, this.#streams), c);
    if (size > before) {
      this.#writeTag(one, this.#pick(c >> 4, this.#streams), c);
    }
  }

  /** Has the device translate an address ahead of any use, as hardware may. */
  #prefetch(a: number, b: number): void {
    // A device that keeps invalid entries has a driver that flushes them when it maps.
    if (this.#options.device.tlb === "keeps-invalid") return;
    const { base, frontier } = this.mb.allocator.arena;
    const granules = (frontier - base) / GRANULE;
    for (let count = 0; count < 8; count++) {
      const granule = (a + count * b) % Math.max(granules, 1);
      this.model.prefetch(base + granule * GRANULE);
    }
  }

  #openStream(): void {
    if (this.#streams.length > this.#options.mostStreams) return;
    const stream = this.mb.createStream();
    this.#streams.push(stream);
    this.#tell(() => `open ${nameOf(stream)}`);
  }

  #closeStream(a: number): void {
    if (this.#streams.length < 2) return;
    const index = 1 + a % (this.#streams.length - 1);
    const stream = this.#streams[index]!;
    this.#tell(() => `close ${nameOf(stream)}`);
    stream.close();
    this.#streams.splice(index, 1);
    // Those that were freed may still be written by graphs.
    const written = this.#graphs.flatMap(({ writes }) => writes);
    const known = [...this.#blocks, ...written.map(({ one }) => one)];
    for (const one of new Set(known)) {
      if (one.own === stream) {
        one.own = this.mb.defaultStream;
        // Nothing of a closed stream is left to wait for.
        one.users.delete(one.own);
      }
      if (one.writer === stream) one.writer = one.own;
      one.readers.delete(stream);
      one.users.delete(stream);
    }
  }

  /** Captures writes of blocks, and of one that is gone when the capture ends. */
  #capture(a: number, b: number, c: number): void {
    if (this.#streams.length < 2 || this.#graphs.length >= MOST_GRAPHS) return;
    const stream = this.#streams[1 + a % (this.#streams.length - 1)]!;
    const writes: HeldGraph["writes"] = [];
    const number = this.#nextNumber++;
    this.#tell(() => `capture graph ${number} on ${nameOf(stream)}`);
    const write = (one: TaggedBlock) => {
      if (writes.some((other) => other.one === one)) return;
      const [tag, bytes] = [this.#newTag(), one.block.size];
      this.#launch(this.#write, one.block, bytes, tag, stream, c + bytes);
      this.#launch(this.#check, one.block, bytes, tag, stream, c);
      writes.push({ one, tag, bytes });
      this.#tell(() => `inside: write and check block ${one.number}`);
    };
    const graph = stream.capture(() => {
      const usable = this.#blocks.filter(({ own, users }) =>
        own === stream || users.has(stream)
      );
      for (let count = c % 4; count > 0 && usable.length > 0; count--) {
        const one = this.#pick(b * count, usable);
        try {
          write(one);
        } catch (error) {
          // It has grown since: a capture can't wait for what it grew over.
          if (!(error instanceof RangeError)) throw error;
        }
      }
      this.#writePassing(stream, a, c, write);
      if (b % 5 === 0) this.mb.trim({ wait: false });
      if (b % 7 === 0) this.mb.flush();
    });
    this.#graphs.push({ number, graph, writes });
  }

  /** Has a capture write a block that is freed before the capture ends. */
  #writePassing(
    stream: Stream,
    a: number,
    c: number,
    write: (one: TaggedBlock) => void,
  ): void {
    if (c % 3 > 0) return;
    let block: Block;
    try {
      block = this.mb.alloc(1 + a % (3 * GRANULE), { stream });
    } catch (error) {
      // What the captured stream can't wait for is not to be had.
      if (!(error instanceof MoonBrightError)) throw error;
      return;
    }
    const number = this.#nextNumber++;
    this.#tell(() => `inside: alloc block ${number}, write and free it`);
    try {
      write({
        number,
        block,
        tag: 0,
        tagged: 0,
        maxSize: 0,
        own: stream,
        writer: stream,
        readers: new Set(),
        users: new Set(),
      });
    } finally {
      block.free();
    }
  }

  /** Launches a graph: its blocks are written again, freed or not. */
  #relaunch(a: number, b: number): void {
    const held = this.#pick(a, this.#graphs);
    if (!held) return;
    const stream = this.#pick(b, this.#streams);
    // The allocator has no part in this order: a graph's user sees to it.
    for (const { one } of held.writes) {
      for (const other of new Set([one.own, one.writer, ...one.readers])) {
        if (other !== stream) stream.wait(other.record());
      }
    }
    this.#tell(() => `launch graph ${held.number} on ${nameOf(stream)}`);
    held.graph.launch(stream);
    for (const { one, tag, bytes } of held.writes) {
      one.tag = tag;
      one.writer = stream;
      one.readers.clear();
      if (one.block.live) one.tagged = Math.min(bytes, one.block.size);
    }
    // What it leaves must wait for the launch, which nobody has waited for yet.
    if (b % 3 === 0) this.#closeGraph(a);
  }

  #closeGraph(a: number): void {
    if (this.#graphs.length === 0) return;
    const at = a % this.#graphs.length;
    const { number, graph } = this.#graphs[at]!;
    this.#tell(() => `close graph ${number}`);
    graph.close();
    this.#graphs.splice(at, 1);
  }

  #setBudget(a: number): void {
    const { budget } = this.#options.allocator;
    if (budget !== undefined) {
      this.mb.budget = a % 3 === 0 ? Math.floor(budget / 2) : budget;
      this.#tell(() => `set the budget to ${this.mb.budget}`);
    }
  }

  #writeTag(one: TaggedBlock, stream: Stream, c: number): void {
    this.#tell(() => `write block ${one.number} on ${nameOf(stream)}`);
    this.#orderWrite(one, stream, c);
    const [tag, bytes] = [this.#newTag(), one.block.size];
    this.#launch(this.#write, one.block, bytes, tag, stream, c);
    one.tag = tag;
    one.tagged = bytes;
    this.#noteUse(one, stream, true);
  }

  #checkTag(one: TaggedBlock, stream: Stream, c: number): void {
    this.#tell(() => `check block ${one.number} on ${nameOf(stream)}`);
    this.#orderRead(one, stream, c);
    this.#launch(this.#check, one.block, one.tagged, one.tag, stream, c);
    this.#noteUse(one, stream, false);
  }

  #launch(
    kernel: Kernel,
    block: Block,
    bytes: number,
    tag: number,
    stream: Stream,
    c: number,
  ): void {
    const durationNs = c % 5 === 0 ? c * 7919 % LONGEST_KERNEL_NS : 1;
    kernel.launch({ grid: [1], block: [1], stream }, [
      block,
      { u64: bytes },
      { u64: tag },
      { f64: durationNs },
    ]);
  }

  /** Makes a read follow the last write, as a program has to; the first use by itself. */
  #orderRead(one: TaggedBlock, stream: Stream, c: number): void {
    if (stream === one.writer) return;
    const joined = one.writer === one.own && !one.users.has(stream);
    if (!joined || c % 7 === 0) stream.wait(one.writer.record());
  }

  #orderWrite(one: TaggedBlock, stream: Stream, c: number): void {
    this.#orderRead(one, stream, c);
    for (const reader of one.readers) {
      if (reader !== stream) stream.wait(reader.record());
    }
  }

  #noteUse(one: TaggedBlock, stream: Stream, wrote: boolean): void {
    if (stream !== one.own) one.users.add(stream);
    if (!wrote) one.readers.add(stream);
    else {
      one.writer = stream;
      one.readers.clear();
    }
  }

  #newTag(): number {
    return Math.imul(this.#nextTag++, 0x01000193) >>> 0;
  }

  #compare(address: number, bytes: Uint8Array, tag: number): void {
    const words = new Uint32Array(bytes.buffer, 0, bytes.length >> 2);
    for (let at = 0; at < words.length; at++) {
      const wanted = wordOf(tag, Math.floor(at / (GRANULE / 4)));
      if (words[at] === wanted) continue;
      this.damage.push(
        `0x${(address + 4 * at).toString(16)} holds ${
          words[at]
        }, not ${wanted} of the block at 0x${address.toString(16)}`,
      );
      return;
    }
  }

  /** Refusals for lack of memory are in order only if there was none to be had. */
  #acceptRefusal(error: unknown, size: number, maxSize: number): void {
    if (this.#isExpected(error)) throw error;
    this.refused++;
    if (error instanceof MoonBrightError && error.code === "out-of-addresses") {
      if (!this.#options.scarceAddresses) throw error;
      return this.#assertStillRefused(error, size, maxSize);
    }
    if (!(error instanceof OutOfMemoryError)) throw error;
    const { requested, mapped, budget, deviceFree } = error.details;
    const pending = error.details.pending - error.details.captured;
    const bytes = Math.ceil(requested / GRANULE) * GRANULE;
    const room = Math.min(budget - mapped, deviceFree);
    if (pending > 0 || room >= bytes) {
      throw new Error(`refused without need: ${error.message}`, {
        cause: error,
      });
    }
  }

  /** Gives everything back that can be, and asks once more. */
  #assertStillRefused(cause: Error, size: number, maxSize: number): void {
    this.mb.trim();
    let block: Block;
    try {
      block = this.mb.alloc(size, maxSize > 0 ? { maxSize } : {});
    } catch {
      return;
    }
    block.free();
    throw new Error(`refused without need: ${cause.message}`, { cause });
  }

  #flush(wait: boolean): void {
    this.#tell(() => `flush${wait ? ", waiting" : ""}`);
    this.mb.flush({ wait });
  }

  #trim(wait: boolean): void {
    this.#tell(() => `trim${wait ? ", waiting" : ""}`);
    this.mb.trim({ wait });
  }

  #synchronize(stream: Stream): void {
    this.#tell(() => `synchronize ${nameOf(stream)}`);
    stream.synchronize();
  }

  #letRun(steps: number): void {
    this.#tell(() => `let up to ${steps} operations run`);
    this.model.step(steps);
  }

  #tell(line: () => string): void {
    if (this.#telling) this.story.push(line());
  }

  #pick<Item>(a: number, items: readonly Item[]): Item {
    return items[a % items.length]!;
  }
}

const SIZE_LIMITS = [600, 2048, GRANULE, 3 * GRANULE, 8 * GRANULE, 2 ** 14];

function nameOf(stream: Stream): string {
  return `stream ${stream.number}`;
}

function hex(address: number): string {
  return `0x${address.toString(16)}`;
}

function argumentsOf(args: DataView): [number, number, number] {
  return [0, 8, 16].map((at) => Number(args.getBigUint64(at, true))) as [
    number,
    number,
    number,
  ];
}
