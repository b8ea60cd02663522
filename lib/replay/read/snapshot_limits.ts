/**
 * Counts what the lists of a memory snapshot keep.
 *
 * @module
 */

import { MAX_DEVICES, MAX_EVENTS, MAX_SEGMENTS_AND_BLOCKS } from "./limits.ts";
import type { TraceFormatError } from "./trace_format_error.ts";

/** Makes the error for a problem at an offset of the file. */
export type FailAt = (problem: string, offset: number) => TraceFormatError;

/** What the lists of one file keep so far. */
export class SnapshotLimits {
  /** Makes the error for a problem. */
  readonly fail: FailAt;
  #events = 0;
  #devices = 0;
  #entries = 0;

  /** Begins at nothing. */
  constructor(fail: FailAt) {
    this.fail = fail;
  }

  /** Counts an event. */
  addEvent(offset: number): void {
    this.#check(++this.#events, MAX_EVENTS, "events", offset);
  }

  /** Counts a list of events. */
  addDevice(offset: number): void {
    this.#check(++this.#devices, MAX_DEVICES, "lists of events", offset);
  }

  /** Counts a segment or a live block. */
  addEntry(offset: number): void {
    this.#check(
      ++this.#entries,
      MAX_SEGMENTS_AND_BLOCKS,
      "segments and live blocks",
      offset,
    );
  }

  #check(count: number, limit: number, what: string, offset: number): void {
    if (count <= limit) return;
    throw this.fail(
      `it has more than ${limit} ${what}; record a shorter run`,
      offset,
    );
  }
}
