// What the tests of the trace readers share: random recordings, ways to serve them as
// streams, and a naive reading of snapshots to compare with.
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  type Trace,
  TraceAction,
  TraceEvents,
  type TraceSegment,
} from "../../lib/replay/trace.ts";
import { readTraces } from "../../lib/replay/read/read_trace.ts";
import { TraceFormatError } from "../../lib/replay/read/trace_format_error.ts";
import { Float, type PickleValue, Str, Tuple } from "./pickle_writer.ts";

/** A stream of the bytes in chunks of the given lengths, over and over. */
export function streamOf(
  bytes: Uint8Array,
  lengths: readonly number[] = [bytes.length],
): ReadableStream<Uint8Array> {
  let at = 0;
  let turn = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      const length = Math.max(lengths[turn++ % lengths.length]!, 0);
      controller.enqueue(bytes.slice(at, at + length));
      at += length;
    },
  });
}

/** Reads traces from bytes in chunks. */
export function read(
  bytes: Uint8Array,
  lengths?: readonly number[],
  name = "file",
): Promise<Trace[]> {
  return readTraces(name, streamOf(bytes, lengths));
}

/** What reading gives: traces, or the error that says why not; anything else is thrown. */
export async function readOrRefuse(
  bytes: Uint8Array,
): Promise<Trace[] | TraceFormatError> {
  try {
    return await read(bytes);
  } catch (error) {
    if (error instanceof TraceFormatError) return error;
    throw error;
  }
}

/** The error that reading ends with. */
export async function refusal(
  bytes: Uint8Array | string,
  name?: string,
): Promise<TraceFormatError> {
  const data = typeof bytes === "string" ? utf8(bytes) : bytes;
  try {
    await read(data, undefined, name);
  } catch (error) {
    if (error instanceof TraceFormatError) return error;
    throw error;
  }
  throw new Error("It was read");
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function encodeHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
}

