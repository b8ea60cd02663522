/**
 * What `moonbright top` shows of an instance: little, however many blocks there are.
 *
 * @module
 */

import { BlockState } from "../blocks.ts";
import type { DeviceInfo } from "../driver.ts";
import type { MoonBright } from "../moonbright.ts";
import type { Stats } from "../stats.ts";

/** What a stream's blocks take, in bytes. */
export interface StreamUse {
  /** Number of the stream. */
  stream: number;
  /** In live blocks. */
  live: number;
  /** Number of live blocks. */
  liveBlocks: number;
  /** In free blocks that the stream can have at once. */
  free: number;
  /** Freed, but still used by work on another stream. */
  pending: number;
}

/** What live blocks of one name take, in bytes. */
export interface NameUse {
  /** The name, `null` for blocks that have none. */
  name: string | null;
  /** Number of live blocks. */
  blocks: number;
  /** In all of them. */
  bytes: number;
  /** The largest of them. */
  largest: number;
}

/** Figures of an instance at one moment. */
export interface Summary {
  /** Version of this layout. */
  schemaVersion: 1;
  /** Number of the process. */
  pid: number;
  /** When it was taken, ISO 8601. */
  time: string;
  /** Milliseconds on a clock that never jumps, for rates between two summaries. */
  clockMs: number;
  /** The device. */
  device: DeviceInfo;
  /** The figures. */
  stats: Stats;
  /** Streams that have blocks, by number. */
  streams: StreamUse[];
  /** Live blocks by name, those that take most first; no more than `MOST_NAMES`. */
  names: NameUse[];
  /** Names that are left out. */
  moreNames: number;
}

/** Most names in a summary. */
export const MOST_NAMES = 50;

/** Takes the figures. Looks at each record of a block once. */
export function takeSummary(mb: MoonBright): Summary {
  const stats = mb.stats();
  const { blocks, names } = mb.allocator;
  const byStream = new Map<number, StreamUse>();
  const byName = new Map<string | null, NameUse>();
  for (let id = 1; id < blocks.end; id++) {
    const state = blocks.state[id];
    if (state === BlockState.NONE) continue;
    const size = blocks.size[id]!;
    const use = streamUse(byStream, blocks.stream[id]!);
    if (state === BlockState.FREE) use.free += size;
    else if (state === BlockState.PENDING) use.pending += size;
    else {
      use.live += size;
      use.liveBlocks++;
      addName(byName, names.get(id) ?? null, size);
    }
  }
  const largestFirst = [...byName.values()].sort((a, b) => b.bytes - a.bytes);
  return {
    schemaVersion: 1,
    pid: Deno.pid,
    time: new Date().toISOString(),
    clockMs: performance.now(),
    device: { ...mb.device },
    stats,
    streams: [...byStream.values()].sort((a, b) => a.stream - b.stream),
    names: largestFirst.slice(0, MOST_NAMES),
    moreNames: Math.max(0, largestFirst.length - MOST_NAMES),
  };
}

function streamUse(
  byStream: Map<number, StreamUse>,
  stream: number,
): StreamUse {
  let use = byStream.get(stream);
  if (!use) {
    use = { stream, live: 0, liveBlocks: 0, free: 0, pending: 0 };
    byStream.set(stream, use);
  }
  return use;
}

function addName(
  byName: Map<string | null, NameUse>,
  name: string | null,
  size: number,
): void {
  let use = byName.get(name);
  if (!use) {
    use = { name, blocks: 0, bytes: 0, largest: 0 };
    byName.set(name, use);
  }
  use.blocks++;
  use.bytes += size;
  use.largest = Math.max(use.largest, size);
}
