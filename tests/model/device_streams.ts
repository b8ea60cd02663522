import type { AddressRange } from "../../lib/driver.ts";
import { DriverError } from "../../lib/errors.ts";
import { Captures } from "./captures.ts";
import type { Context } from "./context.ts";
import { IdTable } from "./id_table.ts";
import { hex, MemoryFault } from "./mmu.ts";
import type { ModelOptions } from "./options.ts";
import type { Mapping, PageTable } from "./page_table.ts";
import { Random } from "./random.ts";
import { hasPassed, type Place, Scheduler, type Stream } from "./scheduler.ts";

interface EventState {
  timing: boolean;
  /** Where it was recorded last. */
  place?: Place;
  /** Device time of its last record in nanoseconds, once that has passed. */
  passedNs?: number;
}

/** What an operation does when its turn comes. */
export interface Work {
  /** Does it. */
  run(): void;
  /** Memory that it is known to use. */
  ranges?: readonly AddressRange[];
  /** A place in another stream that must have passed before it starts. */
  after?: Place;
  /** Scheduler steps it takes; 1 by default. */
  steps?: number;
  /** Nanoseconds of device time; by the size of its ranges by default. */
  durationNs?: number;
  /** The module whose kernel it runs. */
  module?: number;
}

const bytesPerNs = 4_000;

/** The calls on streams and events, and the way of an operation into a stream. */
export class DeviceStreams {
  /** Runs the operations. */
  readonly scheduler: Scheduler;
  /** Streams by id, without the default stream. */
  readonly streams = new IdTable<Stream>("stream");
  /** Events by id. */
  readonly events = new IdTable<EventState>("event");
  /** The streams that are capturing. */
  readonly captures = new Captures();
  readonly #context: Context;
  readonly #table: PageTable;
  readonly #random: Random;
  readonly #defaultStream: Stream;

  /** Makes the default stream and nothing else. */
  constructor(context: Context, table: PageTable, options: ModelOptions) {
    this.#context = context;
    this.#table = table;
    this.#random = new Random(options.seed ?? 1);
    this.scheduler = new Scheduler(this.#random, options.maxPending ?? 1024);
    this.#defaultStream = this.scheduler.createStream();
  }

  /** Runs up to `count` steps of pending work in random streams; returns how many ran. */
  step(count: number): number {
    return this.#context.force("step", () => this.scheduler.step(count));
  }

  synchronize(): void {
    this.#context.enter("synchronize");
    this.captures.refuseAny("synchronize");
    this.#context.force("synchronize", () => this.scheduler.runAll());
  }

  createStream(): number {
    this.#context.enter("createStream");
    return this.streams.add(this.scheduler.createStream());
  }

  destroyStream(stream: number): void {
    this.#context.enter("destroyStream");
    const removed = this.streams.remove(stream, "destroyStream");
    this.captures.end(removed);
    this.#context.force(
      "destroyStream",
      () => this.scheduler.runUntilPassed(removed.tail),
    );
    this.scheduler.removeStream(removed);
  }

