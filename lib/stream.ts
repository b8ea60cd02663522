/**
 * Streams and events, as users hold them.
 *
 * @module
 */

import { ClosedError } from "./errors.ts";
import { Graph } from "./graph.ts";
import type { MoonBright } from "./moonbright.ts";

/** A queue of work on a device: what is put into it runs in order. */
export class Stream {
  readonly #owner: MoonBright;
  readonly #number: number;
  #open = true;

  /** Made by {@linkcode MoonBright.createStream}. */
  constructor(owner: MoonBright, number: number) {
    this.#owner = owner;
    this.#number = number;
  }

  /** The instance that the stream belongs to. */
  get owner(): MoonBright {
    return this.#owner;
  }

  /** Number of the stream within its instance; 0 is the default stream. */
  get number(): number {
    return this.#number;
  }

  /**
   * The vendor's handle (`CUstream`, `hipStream_t`) for other libraries; 0 for the
   * default stream and on the host backend.
   */
  get unsafeHandle(): bigint {
    return this.#owner.driver.streamHandle(this.driverId("read the handle"));
  }

  /** Waits on the host until everything in the stream is done. */
  synchronize(): void {
    this.driverId("synchronize");
    this.#owner.allocator.streams.synchronize(this.#number);
  }

  /** Makes everything put into the stream from now on wait for the event. */
  wait(event: Event): void {
    const driverId = this.driverId("wait");
    assertSameOwner(this.#owner, event, "wait");
    this.#owner.driver.waitEvent(driverId, event.driverId("wait"));
  }

  /** Records a new event behind everything in the stream. */
  record(options: { timing?: boolean } = {}): Event {
    this.driverId("record");
    const event = this.#owner.createEvent(options);
    try {
      event.record(this);
    } catch (error) {
      event.close();
      throw error;
    }
    return event;
  }

  /** Whether the stream is capturing: what is put into it is noted for a graph. */
  get capturing(): boolean {
    return this.#owner.driver.isCapturing(this.driverId("ask about a capture"));
  }

  /**
   * Makes a graph of the fills, copies on the device and launches that a function puts
   * into the stream; they are not done before the graph is launched.
   *
   * Meanwhile the stream can be neither waited for nor used by events, graphs or copies
   * from and to the host, and nothing can wait for the whole device. A block of another
   * stream must have been used on this one before. Allocating goes on as ever.
   *
   * If it fails, paged ranges are as before it: nothing of what it did to them is done.
   *
   * The blocks that the work uses keep their memory until the graph is closed, also when
   * they are freed or shrunk. A block whose address reaches a kernel as a mere number has
   * to be named: by its `useOn` of this stream, inside the function.
   *
   * @example
   * ```ts
   * import { MoonBright } from "@moonbright/moonbright";
   *
   * using mb = MoonBright.open({ device: "host" });
   * using stream = mb.createStream();
   * using block = mb.alloc(1024, { stream });
   * using graph = stream.capture(() => block.fill(0));
   * for (let step = 0; step < 100; step++) graph.launch();
   * ```
   *
   * @throws {RangeError} if it is the default stream, or capturing already
   * @throws {TypeError} if the function returns a promise; its work is not captured
   * @throws {DriverError} code `unsupported` if the driver has no graphs
   */
  capture(work: () => void): Graph {
    this.driverId("capture");
    const { streams, graphs } = this.#owner.allocator;
    streams.beginCapture(this.#number);
    graphs.begin(this.#number);
    try {
      if (work() as unknown instanceof Promise) {
        throw new TypeError(
          "Cannot capture: the function must put its work into the stream " +
            "before it returns, but it returned a promise",
        );
      }
      const id = streams.endCapture(this.#number);
      return new Graph(this, id, graphs.end(this.#number));
    } catch (error) {
      graphs.fail(this.#number);
      if (!this.#owner.closed && this.#open) {
        streams.abandonCapture(this.#number);
      }
      throw error;
    }
  }

  /** Waits for the stream and destroys it; its blocks then follow the default stream. */
  close(): void {
    if (!this.#open || this.#number === 0 || this.#owner.closed) return;
    this.#owner.allocator.destroyStream(this.#number);
    this.#open = false;
  }

  /** Closes the stream. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * The driver's id, for calls of the given name.
   *
   * @throws {ClosedError} if the stream or its instance is closed
   * @throws {MoonBrightError} code `driver` if the driver goes on with a capture that failed
   */
  driverId(operation: string): number {
    this.#owner.assertOpen(operation);
    if (!this.#open) throw new ClosedError(operation, "the stream");
    return this.#owner.allocator.streams.use(this.#number, operation);
  }
}

/** A point in a stream that can be asked about or waited for. */
export class Event {
  readonly #owner: MoonBright;
  readonly #id: number;
  #open = true;

  /** Made by {@linkcode MoonBright.createEvent} or {@linkcode Stream.record}. */
  constructor(owner: MoonBright, id: number) {
    this.#owner = owner;
    this.#id = id;
  }

  /** The instance that the event belongs to. */
  get owner(): MoonBright {
    return this.#owner;
  }

  /** Moves the event behind everything in the stream now. */
  record(stream: Stream): void {
    assertSameOwner(this.#owner, stream, "record");
    this.#owner.driver.recordEvent(
      this.driverId("record"),
      stream.driverId("record"),
    );
  }

  /** Whether everything before the event is done; true if it was never recorded. */
  get passed(): boolean {
    return this.#owner.driver.queryEvent(this.driverId("query"));
  }

  /** Waits on the host until everything before the event is done. */
  synchronize(): void {
    this.#owner.driver.synchronizeEvent(this.driverId("synchronize"));
  }

  /** Milliseconds from `start` to this event; both need `timing` and must have passed. */
  elapsedMsSince(start: Event): number {
    assertSameOwner(this.#owner, start, "measure");
    return this.#owner.driver.elapsedMs(
      start.driverId("measure"),
      this.driverId("measure"),
    );
  }

  /** Destroys the event. */
  close(): void {
    if (!this.#open || this.#owner.closed) return;
    this.#owner.driver.destroyEvent(this.#id);
    this.#open = false;
  }

  /** Closes the event. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * The driver's id, for calls of the given name.
   *
   * @throws {ClosedError} if the event or its instance is closed
   */
  driverId(operation: string): number {
    this.#owner.assertOpen(operation);
    if (!this.#open) throw new ClosedError(operation, "the event");
    return this.#id;
  }
}

function assertSameOwner(
  owner: MoonBright,
  other: Stream | Event,
  operation: string,
): void {
  if (other.owner !== owner) {
    throw new TypeError(
      `Cannot ${operation}: the ${
        other instanceof Stream ? "stream" : "event"
      } belongs to another instance`,
    );
  }
}
