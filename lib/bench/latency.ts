/**
 * Latencies of allocating and freeing in every way, each beside its peers measured in
 * the same run.
 *
 * @module
 */

import type { Block } from "../block.ts";
import type { Kernel } from "../kernel.ts";
import type { DriverCall } from "../mapper.ts";
import type { MoonBright } from "../moonbright.ts";
import { type Series, timeBatches, timeEach } from "./samples.ts";
import type { TimedDriver } from "./timed_driver.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

/** What the benchmarks run on. */
export interface BenchContext {
  /** An instance of its own for the benchmarks: they trim it. */
  mb: MoonBright;
  /** Its driver, with baselines. */
  driver: TimedDriver;
  /** The kernel that keeps a stream busy for a number of nanoseconds. */
  spin: Kernel;
  /** The kernel that does nothing. */
  empty: Kernel;
  /** Divides the number of samples, for quick runs. */
  quick: boolean;
  /** Told what is being measured. */
  progress: (what: string) => void;
}

/** Sizes of the latency tables that fit the device, in bytes. */
export function latencySizes(available: number): number[] {
  const sizes = [512, 64 * 1024, 2 * MIB, 16 * MIB, 128 * MIB, GIB, 8 * GIB];
  return sizes.filter((size) => size <= available / 2);
}

/**
 * First allocation and its free with nothing cached, beside plain allocation, the
 * pool when empty and the raw calls for one extent of the size.
 */
export function benchFirst(c: BenchContext, sizes: number[]): Series[] {
  const { mb, driver } = c;
  const all: Series[] = [];
  for (const size of sizes) {
    c.progress(`first allocation of ${size} bytes`);
    const n = sampleCount(c, size >= GIB ? 15 : 60);
    const group = "first allocation";
    const add = (subject: string, samplesNs: ArrayLike<number>) =>
      all.push({ group, subject, size, samplesNs: Array.from(samplesNs) });
    mb.trim();
    let block: Block | undefined;
    const warmUp = Math.min(3, n);
    // Alternates with the peer, so that a drift of the machine hits both alike.
    const ours: number[] = [];
    const plain = { alloc: [] as number[], free: [] as number[] };
    for (let i = 0; i < n + warmUp; i++) {
      pause(size);
      const [ns] = timeEach(1, () => {
        block = mb.alloc(size);
      }, () => {
        block!.free();
        mb.trim();
      });
      pause(size);
      const times = driver.timePlain(size, 1);
      if (i < warmUp) continue;
      ours.push(ns!);
      plain.alloc.push(times.allocNs[0]!);
      plain.free.push(times.freeNs[0]!);
    }
    add("MoonBright", ours);
    add("plain alloc", plain.alloc);
    add("plain free", plain.free);
    if (mb.device.pools) {
      const pool = driver.timePool(size, 0, false, n);
      add("pool alloc, cold", pool.allocNs);
    }
    const { granularity } = mb.device;
    const extent = Math.ceil(size / granularity) * granularity;
    const vmm = driver.timeVmm(extent, extent, n);
    add("raw calls, one extent", addUp(vmm.createNs, vmm.mapNs, vmm.accessNs));
  }
  return all;
}

/** Allocation and free of a size that is cached, beside the pool when warm. */
export function benchReuse(c: BenchContext, sizes: number[]): Series[] {
  const { mb, driver } = c;
  const all: Series[] = [];
  for (const size of sizes) {
    c.progress(`reuse of ${size} bytes`);
    const group = "reuse";
    const add = (subject: string, samplesNs: ArrayLike<number>) =>
      all.push({ group, subject, size, samplesNs: Array.from(samplesNs) });
    // Live neighbours: the block is found among others, not alone in the heap.
    const neighbours = [size, size].map((bytes) =>
      mb.alloc(Math.min(bytes, 64 * MIB))
    );
    mb.alloc(size).free();
    timeBatches(20, 1000, () => mb.alloc(size).free());
    add(
      "MoonBright pair",
      timeBatches(sampleCount(c, 400), 500, () => mb.alloc(size).free()),
    );
    const singles: number[] = [];
    const frees: number[] = [];
    for (let i = 0; i < sampleCount(c, 20_000); i++) {
      const t0 = performance.now();
      const block = mb.alloc(size);
      const t1 = performance.now();
      block.free();
      const t2 = performance.now();
      singles.push((t1 - t0) * 1e6);
      frees.push((t2 - t1) * 1e6);
    }
    add("MoonBright alloc, timed singly", singles);
    add("MoonBright free, timed singly", frees);
    for (const block of neighbours) block.free();
    if (mb.device.pools) {
      const n = sampleCount(c, size >= GIB ? 200 : 2000);
      const pool = driver.timePool(size, 0, true, n);
      add("pool pair, warm", addUp(pool.allocNs, pool.freeNs));
    }
    mb.trim();
  }
  return all;
}