  synchronizeStream(stream: number): void {
    this.#context.enter("synchronizeStream");
    const target = this.stream(stream, "synchronizeStream");
    this.captures.refuse("synchronizeStream", target);
    const { tail } = target;
    this.#context.force(
      "synchronizeStream",
      () => this.scheduler.runUntilPassed(tail),
    );
  }

  streamHandle(stream: number): bigint {
    this.#context.enter("streamHandle");
    this.stream(stream, "streamHandle");
    return BigInt(stream);
  }

  waitEvent(stream: number, event: number): void {
    this.#context.enter("waitEvent");
    const target = this.stream(stream, "waitEvent");
    this.captures.refuse("waitEvent", target);
    const { place } = this.events.get(event, "waitEvent");
    if (place) {
      this.enqueue("waitEvent", target, `wait for event ${event}`, {
        after: place,
        run: () => {},
      });
    }
  }

  createEvent(timing = false): number {
    this.#context.enter("createEvent");
    return this.events.add({ timing });
  }

  destroyEvent(event: number): void {
    this.#context.enter("destroyEvent");
    this.events.remove(event, "destroyEvent");
  }

  recordEvent(event: number, stream: number): void {
    this.#context.enter("recordEvent");
    const state = this.events.get(event, "recordEvent");
    const target = this.stream(stream, "recordEvent");
    this.captures.refuse("recordEvent", target);
    const place = { stream: target, position: target.enqueued + 1 };
    state.place = place;
    state.passedNs = undefined;
    this.enqueue("recordEvent", target, `record event ${event}`, {
      run: () => {
        if (state.place === place) state.passedNs = this.scheduler.deviceNs;
      },
    });
  }

  queryEvent(event: number): boolean {
    this.#context.enter("queryEvent");
    const { place } = this.events.get(event, "queryEvent");
    this.#context.force(
      "queryEvent",
      () => this.scheduler.step(this.#random.below(4)),
    );
    return !place || hasPassed(place);
  }

  synchronizeEvent(event: number): void {
    this.#context.enter("synchronizeEvent");
    const { place } = this.events.get(event, "synchronizeEvent");
    if (!place) return;
    this.#context.force(
      "synchronizeEvent",
      () => this.scheduler.runUntilPassed(place),
    );
  }

  elapsedMs(start: number, end: number): number {
    this.#context.enter("elapsedMs");
    const [startNs, endNs] = [start, end].map((event) => {
      const { timing, place, passedNs } = this.events.get(event, "elapsedMs");
      if (!timing || !place) {
        throw new RangeError(
          `Cannot tell elapsedMs: event ${event} was ` +
            (timing ? "never recorded" : "created without timing"),
        );
      }
      if (passedNs === undefined) {
        throw new DriverError(
          "driver",
          "elapsedMs",
          `Cannot tell elapsedMs: event ${event} has not passed`,
        );
      }
      return passedNs;
    });
    return (endNs! - startNs!) / 1e6;
  }

  /** Puts an operation at a stream's end, or notes it while the stream is capturing. */
  enqueue(
    operation: string,
    stream: Stream,
    label: string,
    work: Work,
  ): void {
    if (this.captures.note(stream, { label, work })) return;
    const ranges = work.ranges ?? [];
    const meant = ranges.flatMap(({ address, size }) =>
      this.#table.touching(address, size)
    );
    const bytes = ranges.reduce((sum, range) => sum + range.size, 0);
    this.#context.elapsedNs += this.#context.costs.enqueueNs;
    this.#context.force(operation, () =>
      this.scheduler.enqueue(stream, {
        label,
        after: work.after,
        steps: work.steps ?? 1,
        durationNs: work.durationNs ?? bytes / bytesPerNs,
        run: () => {
          try {
            work.run();
          } catch (error) {
            throw error instanceof MemoryFault
              ? new MemoryFault(`${label}: ${error.message}`, { cause: error })
              : error;
          }
          this.#noteRemapped(label, meant);
        },
      }));
  }

  /** An operation ran on addresses that meant other memory when it was queued. */
  #noteRemapped(label: string, meant: readonly Mapping[]): void {
    const gone = meant.find((mapping) => !mapping.installed);
    if (!gone) return;
    this.#context.hazards.push(
      `${label} ran after extent ${gone.extent.id}, which it was queued ` +
        `for, was unmapped from ${hex(gone.address)}`,
    );
  }

  /** The stream of that id; throws when there is none. */
  stream(id: number, operation: string): Stream {
    return id === 0 ? this.#defaultStream : this.streams.get(id, operation);
  }

  /** Finishes the work as far as it can be finished, and forgets everything. */
  clear(): void {
    try {
      this.scheduler.runAll();
    } catch (error) {
      // A device that is given back doesn't care for what its work still does.
      if (!(error instanceof MemoryFault)) throw error;
    }
    this.scheduler.clear();
    this.captures.clear();
    this.streams.clear();
    this.events.clear();
  }
}
