/**
 * Replaying what the recorded allocator asked of its driver: its segments.
 *
 * @module
 */

import type { TimedDriver } from "../bench/timed_driver.ts";
import { DriverError } from "../errors.ts";
import { roundUp } from "../sizes.ts";
import type { SegmentStep } from "./recorded_memory.ts";
import { RequestLog, type TimedRun } from "./timed_run.ts";
import { TimelineRecorder } from "./timeline.ts";
import type { Workload } from "./workload.ts";

/**
 * Replays the recorded allocator's segments: plain ones through the driver's plain
 * allocator, and what it mapped within expandable segments as an extent each, mapped
 * at a fresh address. Only the driver's part is timed: the recorded allocator's own
 * work in between is not known. Gives everything back at the end.
 */
export async function replaySegments(
  driver: TimedDriver,
  workload: Workload,
  device: string,
  breathe: () => Promise<void>,
): Promise<TimedRun> {
  const { segmentSteps, steps } = workload;
  using memory = new SegmentMemory(driver, segmentSteps);
  const log = new RequestLog({
    blocks: segmentSteps.filter(({ take }) => take).length,
    steps: segmentSteps.length,
  });
  const timeline = new TimelineRecorder(workload);
  let next = 0;
  let taken = 0;
  let live = 0;
  for (let step = 0; step < steps; step++) {
    while (next < segmentSteps.length && segmentSteps[next]!.step <= step) {
      await breathe();
      const segment = segmentSteps[next++]!;
      const start = performance.now();
      if (segment.take) {
        try {
          memory.take(segment);
        } catch (error) {
          const full = error instanceof DriverError &&
            error.code === "out-of-memory";
          if (!full) throw error;
          log.refused(step, segment.bytes, error.message);
          continue;
        }
        const ns = (performance.now() - start) * 1e6;
        log.allocated(taken++, segment.bytes, ns, "grow");
      } else if (memory.giveBack(segment)) {
        log.freed(segment.bytes, (performance.now() - start) * 1e6);
      }
    }
    const size = workload.bytes[workload.block[step]!]!;
    live += workload.isAlloc[step] === 1 ? size : -size;
    timeline.note(step, live, log.live);
  }
  const timed = log.finish({
    allocator: "segments",
    policy: undefined,
    device,
    budget: undefined,
    mappedPeak: log.livePeak,
    driverNs: 0,
    calls: {},
    timeline: timeline.timeline,
    map: undefined,
  });
  timed.run.driverNs = timed.run.totalNs;
  timed.run.livePeak = workload.figures.livePeak;
  return timed;
}

/** The segments that are held, by their recorded address. */
class SegmentMemory implements Disposable {
  readonly #driver: TimedDriver;
  readonly #plain = new Map<number, number>();
  readonly #mapped = new Map<
    number,
    { address: number; size: number; extent: number }
  >();
  readonly #base: number | undefined;
  #frontier = 0;

  constructor(driver: TimedDriver, steps: readonly SegmentStep[]) {
    this.#driver = driver;
    let bytes = 0;
    for (const step of steps) {
      if (step.take && step.mapped) bytes += this.#rounded(step.bytes);
    }
    if (bytes > 0) this.#base = this.#frontier = driver.reserve(bytes);
  }

  take({ address, bytes, mapped }: SegmentStep): void {
    if (!mapped) {
      this.#plain.set(address, this.#driver.plainAlloc(bytes));
      return;
    }
    const size = this.#rounded(bytes);
    const [extent] = this.#driver.createExtents([size]);
    const at = this.#frontier;
    this.#frontier += size;
    try {
      this.#driver.map(at, [extent!]);
    } catch (error) {
      this.#driver.releaseExtents([extent!]);
      throw error;
    }
    this.#mapped.set(address, { address: at, size, extent: extent! });
  }

  /** False if nothing is held at the address: its taking was refused. */
  giveBack({ address }: SegmentStep): boolean {
    const plain = this.#plain.get(address);
    if (plain !== undefined) {
      this.#driver.plainFree(plain);
      return this.#plain.delete(address);
    }
    const mapping = this.#mapped.get(address);
    if (!mapping) return false;
    this.#driver.unmap([mapping]);
    this.#driver.releaseExtents([mapping.extent]);
    return this.#mapped.delete(address);
  }

  [Symbol.dispose](): void {
    for (const address of this.#plain.values()) this.#driver.plainFree(address);
    for (const mapping of this.#mapped.values()) {
      this.#driver.unmap([mapping]);
      this.#driver.releaseExtents([mapping.extent]);
    }
    if (this.#base !== undefined) this.#driver.unreserve(this.#base);
  }

  #rounded(bytes: number): number {
    return roundUp(bytes, this.#driver.info.granularity);
  }
}
