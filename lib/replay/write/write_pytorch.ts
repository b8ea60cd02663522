/**
 * Writing memory snapshots as PyTorch does, so that its viewer
 * (https://docs.pytorch.org/memory_viz) and `torch/cuda/_memory_viz.py` open them.
 *
 * A snapshot is a dict of `segments`, `device_traces` (by device, a list of events),
 * `allocator_settings` and `external_annotations`. The names of keys, actions and states
 * are those of `torch/csrc/cuda/memory_snapshot.cpp`.
 *
 * @module
 */

import type { MappedSnapshot } from "../../live/read_snapshot.ts";
import { checkSnapshot } from "../../live/read_snapshot.ts";
import type { Snapshot } from "../../snapshot.ts";
import { MAX_DEVICES } from "../read/limits.ts";
import { readTraces } from "../read/read_trace.ts";
import { type Trace, TraceAction } from "../trace.ts";
import {
  type ExportedBlock,
  type ExportedSegment,
  segmentsOfSnapshot,
  segmentsOfTrace,
} from "./exported_segments.ts";
import {
  PickleTuple,
  type PickleValue,
  PickleWriter,
} from "./pickle_writer.ts";
import { streamNumbers } from "./stream_numbers.ts";

/** What to write. */
export interface PyTorchExport {
  /** What was held at the end. */
  snapshot?: Snapshot;
  /** Lines that `recordTrace` wrote. */
  recording?: Iterable<string>;
}

/**
 * Writes what an instance holds, what was recorded of it, or both, as a memory snapshot
 * of PyTorch (a pickle). Names of blocks show as their stack frame. Addresses that blocks
 * of the recording lay at and that are no longer mapped are unmapped by a last event.
 *
 * @example
 * ```ts
 * import { exportPyTorch, MoonBright } from "@moonbright/moonbright";
 *
 * using mb = MoonBright.open({ device: "host" });
 * using weights = mb.alloc(1024 ** 2, { name: "weights" });
 * const file = await exportPyTorch({ snapshot: mb.snapshot() });
 * // await Deno.writeFile("snapshot.pickle", file);
 * ```
 *
 * @throws {TraceFormatError} if the recording is none
 */
export async function exportPyTorch(
  { snapshot, recording }: PyTorchExport,
): Promise<ReadableStream<Uint8Array>> {
  const checked = snapshot && checkSnapshot(snapshot, "the snapshot");
  const traces = recording === undefined ? [] : await readTraces(
    "the recording",
    ReadableStream.from(recording).pipeThrough(new TextEncoderStream()),
  );
  return ReadableStream.from(pyTorchChunks(traces, checked));
}

/**
 * The pickle of traces, of a snapshot, or of a snapshot and how it came about; chunks are
 * made as they are asked for.
 *
 * @throws {RangeError} if two traces are of one device, or a device's number is too large
 */
export function* pyTorchChunks(
  traces: readonly Trace[],
  snapshot?: MappedSnapshot,
): Generator<Uint8Array> {
  const byDevice = devicesOf(traces);
  const held = snapshot && segmentsOfSnapshot(snapshot);
  const writer = new PickleWriter();
  writer.begin();
  writer.beginDict();
  writer.value("segments");
  yield* writer.list(allSegments(byDevice, held, snapshot?.device.ordinal));
  writer.value("device_traces");
  // A list within a list: the outer one is short, the inner ones may be long.
  yield* writer.listOfLists(
    byDevice.map((trace) => trace ? eventsOf(trace, held) : []),
  );
  writer.value("allocator_settings");
  writer.value({ expandable_segments: true });
  writer.value("external_annotations");
  writer.value([]);
  writer.endDict();
  yield* writer.end();
}

/** Traces at the places of their devices; viewers want a place for each up to the last. */
function devicesOf(traces: readonly Trace[]): (Trace | undefined)[] {
  const byDevice: (Trace | undefined)[] = [undefined];
  for (const trace of traces) {
    const { device } = trace;
    if (device >= MAX_DEVICES || byDevice[device]) {
      throw new RangeError(
        `Cannot write device ${device}: it is there twice, or above ${
          MAX_DEVICES - 1
        }`,
      );
    }
    while (byDevice.length <= device) byDevice.push(undefined);
    byDevice[device] = trace;
  }
  return byDevice;
}

