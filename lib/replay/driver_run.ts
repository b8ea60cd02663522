/**
 * Replaying a workload through the vendor's own allocators, for comparison.
 *
 * @module
 */

import type { TimedDriver } from "../bench/timed_driver.ts";
import { DriverError } from "../errors.ts";
import { RequestLog, type TimedRun } from "./timed_run.ts";
import { TimelineRecorder } from "./timeline.ts";
import type { Workload } from "./workload.ts";

/** An allocator of the vendor's. */
export interface VendorAllocator {
  /** Its name in the report. */
  readonly name: "plain" | "pool";
  /** Allocates; throws a `DriverError` of code `out-of-memory` if it can't. */
  alloc(bytes: number, stream: number): number;
  /** Frees. */
  free(address: number, stream: number): void;
  /** Gives everything back and forgets the streams. */
  end(): void;
}

/** The driver's plain allocator. */
export function plainAllocator(driver: TimedDriver): VendorAllocator {
  return {
    name: "plain",
    alloc: (bytes) => driver.plainAlloc(bytes),
    free: (address) => driver.plainFree(address),
    end() {},
  };
}

/** The driver's stream-ordered pool, with as many streams as the workload has. */
export function poolAllocator(
  driver: TimedDriver,
  workload: Workload,
): VendorAllocator {
  const streams = workload.streams.map((_, index) =>
    index === 0 ? 0 : driver.createStream()
  );
  driver.poolTrim();
  return {
    name: "pool",
    alloc: (bytes, stream) => driver.poolAlloc(bytes, streams[stream]!),
    free: (address, stream) => driver.poolFree(address, streams[stream]!),
    end() {
      for (const stream of streams.slice(1)) driver.destroyStream(stream);
      driver.synchronize();
      driver.poolTrim();
    },
  };
}

/** Steps between two calls of `breathe`. */
const BREATHE_EVERY = 1024;

/** Replays a workload through an allocator of the vendor's, then gives everything back. */
export async function replayOnVendor(
  allocator: VendorAllocator,
  workload: Workload,
  device: string,
  breathe: () => Promise<void>,
): Promise<TimedRun> {
  const { steps, block: blockOf, isAlloc, stream: streamOf, bytes } = workload;
  const addresses = new Float64Array(workload.blocks).fill(NaN);
  const lastStream = new Uint32Array(workload.blocks);
  const log = new RequestLog(workload);
  const timeline = new TimelineRecorder(workload);
  try {
    for (let step = 0; step < steps; step++) {
      if (step % BREATHE_EVERY === 0) await breathe();
      const index = blockOf[step]!;
      const size = bytes[index]!;
      const stream = streamOf[step]!;
      if (isAlloc[step] === 1) {
        const start = performance.now();
        try {
          addresses[index] = allocator.alloc(size, stream);
          lastStream[index] = stream;
          log.allocated(index, size, (performance.now() - start) * 1e6, "grow");
        } catch (error) {
          if (!isOutOfMemory(error)) throw error;
          log.refused(step, size, error.message);
        }
      } else if (!Number.isNaN(addresses[index]!)) {
        const start = performance.now();
        allocator.free(addresses[index]!, stream);
        log.freed(size, (performance.now() - start) * 1e6);
        addresses[index] = NaN;
      }
      timeline.note(step, log.live, NaN);
    }
  } finally {
    addresses.forEach((address, index) => {
      if (!Number.isNaN(address)) allocator.free(address, lastStream[index]!);
    });
    allocator.end();
  }
  const timed = log.finish({
    allocator: allocator.name,
    policy: undefined,
    device,
    budget: undefined,
    // The vendor's allocators don't tell what they hold.
    mappedPeak: undefined,
    driverNs: 0,
    calls: {},
    timeline: { ...timeline.timeline, mapped: [] },
    map: undefined,
  });
  timed.run.driverNs = timed.run.totalNs;
  return timed;
}

function isOutOfMemory(error: unknown): error is DriverError {
  return error instanceof DriverError && error.code === "out-of-memory";
}
