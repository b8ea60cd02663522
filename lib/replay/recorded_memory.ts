/**
 * What the recorded allocator held from its driver: its segments, step by step.
 *
 * @module
 */

import { type Trace, TraceAction } from "./trace.ts";

/** The recorded allocator asking its driver for memory, or giving it back. */
export interface SegmentStep {
  /** Number of the workload's step before which it happened. */
  step: number;
  /** Address as recorded; names what is given back. */
  address: number;
  /** Length in bytes. */
  bytes: number;
  /** Whether memory was taken or given back. */
  take: boolean;
  /** Whether it was mapped within an expandable segment, not allocated plainly. */
  mapped: boolean;
}

/** The recorded allocator's memory while its events are passed in order. */
export interface RecordedMemory {
  /** Whether the recording says anything about it. */
  readonly known: boolean;
  /** Whether the recording tells when frees are complete. */
  readonly completesFrees: boolean;
  /** Bytes held now. */
  reserved: number;
  /** Most bytes held so far. */
  peak: number;
  /** What was asked of the driver so far; begins with what was held before the recording. */
  readonly steps: SegmentStep[];
  /** Takes note of event `event`, which happened before step `step`. */
  pass(event: number, step: number): void;
}

/** The recorded allocator's memory as it was before the first event. */
export function recordedMemory(trace: Trace): RecordedMemory {
  const { events, segments } = trace;
  let known = segments.length > 0;
  let completesFrees = false;
  for (let i = 0; i < events.count; i++) {
    if (changeOf(events.action[i]!)) known = true;
    else if (events.action[i] === TraceAction.FREE) completesFrees = true;
  }
  const steps = heldBefore(trace);
  const memory: RecordedMemory = {
    known,
    completesFrees,
    reserved: steps.reduce((bytes, step) => bytes + step.bytes, 0),
    peak: 0,
    steps,
    pass(event, step) {
      const change = changeOf(events.action[event]!);
      if (!change) return;
      const address = events.address[event]!;
      const bytes = events.bytes[event]!;
      steps.push({ step, address, bytes, ...change });
      memory.reserved = Math.max(
        memory.reserved + (change.take ? bytes : -bytes),
        0,
      );
      memory.peak = Math.max(memory.peak, memory.reserved);
    },
  };
  memory.peak = memory.reserved;
  return memory;
}

/** Which way an event changes what is held, undefined if it doesn't. */
function changeOf(
  action: number,
): { take: boolean; mapped: boolean } | undefined {
  switch (action) {
    case TraceAction.SEGMENT_ALLOC:
      return { take: true, mapped: false };
    case TraceAction.SEGMENT_FREE:
      return { take: false, mapped: false };
    case TraceAction.SEGMENT_MAP:
      return { take: true, mapped: true };
    case TraceAction.SEGMENT_UNMAP:
      return { take: false, mapped: true };
    default:
      return undefined;
  }
}

/**
 * What was held before the first event: what is given back without having been taken,
 * and what no event has touched. Of an expandable segment of the end, what was not
 * mapped in the recording.
 */
function heldBefore({ events, segments }: Trace): SegmentStep[] {
  const held: SegmentStep[] = [];
  const told = new Set<number>();
  /** Address ranges that the recording itself took and still holds, by start. */
  const taken = new Map<number, number>();
  for (let i = 0; i < events.count; i++) {
    const change = changeOf(events.action[i]!);
    if (!change) continue;
    const address = events.address[i]!;
    const bytes = events.bytes[i]!;
    if (!change.take && !told.has(address)) {
      held.push({ step: 0, address, bytes, take: true, mapped: change.mapped });
    }
    told.add(address);
    if (change.take) taken.set(address, bytes);
    else taken.delete(address);
  }
  for (const { address, bytes } of segments) {
    let left = bytes;
    for (const [start, size] of taken) {
      if (start >= address && start < address + bytes) left -= size;
    }
    if (left > 0) {
      held.push({ step: 0, address, bytes: left, take: true, mapped: false });
    }
  }
  return held;
}
