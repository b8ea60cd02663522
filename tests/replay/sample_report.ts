// A made-up report that looks like that of a training run: memory rises in forward
// passes and falls in backward passes, over parameters that stay.

import type {
  Histogram,
  MemoryMap,
  Placements,
  Quantiles,
  ReplayReport,
  ReplayRun,
  Timeline,
} from "../../lib/replay/report_data.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Blocks of this size and above lie in a space of their own. */
const LARGE = 64 * MIB;
const LARGE_SPACE = 2 ** 40;
const EXTENT = 128 * MIB;

/** What the sample may differ in. */
export interface SampleOptions {
  /** Allocations. */
  blocks?: number;
  /** Name of the workload. */
  name?: string;
  /** Why requests were not served. */
  reason?: string;
}

/** A report with three runs, one of them with a map and one that did not serve everything. */
export function sampleReport(
  { blocks = 20_000, name = "gpt2-xl-train.pickle", reason }: SampleOptions =
    {},
): ReplayReport {
  const random = seeded(7);
  const world = simulate(blocks, random);
  const { live, mapped, map } = world;
  const livePeak = largest(live);
  const reserved = neverLess(live.map((bytes) => bytes * 1.22), 20 * MIB);
  const plainMapped = live.map((bytes) => Math.ceil(bytes / MIB / 2) * 2 * MIB);
  const common = { device: "cuda:0", livePeak, budget: undefined };
  const moonbright: ReplayRun = {
    ...common,
    allocator: "moonbright",
    policy: "stitch",
    completed: true,
    mappedPeak: largest(mapped),
    driverNs: 412e6,
    totalNs: 540e6,
    ...latencies(blocks, 900, random),
    ways: {
      reuse: { count: Math.round(blocks * 0.97), ns: 31e6 },
      extend: { count: Math.round(blocks * 0.01), ns: 96e6 },
      stitch: { count: Math.round(blocks * 0.005), ns: 141e6 },
      grow: { count: Math.round(blocks * 0.015), ns: 213e6 },
      flush: { count: 37, ns: 59e6 },
    },
    calls: {
      create: call(214, 214, 26 * GIB, 131e6),
      map: call(302, 517, 40 * GIB, 122e6),
      setAccess: call(302, 302, 40 * GIB, 97e6),
      unmap: call(37, 301, 14 * GIB, 54e6),
      release: call(12, 12, 1.5 * GIB, 8e6),
    },
    timeline: timeline(live, mapped, reserved),
    unserved: [],
    unservedCount: 0,
    map,
  };
  const segments: ReplayRun = {
    ...common,
    allocator: "segments",
    policy: undefined,
    completed: true,
    mappedPeak: largest(reserved),
    driverNs: 688e6,
    totalNs: 731e6,
    ...latencies(blocks, 1500, random),
    ways: {
      reuse: { count: Math.round(blocks * 0.98), ns: 43e6 },
      grow: { count: Math.round(blocks * 0.02), ns: 688e6 },
    },
    calls: {
      create: call(402, 402, 31 * GIB, 344e6),
      release: call(190, 190, 9 * GIB, 344e6),
    },
    timeline: { ...timeline(live, reserved, []), largestFree: [] },
    unserved: [],
    unservedCount: 0,
    map: undefined,
  };
  const plain: ReplayRun = {
    ...common,
    allocator: "plain",
    policy: undefined,
    budget: 12 * GIB,
    completed: false,
    mappedPeak: largest(plainMapped),
    driverNs: 9.4e9,
    totalNs: 9.5e9,
    ...latencies(blocks, 210_000, random),
    ways: { grow: { count: blocks, ns: 2.4e9 } },
    calls: {
      create: call(blocks, blocks, 512 * GIB, 1.3e9),
      release: call(blocks - 40, blocks - 40, 500 * GIB, 1.1e9),
    },
    timeline: { ...timeline(live, plainMapped, []), largestFree: [] },
    unserved: [0.3, 0.5, 0.7].map((part) => ({
      step: Math.round(part * live.length),
      bytes: 1.5 * GIB,
      reason: reason ??
        "the driver has no memory left: asked for 1.50 GiB, 11.8 GiB of 12 GiB in use",
    })),
    unservedCount: 143,
    map: undefined,
  };
  return {
    workload: {
      name,
      source: "pytorch",
      device: 0,
      allocations: blocks,
      frees: map.steps - blocks,
      liveAtStart: 61,
      streams: 3,
      bytesAllocated: map.blocks.bytes.reduce((sum, bytes) => sum + bytes, 0),
      livePeak,
      reservedPeak: largest(reserved),
    },
    runs: [moonbright, segments, plain],
  };
}

