/**
 * Reading MoonBright's own traces, which `write_trace.ts` writes.
 *
 * @module
 */

import {
  type Trace,
  TraceAction,
  TraceEvents,
  type TraceSegment,
  type TraceSource,
} from "../trace.ts";
import { MAX_EVENTS, MAX_SEGMENTS_AND_BLOCKS } from "./limits.ts";
import {
  ACTION_NAMES,
  BLOCK_LINE,
  FORMAT,
  SEGMENT_LINE,
  STREAM_LINE,
  VERSION,
} from "./moonbright_format.ts";
import { StreamTable } from "./stream_table.ts";
import type { TextLines } from "./text_lines.ts";
import { TraceFormatError } from "./trace_format_error.ts";

const ACTION_BY_NAME: ReadonlyMap<unknown, TraceAction> = new Map(
  Object.values(TraceAction).map((action) => [ACTION_NAMES[action], action]),
);
const SOURCES: readonly TraceSource[] = ["moonbright", "pytorch", "rmm"];

/** Whether a first line is JSON, which is either such a trace or none at all. */
export function isJson(line: string): boolean {
  return /^\s*[[{]/.test(line);
}

/** Reads a trace whose first line has been read already. */
export async function readMoonBrightTrace(
  header: string,
  lines: TextLines,
): Promise<Trace[]> {
  const reader = new LineReader(lines);
  reader.header(header);
  await lines.forEach((line) => {
    if (line !== "") reader.line(line);
  });
  if (reader.trace.events.count === 0) {
    throw new TraceFormatError(
      lines.name,
      "the trace has no events; record a longer run",
    );
  }
  return [reader.trace];
}

/** A trace in the making. */
class LineReader {
  readonly trace: Trace;
  readonly #lines: TextLines;
  readonly #streams: StreamTable;
  #entries = 0;

  constructor(lines: TextLines) {
    this.#lines = lines;
    this.#streams = new StreamTable((problem) => lines.error(problem));
    this.trace = {
      source: "moonbright",
      device: 0,
      streams: this.#streams.names,
      events: new TraceEvents(),
      segments: [],
    };
  }

  header(line: string): void {
    const header = this.#parse(line) as Record<string, unknown>;
    if (header.format !== FORMAT) {
      throw this.#lines.error(
        `it is JSON, but not a MoonBright trace, whose first line is {"format":"${FORMAT}",…}`,
      );
    }
    if (header.version !== VERSION) {
      throw this.#lines.error(
        `expected version ${VERSION} of the format, got ${
          JSON.stringify(header.version)
        }; a newer MoonBright may read it`,
      );
    }
    const { device, streams = [], source = "moonbright" } = header;
    this.trace.device = this.#count(device, "device");
    if (!Array.isArray(streams)) {
      throw this.#lines.error('expected "streams" to be a list of strings');
    }
    for (const name of streams) this.#stream(name);
    if (!SOURCES.includes(source as TraceSource)) {
      throw this.#lines.error(
        `expected "source" to be one of ${SOURCES.join(", ")}`,
      );
    }
    this.trace.source = source as TraceSource;
  }

  line(line: string): void {
    const values = this.#parse(line);
    if (!Array.isArray(values)) {
      throw this.#lines.error('expected a list such as ["alloc",4096,512,0,0]');
    }
    const action = ACTION_BY_NAME.get(values[0]);
    if (action !== undefined) this.#event(action, values);
    else if (values[0] === STREAM_LINE) this.#stream(values[1]);
    else if (values[0] === SEGMENT_LINE) this.#segment(values);
    else if (values[0] === BLOCK_LINE) this.#block(values);
    else {
      const names = [
        ...Object.values(ACTION_NAMES),
        STREAM_LINE,
        SEGMENT_LINE,
        BLOCK_LINE,
      ];
      throw this.#lines.error(
        `expected a line of ${names.join(", ")}, got ${
          JSON.stringify(values[0])
        }`,
      );
    }
  }

  #event(action: TraceAction, values: unknown[]): void {
    const { events } = this.trace;
    if (events.count === MAX_EVENTS) {
      throw this.#lines.error(
        `it has more than ${MAX_EVENTS} events; record a shorter run`,
      );
    }
    const address = action === TraceAction.OOM && values[1] === null
      ? NaN
      : this.#count(values[1], "address");
    const bytes = this.#count(values[2], "number of bytes");
    const stream = this.#streamIndex(values[3]);
    const timeUs = values[4];
    if (typeof timeUs !== "number") {
      throw this.#lines.error(
        `expected a time in microseconds, got ${JSON.stringify(timeUs)}`,
      );
    }
    events.push(action, address, bytes, stream, timeUs);
  }

  #stream(name: unknown): void {
    if (typeof name !== "string") {
      throw this.#lines.error(
        `expected the name of a stream, got ${JSON.stringify(name)}`,
      );
    }
    this.#streams.add(name);
  }

  #segment(values: unknown[]): void {
    this.#addEntry();
    const segment: TraceSegment = {
      address: this.#count(values[1], "address"),
      bytes: this.#count(values[2], "number of bytes"),
      stream: this.#streamIndex(values[3]),
      live: [],
    };
    this.trace.segments.push(segment);
  }

  #block(values: unknown[]): void {
    this.#addEntry();
    const segment = this.trace.segments.at(-1);
    if (!segment) {
      throw this.#lines.error(`expected a line of ${SEGMENT_LINE} before it`);
    }
    segment.live.push({
      address: this.#count(values[1], "address"),
      bytes: this.#count(values[2], "number of bytes"),
    });
  }

  #addEntry(): void {
    if (++this.#entries > MAX_SEGMENTS_AND_BLOCKS) {
      throw this.#lines.error(
        `it has more than ${MAX_SEGMENTS_AND_BLOCKS} segments and live blocks; record a shorter run`,
      );
    }
  }

  #streamIndex(value: unknown): number {
    const index = this.#count(value, "stream");
    if (index < this.#streams.names.length) return index;
    throw this.#lines.error(
      `there is no stream ${index}: a line such as ["${STREAM_LINE}","0"] should name it first`,
    );
  }

  #count(value: unknown, what: string): number {
    if (Number.isSafeInteger(value) && (value as number) >= 0) {
      return value as number;
    }
    throw this.#lines.error(
      `expected the ${what} to be an integer from 0 to 2^53 - 1, got ${
        JSON.stringify(value)
      }`,
    );
  }

  #parse(line: string): unknown {
    try {
      return JSON.parse(line);
    } catch {
      throw this.#lines.error("expected a line of JSON");
    }
  }
}
