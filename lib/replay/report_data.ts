/**
 * What a replay found out: the figures that its reports show. All plain data; sizes in
 * bytes, times in nanoseconds unless the name says otherwise.
 *
 * @module
 */

import type { CallCount } from "../mapper.ts";
import type { TraceSource } from "./trace.ts";

/** The workload that was replayed. */
export interface WorkloadFigures {
  /** Name of its file, without folders. */
  name: string;
  /** Which recorder wrote it. */
  source: TraceSource;
  /** Number of the device in the recording. */
  device: number;
  /** Allocations, those of blocks that were live before the recording began included. */
  allocations: number;
  /** Frees. */
  frees: number;
  /** Blocks that were live before the recording began. */
  liveAtStart: number;
  /** Streams used. */
  streams: number;
  /** Bytes of all allocations together. */
  bytesAllocated: number;
  /** Most bytes live at once, as requested. */
  livePeak: number;
  /** Most bytes that the recorded allocator had reserved; undefined if its file does not say. */
  reservedPeak: number | undefined;
}

/** Quantiles of a set of times. */
export interface Quantiles {
  /** Number of samples. */
  count: number;
  /** Half are no longer than this. */
  p50: number;
  /** 99 % are no longer than this. */
  p99: number;
  /** 99.9 % are no longer than this. */
  p999: number;
  /** The longest. */
  max: number;
  /** All together. */
  sum: number;
}

/** How many samples fell into each range of times. */
export interface Histogram {
  /** Lower end of each bin; the last bin is open. Four bins to a doubling. */
  fromNs: number[];
  /** Samples in each bin. */
  counts: number[];
}

/** Figures over the course of a replay, at most about 2 000 points; the peak of each stretch is kept. */
export interface Timeline {
  /** Number of the step (an allocation or a free), counted from 0. */
  step: number[];
  /** Microseconds since the recording's first event. */
  timeUs: number[];
  /** Bytes live. */
  live: number[];
  /** Bytes held from the driver. */
  mapped: number[];
  /** Bytes that the recorded allocator held; empty if its file does not say. */
  reserved: number[];
  /** Bytes of the largest free block; empty for allocators that don't tell. */
  largestFree: number[];
}

/** How often a request was served in a way, and how long these requests took together. */
export interface WayFigures {
  /** Requests. */
  count: number;
  /** Nanoseconds. */
  ns: number;
}

/** A request that could not be served. */
export interface UnservedRequest {
  /** Number of its step. */
  step: number;
  /** Bytes asked for. */
  bytes: number;
  /** Why, in words. */
  reason: string;
}

/**
 * Where everything lay, and when: the block or mapping `i` took `bytes[i]` from
 * `address[i]` on, from step `from[i]` until before step `to[i]`.
 */
export interface Placements {
  /** First byte, counted from the lowest address in use. */
  address: Float64Array;
  /** Length. */
  bytes: Float64Array;
  /** Step at which it came. */
  from: Uint32Array;
  /** Step at which it was gone; the number of steps if it stayed. */
  to: Uint32Array;
}

/** What is needed to draw memory at any step. */
export interface MemoryMap {
  /** Number of steps. */
  steps: number;
  /** Live blocks. */
  blocks: Placements;
  /** Mapped extents, at the address where they were in use. */
  extents: Placements;
}

/** A request beside the same one allocated plainly. */
export interface ComparedRequest {
  /** Number of the block, in order of allocation. */
  block: number;
  /** Bytes asked for. */
  bytes: number;
  /** Nanoseconds it took. */
  ns: number;
  /** Nanoseconds it took there. */
  plainNs: number;
}

/** Allocation times beside those of the driver's plain allocator, request by request. */
export interface PlainComparison {
  /** The largest ratio of a request's time to that of the same request there. */
  worst: number;
  /** Requests that took more than one and a half times as long. */
  over: number;
  /** Those with the largest ratios, the worst first, at most 20. */
  slowest: ComparedRequest[];
}

/** One allocator's replay of the workload. */
export interface ReplayRun {
  /** `moonbright`, or the baseline: `plain` (the driver's allocator), `pool` (its stream-ordered pool), `segments` (the recorded allocator's segments through the driver). */
  allocator: "moonbright" | "plain" | "pool" | "segments";
  /** Name of MoonBright's policy; undefined for baselines. */
  policy: string | undefined;
  /** Where it ran: `cuda:0`, `host`, or `model` where only costs were counted. */
  device: string;
  /** Most bytes it was allowed to hold; undefined for no limit. */
  budget: number | undefined;
  /** Whether every request was served. */
  completed: boolean;
  /** Most bytes live at once. */
  livePeak: number;
  /** Most bytes held from the driver at once; undefined if the allocator does not tell. */
  mappedPeak: number | undefined;
  /** Nanoseconds in driver calls, or what they would cost on a model. */
  driverNs: number;
  /** Nanoseconds in all allocations and frees; on a model with what the driver's calls would cost. */
  totalNs: number;
  /** Times of allocations; of the segments, only of those. */
  alloc: Quantiles;
  /** Times of frees. */
  free: Quantiles;
  /** Allocations beside plain ones of the same report; undefined without them. */
  againstPlain?: PlainComparison;
  /** Times of allocations, for drawing. */
  allocHistogram: Histogram;
  /** By how requests were served: `reuse`, `extend`, `stitch`, `grow`; `flush` counts coherence points. */
  ways: Record<string, WayFigures>;
  /** Driver calls by kind. */
  calls: Record<string, CallCount>;
  /** Bytes over time. */
  timeline: Timeline;
  /** Requests that could not be served, the first 100. */
  unserved: UnservedRequest[];
  /** Number of requests that could not be served. */
  unservedCount: number;
  /** Where blocks and extents lay, if it was recorded. */
  map: MemoryMap | undefined;
}

/** Everything a report shows. */
export interface ReplayReport {
  /** The workload. */
  workload: WorkloadFigures;
  /** The replays: MoonBright first, then the baselines. */
  runs: ReplayRun[];
}
