import type { Block } from "../block.ts";
import {
  type BenchContext,
  GIB,
  latencySizes,
  MIB,
  observeCalls,
  sampleCount,
} from "./context.ts";
import { type Series, series, timeOnce } from "./samples.ts";

/**
 * First allocation with nothing cached, beside plain allocation, the pool when empty,
 * and the raw calls for one extent of the size.
 */
export async function benchFirst(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  const group = "first allocation";
  const all: Series[] = [];
  for (const size of latencySizes(c)) {
    const n = sampleCount(c, size >= GIB ? 15 : 60);
    const warmUp = Math.min(3, n);
    const ours: number[] = [];
    const alloc: number[] = [];
    const free: number[] = [];
    const raw: number[] = [];
    const { granularity } = mb.device;
    const extent = Math.ceil(size / granularity) * granularity;
    // Alternates with the peer, so that a drift of the machine hits both alike.
    for (let i = 0; i < n + warmUp; i++) {
      await c.step(`first allocation of ${size} bytes`);
      mb.trim();
      letScrub(size);
      let block: Block | undefined;
      const ns = timeOnce(() => {
        block = mb.alloc(size);
      });
      block!.free();
      mb.trim();
      letScrub(size);
      const plain = driver.timePlain(size, 1);
      letScrub(size);
      const calls = driver.timeVmm(extent, extent, 1);
      if (i < warmUp) continue;
      raw.push(calls.createNs[0]! + calls.mapNs[0]! + calls.accessNs[0]!);
      ours.push(ns);
      alloc.push(plain.allocNs[0]!);
      free.push(plain.freeNs[0]!);
    }
    all.push(
      series(group, "plain alloc", size, alloc),
      series(group, "MoonBright", size, ours),
      series(group, "plain free", size, free),
    );
    if (mb.device.pools) {
      const pool = driver.timePool(size, 0, false, n);
      all.push(series(group, "pool alloc, cold", size, pool.allocNs));
    }
    all.push(series(group, "raw calls, one extent", size, raw));
  }
  return all;
}

/** The steps of a first allocation. */
export async function benchSteps(c: BenchContext): Promise<Series[]> {
  const { mb } = c;
  const all: Series[] = [];
  for (const size of [2 * MIB, 16 * MIB, 128 * MIB]) {
    const steps: Record<string, number[]> = {
      "whole request": [],
      "create": [],
      "map": [],
      "setAccess": [],
      "MoonBright's own": [],
    };
    for (let i = 0; i < sampleCount(c, 40); i++) {
      await c.step(`steps of ${size} bytes`);
      mb.trim();
      let whole = 0;
      let block: Block | undefined;
      const calls = observeCalls(mb, () => {
        whole = timeOnce(() => {
          block = mb.alloc(size);
        });
      });
      block!.free();
      let own = whole;
      for (const { kind, ns } of calls) {
        steps[kind]!.push(ns);
        own -= ns;
      }
      steps["whole request"]!.push(whole);
      steps["MoonBright's own"]!.push(own);
    }
    for (const [subject, samples] of Object.entries(steps)) {
      all.push(series("steps of a first allocation", subject, size, samples));
    }
  }
  mb.trim();
  return all;
}

/** Lets the device scrub what was freed, at some 400 GB/s, before the next sample. */
function letScrub(size: number): void {
  if (size < GIB) return;
  const until = performance.now() + size / 400e6;
  while (performance.now() < until);
}