function* allSegments(
  byDevice: readonly (Trace | undefined)[],
  held: readonly ExportedSegment[] | undefined,
  device = 0,
): Generator<PickleValue> {
  for (const segment of held ?? []) yield segmentDict(segment, device);
  for (const trace of byDevice) {
    if (!trace || held) continue;
    for (
      const segment of segmentsOfTrace(trace, streamNumbers(trace.streams))
    ) yield segmentDict(segment, trace.device);
  }
}

function segmentDict(
  { address, size, stream, blocks }: ExportedSegment,
  device: number,
): PickleValue {
  const sum = (of: (block: ExportedBlock) => number) =>
    blocks.reduce((all, block) => all + of(block), 0);
  return {
    device,
    address,
    total_size: size,
    allocated_size: sum((one) => one.state === "live" ? one.size : 0),
    active_size: sum((one) => one.state === "free" ? 0 : one.size),
    requested_size: sum(({ requested }) => requested),
    stream,
    segment_type: "large",
    segment_pool_id: new PickleTuple(0, 0),
    is_expandable: true,
    frames: [],
    blocks: blocks.map(blockDict),
  };
}

const STATES = {
  free: "inactive",
  live: "active_allocated",
  pending: "active_pending_free",
} as const;

function blockDict(
  { address, size, requested, state, name }: ExportedBlock,
): PickleValue {
  return {
    address,
    size,
    requested_size: requested,
    state: STATES[state],
    frames: name === undefined
      ? []
      : [{ filename: "moonbright", line: 0, name }],
  };
}

const ACTIONS: Record<TraceAction, string> = {
  [TraceAction.ALLOC]: "alloc",
  [TraceAction.FREE_REQUESTED]: "free_requested",
  [TraceAction.FREE]: "free_completed",
  [TraceAction.SEGMENT_ALLOC]: "segment_alloc",
  [TraceAction.SEGMENT_FREE]: "segment_free",
  [TraceAction.SEGMENT_MAP]: "segment_map",
  [TraceAction.SEGMENT_UNMAP]: "segment_unmap",
  [TraceAction.OOM]: "oom",
};

/** The events of a trace. Viewers want two for each free, and the size in both. */
function* eventsOf(
  trace: Trace,
  held: readonly ExportedSegment[] | undefined,
): Generator<PickleValue> {
  const { events } = trace;
  const streams = streamNumbers(trace.streams);
  const requested = events.action.subarray(0, events.count).includes(
    TraceAction.FREE_REQUESTED,
  );
  const sizes = new Map<number, number>();
  let lastUs = 0;
  for (let i = 0; i < events.count; i++) {
    const action = events.action[i] as TraceAction;
    const address = events.address[i]!;
    let size = events.bytes[i]!;
    if (action === TraceAction.ALLOC) sizes.set(address, size);
    else if (isFree(action)) size ||= sizes.get(address) ?? 0;
    lastUs = Math.max(0, Math.round(events.timeUs[i]!));
    const event = (action: TraceAction) =>
      eventDict(action, address, size, streams[events.stream[i]!] ?? 0, lastUs);
    if (action === TraceAction.FREE && !requested) {
      yield event(TraceAction.FREE_REQUESTED);
    }
    yield event(action);
  }
  if (!held) return;
  for (const { address, size, stream } of unmapped(trace, streams, held)) {
    yield eventDict(TraceAction.SEGMENT_UNMAP, address, size, stream, lastUs);
  }
}

function isFree(action: TraceAction): boolean {
  return action === TraceAction.FREE || action === TraceAction.FREE_REQUESTED;
}

function eventDict(
  action: TraceAction,
  address: number,
  size: number,
  stream: number,
  timeUs: number,
): PickleValue {
  return {
    action: ACTIONS[action],
    // What is not known is 0: viewers want a number.
    [action === TraceAction.OOM ? "device_free" : "addr"]: Number.isNaN(address)
      ? 0
      : address,
    size,
    stream,
    time_us: timeUs,
    frames: [],
  };
}

/** What of the addresses that a recording used lies in none of the segments held. */
function* unmapped(
  trace: Trace,
  streams: readonly number[],
  held: readonly ExportedSegment[],
): Generator<{ address: number; size: number; stream: number }> {
  const used = segmentsOfTrace({ ...trace, segments: [] }, streams);
  for (const { address, size, stream } of used) {
    let at = address;
    const end = address + size;
    for (const segment of held) {
      const segmentEnd = segment.address + segment.size;
      if (segmentEnd <= at || segment.address >= end) continue;
      if (segment.address > at) {
        yield { address: at, size: segment.address - at, stream };
      }
      at = Math.max(at, segmentEnd);
    }
    if (at < end) yield { address: at, size: end - at, stream };
  }
}