/** Growing a heap whose memory is all in use, so that nothing can be reused or stitched. */
export function benchGrow(c: BenchContext, sizes: number[]): Series[] {
  const { mb, driver } = c;
  const all: Series[] = [];
  for (const size of sizes) {
    if (size > GIB || size < mb.device.granularity) continue;
    c.progress(`growth by ${size} bytes`);
    const n = sampleCount(c, 20);
    mb.trim();
    const base = mb.alloc(2 * size);
    const samplesNs: number[] = [];
    for (let i = 0; i < n; i++) {
      let block: Block | undefined;
      samplesNs.push(...timeEach(1, () => {
        block = mb.alloc(size);
      }));
      block!.free();
      mb.trim();
    }
    base.free();
    mb.trim();
    all.push({ group: "grow", subject: "MoonBright", size, samplesNs });
    const plain = driver.timePlain(size, n);
    all.push({
      group: "grow",
      subject: "plain alloc",
      size,
      samplesNs: Array.from(plain.allocNs),
    });
  }
  return all;
}

/**
 * 1 GiB out of scattered extents of the granularity, beside the bare calls that map as
 * many extents; and the share of it that is not driver calls.
 */
export function benchStitch(c: BenchContext, available: number): Series[] {
  const { mb, driver } = c;
  const { granularity } = mb.device;
  let size = GIB;
  while (3 * size > available) size /= 2;
  const extents = size / granularity;
  c.progress(`stitching ${extents} extents`);
  const n = sampleCount(c, 10);
  const group = "stitch";
  const ours: number[] = [];
  const own: number[] = [];
  const planning: number[] = [];
  const calls = observeCalls(mb);
  // The first rounds compile the code that they run.
  const warmUp = 3;
  for (let i = 0; i < n + warmUp; i++) {
    mb.trim();
    const blocks: Block[] = [];
    for (let j = 0; j < 2 * extents; j++) blocks.push(mb.alloc(granularity));
    for (let j = 0; j < blocks.length; j += 2) blocks[j]!.free();
    const before = mb.stats();
    calls.length = 0;
    let block: Block | undefined;
    const [ns] = timeEach(1, () => {
      block = mb.alloc(size);
    });
    const after = mb.stats();
    if (after.ways.stitch.count !== before.ways.stitch.count + 1) {
      throw new Error("the benchmark's request was not stitched");
    }
    let driverNs = 0;
    for (const call of calls) driverNs += call.ns;
    if (i >= warmUp) {
      ours.push(ns!);
      own.push(ns! - driverNs);
      planning.push(after.planning.ns - before.planning.ns);
    }
    block!.free();
    for (let j = 1; j < blocks.length; j += 2) blocks[j]!.free();
  }
  mb.allocator.mapper.observer = undefined;
  mb.trim();
  const vmm = driver.timeVmm(size, granularity, n);
  return [
    { group, subject: "MoonBright", size, samplesNs: ours },
    {
      group,
      subject: "raw calls, map and set access",
      size,
      samplesNs: addUp(vmm.mapNs, vmm.accessNs),
    },
    {
      group,
      subject: "MoonBright without driver calls",
      size,
      samplesNs: own,
    },
    { group, subject: "of that, planning", size, samplesNs: planning },
  ];
}

/** The steps of a first allocation, as the mission's figures break down cudaMalloc. */
export function benchSteps(c: BenchContext): Series[] {
  const { mb } = c;
  const all: Series[] = [];
  for (const size of [2 * MIB, 16 * MIB, 128 * MIB]) {
    c.progress(`steps of ${size} bytes`);
    const n = sampleCount(c, 40);
    const steps: Record<string, number[]> = {
      "whole request": [],
      "create": [],
      "map": [],
      "setAccess": [],
      "MoonBright's own": [],
    };
    const calls = observeCalls(mb);
    for (let i = 0; i < n; i++) {
      mb.trim();
      calls.length = 0;
      let block: Block | undefined;
      const [whole] = timeEach(1, () => {
        block = mb.alloc(size);
      });
      let own = whole!;
      for (const call of calls) {
        steps[call.kind]?.push(call.ns);
        own -= call.ns;
      }
      steps["whole request"]!.push(whole!);
      steps["MoonBright's own"]!.push(own);
      block!.free();
    }
    mb.allocator.mapper.observer = undefined;
    for (const [subject, samplesNs] of Object.entries(steps)) {
      all.push({
        group: "steps of a first allocation",
        subject,
        size,
        samplesNs,
      });
    }
  }
  mb.trim();
  return all;
}

