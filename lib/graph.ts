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
  /** Records of the blocks that the work uses: held until the graph is closed. */
  readonly #blocks: ReadonlySet<number>;
  /** Streams that it was launched in, with the epoch of the last launch. */
  readonly #launches = new Map<number, number>();
  #open = true;

  /**
   * Made by {@linkcode Stream.capture}: a graph of the driver, captured from a stream, and
   * the records of the blocks that it uses.
   */
  constructor(stream: Stream, id: number, blocks: ReadonlySet<number>) {
    this.#owner = stream.owner;
    this.#stream = stream;
    this.#id = id;
    this.#blocks = blocks;
  }

  /** The instance that the graph belongs to. */
  get owner(): MoonBright {
    return this.#owner;
  }

  /**
   * Does the captured work in a stream's order, after the graph's launches so far, and
   * returns at once. The stream is the one captured from, if left out.
   *
   * Whatever the work needs to wait for, the stream must have been told. The blocks that it
   * uses have their memory until the graph is closed, and then until its launches are done.
   *
   * @throws {TypeError} if the stream belongs to another instance
   * @throws {RangeError} if the stream is capturing
   * @throws {ClosedError} if the graph, the stream or the instance is closed
   */
  launch(stream: Stream = this.#stream): void {
    this.#owner.assertOpen("launch");
    if (!this.#open) throw new ClosedError("launch", "the graph");
    const number = this.#owner.streamNumber(stream, "launch");
    this.#owner.allocator.watch?.beforeLaunch();
    const { recorded } = this.#owner.allocator.streams.clocks[number]!;
    this.#launches.set(number, recorded);
    this.#owner.driver.launchGraph(this.#id, stream.driverId("launch"));
  }

  /**
   * Destroys the graph; launches under way go on. Blocks that it used and that were freed
   * meanwhile become free behind them.
   */
  close(): void {
    if (!this.#open || this.#owner.closed) return;
    this.#owner.driver.destroyGraph(this.#id);
    this.#open = false;
    this.#owner.allocator.dropGraph(this.#blocks, this.#launches);
  }

  /** Closes the graph. */
  [Symbol.dispose](): void {
    this.close();
  }
}
