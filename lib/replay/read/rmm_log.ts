/**
 * Reading the logs of RMM's `logging_resource_adaptor`: comma-separated values with the
 * columns Thread, Time, Action, Pointer, Size and Stream, in any order. Time is that of
 * the day, such as `15:47:02.841961` (older releases: `15:47:02:841961`), or seconds.
 *
 * @module
 */

import { type Trace, TraceAction, TraceEvents } from "../trace.ts";
import { MAX_EVENTS } from "./limits.ts";
import { StreamTable } from "./stream_table.ts";
import type { TextLines } from "./text_lines.ts";
import { TraceFormatError } from "./trace_format_error.ts";

const ACTIONS: ReadonlyMap<string, TraceAction> = new Map([
  ["allocate", TraceAction.ALLOC],
  ["free", TraceAction.FREE],
  ["allocate failure", TraceAction.OOM],
]);

const HOUR_US = 3600e6;
const DAY_US = 24 * HOUR_US;

/** Where the columns are; -1 for one that is missing and can be done without. */
interface Columns {
  count: number;
  time: number;
  action: number;
  pointer: number;
  size: number;
  stream: number;
}

/** Whether a first line names the columns of such a log. */
export function isRmmHeader(line: string): boolean {
  const names = namesOf(line);
  return names.includes("action") && names.includes("pointer");
}

/** Reads a log whose first line has been read already. */
export async function readRmmLog(
  header: string,
  lines: TextLines,
): Promise<Trace[]> {
  const columns = columnsOf(header, lines);
  const streams = new StreamTable((problem) => lines.error(problem));
  const events = new TraceEvents();
  let lastUs = 0;
  await lines.forEach((line) => {
    if (line === "") return;
    const cells = line.split(",");
    if (cells.length !== columns.count) {
      throw lines.error(
        `expected ${columns.count} values, as in the first line, got ${cells.length}`,
      );
    }
    const action = ACTIONS.get(cells[columns.action]!.trim());
    if (action === undefined) {
      throw lines.error(
        `expected the action allocate, free or allocate failure, got "${
          cells[columns.action]!.trim()
        }"`,
      );
    }
    if (events.count === MAX_EVENTS) {
      throw lines.error(
        `it has more than ${MAX_EVENTS} events; record a shorter run`,
      );
    }
    const pointer = readPointer(cells[columns.pointer]!, lines);
    const bytes = readSize(cells[columns.size]!, lines);
    const stream = streams.indexOf(cells[columns.stream]!.trim());
    if (columns.time >= 0) {
      lastUs = readTime(cells[columns.time]!, lastUs, lines);
    }
    events.push(
      action,
      // The log does not tell what was free when a request failed.
      action === TraceAction.OOM ? NaN : pointer,
      bytes,
      stream,
      lastUs,
    );
  });
  if (events.count === 0) {
    throw new TraceFormatError(
      lines.name,
      "the log has no events; let the program flush it before it ends",
    );
  }
  return [{
    source: "rmm",
    device: deviceOf(lines.name),
    streams: streams.names,
    events,
    segments: [],
  }];
}

function namesOf(header: string): string[] {
  return header.split(",").map((name) => name.trim().toLowerCase());
}

function columnsOf(header: string, lines: TextLines): Columns {
  const names = namesOf(header);
  for (const name of ["action", "pointer", "size", "stream"]) {
    if (names.includes(name)) continue;
    throw lines.error(
      `expected the columns Thread,Time,Action,Pointer,Size,Stream of an RMM log, but there is no ${name}`,
    );
  }
  return {
    count: names.length,
    time: names.indexOf("time"),
    action: names.indexOf("action"),
    pointer: names.indexOf("pointer"),
    size: names.indexOf("size"),
    stream: names.indexOf("stream"),
  };
}

/** C++ prints a null pointer as (nil). */
function readPointer(cell: string, lines: TextLines): number {
  const text = cell.trim();
  if (text === "(nil)") return 0;
  const pointer = /^0x[\da-f]+$/i.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(pointer)) return pointer;
  throw lines.error(
    `expected a pointer below 2^53, such as 0x7f5c40000000, got "${text}"`,
  );
}

function readSize(cell: string, lines: TextLines): number {
  const text = cell.trim();
  const size = /^\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(size)) return size;
  throw lines.error(`expected a size in bytes below 2^53, got "${text}"`);
}

/** Microseconds since the first midnight, or since when the clock began. */
function readTime(cell: string, lastUs: number, lines: TextLines): number {
  const text = cell.trim();
  const ofDay = /^(\d\d):(\d\d):(\d\d)[.:](\d{6})$/.exec(text);
  if (ofDay) {
    const [, hours, minutes, seconds, us] = ofDay;
    return onLaterDay(
      Number(hours) * HOUR_US + Number(minutes) * 60e6 + Number(seconds) * 1e6 +
        Number(us),
      lastUs,
    );
  }
  if (/^\d{1,15}(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1e6);
  throw lines.error(`expected a time such as 15:47:02.841961, got "${text}"`);
}

/** The first time of that hour that is not far before the last: threads may be out of step. */
function onLaterDay(timeUs: number, lastUs: number): number {
  const days = Math.ceil((lastUs - HOUR_US - timeUs) / DAY_US);
  return timeUs + Math.max(days, 0) * DAY_US;
}

/** RMM puts the device into the names that Python gives: `log.dev1.csv`. */
function deviceOf(name: string): number {
  return Number(/\.dev(\d{1,4})\b/.exec(name)?.[1] ?? 0);
}
