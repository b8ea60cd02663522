import type { Random } from "./random.ts";

/** Work in a stream of the model device. */
export interface Operation {
  /** What it is, for messages. */
  readonly label: string;
  /** Scheduler steps it still takes; the body runs with the last. */
  steps: number;
  /** Nanoseconds of simulated device time. */
  readonly durationNs: number;
  /** A place in another stream that must have passed before it starts. */
  readonly after?: Place;
  /** What it does. */
  run(): void;
}

/** A place in a stream: passed once that many of its operations are done. */
export interface Place {
  readonly stream: Stream;
  readonly position: number;
}

/** Whether all work before a place is done. */
export function hasPassed(place: Place): boolean {
  return place.stream.finished >= place.position;
}

/** Operations in order, run when something forces them. */
export class Stream {
  /** How many operations were ever put in. */
  enqueued = 0;
  /** How many of them are done. */
  finished = 0;
  #queue: Operation[] = [];
  #head = 0;

  /** The oldest operation that is not done. */
  get head(): Operation | undefined {
    return this.#queue[this.#head];
  }

  /** The place behind everything in the stream now. */
  get tail(): Place {
    return { stream: this, position: this.enqueued };
  }

  /** Whether the oldest operation can run now. */
  get runnable(): boolean {
    const head = this.head;
    return head !== undefined && (!head.after || hasPassed(head.after));
  }

  /** Puts an operation at the end. */
  push(operation: Operation): void {
    this.#queue.push(operation);
    this.enqueued++;
  }

  /** Takes the oldest operation out as done. */
  shift(): void {
    this.finished++;
    this.#head++;
    if (this.#head > 64 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Drops everything undone. */
  clear(): void {
    this.#queue = [];
    this.#head = 0;
    this.finished = this.enqueued;
  }
}

/**
 * Runs the streams of the model device as lazily and in as many orders as their
 * waits allow; the seed decides.
 */
export class Scheduler {
  /** Simulated device time in nanoseconds. */
  deviceNs = 0;
  readonly #streams = new Set<Stream>();
  readonly #random: Random;
  readonly #maxPending: number;
  #pending = 0;

  /** Makes a scheduler that holds at most `maxPending` undone operations. */
  constructor(random: Random, maxPending: number) {
    this.#random = random;
    this.#maxPending = maxPending;
  }

  /** How many operations are not done. */
  get pending(): number {
    return this.#pending;
  }

  /** Adds a stream. */
  createStream(): Stream {
    const stream = new Stream();
    this.#streams.add(stream);
    return stream;
  }

  /** Forgets a stream whose work is done. */
  removeStream(stream: Stream): void {
    this.#streams.delete(stream);
  }

  /** Puts an operation at a stream's end; runs older work if too much waits. */
  enqueue(stream: Stream, operation: Operation): void {
    stream.push(operation);
    this.#pending++;
    while (this.#pending > this.#maxPending) this.#runOne(this.#anyRunnable());
  }

  /** Runs up to `count` steps of random streams; returns how many ran. */
  step(count: number): number {
    let done = 0;
    while (done < count && this.#pending > 0) {
      this.#runOne(this.#anyRunnable());
      done++;
    }
    return done;
  }

  /**
   * Runs until a place has passed. Half of the time only what the place needs
   * advances, so that work nobody waited for stays undone for long.
   */
  runUntilPassed(place: Place): void {
    while (!hasPassed(place)) {
      this.#runOne(
        this.#random.below(2) === 0
          ? this.#neededBy(place)
          : this.#anyRunnable(),
      );
    }
  }

  /** Runs everything. */
  runAll(): void {
    while (this.#pending > 0) this.#runOne(this.#anyRunnable());
  }

  /** Drops all undone work. */
  clear(): void {
    for (const stream of this.#streams) stream.clear();
    this.#pending = 0;
  }

  #anyRunnable(): Stream {
    const runnable = [...this.#streams].filter((stream) => stream.runnable);
    // A wait names a record that was made before it, so some stream can run.
    return runnable[this.#random.below(runnable.length)]!;
  }

  #neededBy(place: Place): Stream {
    let stream = place.stream;
    while (!stream.runnable) stream = stream.head!.after!.stream;
    return stream;
  }

  #runOne(stream: Stream): void {
    const operation = stream.head!;
    operation.steps--;
    if (operation.steps > 0) return;
    try {
      operation.run();
    } catch (error) {
      // Nothing runs on a device whose work has faulted.
      this.clear();
      throw error;
    }
    this.deviceNs += operation.durationNs;
    stream.shift();
    this.#pending--;
  }
}
