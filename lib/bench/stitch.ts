import type { Block } from "../block.ts";
import {
  type BenchContext,
  GIB,
  observeCalls,
  sampleCount,
} from "./context.ts";
import { type Series, series, timeOnce } from "./samples.ts";

/** Rounds that compile the code which the others run. */
const WARM_UP = 3;

/**
 * 1 GiB out of scattered extents of the granularity, beside the bare calls that map as
 * many; and how much of it is not driver calls.
 */
export async function benchStitch(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  const { granularity } = mb.device;
  let size = GIB;
  while (3 * size > c.available) size /= 2;
  const extents = size / granularity;
  const n = sampleCount(c, 10);
  const raw: number[] = [];
  const ours: number[] = [];
  const own: number[] = [];
  const planning: number[] = [];
  for (let i = 0; i < n + WARM_UP; i++) {
    await c.step(`stitching ${extents} extents`);
    mb.trim();
    const blocks: Block[] = [];
    for (let j = 0; j < 2 * extents; j++) blocks.push(mb.alloc(granularity));
    for (let j = 0; j < blocks.length; j += 2) blocks[j]!.free();
    const before = mb.stats();
    let ns = 0;
    let block: Block | undefined;
    const calls = observeCalls(mb, () => {
      ns = timeOnce(() => {
        block = mb.alloc(size);
      });
    });
    const after = mb.stats();
    if (after.ways.stitch.count !== before.ways.stitch.count + 1) {
      throw new Error("the benchmark's request was not stitched");
    }
    for (let j = 1; j < blocks.length; j += 2) blocks[j]!.free();
    block!.free();
    mb.trim();
    // In turn with the peer, so that a drift of the machine hits both alike.
    const { mapNs, accessNs } = driver.timeVmm(size, granularity, 1);
    if (i >= WARM_UP) {
      raw.push(mapNs[0]! + accessNs[0]!);
      ours.push(ns);
      own.push(calls.reduce((left, call) => left - call.ns, ns));
      planning.push(after.planning.ns - before.planning.ns);
    }
  }
  const group = "stitch";
  return [
    series(group, "raw map and set access", size, raw),
    series(group, "MoonBright", size, ours),
    series(group, "of that, no driver call", size, own),
    series(group, "of that, planning", size, planning),
  ];
}
