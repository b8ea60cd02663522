/**
 * The segments of a PyTorch memory snapshot: what the allocator held when it was taken.
 *
 * @module
 */

import type { TraceBlock } from "../trace.ts";
import type { Value } from "./pickle_values.ts";
import { SnapshotDict } from "./snapshot_dict.ts";
import type { SnapshotLimits } from "./snapshot_limits.ts";
import { type ListContent, SnapshotList, whatIs } from "./snapshot_list.ts";
import { isLiveState, Key } from "./snapshot_words.ts";
import { Word } from "./words.ts";

/** A segment at the end of the recording. */
export interface SegmentEntry {
  /** Number of the device. */
  device: number;
  /** First byte. */
  address: number;
  /** Length in bytes; of an expandable segment, what is mapped. */
  bytes: number;
  /** The stream's handle. */
  stream: number;
  /** Its live blocks. */
  live: TraceBlock[];
}

/** A live block at the end of the recording. */
interface BlockEntry {
  /** First byte; undefined in files of older releases. */
  address: number | undefined;
  /** Bytes of its segment in front of it. */
  before: number;
  /** Length in bytes, as requested. */
  bytes: number;
}

/** The content of a list of segments. */
export class SnapshotSegments implements ListContent {
  /** The segments. */
  readonly entries: SegmentEntry[] = [];
  readonly #limits: SnapshotLimits;

  /** Makes the content of an empty list. */
  constructor(limits: SnapshotLimits) {
    this.#limits = limits;
  }

  /** Whether something is a segment. */
  static isSegment(value: Value): value is SnapshotDict {
    return value instanceof SnapshotDict &&
      value.get(Key.TOTAL_SIZE) !== undefined;
  }

  /** Takes a segment in. */
  add(segment: Value, _index: number, offset: number): string | undefined {
    if (!SnapshotSegments.isSegment(segment)) return whatIs(segment);
    const device = segment.count(Key.DEVICE, 0);
    if (device === undefined) return segment.miscount(Key.DEVICE);
    const address = segment.count(Key.ADDRESS);
    if (address === undefined) return segment.miscount(Key.ADDRESS);
    const bytes = segment.count(Key.TOTAL_SIZE);
    if (bytes === undefined) return segment.miscount(Key.TOTAL_SIZE);
    const stream = segment.count(Key.STREAM, 0);
    if (stream === undefined) return segment.miscount(Key.STREAM);
    const live = liveBlocksOf(segment.get(Key.BLOCKS), address);
    if (typeof live === "string") return live;
    this.#limits.addEntry(offset);
    this.entries.push({ device, address, bytes, stream, live });
    return undefined;
  }
}

/** The content of a segment's list of blocks. */
export class SnapshotBlocks implements ListContent {
  /** The live ones. */
  readonly live: BlockEntry[] = [];
  readonly #limits: SnapshotLimits;
  #bytes = 0;

  /** Makes the content of an empty list. */
  constructor(limits: SnapshotLimits) {
    this.#limits = limits;
  }

  /** Whether something is a block. */
  static isBlock(value: Value): value is SnapshotDict {
    return value instanceof SnapshotDict && value.get(Key.STATE) !== undefined;
  }

  /** Takes a block in. */
  add(block: Value, _index: number, offset: number): string | undefined {
    if (!SnapshotBlocks.isBlock(block)) return whatIs(block);
    const bytes = block.count(Key.SIZE);
    if (bytes === undefined) return block.miscount(Key.SIZE);
    const before = this.#bytes;
    this.#bytes += bytes;
    const state = block.get(Key.STATE);
    if (!(state instanceof Word && isLiveState(state))) return undefined;
    const requested = block.count(Key.REQUESTED_SIZE, bytes);
    if (requested === undefined) return block.miscount(Key.REQUESTED_SIZE);
    const address = block.count(Key.ADDRESS, NaN);
    if (address === undefined) return block.miscount(Key.ADDRESS);
    this.#limits.addEntry(offset);
    this.live.push({
      address: Number.isNaN(address) ? undefined : address,
      before,
      bytes: requested,
    });
    return undefined;
  }
}

/** The live blocks of a segment at an address, or what is wrong with them. */
function liveBlocksOf(
  blocks: Value | undefined,
  segmentAddress: number,
): TraceBlock[] | string {
  if (blocks === undefined) return [];
  if (!(blocks instanceof SnapshotList)) {
    return `its "blocks" can't be read: ${whatIs(blocks)}`;
  }
  const { length, content, problem } = blocks;
  if (problem) {
    return `its block ${problem.index} can't be read: ${problem.what}`;
  }
  if (length === 0) return [];
  if (!(content instanceof SnapshotBlocks)) {
    return 'its "blocks" is no list of blocks';
  }
  const live = content.live.map(({ address, before, bytes }) => ({
    address: address ?? segmentAddress + before,
    bytes,
  }));
  return live.every(({ address }) => Number.isSafeInteger(address))
    ? live
    : "its blocks go beyond 2^53";
}
