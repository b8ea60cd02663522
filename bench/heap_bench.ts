// The policy alone, on a device that does nothing: what an allocation costs before any
// driver is asked, in heaps of different population.
import { MoonBright } from "../lib/moonbright.ts";
import { ModelDriver } from "../tests/model/model_driver.ts";

const GIB = 1024 ** 3;
const BATCH = 1000;

for (const live of [10, 10_000, 100_000]) {
  const mb = new MoonBright(
    new ModelDriver({ totalMemory: 1024 * GIB, granularity: 2 * 1024 ** 2 }),
  );
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const blocks = Array.from(
    { length: live },
    () => mb.alloc(Math.ceil(2 ** (9 + 13 * random()))),
  );
  const group = `${BATCH} operations among ${live} live blocks`;
  Deno.bench(`pairs of 64 KiB, ${live} live`, { group, baseline: true }, () => {
    for (let i = 0; i < BATCH; i++) mb.alloc(65536).free();
  });
  Deno.bench(`random replacement, ${live} live`, { group }, () => {
    for (let i = 0; i < BATCH; i++) {
      const at = Math.floor(random() * live);
      blocks[at]!.free();
      blocks[at] = mb.alloc(Math.ceil(2 ** (9 + 13 * random())));
    }
  });
}
