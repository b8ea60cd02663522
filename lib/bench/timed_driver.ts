/**
 * A driver that can also time the vendor's own allocators and calls, in C loops that
 * don't count the cost of crossing: the peers of every benchmark.
 *
 * @module
 */

import type { Driver } from "../driver.ts";
import { MoonBrightError } from "../errors.ts";

/** Nanoseconds of each allocation and each free of a timed loop. */
export interface PairTimes {
  /** Per allocation. */
  allocNs: Float64Array;
  /** Per free. */
  freeNs: Float64Array;
}

/** Nanoseconds of each stage of making and unmaking a mapping, per round. */
export interface VmmTimes {
  /** Creating all extents. */
  createNs: Float64Array;
  /** Mapping all extents. */
  mapNs: Float64Array;
  /** The one set-access call. */
  accessNs: Float64Array;
  /** The one unmap call. */
  unmapNs: Float64Array;
  /** Releasing all extents. */
  releaseNs: Float64Array;
}

/** A driver with baselines. */
export interface TimedDriver extends Driver {
  /** Allocates with the driver's plain allocator. */
  plainAlloc(size: number): number;
  /** Frees what `plainAlloc` gave. */
  plainFree(address: number): void;
  /** Allocates from the driver's stream-ordered pool. */
  poolAlloc(size: number, stream: number): number;
  /** Frees what `poolAlloc` gave, in the order of a stream. */
  poolFree(address: number, stream: number): void;
  /** Gives what the pool keeps back to the device. */
  poolTrim(): void;
  /** Times plain allocation and free, pair by pair. */
  timePlain(size: number, n: number): PairTimes;
  /** Times the driver's stream-ordered pool; cold: emptied before each pair. */
  timePool(
    size: number,
    stream: number,
    warm: boolean,
    n: number,
  ): PairTimes;
  /** Times the raw calls for `size` bytes made of extents of `extentSize`. */
  timeVmm(size: number, extentSize: number, n: number): VmmTimes;
  /**
   * Times kernel launches in a loop on another thread; with `synchronize` each sample
   * holds the wait for the kernel's end.
   */
  timeLaunch(
    func: number,
    stream: number,
    args: Uint8Array,
    synchronize: boolean,
    n: number,
  ): Promise<Float64Array>;
}

/**
 * A driver as one with baselines.
 *
 * @throws {MoonBrightError} code `unsupported` if it has none
 */
export function asTimedDriver(driver: Driver): TimedDriver {
  if ("timePlain" in driver) return driver as TimedDriver;
  throw new MoonBrightError(
    "unsupported",
    "bench",
    `Cannot benchmark the device "${driver.info.backend}": it has no allocator of its own to compare with`,
  );
}