/** A report of a workload without any event, by one run. */
export function emptyReport(): ReplayReport {
  const none: Quantiles = { count: 0, p50: 0, p99: 0, p999: 0, max: 0, sum: 0 };
  return {
    workload: {
      name: "empty.json",
      source: "moonbright",
      device: 0,
      allocations: 0,
      frees: 0,
      liveAtStart: 0,
      streams: 0,
      bytesAllocated: 0,
      livePeak: 0,
      reservedPeak: undefined,
    },
    runs: [{
      allocator: "moonbright",
      policy: undefined,
      device: "model",
      budget: undefined,
      completed: true,
      livePeak: 0,
      mappedPeak: undefined,
      driverNs: 0,
      totalNs: 0,
      alloc: none,
      free: none,
      allocHistogram: { fromNs: [], counts: [] },
      ways: {},
      calls: {},
      timeline: {
        step: [],
        timeUs: [],
        live: [],
        mapped: [],
        reserved: [],
        largestFree: [],
      },
      unserved: [],
      unservedCount: 0,
      map: undefined,
    }],
  };
}

/** A report of a workload that allocates one block and ends. */
export function oneStepReport(): ReplayReport {
  return sampleReport({ blocks: 1 });
}

/** Numbers from 0 to 1 that are the same in every run of the tests (mulberry32). */
export function seeded(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface World {
  live: number[];
  mapped: number[];
  map: MemoryMap;
}

/** Runs made-up training steps over two spaces of addresses, first fit in each. */
function simulate(blocks: number, random: () => number): World {
  const spaces = { small: new Space(0), large: new Space(LARGE_SPACE) };
  const rows: Row[] = [];
  const live: number[] = [];
  const mapped: number[] = [];
  let bytesLive = 0;
  const note = () => {
    live.push(bytesLive);
    mapped.push(spaces.small.mapped + spaces.large.mapped);
  };
  const alloc = (bytes: number) => {
    const space = bytes < LARGE ? spaces.small : spaces.large;
    const row = { address: 0, bytes, from: live.length, to: -1 };
    row.address = space.take(bytes, row.from);
    rows.push(row);
    bytesLive += bytes;
    note();
    return row;
  };
  const free = (row: Row) => {
    (row.bytes < LARGE ? spaces.small : spaces.large).give(row);
    row.to = live.length;
    bytesLive -= row.bytes;
    note();
  };
  const size = () => {
    const kind = random();
    if (kind < 0.5) return 512 * (1 + Math.floor(random() * 500));
    if (kind < 0.93) return 512 * Math.floor(2048 + random() * 40_000);
    return 2 * MIB * Math.floor(32 + random() * 80);
  };
  for (let i = 0; i < Math.min(60, blocks); i++) {
    alloc(2 * MIB * Math.floor(4 + random() * 40));
  }
  for (let pass = 0; rows.length < blocks; pass++) {
    const activations: Row[] = [];
    const depth = Math.min(blocks - rows.length, 220 + (pass % 5) * 24);
    for (let i = 0; i < depth; i++) {
      activations.push(alloc(size()));
      if (i % 3 === 2) free(activations.splice(-2, 1)[0]!);
    }
    for (const row of activations.reverse()) free(row);
    if (pass % 16 === 15) spaces.large.trim(live.length);
  }
  const steps = live.length;
  return {
    live,
    mapped,
    map: {
      steps,
      blocks: placements(rows, steps),
      extents: placements(
        [...spaces.small.extents, ...spaces.large.extents],
        steps,
      ),
    },
  };
}

interface Row {
  address: number;
  bytes: number;
  from: number;
  to: number;
}

/** Addresses from a base on, mapped by extents as far as they are used. */
class Space {
  readonly extents: Row[] = [];
  mapped = 0;
  readonly #free: { address: number; bytes: number }[];

  constructor(base: number) {
    this.#free = [{ address: base, bytes: 2 ** 39 }];
  }

  take(bytes: number, step: number): number {
    const piece = this.#free.find((free) => free.bytes >= bytes)!;
    const { address } = piece;
    piece.address += bytes;
    piece.bytes -= bytes;
    if (piece.bytes === 0) this.#free.splice(this.#free.indexOf(piece), 1);
    this.#back(address, address + bytes, step);
    return address;
  }

  give({ address, bytes }: Row): void {
    const after = this.#free.findIndex((free) => free.address > address);
    this.#free.splice(after, 0, { address, bytes });
    for (const at of [after, after - 1]) {
      const [one, two] = [this.#free[at], this.#free[at + 1]];
      if (!one || !two || one.address + one.bytes !== two.address) continue;
      one.bytes += two.bytes;
      this.#free.splice(at + 1, 1);
    }
  }

  /** Gives back the extents that lie in free addresses. */
  trim(step: number): void {
    for (const extent of this.extents) {
      const { address, bytes } = extent;
      const unused = this.#free.some((free) =>
        free.address <= address &&
        free.address + free.bytes >= address + bytes
      );
      if (extent.to >= 0 || !unused) continue;
      extent.to = step;
      this.mapped -= bytes;
    }
  }

  #back(start: number, end: number, step: number): void {
    const first = Math.floor(start / EXTENT) * EXTENT;
    for (let address = first; address < end; address += EXTENT) {
      const there = this.extents.some((extent) =>
        extent.address === address && extent.to < 0
      );
      if (there) continue;
      this.extents.push({ address, bytes: EXTENT, from: step, to: -1 });
      this.mapped += EXTENT;
    }
  }
}

