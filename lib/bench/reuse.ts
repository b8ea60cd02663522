import {
  type BenchContext,
  GIB,
  latencySizes,
  MIB,
  sampleCount,
} from "./context.ts";
import { addUp, type Series, series, timeBatches } from "./samples.ts";

/** Allocation and free of a size that is cached, beside the pool when warm. */
export async function benchReuse(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  const group = "reuse";
  const all: Series[] = [];
  for (const size of latencySizes(c)) {
    await c.step(`reuse of ${size} bytes`);
    if (mb.device.pools) {
      const n = sampleCount(c, size >= GIB ? 200 : 2000);
      const { allocNs, freeNs } = driver.timePool(size, 0, true, n);
      all.push(series(group, "pool pair, warm", size, addUp(allocNs, freeNs)));
    }
    // Live neighbours: the block is found among others, not alone in the heap.
    const neighbours = [size, size].map((bytes) =>
      mb.alloc(Math.min(bytes, 64 * MIB))
    );
    const pair = () => mb.alloc(size).free();
    timeBatches(20, 1000, pair);
    const pairs = timeBatches(sampleCount(c, 400), 500, pair);
    const allocs: number[] = [];
    const frees: number[] = [];
    for (let i = 0; i < sampleCount(c, 20_000); i++) {
      const before = performance.now();
      const block = mb.alloc(size);
      const between = performance.now();
      block.free();
      const after = performance.now();
      allocs.push((between - before) * 1e6);
      frees.push((after - between) * 1e6);
    }
    all.push(
      series(group, "MoonBright pair", size, pairs),
      series(group, "MoonBright alloc, timed singly", size, allocs),
      series(group, "MoonBright free, timed singly", size, frees),
    );
    for (const block of neighbours) block.free();
    mb.trim();
  }
  return all;
}
