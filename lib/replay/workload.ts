/**
 * A recorded workload as steps that can be replayed: each allocates or frees a block
 * that has a number of its own, however often its address was used again.
 *
 * @module
 */

import { grown } from "../growable.ts";
import { liveBeforeRecording } from "./live_before.ts";
import { recordedMemory, type SegmentStep } from "./recorded_memory.ts";
import type { WorkloadFigures } from "./report_data.ts";
import { type Trace, TraceAction } from "./trace.ts";

/** Steps in columns; row `i` of each belongs to step `i`. */
export class Workload {
  /** Number of steps. */
  steps = 0;
  /** Number of blocks. */
  blocks = 0;
  /** Block of each step: its first step allocates it, its second frees it. */
  block: Uint32Array = new Uint32Array(0);
  /** 1 for an allocation, 0 for a free. */
  isAlloc: Uint8Array = new Uint8Array(0);
  /** Stream of each step: that of the request, or of the block's last use. */
  stream: Uint32Array = new Uint32Array(0);
  /** Microseconds since the recording's first event. */
  timeUs: Float64Array = new Float64Array(0);
  /** Bytes of each block, as requested. */
  bytes: Float64Array = new Float64Array(0);
  /** Bytes that the recorded allocator held after each step; empty if its file does not say. */
  reserved: Float64Array = new Float64Array(0);
  /** What the recorded allocator asked of the driver, in order. */
  segmentSteps: SegmentStep[] = [];
  /** The streams, as recorded. */
  streams: string[] = [];
  /** What there is to say about it. */
  figures!: WorkloadFigures;

  /** Appends the allocation of a new block; returns the block. */
  alloc(bytes: number, stream: number, timeUs: number): number {
    const block = this.blocks++;
    this.bytes = grown(this.bytes, this.blocks);
    this.bytes[block] = bytes;
    this.#step(block, 1, stream, timeUs);
    return block;
  }

  /** Appends the free of a block. */
  free(block: number, stream: number, timeUs: number): void {
    this.#step(block, 0, stream, timeUs);
  }

  #step(block: number, isAlloc: 0 | 1, stream: number, timeUs: number): void {
    const at = this.steps++;
    this.block = grown(this.block, this.steps);
    this.isAlloc = grown(this.isAlloc, this.steps);
    this.stream = grown(this.stream, this.steps);
    this.timeUs = grown(this.timeUs, this.steps);
    this.block[at] = block;
    this.isAlloc[at] = isAlloc;
    this.stream[at] = stream;
    this.timeUs[at] = timeUs;
  }
}

/**
 * Makes steps of a recording. Blocks that were live before it began are allocated
 * first, in the order of their addresses. Recorders write a free when the block may be
 * used again (`FREE`) or, where only that was kept, when its owner gave it up
 * (`FREE_REQUESTED`). Requests of no bytes, and frees of blocks that nothing tells the
 * size of, are left out.
 */
export function workloadOf(name: string, trace: Trace): Workload {
  const { events } = trace;
  const workload = new Workload();
  workload.streams = trace.streams.length > 0 ? trace.streams : ["0"];
  const firstUs = events.count > 0 ? events.timeUs[0]! : 0;
  /** Live blocks by address. */
  const live = new Map<number, number>();
  for (const { address, bytes, stream } of liveBeforeRecording(trace)) {
    live.set(address, workload.alloc(bytes, stream, 0));
  }
  const liveAtStart = workload.blocks;
  const memory = recordedMemory(trace);
  const reserved: number[] = [];
  const noteReserved = () => {
    while (reserved.length < workload.steps) reserved.push(memory.reserved);
  };
  if (memory.known) noteReserved();
  for (let i = 0; i < events.count; i++) {
    const address = events.address[i]!;
    const stream = events.stream[i]!;
    const timeUs = events.timeUs[i]! - firstUs;
    switch (events.action[i]) {
      case TraceAction.ALLOC:
        if (events.bytes[i]! === 0) break;
        endLife(workload, live, address, stream, timeUs);
        live.set(address, workload.alloc(events.bytes[i]!, stream, timeUs));
        break;
      case TraceAction.FREE:
        endLife(workload, live, address, stream, timeUs);
        break;
      case TraceAction.FREE_REQUESTED:
        // Without the other kind, which ends the block's life as the allocator saw it.
        if (!memory.completesFrees) {
          endLife(workload, live, address, stream, timeUs);
        }
        break;
      default:
        memory.pass(i, workload.steps);
    }
    if (memory.known) noteReserved();
  }
  workload.reserved = Float64Array.from(reserved);
  workload.segmentSteps = memory.steps;
  workload.figures = {
    name,
    source: trace.source,
    device: trace.device,
    allocations: workload.blocks,
    frees: workload.steps - workload.blocks,
    liveAtStart,
    streams: new Set(workload.stream.subarray(0, workload.steps)).size,
    bytesAllocated: sum(workload.bytes, workload.blocks),
    livePeak: peakOf(workload),
    reservedPeak: memory.known ? memory.peak : undefined,
  };
  return workload;
}

/** Frees the live block at an address, if there is one. */
function endLife(
  workload: Workload,
  live: Map<number, number>,
  address: number,
  stream: number,
  timeUs: number,
): void {
  const block = live.get(address);
  if (block === undefined) return;
  live.delete(address);
  workload.free(block, stream, timeUs);
}

function peakOf({ steps, block, isAlloc, bytes }: Workload): number {
  let live = 0;
  let peak = 0;
  for (let i = 0; i < steps; i++) {
    const size = bytes[block[i]!]!;
    live += isAlloc[i] === 1 ? size : -size;
    if (live > peak) peak = live;
  }
  return peak;
}

function sum(values: Float64Array, count: number): number {
  let total = 0;
  for (let i = 0; i < count; i++) total += values[i]!;
  return total;
}
