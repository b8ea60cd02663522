import { type BenchContext, MIB, sampleCount } from "./context.ts";
import { type Series, series, timeOnce } from "./samples.ts";

/** Freeing while a 20 ms kernel runs on the freeing stream: eight blocks behind each. */
export async function benchFree(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  const size = 16 * MIB;
  const startKernel = () =>
    c.spin.launch({ grid: [1], block: [1] }, [{ u64: 20_000_000 }]);
  const ours: number[] = [];
  const plain: number[] = [];
  for (let i = 0; i < sampleCount(c, 20) + 1; i++) {
    await c.step("freeing behind a kernel");
    const blocks = Array.from({ length: 8 }, () => mb.alloc(size));
    startKernel();
    const samples = blocks.map((block) => timeOnce(() => block.free()));
    mb.defaultStream.synchronize();
    const address = driver.plainAlloc(size);
    startKernel();
    const plainNs = timeOnce(() => driver.plainFree(address));
    mb.defaultStream.synchronize();
    // The first round warms up.
    if (i === 0) continue;
    ours.push(...samples);
    plain.push(plainNs);
  }
  mb.trim();
  const group = "free behind a 20 ms kernel";
  return [
    series(group, "plain free", size, plain),
    series(group, "MoonBright free", size, ours),
  ];
}
