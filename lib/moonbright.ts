/**
 * An allocator for one device, as users hold it.
 *
 * @module
 */

import { Allocator, type AllocatorOptions } from "./allocator.ts";
import { Block } from "./block.ts";
import { BlockFlag, BlockState } from "./blocks.ts";
import { type AddressReport, explainAddress } from "./debug/explain.ts";
import type { DeviceInfo, Driver } from "./driver.ts";
import { ClosedError, InvalidBlockError } from "./errors.ts";
import { isLive } from "./heap.ts";
import { Module } from "./kernel.ts";
import { Publication } from "./live/publication.ts";
import type { DriverCall } from "./mapper.ts";
import {
  BLOCK_ALIGNMENT,
  checkBytes,
  MAX_BLOCK_BYTES,
  roundUp,
} from "./sizes.ts";
import { type Snapshot, takeSnapshot, takeStats } from "./snapshot.ts";
import type { Stats } from "./stats.ts";
import { Event, Stream } from "./stream.ts";
import { WrappedMemory } from "./wrapped_memory.ts";
import { releaseCached } from "./trim.ts";
import { zeroBlock } from "./zero.ts";

/** How an instance behaves. Sizes in bytes. */
export interface MoonBrightOptions extends AllocatorOptions {
  /** Told of every driver call for memory. */
  onDriverCall?: (call: DriverCall) => void;
  /** Warns on the console when an owner is garbage-collected with its block live; slows allocation. */
  reportLeaks?: boolean;
  /** Whether blocks are handed out zeroed where their options don't say; not, by default. */
  zero?: boolean;
  /** Lets `moonbright top` and `map` look at the instance; see {@linkcode MoonBright.publish}. */
  publish?: boolean;
}

/** How to allocate. */
export interface AllocOptions {
  /** The stream whose order the block follows; the default stream if left out. */
  stream?: Stream;
  /** A name that shows in reports. */
  name?: string;
  /** Bytes that the block may grow to in place; the addresses are kept for it. */
  maxSize?: number | bigint;
  /**
   * Whether to zero the block, in its stream's order: it never shows what another owner
   * left. What a resize adds is zeroed too. The instance's choice, if left out.
   *
   * In a stream that is capturing, zeroing is captured: it is done at each launch.
   */
  zero?: boolean;
}

/** What is remembered of a block whose owner may be lost. */
interface OwnedBlock {
  id: number;
  generation: number;
  /** What to call it in the report. */
  what: string;
}

/** A GPU memory allocator over a driver. `mod.ts` has the class that also opens one. */
export class MoonBright {
  /** The driver. Using it directly bypasses every check of lifetimes. */
  readonly driver: Driver;
  /**
   * The policy, for MoonBright's own tools and tests.
   *
   * @internal
   */
  readonly allocator: Allocator;
  /** The stream used where none is given: the device's own default stream. */
  readonly defaultStream: Stream;
  #closed = false;
  #publication: Publication | undefined;
  readonly #streams: Stream[];
  readonly #leaks: FinalizationRegistry<OwnedBlock> | undefined;
  readonly #zero: boolean;
  /** Options of blocks that are given none; undefined if that needs nothing special. */
  readonly #defaults: AllocOptions | undefined;

