/**
 * Writing logs as RMM's `logging_resource_adaptor` does: comma-separated values with the
 * columns Thread, Time, Action, Pointer, Size and Stream.
 *
 * @module
 */

import { liveBeforeRecording } from "../live_before.ts";
import { type Trace, TraceAction } from "../trace.ts";
import { streamNumbers } from "./stream_numbers.ts";

const HEADER = "Thread,Time,Action,Pointer,Size,Stream\n";
const EVENTS_PER_CHUNK = 1024;
const DAY_US = 24 * 3600 * 1e6;

/**
 * The log of a trace, in chunks that are made as they are asked for. Blocks that were live
 * before the recording are allocated first, since tools that replay a log look for the
 * allocation of every free. Events of segments have no place in such a log.
 */
export function* rmmChunks(trace: Trace): Generator<string> {
  const { events } = trace;
  const streams = streamNumbers(trace.streams);
  const completed = events.action.subarray(0, events.count).includes(
    TraceAction.FREE,
  );
  const endOfLife = completed ? TraceAction.FREE : TraceAction.FREE_REQUESTED;
  const sizes = new Map<number, number>();
  const firstUs = events.count > 0 ? events.timeUs[0]! : 0;
  let chunk = HEADER;
  for (const { address, bytes, stream } of liveBeforeRecording(trace)) {
    sizes.set(address, bytes);
    chunk += line("allocate", address, bytes, streams[stream] ?? 0, firstUs);
  }
  for (let i = 0; i < events.count; i++) {
    const address = events.address[i]!;
    const bytes = events.bytes[i]!;
    const stream = streams[events.stream[i]!] ?? 0;
    const timeUs = events.timeUs[i]!;
    const action = events.action[i];
    if (action === TraceAction.ALLOC) {
      sizes.set(address, bytes);
      chunk += line("allocate", address, bytes, stream, timeUs);
    } else if (action === TraceAction.OOM) {
      chunk += line("allocate failure", 0, bytes, stream, timeUs);
    } else if (action === endOfLife) {
      const size = sizes.get(address);
      // A block that nothing else tells of.
      if (size === undefined) continue;
      sizes.delete(address);
      chunk += line("free", address, size, stream, timeUs);
    }
    if (i % EVENTS_PER_CHUNK === 0) {
      yield chunk;
      chunk = "";
    }
  }
  yield chunk;
}

function line(
  action: string,
  address: number,
  bytes: number,
  stream: number,
  timeUs: number,
): string {
  const pointer = address === 0 ? "(nil)" : `0x${address.toString(16)}`;
  return `1,${timeOfDay(timeUs)},${action},${pointer},${bytes},${stream}\n`;
}

/** A time such as `15:47:02.841961`. */
function timeOfDay(timeUs: number): string {
  const us = ((Math.round(timeUs) % DAY_US) + DAY_US) % DAY_US;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  return `${two(us / 3600e6)}:${two(us / 60e6 % 60)}:${two(us / 1e6 % 60)}.${
    String(us % 1e6).padStart(6, "0")
  }`;
}
