/**
 * The streams of a trace, numbered in order of appearance.
 *
 * @module
 */

import { MAX_STREAM_NAME, MAX_STREAMS } from "./limits.ts";
import type { Fail } from "./trace_format_error.ts";

/** Numbers streams by their handle as recorded. */
export class StreamTable {
  /** The handles, by number. */
  readonly names: string[] = [];
  readonly #fail: Fail;
  readonly #indices = new Map<number | string, number>();

  /** Makes an empty table, which asks `fail` for the error if it gets too large. */
  constructor(fail: Fail) {
    this.#fail = fail;
  }

  /** The number of a stream. */
  indexOf(handle: number | string): number {
    return this.#indices.get(handle) ?? this.add(handle);
  }

  /** Gives a stream the next number. */
  add(handle: number | string): number {
    const name = String(handle);
    if (name.length > MAX_STREAM_NAME) {
      throw this.#fail(
        `a stream's name is longer than ${MAX_STREAM_NAME} characters; no recorder writes that`,
      );
    }
    if (this.names.length === MAX_STREAMS) {
      throw this.#fail(
        `it has more than ${MAX_STREAMS} streams; no recorder writes that`,
      );
    }
    const index = this.names.push(name) - 1;
    this.#indices.set(handle, index);
    return index;
  }
}
