/**
 * Extents from the driver's plain allocator, for devices that can't map memory at chosen
 * addresses. Each is where the driver puts it, for all its life: a request is served by
 * reuse or by a new extent. Nothing is stitched, extended or grown in place, and a block
 * lies within one extent.
 *
 * @module
 */

import type { Allocator } from "./allocator.ts";
import { Arena } from "./arena.ts";
import type { Driver } from "./driver.ts";
import { DriverError, MoonBrightError } from "./errors.ts";
import { Extents } from "./extents.ts";
import { Mapper } from "./mapper.ts";
import { BLOCK_ALIGNMENT, roundUp } from "./sizes.ts";

/** A driver with a plain allocator. */
export interface PlainDriver extends Driver {
  /** Allocates with the driver's plain allocator; returns the address. */
  plainAlloc(size: number): number;
  /** Frees what `plainAlloc` gave, after all work of the device. */
  plainFree(address: number): void;
}

/** Whether a device can't map memory, and memory comes from its driver's plain allocator. */
export function isPlain(driver: Driver): driver is PlainDriver {
  return driver.info.plainReason !== undefined && hasPlainAllocator(driver);
}

function hasPlainAllocator(driver: Driver): driver is PlainDriver {
  return "plainAlloc" in driver && "plainFree" in driver;
}

/** No addresses: the driver chooses them, and takes them back with the memory. */
export class PlainArena extends Arena {
  /** Nothing is ever taken from it. */
  constructor() {
    super(0, 0);
  }

  /** Nothing comes back: the addresses of an extent stay its own. */
  override recycle(): void {}
}

/** Extents found by address in a sorted list: they lie anywhere. */
export class PlainExtents extends Extents {
  /** Slots of the extents that are in use, by address. */
  readonly #byAddress: number[] = [];

  /** An empty table. */
  constructor() {
    super(0, BLOCK_ALIGNMENT);
  }

  /** Slot of the extent that holds an address, 0 if none does. */
  override at(address: number): number {
    const slot = this.#byAddress[this.#indexAfter(address) - 1];
    if (slot === undefined) return 0;
    return address < this.address[slot]! + this.size[slot]! ? slot : 0;
  }

  /** A list needs no room made for it. */
  protected override prepareIndex(): void {}

  /** Lists an extent or, for the slot 0, takes the one at the address out. */
  protected override mark(address: number, _size: number, slot: number): void {
    const after = this.#indexAfter(address);
    if (slot === 0) this.#byAddress.splice(after - 1, 1);
    else this.#byAddress.splice(after, 0, slot);
  }

  /** Bytes of the listed extents. */
  protected override indexedBytes(): number {
    return this.#byAddress.reduce((sum, slot) => sum + this.size[slot]!, 0);
  }

  /** Index of the first listed extent behind an address. */
  #indexAfter(address: number): number {
    let low = 0;
    let high = this.#byAddress.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.address[this.#byAddress[middle]!]! > address) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Allocates and frees plain extents; mapping and unmapping them is nothing. */
export class PlainMapper extends Mapper {
  /** Why extents can't be mapped, and what to do about it. */
  readonly reason: string;
  readonly #driver: PlainDriver;
  /** Addresses of extents by id. */
  readonly #addresses = new Map<number, number>();
  #lastId = 0;

  /** @throws {MoonBrightError} code `unsupported` if the driver has no plain allocator */
  constructor(driver: Driver, reason: string) {
    super(driver);
    if (!hasPlainAllocator(driver)) {
      throw new MoonBrightError(
        "unsupported",
        "open",
        `Cannot use the device "${driver.info.name}": it can't map memory (${reason}), and its driver has no plain allocator`,
      );
    }
    this.#driver = driver;
    this.reason = reason;
  }

  /** Allocates an extent; returns its id. */
  create(size: number): number {
    const start = performance.now();
    const address = this.#driver.plainAlloc(size);
    this.note("create", 1, size, (performance.now() - start) * 1e6);
    this.#addresses.set(++this.#lastId, address);
    return this.#lastId;
  }

  /** Address of an extent, undefined if it was freed. */
  addressOf(id: number): number | undefined {
    return this.#addresses.get(id);
  }

  /** Does nothing: an extent stays where it is until it is released. */
  override unmap(): void {}

  /**
   * Frees extents, but those that an earlier call freed before it failed.
   *
   * @throws {DriverError} if the driver refuses; the call can be made again
   */
  override release(extents: readonly number[], bytes: number): void {
    const start = performance.now();
    for (const id of extents) {
      const address = this.#addresses.get(id);
      if (address === undefined) continue;
      this.#driver.plainFree(address);
      this.#addresses.delete(id);
    }
    const ns = (performance.now() - start) * 1e6;
    this.note("release", extents.length, bytes, ns);
  }
}

/**
 * Allocates `size` bytes for `stream` from an extent that lies unused, or from a new one;
 * returns the block's record, or 0 if budget or device have no room.
 *
 * @throws {DriverError} if the driver fails for another reason; nothing has changed then
 */
export function growPlainly(
  a: Allocator,
  plain: PlainMapper,
  size: number,
  stream: number,
  budgetLeft: number,
): number {
  const slot = findLoose(a, plain, size, stream) ||
    createExtent(a, plain, size, budgetLeft);
  if (slot === 0) return 0;
  const { extents, heap } = a;
  const address = plain.addressOf(extents.driverId[slot]!)!;
  extents.place(slot, address);
  const free = heap.add(address, extents.size[slot]!, stream, false);
  return heap.takeBlock(free, stream, size);
}

/** The smallest extent that was emptied but could not be released, 0 if none fits. */
function findLoose(
  { extents, streams }: Allocator,
  plain: PlainMapper,
  size: number,
  stream: number,
): number {
  let best = 0;
  for (const slot of extents.loose) {
    const bytes = extents.size[slot]!;
    if (bytes < size || (best !== 0 && bytes >= extents.size[best]!)) continue;
    // A retired one is still listed for the next flush.
    if (extents.retired[slot]! > 0) continue;
    if (plain.addressOf(extents.driverId[slot]!) === undefined) continue;
    const visible = streams.isVisibleTo(
      stream,
      extents.lastStream[slot]!,
      extents.lastEpoch[slot]!,
    );
    if (visible) best = slot;
  }
  return best;
}

/** Allocates an extent, larger than asked for where there is room; returns its slot or 0. */
function createExtent(
  a: Allocator,
  plain: PlainMapper,
  size: number,
  budgetLeft: number,
): number {
  const { extents, counters, growth, driver } = a;
  const { granularity } = driver.info;
  const exact = roundUp(size, granularity);
  const generous = roundUp(Math.max(size, growth.least), granularity);
  for (const bytes of new Set([generous, exact])) {
    if (bytes > budgetLeft) continue;
    extents.prepare(1, 0);
    a.blocks.prepare(2);
    const id = tryCreate(plain, bytes);
    if (id === 0) continue;
    const slot = extents.add(id, bytes);
    counters.peakMapped = Math.max(counters.peakMapped, extents.totalBytes);
    return slot;
  }
  return 0;
}

/** 0 if the device has no memory left. */
function tryCreate(plain: PlainMapper, bytes: number): number {
  try {
    return plain.create(bytes);
  } catch (error) {
    if (error instanceof DriverError && error.code === "out-of-memory") {
      return 0;
    }
    throw error;
  }
}
