/**
 * A recorded workload as its file tells it: what was allocated and freed, in order.
 *
 * Events are kept in columns of numbers, 29 bytes each, so that millions fit.
 *
 * @module
 */

import { grown } from "../growable.ts";

/** What an event says happened. */
export const TraceAction = {
  /** A block was allocated. */
  ALLOC: 1,
  /** The owner gave a block up; it may still be in use on other streams. */
  FREE_REQUESTED: 2,
  /** A block is free for others. */
  FREE: 3,
  /** The recorded allocator took a segment from the driver. */
  SEGMENT_ALLOC: 4,
  /** It gave a segment back to the driver. */
  SEGMENT_FREE: 5,
  /** It mapped memory within an expandable segment. */
  SEGMENT_MAP: 6,
  /** It unmapped memory of an expandable segment. */
  SEGMENT_UNMAP: 7,
  /** A request could not be served; its address column holds the bytes that were free on the device, NaN where that is not told. */
  OOM: 8,
} as const;

/** One of the values of `TraceAction`. */
export type TraceAction = typeof TraceAction[keyof typeof TraceAction];

/** Where a recorded workload comes from. */
export type TraceSource = "pytorch" | "rmm" | "moonbright";

/** Events in columns; row `i` of each belongs to event `i`. */
export class TraceEvents {
  /** Number of events. */
  count = 0;
  /** What happened, a `TraceAction`. */
  action: Uint8Array = new Uint8Array(0);
  /** Address of the block or segment as recorded. */
  address: Float64Array = new Float64Array(0);
  /** Bytes of the block or segment; 0 where a free does not say. */
  bytes: Float64Array = new Float64Array(0);
  /** Index into the trace's streams. */
  stream: Uint32Array = new Uint32Array(0);
  /** Microseconds on the recording's clock, 0 where there is none. */
  timeUs: Float64Array = new Float64Array(0);

  /** Appends an event. */
  push(
    action: TraceAction,
    address: number,
    bytes: number,
    stream: number,
    timeUs: number,
  ): void {
    const at = this.count++;
    if (at === this.action.length) this.#grow(at + 1);
    this.action[at] = action;
    this.address[at] = address;
    this.bytes[at] = bytes;
    this.stream[at] = stream;
    this.timeUs[at] = timeUs;
  }

  #grow(rows: number): void {
    this.action = grown(this.action, rows);
    this.address = grown(this.address, rows);
    this.bytes = grown(this.bytes, rows);
    this.stream = grown(this.stream, rows);
    this.timeUs = grown(this.timeUs, rows);
  }
}

/** A block that was live when the recording ended. */
export interface TraceBlock {
  /** First byte, as recorded. */
  address: number;
  /** Length in bytes. */
  bytes: number;
}

/** A segment that the recorded allocator held when the recording ended. */
export interface TraceSegment {
  /** First byte, as recorded. */
  address: number;
  /** Length in bytes; of an expandable segment, what is mapped. */
  bytes: number;
  /** Index into the trace's streams. */
  stream: number;
  /** Its live blocks. */
  live: TraceBlock[];
}

/** What was recorded of one device. */
export interface Trace {
  /** Which recorder wrote it. */
  source: TraceSource;
  /** Number of the device in the recording. */
  device: number;
  /** The streams' handles as recorded, in order of appearance. */
  streams: string[];
  /** What happened, oldest first; may begin in the middle of the program. */
  events: TraceEvents;
  /** What was held at the end; empty where the recorder does not say. */
  segments: TraceSegment[];
}
