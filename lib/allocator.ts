/**
 * The allocator: serves a request by the cheapest way and keeps all tables in step.
 *
 * `allocate` and `free` are the hot path: a free block that fits is taken without a
 * driver call and without an object. Everything else lives in the files that it
 * calls: slow_path.ts (mapping more), resize.ts, trim.ts, reports in snapshot.ts.
 *
 * @module
 */

import { dropAnchor } from "./anchor.ts";
import { type Arena, reserveArena } from "./arena.ts";
import { Copies } from "./copies.ts";
import { BlockFlag, type Blocks, BlockState } from "./blocks.ts";
import type { CostModel } from "./cost_model.ts";
import { type DeviceProfile, growthOn, profileOf } from "./device_profile.ts";
import { type DebugOptions, watchSettings } from "./debug/options.ts";
import { type BlockStory, tellStory } from "./debug/history.ts";
import type { Quarantine } from "./debug/quarantine.ts";
import { Watch } from "./debug/watch.ts";
import type { Driver } from "./driver.ts";
import { InvalidBlockError } from "./errors.ts";
import { Extents } from "./extents.ts";
import { FlushQueue } from "./flush.ts";
import { GraphHolds } from "./graph_holds.ts";
import { Growables } from "./growables.ts";
import { hasFlag, Heap, isLive } from "./heap.ts";
import { Mapper } from "./mapper.ts";
import { PendingFrees } from "./pending.ts";
import { PlainArena, PlainExtents, PlainMapper } from "./plain_extents.ts";
import type { GrowthPolicy } from "./planner.ts";
import { growthOf, type PolicyName } from "./policies.ts";
import { allocateAlone, allocateSlowly } from "./slow_path.ts";
import { checkBytes } from "./sizes.ts";
import { Counters } from "./stats.ts";
import { Streams } from "./streams.ts";

/** How an allocator behaves. Sizes in bytes. */
export interface AllocatorOptions extends DebugOptions {
  /** Most that all extents together may take; no limit by default. */
  budget?: number;
  /** Addresses to reserve, halved until the system grants them; the backend's by default. */
  addressSpace?: number;
  /** Addresses that are used up before flushed ones are used again; none by default. */
  freshAddresses?: number;
  /** Retired mappings at which a coherence point is due. */
  maxRetired?: number;
  /** What to give up for what; `default` takes little memory, `latency` little time a request. */
  policy?: PolicyName;
  /** How growth is cut into extents, where that is to differ from the policy. */
  growth?: Partial<GrowthPolicy>;
  /** Costs of the driver's calls; the backend's stored ones until measured, by default. */
  costs?: CostModel;
}

/** Told of every allocation and free. Must not throw. */
export interface AllocationObserver {
  /** A block was allocated or has another size; of the latter `freed` was told before. */
  allocated(id: number): void;
  /** A block was freed, last used on a stream, or is about to get another size. */
  freed(address: number, requested: number, stream: number): void;
  /** A request could not be served; `deviceFree` is what the device had, in bytes. */
  refused(requested: number, deviceFree: number, stream: number): void;
}

/**
 * Blocks up to this size may stay unmerged for a moment after their free. Larger ones
 * are merged at once: fitting them tightly matters more than the 50 ns.
 */
const LARGEST_UNMERGED = 1024 ** 2;

/** One in this many reuses is timed. */
const TIMED_EVERY = 1024;

