/**
 * The events of a PyTorch memory snapshot.
 *
 * @module
 */

import { TraceAction, TraceEvents } from "../trace.ts";
import type { Value } from "./pickle_values.ts";
import { SnapshotDict } from "./snapshot_dict.ts";
import type { SnapshotLimits } from "./snapshot_limits.ts";
import { type ListContent, whatIs } from "./snapshot_list.ts";
import { actionOf, Key } from "./snapshot_words.ts";
import { StreamTable } from "./stream_table.ts";
import { Word } from "./words.ts";

/** The content of a list of events, which become rows of columns. */
export class SnapshotEvents implements ListContent {
  /** The events that are of interest. */
  readonly events: TraceEvents = new TraceEvents();
  /** The streams that they name. */
  readonly streams: StreamTable;
  readonly #limits: SnapshotLimits;

  /** Makes the content of an empty list. */
  constructor(limits: SnapshotLimits, offset: number) {
    limits.addDevice(offset);
    this.#limits = limits;
    this.streams = new StreamTable((problem) => limits.fail(problem, offset));
  }

  /** Whether something is an event. */
  static isEvent(value: Value): value is SnapshotDict {
    return value instanceof SnapshotDict && value.get(Key.ACTION) !== undefined;
  }

  /** Takes an event in. */
  add(event: Value, _index: number, offset: number): string | undefined {
    if (!SnapshotEvents.isEvent(event)) return whatIs(event);
    const action = event.get(Key.ACTION);
    const kind = action instanceof Word ? actionOf(action) : undefined;
    // Newer releases may know actions that mean nothing to a replay.
    if (kind === undefined) return undefined;
    const isOom = kind === TraceAction.OOM;
    const isFree = kind === TraceAction.FREE ||
      kind === TraceAction.FREE_REQUESTED;
    const addressKey = isOom ? Key.DEVICE_FREE : Key.ADDR;
    const address = event.count(addressKey, isOom ? NaN : undefined);
    if (address === undefined) return event.miscount(addressKey);
    const bytes = event.count(Key.SIZE, isFree ? 0 : undefined);
    if (bytes === undefined) return event.miscount(Key.SIZE);
    const stream = event.count(Key.STREAM, 0);
    if (stream === undefined) return event.miscount(Key.STREAM);
    const timeUs = event.count(Key.TIME_US, 0);
    if (timeUs === undefined) return event.miscount(Key.TIME_US);
    this.#limits.addEvent(offset);
    const index = this.streams.indexOf(stream);
    this.events.push(kind, address, bytes, index, timeUs);
    return undefined;
  }
}