export async function gzipped(bytes: Uint8Array): Promise<Uint8Array> {
  const packed = streamOf(bytes).pipeThrough(
    new CompressionStream("gzip") as ReadableWritablePair<
      Uint8Array,
      Uint8Array
    >,
  );
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

/** An event as a row. */
export type Row = [
  action: TraceAction,
  address: number,
  bytes: number,
  stream: number,
  timeUs: number,
];

export function rowsOf({ events }: Trace): Row[] {
  return Array.from({ length: events.count }, (_, i) => [
    events.action[i] as TraceAction,
    events.address[i]!,
    events.bytes[i]!,
    events.stream[i]!,
    events.timeUs[i]!,
  ]);
}

export function eventsOf(rows: readonly Row[]): TraceEvents {
  const events = new TraceEvents();
  for (const row of rows) events.push(...row);
  return events;
}

/** Compares traces by what they say, not by how much room their columns have. */
export function assertSameTraces(
  actual: readonly Trace[],
  expected: readonly Trace[],
): void {
  const plain = (trace: Trace) => ({ ...trace, events: rowsOf(trace) });
  assertEquals(actual.map(plain), expected.map(plain));
}

/** Addresses and sizes as they come: mostly around 2^47, some at the ends of the encodings. */
export const counts: fc.Arbitrary<number> = fc.oneof(
  fc.nat(),
  fc.integer({ min: 2 ** 46, max: 2 ** 47 }),
  fc.maxSafeNat(),
  fc.constantFrom(0, 255, 256, 65535, 65536, 2 ** 31 - 1, 2 ** 31, 2 ** 32),
  fc.constantFrom(2 ** 39 - 1, 2 ** 39, 2 ** 47, 2 ** 53 - 1),
);

const ROW = fc.tuple(
  fc.constantFrom(...Object.values(TraceAction)),
  counts,
  counts,
  fc.nat(3),
  fc.oneof(
    fc.nat(),
    fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  ),
).map(([action, address, ...rest]): Row => [
  action,
  action === TraceAction.OOM && address % 2 === 1 ? NaN : address,
  ...rest,
]);

const SEGMENT: fc.Arbitrary<TraceSegment> = fc.record({
  address: counts,
  bytes: counts,
  stream: fc.nat(3),
  live: fc.array(fc.record({ address: counts, bytes: counts }), {
    maxLength: 4,
  }),
});

/** Any trace with events. */
export const traces: fc.Arbitrary<Trace> = fc.record({
  source: fc.constantFrom("moonbright", "pytorch", "rmm"),
  device: fc.nat(15),
  streams: fc.array(fc.string(), { minLength: 4, maxLength: 6 }),
  events: fc.array(ROW, { minLength: 1, maxLength: 40 }).map(eventsOf),
  segments: fc.array(SEGMENT, { maxLength: 4 }),
});

/** A snapshot of PyTorch as plain data. */
export type Snapshot = {
  device_traces: { [key: string]: PickleValue }[][];
  segments: { [key: string]: PickleValue }[];
  [key: string]: PickleValue;
};

const ACTIONS: Readonly<Record<string, TraceAction>> = {
  alloc: TraceAction.ALLOC,
  free_requested: TraceAction.FREE_REQUESTED,
  free_completed: TraceAction.FREE,
  free: TraceAction.FREE,
  segment_alloc: TraceAction.SEGMENT_ALLOC,
  segment_free: TraceAction.SEGMENT_FREE,
  segment_map: TraceAction.SEGMENT_MAP,
  segment_unmap: TraceAction.SEGMENT_UNMAP,
  oom: TraceAction.OOM,
};

/** Integers that a pickle may have but a double not. */
export const bigInts: fc.Arbitrary<bigint> = fc.bigInt(-(2n ** 80n), 2n ** 80n);

/** Values that newer releases may add under keys of their own. */
const otherValues = (
  integers: fc.Arbitrary<number | bigint>,
): fc.Arbitrary<PickleValue> =>
  fc.letrec<{ value: PickleValue; leaf: PickleValue }>((tie) => ({
    leaf: fc.oneof(
      fc.constantFrom(null, true, false, "", "alloc", "addr"),
      fc.string({ maxLength: 300 }),
      fc.string().map((text) => new Str(text)),
      fc.integer(),
      fc.double({ noNaN: true }).map((value) => new Float(value)),
      integers,
    ),
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      tie("leaf"),
      fc.array(tie("value"), { maxLength: 5 }),
      fc.array(tie("value"), { maxLength: 5 }).map((items) =>
        new Tuple(...items)
      ),
      fc.dictionary(fc.string({ minLength: 1 }), tie("value"), { maxKeys: 4 }),
    ),
  })).value;

/** Stacks of calls: few frames, which many events share. */
const FRAMES = fc.uniqueArray(fc.nat(40), { minLength: 1, maxLength: 12 }).map(
  (numbers) =>
    numbers.map((line): PickleValue => ({
      filename: `/code/model_${line % 3}.py`,
      line,
      name: `f${line}`,
    })),
);

function eventArbitrary(
  frames: PickleValue[],
  others: fc.Arbitrary<PickleValue>,
): fc.Arbitrary<{ [key: string]: PickleValue }> {
  const action = fc.constantFrom(
    ...Object.keys(ACTIONS),
    "snapshot",
    "user_defined",
    "of_the_future",
  );
  return fc.record({
    action: fc.tuple(action, fc.boolean()).map(([text, own]) =>
      own ? new Str(text) : text
    ),
    addr: counts,
    size: counts,
    stream: fc.constantFrom(0, 0, 7, 94206810),
    time_us: counts,
    frames: fc.subarray(frames),
    extra: others,
  }, { requiredKeys: ["action", "addr", "size", "stream"] }).map(
    ({ action, addr, ...rest }): { [key: string]: PickleValue } =>
      textOf(action) === "oom"
        ? { device_free: addr, action, ...rest }
        : { action, addr, ...rest },
  );
}

