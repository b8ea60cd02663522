import {
  type Trace,
  TraceAction,
  TraceEvents,
  type TraceSegment,
} from "../../lib/replay/trace.ts";

/** An event in short: what happened, where, how many bytes, on which stream, when. */
export type ShortEvent = readonly [
  action: keyof typeof TraceAction,
  address: number,
  bytes: number,
  stream?: number,
  timeUs?: number,
];

/** A trace of the given events. */
export function makeTrace(
  events: readonly ShortEvent[],
  segments: TraceSegment[] = [],
  streams: string[] = ["0"],
): Trace {
  const columns = new TraceEvents();
  for (const [action, address, bytes, stream = 0, timeUs = 0] of events) {
    columns.push(TraceAction[action], address, bytes, stream, timeUs);
  }
  return { source: "pytorch", device: 0, streams, events: columns, segments };
}
