/**
 * What the writer and the reader of MoonBright's own traces share. `write_trace.ts` says
 * what the format is.
 *
 * @module
 */

import { TraceAction } from "../trace.ts";

/** Value of `format` in the first line. */
export const FORMAT = "moonbright-trace";
/** Value of `version` in the first line. */
export const VERSION = 1;

/** First element of an event's line. */
export const ACTION_NAMES: Readonly<Record<TraceAction, string>> = {
  [TraceAction.ALLOC]: "alloc",
  [TraceAction.FREE_REQUESTED]: "free_requested",
  [TraceAction.FREE]: "free",
  [TraceAction.SEGMENT_ALLOC]: "segment_alloc",
  [TraceAction.SEGMENT_FREE]: "segment_free",
  [TraceAction.SEGMENT_MAP]: "segment_map",
  [TraceAction.SEGMENT_UNMAP]: "segment_unmap",
  [TraceAction.OOM]: "oom",
};

/** First element of a line that names a stream. */
export const STREAM_LINE = "stream";
/** First element of a line that tells of a segment at the end. */
export const SEGMENT_LINE = "segment";
/** First element of a line that tells of a live block of the segment above it. */
export const BLOCK_LINE = "block";
