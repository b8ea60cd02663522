/**
 * Work captured from a stream, as users hold it.
 *
 * @module
 */

import { ClosedError } from "./errors.ts";
import type { MoonBright } from "./moonbright.ts";
import type { Stream } from "./stream.ts";

/**
 * Fills, copies on the device and launches that were captured from a stream, launched
 * together again and again for the cost of one launch. Made by
 * {@linkcode Stream.capture}.
 */
export class Graph {
  readonly #owner: MoonBright;
  readonly #stream: Stream;
  readonly #id: number;
  #open = true;

  /** Made by {@linkcode Stream.capture}: a graph of the driver, captured from a stream. */
  constructor(stream: Stream, id: number) {
    this.#owner = stream.owner;
    this.#stream = stream;
    this.#id = id;
  }

  /** The instance that the graph belongs to. */
  get owner(): MoonBright {
    return this.#owner;
  }

  /**
   * Does the captured work in a stream's order, after the graph's launches so far, and
   * returns at once. The stream is the one captured from, if left out.
   *
   * The blocks that the work uses must be live, and still be in their place, until it is
   * done; whatever else it needs to wait for, the stream must have been told.
   *
   * @throws {TypeError} if the stream belongs to another instance
   * @throws {RangeError} if the stream is capturing
   * @throws {ClosedError} if the graph, the stream or the instance is closed
   */
  launch(stream: Stream = this.#stream): void {
    this.#owner.assertOpen("launch");
    if (!this.#open) throw new ClosedError("launch", "the graph");
    this.#owner.streamNumber(stream, "launch");
    this.#owner.allocator.watch?.beforeLaunch();
    this.#owner.driver.launchGraph(this.#id, stream.driverId("launch"));
  }

  /** Destroys the graph; launches under way go on. */
  close(): void {
    if (!this.#open || this.#owner.closed) return;
    this.#owner.driver.destroyGraph(this.#id);
    this.#open = false;
  }

  /** Closes the graph. */
  [Symbol.dispose](): void {
    this.close();
  }
}
