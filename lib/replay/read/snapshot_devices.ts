/**
 * The devices of a PyTorch memory snapshot.
 *
 * @module
 */

import type { Value } from "./pickle_values.ts";
import { SnapshotEvents } from "./snapshot_events.ts";
import { type ListContent, SnapshotList, whatIs } from "./snapshot_list.ts";

/** The content of a list of devices, each a list of events. */
export class SnapshotDevices implements ListContent {
  /** The devices that have events, by number. */
  readonly byNumber: Map<number, SnapshotEvents> = new Map();

  /** Takes a device in. */
  add(device: Value, index: number): string | undefined {
    if (!(device instanceof SnapshotList)) return whatIs(device);
    const { length, content, problem } = device;
    if (length === 0) return undefined;
    if (problem) return `event ${problem.index} can't be read: ${problem.what}`;
    if (!(content instanceof SnapshotEvents)) return "it is no list of events";
    this.byNumber.set(index, content);
    return undefined;
  }
}