  /**
   * An allocator over an open driver, which it closes at the end.
   *
   * @throws {RangeError} if the budget is no size
   * @throws {MoonBrightError} code `out-of-addresses` if no addresses are granted
   */
  constructor(driver: Driver, options: MoonBrightOptions = {}) {
    if (options.budget !== undefined && options.budget !== Infinity) {
      checkBytes(options.budget, "the budget", Number.MAX_SAFE_INTEGER);
    }
    this.driver = driver;
    this.allocator = new Allocator(driver, options);
    this.allocator.mapper.observer = options.onDriverCall;
    this.#zero = options.zero ?? false;
    this.#defaults = this.#zero || this.allocator.watch ? {} : undefined;
    this.defaultStream = new Stream(this, 0);
    this.#streams = [this.defaultStream];
    if (options.reportLeaks) {
      this.#leaks = new FinalizationRegistry(({ id, generation, what }) => {
        const { blocks } = this.allocator;
        // Freed blocks lose their owners too, and so does a closed instance's memory.
        if (this.#closed || !isLive(blocks, id, generation)) return;
        console.warn(`MoonBright: a block was never freed: ${what}`);
      });
    }
    if (options.publish) this.publish();
  }

  /** Facts about the device. */
  get device(): DeviceInfo {
    return this.driver.info;
  }

  /** Whether the instance was closed. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Most bytes that all extents together may take; `Infinity` for no limit. */
  get budget(): number {
    return this.allocator.budget;
  }

  /** Sets the budget. One below what is mapped stops growth and gives nothing back by itself. */
  set budget(bytes: number) {
    this.allocator.budget = bytes === Infinity
      ? bytes
      : checkBytes(bytes, "the budget", Number.MAX_SAFE_INTEGER);
  }

  /**
   * Allocates device memory. Zero bytes give an empty block with address 0 that takes
   * nothing and counts nowhere.
   *
   * @throws {TypeError} if `bytes` is neither a number nor a bigint
   * @throws {RangeError} if it is negative, fractional or above 1 TiB
   * @throws {OutOfMemoryError} if no way is left to serve it; nothing has changed then
   */
  alloc(bytes: number | bigint, options?: AllocOptions): Block {
    if (this.#closed) throw new ClosedError("alloc");
    const requested = checkBytes(bytes, "the size");
    const chosen = options ?? this.#defaults;
    if (chosen !== undefined || requested === 0) {
      return this.#allocWith(requested, chosen ?? {});
    }
    const { allocator } = this;
    const id = allocator.allocate(
      requested,
      Math.ceil(requested / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT,
      0,
    );
    return this.#own(id, `${requested} bytes`);
  }

  /**
   * The live block that starts at an address. The first call builds an index of all
   * live blocks; from then on every allocation and free keeps it.
   *
   * @throws {InvalidBlockError} if the address is no block's, inside one, or freed
   */
  blockAt(address: number | bigint): Block {
    this.assertOpen("find the block");
    const { allocator } = this;
    const wanted = Number(address);
    const id = allocator.recordAt(wanted);
    if (id === 0) throw noBlockAt(allocator, wanted);
    return new Block(this, id, allocator.blocks.generation[id]!);
  }

  /**
   * Frees the live block that starts at an address.
   *
   * @throws {InvalidBlockError} if the address is no block's, inside one, or freed
   */
  free(address: number | bigint): void {
    this.blockAt(address).free();
  }

  /**
   * Makes memory that another library allocated usable like a block: to read, write, fill,
   * and pass to kernels. It is never freed, and nobody checks that the device can reach
   * it: a wrong address is as bad as in C.
   *
   * @example
   * ```ts
   * import { MoonBright } from "@moonbright/moonbright";
   *
   * using mb = MoonBright.open({ device: "host" });
   * const theirs = new Uint8Array(4096); // on the host any memory will do
   * const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(theirs));
   * using memory = mb.wrap(address, theirs.byteLength);
   * memory.fill(7);
   * mb.synchronize();
   * console.log(theirs[0]); // 7
   * ```
   *
   * @throws {RangeError} if address or size make no sense, or overlap memory of this
   *   instance's device or other wrapped memory
   * @throws {DriverError} code `unsupported` if the backend shares no memory
   */
  wrap(address: number | bigint, bytes: number | bigint): WrappedMemory {
    this.assertOpen("wrap");
    return new WrappedMemory(
      this,
      checkBytes(address, "the address", Number.MAX_SAFE_INTEGER),
      checkBytes(bytes, "the size"),
    );
  }

  /** Makes a stream. */
  createStream(): Stream {
    this.assertOpen("create a stream");
    const number = this.allocator.createStream();
    const stream = new Stream(this, number);
    this.#streams[number] = stream;
    return stream;
  }

  /** Makes an event; with `timing` it can be asked for elapsed time. */
  createEvent(options: { timing?: boolean } = {}): Event {
    this.assertOpen("create an event");
    return new Event(this, this.driver.createEvent(options.timing ?? false));
  }

  /**
   * Loads kernels: PTX on CUDA, a code object on HIP, a shared object on the host.
   *
   * @throws {DriverError} if the image does not suit the device
   */
  loadModule(image: Uint8Array | string): Module {
    this.assertOpen("load a module");
    const bytes = typeof image === "string"
      // The driver reads text up to its final zero.
      ? new TextEncoder().encode(image + "\0")
      : image;
    return new Module(this, this.driver.loadModule(bytes));
  }

  /** Waits for all work on the device. */
  synchronize(): void {
    this.assertOpen("synchronize");
    const { streams, watch } = this.allocator;
    for (let stream = 0; stream < streams.count; stream++) {
      if (streams.clocks[stream]!.open) streams.synchronize(stream);
    }
    watch?.quarantine?.settle(true);
  }

  /**
   * Tells what an address is, or was: inside a live block, in a freed one, in a gap. With
   * `debug` or `stacks` it knows freed blocks, and with `stacks` where in the program they
   * were allocated and freed. Asks nothing of the device: also works on a lost one.
   *
   * @example
   * ```ts
   * import { MoonBright } from "@moonbright/moonbright";
   *
   * using mb = MoonBright.open({ device: "host", debug: "quarantine", stacks: true });
   * const block = mb.alloc(1000, { name: "scores" });
   * const { address } = block;
   * block.free();
   * console.log(mb.explain(address + 8).text); // freed …; byte 8 of the block "scores" …
   * ```
   *
   * @throws {TypeError} if it is neither a number nor a bigint
   * @throws {RangeError} if it is no whole number from 0 to 2^53
   */
  explain(address: number | bigint): AddressReport {
    const checked = checkBytes(address, "the address", Number.MAX_SAFE_INTEGER);
    return explainAddress(this.allocator, checked);
  }

  /**
   * Checks the canaries of all live blocks, after all work so far. Without the option
   * `canaries` there are none.
   *
   * @throws {CanaryError} if blocks were overrun; it names them
   */
  checkCanaries(): void {
    this.assertOpen("check canaries");
    this.allocator.watch?.checkCanaries();
  }

  /** The figures. */
  stats(): Stats {
    this.assertOpen("read the figures");
    return takeStats(this.allocator);
  }

  /** Everything the instance holds, as JSON. */
  snapshot(): Snapshot {
    this.assertOpen("take a snapshot");
    return takeSnapshot(this.allocator);
  }

  /**
   * Answers `moonbright top` and `moonbright map` of the same user from now on, on a Unix
   * socket, whenever the event loop turns. Needs `--allow-net`, `--allow-read`,
   * `--allow-write`, `--allow-env=XDG_RUNTIME_DIR,TMPDIR` and `--allow-sys=uid`.
   *
   * @throws {MoonBrightError} code `permission` if Deno or the folder's owner forbids it
   */
  publish(): Publication {
    this.assertOpen("publish");
    if (!this.#publication?.open) this.#publication = new Publication(this);
    return this.#publication;
  }

  /**
   * Flushes retired mappings: those whose work has passed or, with `wait`, all. Returns
   * the bytes of addresses that became recyclable.
   */
  flush(options: { wait?: boolean } = {}): number {
    this.assertOpen("flush");
    this.allocator.watch?.quarantine?.settle(options.wait ?? false);
    return this.allocator.flushQueue.flush(options.wait ?? false);
  }

  /**
   * Gives wholly free extents back to the device: those whose work has passed or, with
   * `wait` (the default), all. Returns the bytes released.
   */
  trim(options: { wait?: boolean } = {}): number {
    this.assertOpen("trim");
    this.allocator.watch?.quarantine?.settle(options.wait ?? true);
    return releaseCached(this.allocator, options.wait ?? true);
  }

  /** Waits for the device, then releases everything. Does nothing the second time. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#publication?.close();
    try {
      this.driver.synchronize();
    } catch {
      // A lost device has nothing left to wait for; closing must not fail on it.
    }
    this.driver.close();
  }

  /** Closes the instance. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Throws unless the instance is open; the message names the operation.
   *
   * @throws {ClosedError} if the instance is closed
   */
  assertOpen(operation: string): void {
    if (this.#closed) throw new ClosedError(operation);
  }

  /**
   * The number of one of this instance's streams.
   *
   * @throws {TypeError} if the stream belongs to another instance
   * @throws {ClosedError} if it is closed
   */
  streamNumber(stream: Stream, operation: string): number {
    if (!(stream instanceof Stream) || stream.owner !== this) {
      throw new TypeError(
        `Cannot ${operation}: the stream belongs to another instance`,
      );
    }
    stream.driverId(operation);
    return stream.number;
  }

  /** The stream of a number. */
  streamByNumber(number: number): Stream {
    return this.#streams[number]!;
  }

  #allocWith(requested: number, options: AllocOptions): Block {
    const { allocator } = this;
    const stream = options.stream === undefined
      ? 0
      : this.streamNumber(options.stream, "alloc");
    if (requested === 0) return new Block(this, 0, 0);
    const id = options.maxSize === undefined && allocator.watch === undefined
      ? allocator.allocate(
        requested,
        roundUp(requested, BLOCK_ALIGNMENT),
        stream,
      )
      : this.#take(requested, options.maxSize, stream);
    if (options.name !== undefined) {
      allocator.names.set(id, options.name);
      allocator.blocks.flags[id]! |= BlockFlag.NAMED;
    }
    const zero = options.zero ?? this.#zero;
    if (zero || allocator.watch !== undefined) this.#prepare(id, zero, options);
    return this.#own(id, options.name ?? `${requested} bytes`);
  }

  /** The owner of a new block, whose loss is noticed if that was asked for. */
  #own(id: number, what: string): Block {
    const generation = this.allocator.blocks.generation[id]!;
    const block = new Block(this, id, generation);
    if (this.#leaks) this.#leaks.register(block, { id, generation, what });
    return block;
  }

  /** Takes a block that can grow, is watched, or both. */
  #take(
    requested: number,
    maxSize: number | bigint | undefined,
    stream: number,
  ): number {
    const { allocator } = this;
    const { granularity } = this.device;
    const { watch } = allocator;
    const most = maxSize === undefined
      ? undefined
      : checkBytes(maxSize, "maxSize", MAX_BLOCK_BYTES);
    if (most !== undefined && most < requested) {
      throw new RangeError(
        `Cannot use maxSize: ${most} is less than the size, ${requested} bytes`,
      );
    }
    if (watch?.quarantine) {
      const { quarantine } = watch;
      return allocator.allocateForQuarantine(
        quarantine,
        requested,
        most,
        stream,
      );
    }
    if (most !== undefined) {
      return allocator.allocateGrowable(
        requested,
        roundUp(requested, granularity),
        roundUp(most, granularity),
        stream,
      );
    }
    const size = watch?.capacityFor(requested) ??
      roundUp(requested, BLOCK_ALIGNMENT);
    return allocator.allocate(requested, size, stream);
  }

  /** Makes a block what its options say before anyone sees it. */
  #prepare(id: number, zero: boolean, options: AllocOptions): void {
    try {
      if (zero) zeroBlock(this.allocator, id);
      this.allocator.watch?.allocated(id, options.name);
    } catch (error) {
      this.#takeBack(id);
      throw error;
    }
  }

  /** Frees a block that could not be prepared; why matters more than how that goes. */
  #takeBack(id: number): void {
    try {
      this.allocator.free(id, this.allocator.blocks.generation[id]!);
    } catch {
      // A lost device refuses this too.
    }
  }
}

function noBlockAt(a: Allocator, address: number): InvalidBlockError {
  const { blocks, arena, extents } = a;
  let why = "the address is not MoonBright's";
  const reserved = address >= arena.base && address < arena.end;
  if (reserved || extents.at(address) !== 0) {
    why = "nothing live is there; it may have been freed";
    for (let id = 1; id < blocks.end; id++) {
      const inside = address - blocks.address[id]!;
      if (
        blocks.state[id] === BlockState.LIVE && inside >= 0 &&
        inside < blocks.size[id]!
      ) why = `it is inside the block at ${hex(blocks.address[id]!)}`;
    }
  }
  const told = a.watch ? `: ${explainAddress(a, address).text}` : "";
  return new InvalidBlockError(
    "find the block",
    `Cannot find a block at ${hex(address)}: ${why}${told}`,
  );
}

function hex(address: number): string {
  return `0x${address.toString(16)}`;
}