function placements(rows: readonly Row[], steps: number): Placements {
  return {
    address: Float64Array.from(rows, (row) => row.address),
    bytes: Float64Array.from(rows, (row) => row.bytes),
    from: Uint32Array.from(rows, (row) => row.from),
    to: Uint32Array.from(rows, (row) => row.to < 0 ? steps : row.to),
  };
}

function timeline(
  live: number[],
  mapped: number[],
  reserved: number[],
): Timeline {
  const stretch = Math.max(1, Math.ceil(live.length / 2000));
  const points: Timeline = {
    step: [],
    timeUs: [],
    live: [],
    mapped: [],
    reserved: [],
    largestFree: [],
  };
  for (let from = 0; from < live.length; from += stretch) {
    let peak = from;
    for (let i = from; i < Math.min(live.length, from + stretch); i++) {
      if (live[i]! > live[peak]!) peak = i;
    }
    points.step.push(peak);
    // The recorded program paused halfway.
    points.timeUs.push(peak * 11 + (peak > live.length / 2 ? 60_000 : 0));
    points.live.push(live[peak]!);
    points.mapped.push(mapped[peak]!);
    if (reserved.length > 0) points.reserved.push(reserved[peak]!);
    points.largestFree.push(
      Math.floor((mapped[peak]! - live[peak]!) * 0.6 / 512) * 512,
    );
  }
  return points;
}

/** Times around a median, most of them close to it and a few far above. */
function latencies(count: number, medianNs: number, random: () => number): {
  alloc: Quantiles;
  free: Quantiles;
  allocHistogram: Histogram;
} {
  const times = Array.from({ length: count }, () => {
    const slow = random() < 0.015 ? 400 * random() : 0;
    return medianNs * (0.6 + random() ** 3 * 2 + slow);
  }).sort((a, b) => a - b);
  const at = (part: number) => times[Math.floor(part * (count - 1))] ?? 0;
  const alloc = {
    count,
    p50: at(0.5),
    p99: at(0.99),
    p999: at(0.999),
    max: at(1),
    sum: times.reduce((sum, ns) => sum + ns, 0),
  };
  const fromNs = Array.from({ length: 120 }, (_, bin) => 2 ** (bin / 4));
  const counts = fromNs.map(() => 0);
  for (const ns of times) counts[Math.floor(Math.log2(ns) * 4)]!++;
  return { alloc, free: alloc, allocHistogram: { fromNs, counts } };
}

function call(calls: number, items: number, bytes: number, ns: number) {
  return { calls, items, bytes, ns };
}

/** Rounds up to a multiple, and never falls. */
function neverLess(values: number[], multiple: number): number[] {
  let most = 0;
  return values.map((value) =>
    most = Math.max(most, Math.ceil(value / multiple) * multiple)
  );
}

function largest(values: number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}
