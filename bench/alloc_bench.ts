// Allocation latency by way taken, on a GPU if there is one, else on the host backend:
//   deno bench -A bench/
// Each group's baseline is the driver's own allocator in the same run. `moonbright bench`
// has more: percentiles, steps, contention, and every sample as JSON.
import { MoonBright } from "../mod.ts";

const MIB = 1024 ** 2;
/** Deno's timer needs at least 10 µs between start and end: short operations are batched. */
const BATCH = 1000;

const mb = MoonBright.open();
const where = `${mb.device.backend}:${mb.device.ordinal}`;
addEventListener("unload", () => mb.close());

for (const size of [512, 64 * 1024, 2 * MIB, 16 * MIB, 128 * MIB]) {
  const group = `${where}, ${size} bytes, ${BATCH} pairs`;
  if (mb.device.pools) {
    Deno.bench("pool, warm", { group, baseline: true }, () => {
      mb.driver.timePool(size, 0, true, BATCH);
    });
  }
  Deno.bench("MoonBright, reuse", { group }, () => {
    for (let i = 0; i < BATCH; i++) mb.alloc(size).free();
  });
}

for (const size of [2 * MIB, 16 * MIB, 128 * MIB]) {
  const group = `${where}, ${size} bytes, nothing cached`;
  Deno.bench("plain alloc and free", { group, baseline: true }, () => {
    mb.driver.timePlain(size, 1);
  });
  Deno.bench("MoonBright, first allocation and trim", { group }, () => {
    mb.alloc(size).free();
    mb.trim();
  });
}
