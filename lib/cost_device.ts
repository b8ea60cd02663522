/**
 * A device without memory: its calls succeed, do nothing, and add up what they would
 * cost. For rehearsing the policy, and for replaying workloads where no device is.
 *
 * @module
 */

import { type CostModel, costNs, type OperationCost } from "./cost_model.ts";
import type { AddressRange, DeviceInfo, Driver, MapTimes } from "./driver.ts";
import { MoonBrightError } from "./errors.ts";

/** Where its addresses begin. */
const FIRST_ADDRESS = 2 ** 40;
const NO_TIMES: MapTimes = { mapNs: 0, accessNs: 0 };

/** A device that only counts costs. Work in its streams is done at once. */
export class CostDevice implements Driver {
  /** Facts about the device. */
  readonly info: DeviceInfo;
  /** Nanoseconds that all calls so far would have taken. */
  spentNs = 0;
  readonly #costs: CostModel | undefined;
  readonly #sizes: number[] = [];
  #nextStream = 1;
  #nextEvent = 0;
  #nextAddress = FIRST_ADDRESS;
  #held = 0;

  /** A device with the given costs and granularity; calls are free of cost if there are none. */
  constructor(granularity: number, costs?: CostModel) {
    this.#costs = costs;
    this.info = {
      backend: "model",
      ordinal: 0,
      name: "costs only, without memory",
      architecture: "none",
      totalMemory: 2 ** 46,
      granularity,
      processors: 1,
      driverVersion: 0,
      pools: false,
    };
  }

  /** Bytes free and in all. */
  memoryInfo(): { free: number; total: number } {
    const total = this.info.totalMemory;
    return { free: total - this.#held, total };
  }
  /** Nothing is ever left to wait for. */
  synchronize(): void {}
  /** Nothing is held. */
  close(): void {}

  /** Hands out addresses. */
  reserve(size: number): number {
    const address = this.#nextAddress;
    this.#nextAddress += size;
    return address;
  }
  /** Addresses are not used again. */
  unreserve(): void {}
  /** Counts the cost of creating. */
  createExtents(sizes: readonly number[]): number[] {
    const ids: number[] = [];
    let bytes = 0;
    for (const size of sizes) {
      bytes += size;
      ids.push(this.#sizes.push(size) - 1);
    }
    this.#held += bytes;
    this.#spend(this.#costs?.create, sizes.length, bytes);
    return ids;
  }
  /** Counts the cost of releasing. */
  releaseExtents(extents: readonly number[]): void {
    const bytes = this.#bytesOf(extents);
    this.#held -= bytes;
    this.#spend(this.#costs?.release, extents.length, bytes);
  }
  /** Counts the cost of mapping and setting access. */
  map(_address: number, extents: readonly number[]): MapTimes {
    this.#spend(this.#costs?.map, extents.length, this.#bytesOf(extents));
    return NO_TIMES;
  }
  /** Does nothing. */
  setAccess(): void {}
  /** Counts the cost of unmapping, by range. */
  unmap(ranges: readonly AddressRange[]): void {
    let bytes = 0;
    for (const range of ranges) bytes += range.size;
    this.#spend(this.#costs?.unmap, ranges.length, bytes);
  }

  /** Numbers streams. */
  createStream(): number {
    return this.#nextStream++;
  }
  /** Does nothing. */
  destroyStream(): void {}
  /** Nothing is ever left to wait for. */
  synchronizeStream(): void {}
  /** There is no handle. */
  streamHandle(): bigint {
    return 0n;
  }
  /** Nothing is ever left to wait for. */
  waitEvent(): void {}
  /** Numbers events. */
  createEvent(): number {
    return this.#nextEvent++;
  }
  /** Does nothing. */
  destroyEvent(): void {}
  /** Does nothing. */
  recordEvent(): void {}
  /** All work is done at once. */
  queryEvent(): boolean {
    return true;
  }
  /** Nothing is ever left to wait for. */
  synchronizeEvent(): void {}
  /** No time passes. */
  elapsedMs(): number {
    return 0;
  }
  /** Nothing captures. */
  isCapturing(): boolean {
    return false;
  }

  /** There is no memory. */
  fill(): never {
    throw noMemory("fill");
  }
  /** There is no memory. */
  copyIn(): never {
    throw noMemory("write");
  }
  /** There is no memory. */
  copyOut(): never {
    throw noMemory("read");
  }
  /** There is no memory. */
  copy(): never {
    throw noMemory("copy");
  }
  /** There is no memory. */
  allocPinned(): never {
    throw noMemory("allocate page-locked memory");
  }
  /** There is no memory. */
  freePinned(): never {
    throw noMemory("free page-locked memory");
  }
  /** There is no memory. */
  writePinned(): never {
    throw noMemory("write page-locked memory");
  }
  /** There is no memory. */
  readPinned(): never {
    throw noMemory("read page-locked memory");
  }
  /** There are no graphs. */
  beginCapture(): never {
    throw noMemory("capture");
  }
  /** There are no graphs. */
  endCapture(): never {
    throw noMemory("capture");
  }
  /** There are no graphs. */
  launchGraph(): never {
    throw noMemory("launch a graph");
  }
  /** There are no graphs. */
  destroyGraph(): never {
    throw noMemory("destroy a graph");
  }
  /** There are no kernels. */
  loadModule(): never {
    throw noMemory("load a module");
  }
  /** There are no kernels. */
  unloadModule(): never {
    throw noMemory("unload a module");
  }
  /** There are no kernels. */
  getFunction(): never {
    throw noMemory("find a kernel");
  }
  /** There are no kernels. */
  launch(): never {
    throw noMemory("launch");
  }

  #bytesOf(extents: readonly number[]): number {
    let bytes = 0;
    for (const id of extents) bytes += this.#sizes[id]!;
    return bytes;
  }

  #spend(
    cost: OperationCost | undefined,
    extents: number,
    bytes: number,
  ): void {
    if (cost) this.spentNs += costNs(cost, extents, bytes);
  }
}

function noMemory(operation: string): MoonBrightError {
  return new MoonBrightError(
    "unsupported",
    operation,
    `Cannot ${operation} on a device that only counts costs; open a real one, such as "host"`,
  );
}
