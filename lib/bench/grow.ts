import type { Block } from "../block.ts";
import {
  type BenchContext,
  GIB,
  latencySizes,
  sampleCount,
} from "./context.ts";
import { type Series, series, timeOnce } from "./samples.ts";

/**
 * Growing a heap whose memory is all in use, so that nothing can be reused or stitched,
 * beside plain allocation. Growth is cut into extents that can be stitched later.
 */
export async function benchGrow(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  const group = "grow";
  const all: Series[] = [];
  for (const size of latencySizes(c)) {
    if (size > GIB || size < mb.device.granularity) continue;
    const n = sampleCount(c, 20);
    mb.trim();
    const base = mb.alloc(2 * size);
    const plain: number[] = [];
    const samples: number[] = [];
    for (let i = 0; i < n; i++) {
      await c.step(`growth by ${size} bytes`);
      let block: Block | undefined;
      samples.push(timeOnce(() => {
        block = mb.alloc(size);
      }));
      block!.free();
      mb.trim();
      plain.push(driver.timePlain(size, 1).allocNs[0]!);
    }
    base.free();
    mb.trim();
    all.push(
      series(group, "plain alloc", size, plain),
      series(group, "MoonBright", size, samples),
    );
  }
  return all;
}