/** Serves requests for one device. */
export class Allocator {
  /** The device. */
  readonly driver: Driver;
  /** What is particular to its kind. */
  readonly profile: DeviceProfile;
  /** The reserved addresses. */
  readonly arena: Arena;
  /** The extents. */
  readonly extents: Extents;
  /** The streams' clocks. */
  readonly streams: Streams;
  /** Live and free blocks. */
  readonly heap: Heap;
  /** The heap's records. */
  readonly blocks: Blocks;
  /** The driver's calls for memory. */
  readonly mapper: Mapper;
  /** The same where extents can't be mapped, undefined where they can. */
  readonly plain: PlainMapper | undefined;
  /** Retired mappings. */
  readonly flushQueue: FlushQueue;
  /** Blocks freed while other streams still used them. */
  readonly pending: PendingFrees;
  /** Blocks that graphs use. */
  readonly graphs: GraphHolds;
  /** Blocks with room to grow behind them. */
  readonly growables: Growables = new Growables();
  /** Counters. */
  counters: Counters = new Counters();
  /** Blocks that copies on other threads use. */
  readonly copies: Copies = new Copies();
  /** Names of blocks that have one. */
  readonly names: Map<number, string> = new Map();
  /** Told of every allocation and free, if set. */
  observer: AllocationObserver | undefined;
  /** Records of live blocks by address, once someone has asked by address. */
  #byAddress: Map<number, number> | undefined;
  /** Bytes of the anchor, 0 if there is none. Not counted as mapped. */
  readonly anchorBytes: number;
  /** Costs of the driver's calls. */
  costs: CostModel;
  /** How growth is cut into extents. */
  readonly growth: GrowthPolicy;
  /** Retired mappings at which a coherence point is due. */
  readonly maxRetired: number;
  /** Most that all extents together may take. */
  budget: number;
  /** Looks for memory bugs of the program, if it is to. */
  readonly watch: Watch | undefined;

  /**
   * Reserves addresses on the device.
   *
   * @throws {MoonBrightError} code `out-of-addresses` if none are granted
   */
  constructor(driver: Driver, options: AllocatorOptions = {}) {
    const { info } = driver;
    const { granularity } = info;
    this.driver = driver;
    this.budget = options.budget ?? Infinity;
    const profile = profileOf(info.backend);
    this.profile = profile;
    this.costs = options.costs ?? profile.costs;
    this.maxRetired = options.maxRetired ?? profile.maxRetired;
    this.growth = {
      ...growthOn(info, growthOf(options.policy ?? "default", granularity)),
      ...options.growth,
    };
    checkGrowth(this.growth, granularity);
    const watched = watchSettings(options, granularity);
    this.plain = info.plainReason === undefined
      ? undefined
      : new PlainMapper(driver, info.plainReason);
    this.mapper = this.plain ?? new Mapper(driver);
    this.arena = this.plain ? new PlainArena() : reserveArena(
      driver,
      checkBytes(
        options.addressSpace ?? profile.addressSpace,
        "addressSpace",
        Number.MAX_SAFE_INTEGER,
      ),
      granularity,
      {
        fresh: options.freshAddresses,
        renewable: profile.memoryFollowsAddresses,
      },
    );
    this.anchorBytes = profile.anchored && !this.plain
      ? anchor(driver, this.arena)
      : 0;
    this.extents = this.plain
      ? new PlainExtents()
      : new Extents(this.arena.base, granularity);
    this.streams = new Streams(driver);
    this.heap = new Heap(this.extents, this.streams, granularity);
    this.blocks = this.heap.blocks;
    this.flushQueue = new FlushQueue(
      this.arena,
      this.extents,
      this.streams,
      this.mapper,
    );
    this.pending = new PendingFrees(this);
    this.graphs = new GraphHolds(this.blocks);
    this.watch = watched && new Watch(this, watched);
  }

  /**
   * Allocates `size` bytes (a positive multiple of 512) for `stream`; returns the
   * block's record. `requested` is what the user asked for.
   *
   * @throws {OutOfMemoryError} if no way is left; nothing has changed then
   */
  allocate(requested: number, size: number, stream: number): number {
    const { counters } = this;
    let id: number;
    if (counters.reuses % TIMED_EVERY === 0) {
      id = this.#takeTimed(stream, size);
    } else id = this.heap.take(stream, size);
    if (id !== 0) {
      counters.reuses++;
      counters.reuseBytes += requested;
    } else id = allocateSlowly(this, requested, size, stream);
    this.#count(id, requested, size);
    return id;
  }

  /**
   * Allocates a block that can grow in place up to `maxSize`; both sizes are multiples
   * of the granularity. Returns the block's record.
   *
   * @throws {OutOfMemoryError} if no way is left; nothing has changed then
   */
  allocateGrowable(
    requested: number,
    size: number,
    maxSize: number,
    stream: number,
  ): number {
    const place = { size, room: maxSize, guard: 0, stream };
    const id = allocateAlone(this, requested, place);
    this.blocks.flags[id]! |= BlockFlag.GROWABLE;
    this.growables.add(id, this.blocks.address[id]! + maxSize);
    this.#count(id, requested, size);
    return id;
  }

