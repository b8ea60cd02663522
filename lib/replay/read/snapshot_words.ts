/**
 * The strings of a PyTorch memory snapshot that its reader looks at.
 *
 * @module
 */

import { TraceAction } from "../trace.ts";
import { Vocabulary, type Word } from "./words.ts";

/** Keys of a snapshot's dicts, by their place in the vocabulary. */
export const Key = {
  /** Of the snapshot: a list of segments. */
  SEGMENTS: 0,
  /** Of the snapshot: by device, a list of events. */
  DEVICE_TRACES: 1,
  /** Of an event: what happened. */
  ACTION: 2,
  /** Of an event: the address. */
  ADDR: 3,
  /** Of an event or block: its bytes. */
  SIZE: 4,
  /** Of an event or segment: the stream's handle. */
  STREAM: 5,
  /** Of an event: microseconds. */
  TIME_US: 6,
  /** Of an event of kind oom: bytes free on the device. */
  DEVICE_FREE: 7,
  /** Of a segment: the device's number. */
  DEVICE: 8,
  /** Of a segment or block: the address. */
  ADDRESS: 9,
  /** Of a segment: its bytes. */
  TOTAL_SIZE: 10,
  /** Of a segment: a list of its blocks. */
  BLOCKS: 11,
  /** Of a block: the bytes that were asked for. */
  REQUESTED_SIZE: 12,
  /** Of a block: whether it is live. */
  STATE: 13,
} as const;

/** One of the values of `Key`. */
export type Key = typeof Key[keyof typeof Key];

/** Number of keys. */
export const KEY_COUNT: number = Object.keys(Key).length;

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

/** States of a block that is not free; the last is what older releases wrote. */
const LIVE_STATES = [
  "active_allocated",
  "active_pending_free",
  "active_awaiting_free",
];

/** All strings that are looked at, the keys first. */
export const SNAPSHOT_WORDS: Vocabulary = new Vocabulary([
  ...Object.keys(Key).map((name) => name.toLowerCase()),
  ...Object.keys(ACTIONS),
  ...LIVE_STATES,
]);

const ACTION_OF_WORD = SNAPSHOT_WORDS.words.map(({ text }) => ACTIONS[text]);
const IS_LIVE = SNAPSHOT_WORDS.words.map(({ text }) =>
  LIVE_STATES.includes(text)
);

/** What an event's action means, undefined if it is of no interest. */
export function actionOf(word: Word): TraceAction | undefined {
  return ACTION_OF_WORD[word.index];
}

/** Whether a block in this state is not free. */
export function isLiveState(word: Word): boolean {
  return IS_LIVE[word.index]!;
}
