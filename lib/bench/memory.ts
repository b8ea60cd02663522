import type { BenchContext } from "./context.ts";
import type { Series } from "./samples.ts";

/** Bytes of host memory per live block, the owner's object included. */
export async function benchMemory(c: BenchContext): Promise<Series[]> {
  const { mb } = c;
  const count = c.quick ? 100_000 : 1_000_000;
  await c.step(`bookkeeping of ${count} blocks`);
  mb.trim();
  const used = () => {
    const { heapUsed, external } = Deno.memoryUsage();
    return heapUsed + external;
  };
  const before = used();
  const owners = new Array(count);
  for (let i = 0; i < count; i++) owners[i] = mb.alloc(512 + 512 * (i % 7));
  const bytes = (used() - before) / count;
  for (const owner of owners) owner.free();
  mb.trim();
  return [{
    group: `bookkeeping, ${count} live blocks`,
    subject: "host memory per block, owner included",
    size: 0,
    unit: "bytes",
    samples: [bytes],
  }];
}
