/**
 * What each stream is known to have finished.
 *
 * Events of a stream are numbered from 1. A block freed when `recorded` events had
 * been recorded carries the epoch `recorded`: event number epoch + 1 is the first to
 * come after its last use. Freeing therefore needs no driver call; an event is
 * recorded only when someone wants to know.
 *
 * @module
 */

import type { Driver } from "./driver.ts";
import { MoonBrightError } from "./errors.ts";

interface Outstanding {
  number: number;
  event: number;
}

/** One stream's clock. */
export interface StreamClock {
  /** The driver's id. */
  driverId: number;
  /** Whether the slot is in use. */
  open: boolean;
  /** Whether it is capturing: no event can be recorded in it until that ends. */
  capturing: boolean;
  /** A capture that failed and that the driver has not ended, or whose graph it has kept. */
  abandoned: { graph: number | undefined } | undefined;
  /** Events recorded so far. */
  recorded: number;
  /** Number of the last event known to have passed. */
  completed: number;
  /** Per other stream: the last of its events that this stream waits for on the device. */
  waited: Map<number, number>;
  outstanding: Outstanding[];
}

/** The clocks of an instance's streams; 0 is the default stream. */
export class Streams {
  /** Clocks by stream number. */
  readonly clocks: StreamClock[] = [];
  readonly #driver: Driver;
  readonly #events: number[] = [];

  /** Clocks for the default stream alone. */
  constructor(driver: Driver) {
    this.#driver = driver;
    this.clocks.push(newClock(0));
  }

  /** Number of streams ever open at once. */
  get count(): number {
    return this.clocks.length;
  }

  /** Makes a stream; returns its number. */
  create(): number {
    const driverId = this.#driver.createStream();
    const closed = this.clocks.findIndex((clock) => !clock.open);
    if (closed >= 0) {
      const clock = this.clocks[closed]!;
      clock.driverId = driverId;
      clock.open = true;
      return closed;
    }
    return this.clocks.push(newClock(driverId)) - 1;
  }

  /** Waits for a stream and destroys it. Its numbers go on if the slot is used again. */
  destroy(stream: number): void {
    this.synchronize(stream);
    const clock = this.clocks[stream]!;
    this.#driver.destroyStream(clock.driverId);
    clock.open = false;
    clock.waited.clear();
    for (const other of this.clocks) other.waited.delete(stream);
  }

  /** Makes a stream capture. */
  beginCapture(stream: number): void {
    const clock = this.clocks[stream]!;
    this.#driver.beginCapture(clock.driverId);
    clock.capturing = true;
  }

  /**
   * Ends a stream's capture; returns the driver's id of the graph.
   *
   * @throws {DriverError} if that fails; `capturing` then says whether it has ended
   */
  endCapture(stream: number): number {
    const clock = this.clocks[stream]!;
    try {
      const graph = this.#driver.endCapture(clock.driverId);
      clock.capturing = false;
      return graph;
    } catch (error) {
      // A call that failed before it reached the stream has ended nothing.
      clock.capturing = this.#isStillCapturing(clock);
      throw error;
    }
  }

  /**
   * Ends a capture that failed. What the driver does not do now is tried again whenever the
   * stream is used.
   */
  abandonCapture(stream: number): void {
    const clock = this.clocks[stream]!;
    clock.abandoned = { graph: undefined };
    this.#endAbandoned(stream);
  }

  /**
   * The driver's id of a stream that is about to be used.
   *
   * @throws {MoonBrightError} code `driver` if the driver goes on with a capture that
   * failed: work put into it would never be done
   */
  use(stream: number, operation: string): number {
    const clock = this.clocks[stream]!;
    if (clock.abandoned && !this.#endAbandoned(stream)) {
      throw new MoonBrightError(
        "driver",
        operation,
        `Cannot ${operation}: a capture of the stream failed, and the driver does not end it; try again, or use another stream`,
      );
    }
    return clock.driverId;
  }

