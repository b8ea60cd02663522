/**
 * Writing MoonBright's own traces: a text of lines, each a JSON value.
 *
 * ```text
 * {"format":"moonbright-trace","version":1,"device":0,"streams":["0"]}
 * ["alloc",139802527662080,4096,0,1000]
 * ["stream","94206810"]
 * ["free",139802527662080,4096,1,1250.5]
 * ["oom",2097152,8589934592,0,1300]
 * ["segment",139802527662080,2097152,0]
 * ["block",139802527664128,512]
 * ```
 *
 * - The first line has the number of the device that was recorded and the names of the
 *   streams that are known so far. It may have a `source`, which is the recorder whose
 *   events were converted: `pytorch` or `rmm`.
 * - `stream` names one more stream. Streams are numbered in order, from 0.
 * - An event is its name, the address, the bytes, the number of the stream and the time
 *   in microseconds on a clock of the recorder's choice. The names are `alloc`;
 *   `free_requested`, the owner gave the block up; `free`, others may have it;
 *   `segment_alloc`, `segment_free`, `segment_map` and `segment_unmap`, what the recorded
 *   allocator asked of its driver; `oom`, a request that could not be served, which has
 *   the bytes that were free on the device, or null, in place of the address.
 * - At the end a recorder may tell what was held: of each segment a `segment` with its
 *   address, bytes and stream, then a `block` with address and bytes for each live block
 *   in it.
 *
 * Numbers of bytes and addresses are integers below 2^53. A recorder can write each line
 * when it happens; the functions here make them.
 *
 * @module
 */

import {
  ACTION_NAMES,
  BLOCK_LINE,
  FORMAT,
  SEGMENT_LINE,
  STREAM_LINE,
  VERSION,
} from "./read/moonbright_format.ts";
import { type Trace, TraceAction, type TraceSegment } from "./trace.ts";

/** What the first line tells. */
export type TraceHeader =
  & Pick<Trace, "device" | "streams">
  & Partial<Pick<Trace, "source">>;

/** The first line, with its newline as all of them. */
export function headerLine({ device, streams, source }: TraceHeader): string {
  return line({
    format: FORMAT,
    version: VERSION,
    device: count(device, "device"),
    ...(source === undefined || source === "moonbright" ? {} : { source }),
    streams,
  });
}

/** The line that gives the next number to a stream, before it is first used. */
export function streamLine(name: string): string {
  return line([STREAM_LINE, name]);
}

/**
 * The line of an event. The address is in bytes, of an `OOM` the bytes that were free on
 * the device or NaN; `stream` is the stream's number.
 *
 * @throws {RangeError} for what is no address, number of bytes or stream, or time
 */
export function eventLine(
  action: TraceAction,
  address: number,
  bytes: number,
  stream: number,
  timeUs: number,
): string {
  const where = action === TraceAction.OOM && Number.isNaN(address)
    ? null
    : count(address, "address");
  if (!Number.isFinite(timeUs)) {
    throw new RangeError(`Cannot write the time ${timeUs}`);
  }
  return `["${ACTION_NAMES[action]}",${where},${count(bytes, "bytes")},${
    count(stream, "stream")
  },${timeUs}]\n`;
}

/** The lines of a segment that is held at the end, and of the live blocks in it. */
export function segmentLines(
  { address, bytes, stream, live }: TraceSegment,
): string {
  return [
    line([
      SEGMENT_LINE,
      count(address, "address"),
      count(bytes, "bytes"),
      count(stream, "stream"),
    ]),
    ...live.map((block) =>
      line([
        BLOCK_LINE,
        count(block.address, "address"),
        count(block.bytes, "bytes"),
      ])
    ),
  ].join("");
}

/** About how many events a chunk of `writeTrace` has. */
const EVENTS_PER_CHUNK = 1024;

/** Writes a whole trace, as UTF-8; chunks are made as they are asked for. */
export function writeTrace(trace: Trace): ReadableStream<Uint8Array> {
  return ReadableStream.from(chunksOf(trace))
    .pipeThrough(new TextEncoderStream());
}

function* chunksOf(trace: Trace): Generator<string> {
  yield headerLine(trace);
  const { count, action, address, bytes, stream, timeUs } = trace.events;
  for (let at = 0; at < count; at += EVENTS_PER_CHUNK) {
    let chunk = "";
    for (let i = at; i < Math.min(at + EVENTS_PER_CHUNK, count); i++) {
      chunk += eventLine(
        action[i] as TraceAction,
        address[i]!,
        bytes[i]!,
        stream[i]!,
        timeUs[i]!,
      );
    }
    yield chunk;
  }
  for (const segment of trace.segments) yield segmentLines(segment);
}

function line(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function count(value: number, what: string): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(
    `Cannot write ${value} as ${what}: expected an integer from 0 to 2^53 - 1`,
  );
}
