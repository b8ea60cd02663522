/**
 * Reading memory snapshots of PyTorch, as `torch.cuda.memory._dump_snapshot` writes them:
 * a pickle of a dict with `device_traces` (by device, a list of events) and `segments`
 * (what the allocator held at the end). Keys and actions that are of no interest to a
 * replay, or that newer releases have added, are skipped.
 *
 * @module
 */

import type { Trace } from "../trace.ts";
import type { ByteSource } from "./byte_source.ts";
import { PickleMachine } from "./pickle_machine.ts";
import type { PickleFactory, Value } from "./pickle_values.ts";
import { SnapshotDevices } from "./snapshot_devices.ts";
import { SnapshotDict } from "./snapshot_dict.ts";
import { SnapshotEvents } from "./snapshot_events.ts";
import { SnapshotLimits } from "./snapshot_limits.ts";
import { type ListContent, SnapshotList } from "./snapshot_list.ts";
import {
  type SegmentEntry,
  SnapshotBlocks,
  SnapshotSegments,
} from "./snapshot_segments.ts";
import { Key, SNAPSHOT_WORDS } from "./snapshot_words.ts";
import { TraceFormatError } from "./trace_format_error.ts";

const HOW_TO_RECORD =
  "record with torch.cuda.memory._record_memory_history(), " +
  "then write the file with torch.cuda.memory._dump_snapshot(path)";

/** Reads a pickled snapshot: one trace for each device that has events. */
export async function readSnapshot(source: ByteSource): Promise<Trace[]> {
  const fail = (problem: string, offset: number) =>
    source.error(problem, { offset });
  const limits = new SnapshotLimits(fail);
  const factory: PickleFactory = {
    dict: () => new SnapshotDict(),
    list: () => new SnapshotList(choose),
  };
  const machine = new PickleMachine(SNAPSHOT_WORDS, factory, fail);

  function choose(first: Value, offset: number): ListContent | undefined {
    if (SnapshotEvents.isEvent(first)) {
      return new SnapshotEvents(limits, offset);
    }
    if (SnapshotSegments.isSegment(first)) return new SnapshotSegments(limits);
    if (SnapshotBlocks.isBlock(first)) return new SnapshotBlocks(limits);
    if (first instanceof SnapshotList) return new SnapshotDevices();
    return undefined;
  }

  for (;;) {
    source.at = machine.run(source.bytes, source.at, source.base);
    if (machine.result !== undefined) break;
    if (!await source.fill(machine.needed)) throw cutShort(source);
  }
  if (await source.fill(1)) {
    throw source.error(
      "the pickle ends here, but the file goes on; expected one snapshot and nothing else",
    );
  }
  return tracesOf(machine.result, source.name);
}

function cutShort(source: ByteSource): TraceFormatError {
  const end = source.base + source.bytes.length;
  return source.error(
    `the file ends in the middle of the pickle${
      source.offset > end
        ? `, in a string that would go on to byte ${source.offset}`
        : ""
    }; it is cut short: copy or record it again`,
    { offset: end },
  );
}

/** Takes from the pickled value what there is to replay. */
function tracesOf(snapshot: Value, file: string): Trace[] {
  if (!(snapshot instanceof SnapshotDict)) {
    throw new TraceFormatError(
      file,
      `it is a pickle, but not of a memory snapshot, which is a dict; ${HOW_TO_RECORD}`,
    );
  }
  const devices = devicesOf(snapshot.get(Key.DEVICE_TRACES), file);
  const segments = segmentsOf(snapshot.get(Key.SEGMENTS), file);
  const traces = [...devices.entries()].map(
    ([device, { events, streams }]): Trace => ({
      source: "pytorch",
      device,
      events,
      segments: segments
        .filter((segment) => segment.device === device)
        .map(({ address, bytes, stream, live }) => ({
          address,
          bytes,
          stream: streams.indexOf(stream),
          live,
        })),
      streams: streams.names,
    }),
  ).filter(({ events }) => events.count > 0);
  if (traces.length === 0) {
    throw new TraceFormatError(
      file,
      `the snapshot has no events, so nothing was being recorded; ${HOW_TO_RECORD}`,
    );
  }
  return traces;
}

function devicesOf(
  value: Value | undefined,
  file: string,
): Map<number, SnapshotEvents> {
  if (value === undefined) {
    throw new TraceFormatError(
      file,
      `it is a pickle of a dict, but has no "device_traces"; ${HOW_TO_RECORD}`,
    );
  }
  const content = contentOf("device_traces", value, file);
  if (content === undefined) return new Map();
  if (content instanceof SnapshotDevices) return content.byNumber;
  throw new TraceFormatError(
    file,
    `expected "device_traces" to be a list of lists of events, one for each device; ${HOW_TO_RECORD}`,
  );
}

function segmentsOf(value: Value | undefined, file: string): SegmentEntry[] {
  if (value === undefined) return [];
  const content = contentOf("segments", value, file);
  if (content === undefined) return [];
  if (content instanceof SnapshotSegments) return content.entries;
  throw new TraceFormatError(
    file,
    `expected "segments" to be a list of segments; ${HOW_TO_RECORD}`,
  );
}

/** What a list has, undefined if it is empty. */
function contentOf(
  key: string,
  value: Value,
  file: string,
): ListContent | undefined {
  if (!(value instanceof SnapshotList)) {
    throw new TraceFormatError(
      file,
      `expected "${key}" to be a list; ${HOW_TO_RECORD}`,
    );
  }
  if (value.problem) {
    const { index, what, offset } = value.problem;
    throw new TraceFormatError(
      file,
      `item ${index} of "${key}" can't be read: ${what}; record the file again`,
      { offset },
    );
  }
  return value.content;
}
