/**
 * What a benchmark runs on.
 *
 * @module
 */

import type { Kernel } from "../kernel.ts";
import type { DriverCall } from "../mapper.ts";
import type { MoonBright } from "../moonbright.ts";
import type { Series } from "./samples.ts";
import type { TimedDriver } from "./timed_driver.ts";

/** One MiB. */
export const MIB: number = 1024 ** 2;
/** One GiB. */
export const GIB: number = 1024 ** 3;

/** What the benchmarks run on. */
export interface BenchContext {
  /** An instance of its own for the benchmarks: they trim it. */
  mb: MoonBright;
  /** Its driver, with baselines. */
  driver: TimedDriver;
  /** Bytes that the device had free at the beginning. */
  available: number;
  /** The kernel that keeps a stream busy for a number of nanoseconds. */
  spin: Kernel;
  /** The kernel that does nothing. */
  empty: Kernel;
  /** The image of a set of paging kernels for the device. */
  images(
    name: "paging_entries" | "paging_copy" | "paging_read",
  ): Uint8Array;
  /** Whether to take a tenth of the samples, and leave out what takes long. */
  quick: boolean;
  /** Says what is being measured; throws if the run is to end. */
  step(what: string): Promise<void>;
}

/** A benchmark: measures something, beside its peers. */
export type Benchmark = (c: BenchContext) => Promise<Series[]>;

/** Number of samples to take where a full run takes `full`. */
export function sampleCount(c: BenchContext, full: number): number {
  return c.quick ? Math.max(3, Math.ceil(full / 10)) : full;
}

/** Sizes of the latency tables that fit the device, in bytes. */
export function latencySizes(c: BenchContext): number[] {
  return [512, 64 * 1024, 2 * MIB, 16 * MIB, 128 * MIB, GIB, 8 * GIB]
    .filter((size) => size <= c.available / 2);
}

/** Collects the driver calls that the instance makes while `run` runs. */
export function observeCalls(mb: MoonBright, run: () => void): DriverCall[] {
  const calls: DriverCall[] = [];
  const { mapper } = mb.allocator;
  const { observer } = mapper;
  mapper.observer = (call) => calls.push(call);
  try {
    run();
  } finally {
    mapper.observer = observer;
  }
  return calls;
}