  /**
   * Allocates a block that is quarantined when it is freed; with `maxSize` it can grow to
   * that in place. Returns the block's record.
   *
   * @throws {OutOfMemoryError} if no way is left; nothing has changed then
   */
  allocateForQuarantine(
    quarantine: Quarantine,
    requested: number,
    maxSize: number | undefined,
    stream: number,
  ): number {
    const id = quarantine.allocate(requested, maxSize, stream);
    this.#count(id, requested, this.blocks.size[id]!);
    return id;
  }

  /**
   * Frees a live block, last used on `stream` (its own by default) before now.
   *
   * @throws {InvalidBlockError} if the block is not live
   * @throws {CanaryError} if the block is watched and was overrun; it stays live then
   */
  free(id: number, generation: number, stream?: number): void {
    const { blocks, counters } = this;
    if (!isLive(blocks, id, generation)) {
      throw notLive("free", this.watch?.history.ofOwner(id, generation));
    }
    const size = blocks.size[id]!;
    const requested = blocks.requested[id]!;
    const last = stream ?? blocks.stream[id]!;
    const address = blocks.address[id]!;
    if (blocks.flags[id] !== 0) this.#freeFlagged(id, last);
    else if (size <= LARGEST_UNMERGED) this.heap.giveBack(id, last);
    else this.heap.release(id, last);
    if (this.#byAddress !== undefined) this.#byAddress.delete(address);
    if (this.observer !== undefined) {
      this.observer.freed(address, requested, last);
    }
    counters.frees++;
    counters.liveBlocks--;
    counters.live -= size;
    counters.requested -= requested;
  }

  /** The record of the live block that starts at an address, 0 if there is none. */
  recordAt(address: number): number {
    if (!this.#byAddress) {
      this.#byAddress = new Map();
      const { blocks } = this;
      for (let id = 1; id < blocks.end; id++) {
        if (blocks.state[id] === BlockState.LIVE) {
          this.#byAddress.set(blocks.address[id]!, id);
        }
      }
    }
    return this.#byAddress.get(address) ?? 0;
  }

  /**
   * Notes that work on `stream` uses a live block: the stream waits for the block's own
   * on the device, and the block's free will wait for it. While the stream is capturing,
   * the graph will hold the block.
   */
  useOn(id: number, stream: number): void {
    const own = this.blocks.stream[id]!;
    if (stream !== own && !this.pending.isUser(id, stream)) {
      this.streams.join(stream, own);
      this.pending.use(id, stream);
    }
    if (this.streams.clocks[stream]!.capturing) this.graphs.note(stream, id);
  }

  /**
   * Lets go of the blocks of a graph that is gone; its launches used them until, by
   * stream, the epochs given.
   */
  dropGraph(
    ids: ReadonlySet<number>,
    launches: ReadonlyMap<number, number>,
  ): void {
    this.pending.usedUntil(ids, launches);
    this.watch?.quarantine?.usedUntil(ids, launches);
    this.graphs.drop(ids);
  }

  /** Bytes of freed blocks whose memory graphs may still use. */
  get capturedBytes(): number {
    return this.pending.capturedBytes +
      (this.watch?.quarantine?.capturedBytes ?? 0);
  }

  /** Starts all counts anew; nothing may be live. */
  forgetCounts(): void {
    this.counters = new Counters();
    this.mapper.forgetCounts();
    this.flushQueue.flushes = 0;
  }

  /** Makes a stream; returns its number. */
  createStream(): number {
    const stream = this.streams.create();
    this.heap.index(stream);
    return stream;
  }

  /** Waits for a stream and destroys it; its blocks follow the default stream from then on. */
  destroyStream(stream: number): void {
    const { blocks, heap, streams, pending } = this;
    streams.destroy(stream);
    pending.forgetStream(stream);
    heap.adopt(0);
    for (let id = 1; id < blocks.end; id++) {
      if (blocks.state[id] !== 0 && blocks.stream[id] === stream) {
        blocks.stream[id] = 0;
      }
    }
  }

  /** Throws if any table contradicts itself or another. For tests. */
  assertInvariants(): void {
    this.arena.assertInvariants();
    this.extents.assertInvariants();
    this.heap.assertInvariants();
    this.flushQueue.assertInvariants();
    const { blocks, counters } = this;
    let live = 0;
    let requested = 0;
    let count = 0;
    let pending = 0;
    let padding = 0;
    for (let id = 1; id < blocks.end; id++) {
      if (blocks.state[id] === BlockState.PENDING) pending += blocks.size[id]!;
      if (blocks.state[id] === BlockState.PADDING) padding += blocks.size[id]!;
      if (blocks.state[id] !== BlockState.LIVE) continue;
      live += blocks.size[id]!;
      requested += blocks.requested[id]!;
      count++;
    }
    if (
      live !== counters.live || count !== counters.liveBlocks ||
      requested !== counters.requested || pending !== counters.pending
    ) {
      throw new Error(
        `${count} live blocks of ${live} bytes, counted otherwise`,
      );
    }
    let covered = this.extents.looseBytes;
    for (const index of this.heap.free) covered += index.bytes;
    covered += live + pending + padding;
    if (covered !== this.extents.totalBytes) {
      throw new Error("blocks and loose extents don't add up to all extents");
    }
  }

  #count(id: number, requested: number, size: number): void {
    const { counters } = this;
    if (this.#byAddress !== undefined) {
      this.#byAddress.set(this.blocks.address[id]!, id);
    }
    this.blocks.requested[id] = requested;
    if (this.observer !== undefined) this.observer.allocated(id);
    counters.requested += requested;
    counters.liveBlocks++;
    if ((counters.live += size) > counters.peakLive) {
      counters.peakLive = counters.live;
    }
  }