/** Freeing while a 20 ms kernel runs on the freeing stream: eight blocks behind each kernel. */
export function benchFreeBehindKernel(c: BenchContext): Series[] {
  const { mb, driver } = c;
  c.progress("freeing behind a kernel");
  const size = 16 * MIB;
  const group = "free behind a 20 ms kernel";
  const busy = () =>
    c.spin.launch({ grid: [1], block: [1] }, [{ u64: 20_000_000 }]);
  const n = sampleCount(c, 20);
  const ours: number[] = [];
  const plain: number[] = [];
  for (let i = 0; i < n + 1; i++) {
    const blocks = Array.from({ length: 8 }, () => mb.alloc(size));
    busy();
    const samples: number[] = [];
    for (const block of blocks) {
      const start = performance.now();
      block.free();
      samples.push((performance.now() - start) * 1e6);
    }
    mb.defaultStream.synchronize();
    const address = driver.plainAlloc(size);
    busy();
    const [plainNs] = timeEach(1, () => driver.plainFree(address));
    mb.defaultStream.synchronize();
    if (i === 0) continue;
    ours.push(...samples);
    plain.push(plainNs!);
  }
  mb.trim();
  return [
    { group, subject: "MoonBright free", size, samplesNs: ours },
    { group, subject: "plain free", size, samplesNs: plain },
  ];
}

/**
 * Launch latency on another thread while this one does nothing, while it maps and
 * unmaps without pause, and while it allocates and frees plainly. They alternate, so
 * that a drift of the machine hits all alike.
 */
export async function benchLaunch(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  using stream = mb.createStream();
  const group = "launch latency";
  const size = 16 * MIB;
  const launches = c.quick ? 2_000 : 20_000;
  const rounds = c.quick ? 2 : 10;
  const background: Record<string, (() => void) | undefined> = {
    "idle": undefined,
    "while MoonBright maps": () => {
      // A heap that grows, then gives back: one event for 32 mappings.
      const blocks = Array.from({ length: 32 }, () => mb.alloc(size));
      for (const block of blocks) block.free();
      mb.trim({ wait: false });
    },
    "while allocating plainly": () => {
      for (let i = 0; i < 32; i++) driver.plainFree(driver.plainAlloc(size));
    },
  };
  const samples = new Map<string, number[]>();
  for (const subject of Object.keys(background)) samples.set(subject, []);
  for (let round = 0; round < rounds + 1; round++) {
    c.progress(`launch latency, round ${round} of ${rounds}`);
    for (const [subject, work] of Object.entries(background)) {
      let done = false;
      const timed = driver.timeLaunch(
        c.empty.driverId,
        stream.driverId("launch"),
        new Uint8Array(8),
        false,
        launches,
      ).then((ns) => {
        done = true;
        return ns;
      });
      while (work && !done) {
        work();
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
      const ns = await timed;
      // The first round warms up.
      if (round > 0) samples.get(subject)!.push(...ns);
    }
  }
  mb.trim();
  return [...samples].map(([subject, samplesNs]) => ({
    group,
    subject,
    size: 0,
    samplesNs,
  }));
}

/** Lets the device finish scrubbing what was freed, at some 400 GB/s, before the next sample. */
function pause(size: number): void {
  if (size < GIB) return;
  const until = performance.now() + size / 400e6;
  while (performance.now() < until);
}

/** Sums samples of several stages, round by round. */
function addUp(...stages: Float64Array[]): number[] {
  return Array.from(
    stages[0]!,
    (_, i) => stages.reduce((sum, stage) => sum + stage[i]!, 0),
  );
}

function sampleCount(c: BenchContext, full: number): number {
  return c.quick ? Math.max(3, Math.ceil(full / 10)) : full;
}

function observeCalls(mb: MoonBright): DriverCall[] {
  const calls: DriverCall[] = [];
  mb.allocator.mapper.observer = (call) => calls.push(call);
  return calls;
}