const BLOCK = fc.record({
  address: counts,
  size: fc.nat(),
  requested_size: counts,
  state: fc.constantFrom(
    "active_allocated",
    "active_pending_free",
    "active_awaiting_free",
    "inactive",
  ),
  frames: fc.constant<PickleValue>([]),
}, { requiredKeys: ["size", "state"] });

const SNAPSHOT_SEGMENT = fc.record({
  device: fc.nat(2),
  address: fc.nat({ max: 2 ** 31 - 1 }).map((page) => page * 4096),
  total_size: counts,
  stream: fc.constantFrom(0, 7, 8),
  segment_type: fc.constantFrom("large", "small"),
  segment_pool_id: fc.constant(new Tuple(0, 0)),
  blocks: fc.array(BLOCK, { maxLength: 5 }),
});

/** Any snapshot whose first device has an event that matters, with integers beside. */
export function snapshotsWith(
  integers: fc.Arbitrary<number | bigint>,
): fc.Arbitrary<Snapshot> {
  const others = otherValues(integers);
  return FRAMES.chain((frames) =>
    fc.record({
      segments: fc.array(SNAPSHOT_SEGMENT, { maxLength: 5 }),
      device_traces: fc.array(
        fc.array(eventArbitrary(frames, others), { maxLength: 12 }),
        { maxLength: 2 },
      ).map((more) => [
        [{ action: "alloc", addr: 4096, size: 512, stream: 0, time_us: 1 }],
        ...more,
      ]),
      allocator_settings: others,
      external_annotations: fc.constant<PickleValue>([]),
    })
  ) as fc.Arbitrary<Snapshot>;
}

/** Any snapshot whose first device has an event that matters. */
export const snapshots: fc.Arbitrary<Snapshot> = snapshotsWith(bigInts);

/** A snapshot whose keys come in another order. */
export function reversed(snapshot: Snapshot): PickleValue {
  return Object.fromEntries(Object.entries(snapshot).reverse());
}

function textOf(value: PickleValue | undefined): string {
  return value instanceof Str ? value.text : String(value);
}

/** Reads a snapshot that is plain data, with no thought of memory or time. */
export function tracesOfSnapshot(snapshot: Snapshot): Trace[] {
  return snapshot.device_traces.map((list, device): Trace => {
    const streams: string[] = [];
    const streamOf = (value: PickleValue | undefined) => {
      const name = String(value ?? 0);
      if (!streams.includes(name)) streams.push(name);
      return streams.indexOf(name);
    };
    const rows = list.flatMap((event): Row[] => {
      const action = ACTIONS[textOf(event.action)];
      if (action === undefined) return [];
      const address = action === TraceAction.OOM
        ? event.device_free ?? NaN
        : event.addr;
      return [[
        action,
        Number(address),
        Number(event.size ?? 0),
        streamOf(event.stream),
        Number(event.time_us ?? 0),
      ]];
    });
    const segments = snapshot.segments
      .filter((segment) => segment.device === device)
      .map((segment): TraceSegment => ({
        address: Number(segment.address),
        bytes: Number(segment.total_size),
        stream: streamOf(segment.stream),
        live: liveBlocks(segment),
      }));
    const events = eventsOf(rows);
    return { source: "pytorch", device, streams, events, segments };
  }).filter(({ events }) => events.count > 0);
}

function liveBlocks(segment: { [key: string]: PickleValue }) {
  let end = Number(segment.address);
  return (segment.blocks as { [key: string]: PickleValue }[]).flatMap(
    (block) => {
      const start = end;
      end += Number(block.size);
      if (!textOf(block.state).startsWith("active")) return [];
      return [{
        address: Number(block.address ?? start),
        bytes: Number(block.requested_size ?? block.size),
      }];
    },
  );
}