  #takeTimed(stream: number, size: number): number {
    const start = performance.now();
    const id = this.heap.take(stream, size);
    if (id !== 0) {
      this.counters.reuseTimedNs += (performance.now() - start) * 1e6;
      this.counters.reuseTimed++;
    }
    return id;
  }

  #freeFlagged(id: number, stream: number): void {
    const { blocks } = this;
    this.copies.assertNone(blocks, id, "free");
    // First, since these can fail and must then have changed nothing.
    const watch = hasFlag(blocks, id, BlockFlag.WATCHED)
      ? this.watch
      : undefined;
    watch?.beforeFree(id, stream);
    const deferred = hasFlag(blocks, id, BlockFlag.SHARED) ||
      hasFlag(blocks, id, BlockFlag.CAPTURED);
    if (watch?.quarantine) watch.quarantine.add(id, stream);
    else if (deferred) this.pending.add(id, stream);
    watch?.freed(id);
    if (hasFlag(blocks, id, BlockFlag.NAMED)) this.names.delete(id);
    if (watch?.quarantine) return watch.quarantine.trySettle();
    if (hasFlag(blocks, id, BlockFlag.GROWABLE)) {
      const end = blocks.address[id]! + blocks.size[id]!;
      this.flushQueue.abandon(end, this.growables.remove(id) - end);
    }
    if (!deferred) this.heap.release(id, stream);
  }
}

/** Drops the anchor; the arena is given back if that fails. */
function anchor(driver: Driver, arena: Arena): number {
  try {
    return dropAnchor(driver, arena);
  } catch (error) {
    try {
      driver.unreserve(arena.base);
    } catch {
      // A device that refuses this too has a better reason in the first error.
    }
    throw error;
  }
}

/** @throws {RangeError} if a growth policy can't be followed */
function checkGrowth(growth: GrowthPolicy, granularity: number): void {
  const { extentSize, ...rest } = growth;
  const fits = extentSize === Infinity || extentSize % granularity === 0;
  if (!(extentSize >= granularity) || !fits) {
    throw new RangeError(
      `Cannot use growth.extentSize: ${extentSize} is no multiple of the granularity, ${granularity} bytes`,
    );
  }
  for (const [name, value] of Object.entries(rest)) {
    if (!(value >= 0)) {
      throw new RangeError(
        `Cannot use growth.${name}: ${value} is not a positive number`,
      );
    }
  }
}

/** The error for an operation on a block that is not live, and its story if it is known. */
export function notLive(
  operation: string,
  story?: BlockStory,
): InvalidBlockError {
  const told = story === undefined ? "" : `: a ${tellStory(story)}`;
  return new InvalidBlockError(
    operation,
    `Cannot ${operation}: the block is not live; it was already freed, perhaps through another owner${told}`,
  );
}
