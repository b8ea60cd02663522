/**
 * Segments of memory with all that lies in them, as PyTorch's viewers want them: blocks
 * that cover a segment without a gap.
 *
 * @module
 */

import type { MappedSnapshot } from "../../live/read_snapshot.ts";
import { layOut } from "../../live/memory_layout.ts";
import type { BlockSnapshot } from "../../snapshot.ts";
import { liveBeforeRecording } from "../live_before.ts";
import { type Trace, TraceAction, type TraceBlock } from "../trace.ts";

/** A piece of a segment. */
export interface ExportedBlock {
  /** First byte. */
  address: number;
  /** Bytes. */
  size: number;
  /** Bytes asked for; 0 of a free one. */
  requested: number;
  /** What it is: `pending` is freed, but still in use. */
  state: BlockSnapshot["state"];
  /** Its name, if it has one. */
  name?: string;
}

/** A segment. Its blocks cover it, by address. */
export interface ExportedSegment {
  /** First byte. */
  address: number;
  /** Bytes. */
  size: number;
  /** Number of the stream. */
  stream: number;
  /** Its blocks. */
  blocks: ExportedBlock[];
}

/** Addresses apart by no more than this become one segment where a recording tells none. */
const LARGEST_GAP = 2 * 1024 ** 2;

/** The segments of a snapshot: its stretches of mapped addresses. */
export function segmentsOfSnapshot(
  snapshot: MappedSnapshot,
): ExportedSegment[] {
  return layOut(snapshot).stretches.map(({ address, size, blocks }) => ({
    address,
    size,
    stream: blocks[0]?.stream ?? 0,
    blocks: blocks.map(({ address, size, requested, state, name }) => ({
      address,
      size,
      requested,
      state,
      ...(name === undefined ? {} : { name }),
    })),
  }));
}

/**
 * The segments that a recording ended with. One that tells none, such as RMM's and
 * MoonBright's, gets one for each stretch of addresses that its blocks ever lay in, since
 * viewers look for a segment around each block.
 */
export function segmentsOfTrace(
  trace: Trace,
  streams: readonly number[],
): ExportedSegment[] {
  const { segments } = trace;
  if (segments.length > 0) {
    return segments.map(({ address, bytes, stream, live }) => ({
      address,
      size: bytes,
      stream: streams[stream] ?? 0,
      blocks: covering(address, bytes, live),
    }));
  }
  const { everUsed, live } = replayAddresses(trace);
  return stretchesOf(everUsed).map(({ address, bytes }) => {
    const inside = live.filter((block) =>
      block.address >= address && block.address < address + bytes
    );
    return {
      address,
      size: bytes,
      stream: streams[inside[0]?.stream ?? 0] ?? 0,
      blocks: covering(address, bytes, inside),
    };
  });
}

/** Live blocks and the free ones between them. What overlaps or lies outside is left out. */
function covering(
  address: number,
  bytes: number,
  live: readonly TraceBlock[],
): ExportedBlock[] {
  const blocks: ExportedBlock[] = [];
  let at = address;
  const free = (end: number) => {
    if (end > at) {
      blocks.push({ address: at, size: end - at, requested: 0, state: "free" });
    }
  };
  for (const block of live.toSorted((a, b) => a.address - b.address)) {
    const end = block.address + block.bytes;
    if (block.bytes === 0 || block.address < at || end > address + bytes) {
      continue;
    }
    free(block.address);
    blocks.push({
      address: block.address,
      size: block.bytes,
      requested: block.bytes,
      state: "live",
    });
    at = end;
  }
  free(address + bytes);
  return blocks;
}

/** Where blocks ever lay, and which are live at the end. */
function replayAddresses(trace: Trace): {
  everUsed: TraceBlock[];
  live: (TraceBlock & { stream: number })[];
} {
  const { events } = trace;
  const live = new Map<number, TraceBlock & { stream: number }>();
  /** The largest block that began at each address. */
  const longest = new Map<number, number>();
  const use = (address: number, bytes: number) =>
    longest.set(address, Math.max(bytes, longest.get(address) ?? 0));
  for (const block of liveBeforeRecording(trace)) {
    live.set(block.address, block);
    use(block.address, block.bytes);
  }
  for (let i = 0; i < events.count; i++) {
    const address = events.address[i]!;
    const bytes = events.bytes[i]!;
    switch (events.action[i]) {
      case TraceAction.ALLOC:
        if (bytes === 0) break;
        live.set(address, { address, bytes, stream: events.stream[i]! });
        use(address, bytes);
        break;
      case TraceAction.FREE:
      case TraceAction.FREE_REQUESTED:
        live.delete(address);
    }
  }
  const everUsed = [...longest].map(([address, bytes]) => ({ address, bytes }))
    .sort((a, b) => a.address - b.address);
  return { everUsed, live: [...live.values()] };
}

function stretchesOf(ranges: readonly TraceBlock[]): TraceBlock[] {
  const stretches: TraceBlock[] = [];
  for (const { address, bytes } of ranges) {
    const last = stretches.at(-1);
    if (last && address <= last.address + last.bytes + LARGEST_GAP) {
      last.bytes = Math.max(last.bytes, address + bytes - last.address);
    } else stretches.push({ address, bytes });
  }
  return stretches;
}
