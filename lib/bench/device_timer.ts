/**
 * Device time of launches, without the host's.
 *
 * @module
 */

import type { BenchContext } from "./context.ts";

/** What the host takes at most to queue a launch. */
const QUEUE_NS = 10_000;

/** What the host takes at most to begin: to record an event, and to compile code anew. */
const BEGIN_NS = 100_000;

/** Times launches in the default stream by two events. */
export class DeviceTimer implements Disposable {
  readonly #c: BenchContext;
  readonly #start: number;
  readonly #end: number;

  /** A timer on the device of the benchmarks. */
  constructor(c: BenchContext) {
    this.#c = c;
    this.#start = c.driver.createEvent(true);
    this.#end = c.driver.createEvent(true);
  }

  /** Nanoseconds that the device takes for each of `count` launches, one after another. */
  time(count: number, launch: () => void): number {
    const { driver, spin } = this.#c;
    // Held back until all are queued: a device that waits for launches would be timed at
    // the host's pace.
    const holdNs = BigUint64Array.of(BigInt(BEGIN_NS + count * QUEUE_NS));
    driver.launch(
      spin.driverId,
      { grid: [1], block: [1] },
      new Uint8Array(holdNs.buffer),
      0,
    );
    driver.recordEvent(this.#start, 0);
    for (let i = 0; i < count; i++) launch();
    driver.recordEvent(this.#end, 0);
    driver.synchronizeEvent(this.#end);
    return driver.elapsedMs(this.#start, this.#end) * 1e6 / count;
  }

  /** Destroys the events. */
  [Symbol.dispose](): void {
    this.#c.driver.destroyEvent(this.#start);
    this.#c.driver.destroyEvent(this.#end);
  }
}