  /** Whether the stream does not capture any more. */
  #endAbandoned(stream: number): boolean {
    const clock = this.clocks[stream]!;
    const abandoned = clock.abandoned!;
    try {
      if (clock.capturing) abandoned.graph = this.endCapture(stream);
      if (abandoned.graph !== undefined) {
        this.#driver.destroyGraph(abandoned.graph);
      }
      clock.abandoned = undefined;
    } catch {
      // Why the capture failed mattered more.
      if (!clock.capturing && abandoned.graph === undefined) {
        clock.abandoned = undefined;
      }
    }
    return !clock.capturing;
  }

  #isStillCapturing({ driverId }: StreamClock): boolean {
    try {
      return this.#driver.isCapturing(driverId);
    } catch (error) {
      // On a lost or closed device no stream captures; else better to ask again.
      return !(error instanceof MoonBrightError &&
        (error.code === "lost" || error.code === "closed"));
    }
  }

  /**
   * Records an event at the stream's tail; returns its number. In a stream that is
   * capturing nothing is recorded, and the number is the next event's.
   */
  tick(stream: number): number {
    const clock = this.clocks[stream]!;
    if (clock.abandoned) this.#endAbandoned(stream);
    return clock.capturing ? clock.recorded + 1 : this.#record(stream);
  }

  #record(stream: number): number {
    const clock = this.clocks[stream]!;
    const event = this.#events.pop() ?? this.#driver.createEvent();
    try {
      this.#driver.recordEvent(event, clock.driverId);
    } catch (error) {
      this.#events.push(event);
      throw error;
    }
    clock.outstanding.push({ number: ++clock.recorded, event });
    return clock.recorded;
  }

  /** Makes sure that an event after the given epoch is recorded, as soon as it can be. */
  ensureTicked(stream: number, epoch: number): void {
    if (this.clocks[stream]!.recorded <= epoch) this.tick(stream);
  }

  /** Asks the driver which events have passed. */
  poll(stream: number): void {
    const { outstanding } = this.clocks[stream]!;
    // Events of a stream pass in order: the last that passed answers for those before.
    let passed = 0;
    while (
      passed < outstanding.length &&
      this.#driver.queryEvent(outstanding[passed]!.event)
    ) passed++;
    this.#retire(stream, passed);
  }

  /** Polls every stream that has events out. */
  pollAll(): void {
    for (let stream = 0; stream < this.clocks.length; stream++) {
      if (this.clocks[stream]!.outstanding.length > 0) this.poll(stream);
    }
  }

  /** Whether all uses with this epoch on the stream are known to be done. */
  isPassed(stream: number, epoch: number): boolean {
    return this.clocks[stream]!.completed > epoch;
  }

  /** Whether work of `stream` may follow uses with this epoch on `other` without waiting. */
  isVisibleTo(stream: number, other: number, epoch: number): boolean {
    return stream === other || this.clocks[other]!.completed > epoch ||
      (this.clocks[stream]!.waited.get(other) ?? 0) > epoch;
  }

  /**
   * Waits on the host until all uses with this epoch on the stream are done. While the
   * stream is capturing they may be left, and still not have passed.
   */
  waitPassed(stream: number, epoch: number): void {
    if (this.isPassed(stream, epoch)) return;
    this.ensureTicked(stream, epoch);
    const { outstanding } = this.clocks[stream]!;
    const at = outstanding.findIndex((event) => event.number > epoch);
    if (at < 0) return;
    this.#driver.synchronizeEvent(outstanding[at]!.event);
    this.#retire(stream, at + 1);
  }

  /** Waits on the host for all work of the stream. */
  synchronize(stream: number): void {
    const clock = this.clocks[stream]!;
    this.#driver.synchronizeStream(this.use(stream, "synchronize"));
    this.#retire(stream, clock.outstanding.length);
    // Counts as an event that has passed: everything up to now is done.
    clock.completed = ++clock.recorded;
  }

  /** Whether one of two streams can wait for the other now. */
  canJoin(stream: number, other: number): boolean {
    return !this.clocks[stream]!.capturing && !this.clocks[other]!.capturing;
  }

  /**
   * Makes later work of `stream` wait, on the device, for everything on `other` so far.
   *
   * @throws {RangeError} if one of them is capturing
   */
  join(stream: number, other: number): void {
    this.use(stream, "wait for a stream");
    this.use(other, "wait for a stream");
    const number = this.#record(other);
    const { outstanding } = this.clocks[other]!;
    const clock = this.clocks[stream]!;
    this.#driver.waitEvent(
      clock.driverId,
      outstanding[outstanding.length - 1]!.event,
    );
    clock.waited.set(other, number);
  }

  /** Destroys the events. Streams are left to the driver's close. */
  close(): void {
    for (const clock of this.clocks) {
      for (const { event } of clock.outstanding) this.#events.push(event);
      clock.outstanding = [];
    }
    for (const event of this.#events) this.#driver.destroyEvent(event);
    this.#events.length = 0;
  }

  /** Notes that the first `count` outstanding events have passed. */
  #retire(stream: number, count: number): void {
    if (count === 0) return;
    const clock = this.clocks[stream]!;
    for (const { number, event } of clock.outstanding.splice(0, count)) {
      clock.completed = number;
      this.#events.push(event);
    }
  }
}

function newClock(driverId: number): StreamClock {
  return {
    driverId,
    open: true,
    capturing: false,
    abandoned: undefined,
    recorded: 0,
    completed: 0,
    waited: new Map(),
    outstanding: [],
  };
}
