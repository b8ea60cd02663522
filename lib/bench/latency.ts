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
    // Peers alternate with MoonBright, since freed memory is scrubbed behind one's back.
    const ours: number[] = [];
    const plain = { alloc: [] as number[], free: [] as number[] };
    for (let i = 0; i < n + warmUp; i++) {
      const [ns] = timeEach(1, () => {
        block = mb.alloc(size);
      }, () => {
        block!.free();
        mb.trim();
      });
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
  const planning: number[] = [];
  const calls = observeCalls(mb);
  for (let i = 0; i < n + 1; i++) {
    mb.trim();
    const blocks: Block[] = [];
    for (let j = 0; j < 2 * extents; j++) blocks.push(mb.alloc(granularity));
    for (let j = 0; j < blocks.length; j += 2) blocks[j]!.free();
    const stitches = mb.stats().ways.stitch.count;
    calls.length = 0;
    let block: Block | undefined;
    const [ns] = timeEach(1, () => {
      block = mb.alloc(size);
    });
    if (mb.stats().ways.stitch.count !== stitches + 1) {
      throw new Error("the benchmark's request was not stitched");
    }
    let driverNs = 0;
    for (const call of calls) driverNs += call.ns;
    // The first round compiles the code it runs.
    if (i > 0) {
      ours.push(ns!);
      planning.push(ns! - driverNs);
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
      subject: "MoonBright without driver calls",
      size,
      samplesNs: planning,
    },
    {
      group,
      subject: "raw calls, map and set access",
      size,
      samplesNs: addUp(vmm.mapNs, vmm.accessNs),
    },
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

/** Freeing while a 20 ms kernel runs on the freeing stream. */
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
    const block = mb.alloc(size);
    busy();
    const [ns] = timeEach(1, () => block.free());
    mb.defaultStream.synchronize();
    const address = driver.plainAlloc(size);
    busy();
    const [plainNs] = timeEach(1, () => driver.plainFree(address));
    mb.defaultStream.synchronize();
    if (i === 0) continue;
    ours.push(ns!);
    plain.push(plainNs!);
  }
  mb.trim();
  return [
    { group, subject: "MoonBright free", size, samplesNs: ours },
    { group, subject: "plain free", size, samplesNs: plain },
  ];
}

/**
 * Launch latency on another thread while this one does nothing, and while it maps and
 * unmaps without pause. The two alternate, so that a drift of the machine hits both.
 */
export async function benchLaunch(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  using stream = mb.createStream();
  const group = "launch latency";
  const launches = c.quick ? 2_000 : 20_000;
  const rounds = c.quick ? 2 : 10;
  const idle: number[] = [];
  const mapping: number[] = [];
  const time = () =>
    driver.timeLaunch(
      c.empty.driverId,
      stream.driverId("launch"),
      new Uint8Array(8),
      false,
      launches,
    );
  await time();
  let maps = 0;
  for (let round = 0; round < rounds; round++) {
    c.progress(`launch latency, round ${round + 1} of ${rounds}`);
    idle.push(...await time());
    let done = false;
    const timed = time().then((samples) => {
      done = true;
      return samples;
    });
    while (!done) {
      // The turn of the event loop that lets `done` be set is a pause: keep it rare.
      for (let i = 0; i < 32; i++) {
        mb.alloc(16 * MIB).free();
        mb.trim({ wait: false });
        maps++;
      }
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    mapping.push(...await timed);
  }
  if (maps < rounds) throw new Error("nothing was mapped beside the launches");
  mb.trim();
  return [
    { group, subject: "idle", size: 0, samplesNs: idle },
    { group, subject: "while mapping", size: 0, samplesNs: mapping },
  ];
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
