import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { ratesBetween } from "../../lib/live/rates.ts";
import { MOST_NAMES, takeSummary } from "../../lib/live/summary.ts";
import { CoherenceWorld } from "../lib/coherence_world.ts";
import { randomSteps } from "../lib/random_walk.ts";
import { GRANULE, openModel } from "../lib/support.ts";

Deno.test("the parts of any summary sum to the whole", () => {
  fc.assert(
    fc.property(fc.nat(2 ** 31), (seed) => {
      const world = new CoherenceWorld({
        name: "summary",
        allocator: { budget: 96 * GRANULE, addressSpace: 2 ** 40 },
        device: {},
        mostStreams: 3,
      }, seed);
      for (const step of randomSteps(seed, 100)) world.run(step);
      const { stats, streams, names } = takeSummary(world.mb);
      const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
      assertEquals(sum(streams.map(({ live }) => live)), stats.live);
      assertEquals(sum(streams.map((one) => one.liveBlocks)), stats.liveBlocks);
      assertEquals(sum(streams.map(({ pending }) => pending)), stats.pending);
      assert(sum(streams.map(({ free }) => free)) <= stats.free);
      assertEquals(sum(names.map(({ bytes }) => bytes)), stats.live);
      assertEquals(sum(names.map(({ blocks }) => blocks)), stats.liveBlocks);
    }),
    { numRuns: 20 },
  );
});

Deno.test("names are grouped, the largest first, and no more than so many", () => {
  const { mb } = openModel();
  for (let i = 0; i < MOST_NAMES + 3; i++) {
    for (let copy = 0; copy < 2; copy++) {
      mb.alloc(512 * (i + 1), { name: `n${i}` });
    }
  }
  const { names, moreNames } = takeSummary(mb);
  assertEquals([names.length, moreNames], [MOST_NAMES, 3]);
  const [first] = names;
  const bytes = 512 * (MOST_NAMES + 3);
  assertEquals(first, {
    name: `n${MOST_NAMES + 2}`,
    blocks: 2,
    bytes: 2 * bytes,
    largest: bytes,
  });
});

Deno.test("rates are what happened, by the time between", () => {
  const { mb } = openModel();
  mb.alloc(100);
  const before = { ...takeSummary(mb), clockMs: 0 };
  for (let i = 0; i < 6; i++) mb.alloc(512).free();
  mb.alloc(9 * GRANULE);
  const after = { ...takeSummary(mb), clockMs: 2000 };
  const rates = ratesBetween(before, after)!;
  assertEquals([rates.seconds, rates.frees, rates.requests], [2, 3, 3.5]);
  assertEquals(rates.ways.reuse.bytesPerSecond, 6 * 512 / 2);
  const created = after.stats.driver.create.calls -
    before.stats.driver.create.calls;
  assertEquals(rates.driver.create.perSecond, created / 2);
  assertEquals(ratesBetween(before, before), undefined);
});
