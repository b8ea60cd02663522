/**
 * Which blocks were live before a recording began: recorders keep the last events only.
 *
 * @module
 */

import { type Trace, TraceAction } from "./trace.ts";

/** A block that was there before the first event. */
export interface EarlierBlock {
  /** First byte, as recorded. */
  address: number;
  /** Length in bytes. */
  bytes: number;
  /** Index into the trace's streams. */
  stream: number;
}

/**
 * The blocks that were live before the first event, by address: those that are freed
 * without having been allocated, and those of the end that no event has touched.
 */
export function liveBeforeRecording(trace: Trace): EarlierBlock[] {
  const { events, segments } = trace;
  const earlier: EarlierBlock[] = [];
  /** Addresses of which an event has told already. */
  const told = new Set<number>();
  for (let i = 0; i < events.count; i++) {
    const action = events.action[i];
    const isFree = action === TraceAction.FREE ||
      action === TraceAction.FREE_REQUESTED;
    if (action !== TraceAction.ALLOC && !isFree) continue;
    const address = events.address[i]!;
    if (told.has(address)) continue;
    told.add(address);
    const bytes = events.bytes[i]!;
    if (isFree && bytes > 0) {
      earlier.push({ address, bytes, stream: events.stream[i]! });
    }
  }
  for (const { stream, live } of segments) {
    for (const { address, bytes } of live) {
      if (!told.has(address) && bytes > 0) {
        earlier.push({ address, bytes, stream });
      }
    }
  }
  return earlier.sort((a, b) => a.address - b.address);
}
