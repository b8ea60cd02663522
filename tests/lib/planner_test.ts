import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { costNs } from "../../lib/cost_model.ts";
import { profileOf } from "../../lib/device_profile.ts";
import { type Plan, plan, type PlanInput } from "../../lib/planner.ts";
import { roundUp } from "../../lib/sizes.ts";
import { GRANULE } from "./support.ts";

const COSTS = profileOf("cuda").costs;
const MIB = 2 ** 20;

type Overrides = Partial<Omit<PlanInput, "candidates">> & { sizes?: number[] };

/** A request of `granules` granules under policies that tests can bend. */
function input(granules: number, overrides: Overrides = {}): PlanInput {
  const { sizes = [], ...rest } = overrides;
  return {
    bytes: granules * GRANULE,
    granularity: GRANULE,
    topBytes: 0,
    candidates: { sizes, bytes: sizes.reduce((sum, one) => sum + one, 0) },
    budgetLeft: Infinity,
    mapped: 1024 * GRANULE,
    costs: COSTS,
    growth: {
      least: GRANULE,
      ahead: 0,
      extentSize: 4 * GRANULE,
      mostExtents: 8,
      leastStitched: GRANULE,
      growthPriceNs: 1e12,
    },
    exact: false,
    ...rest,
  };
}

const inGranules = (sizes: readonly number[]) =>
  sizes.map((size) => size / GRANULE);

Deno.test("without candidates a request grows in extents of the policy's size", () => {
  const planned = plan(input(10))!;
  assertEquals(planned.way, "grow");
  assertEquals(inGranules(planned.create), [4, 4, 1, 1]);
  assertEquals(planned.mapBytes, 10 * GRANULE);
});

Deno.test("extents get larger rather than many", () => {
  const planned = plan(input(80))!;
  assertEquals(inGranules(planned.create), [
    ...new Array(7).fill(10),
    9,
    1,
  ]);
});

Deno.test("what doubles the heap comes in one piece", () => {
  assertEquals(inGranules(plan(input(10, { mapped: 0 }))!.create), [10]);
  assertEquals(
    inGranules(plan(input(10, { mapped: 10 * GRANULE }))!.create),
    [10],
  );
});

Deno.test("small requests grow by the least, if the budget allows it", () => {
  const growth = { ...input(1).growth, least: 4 * GRANULE };
  assertEquals(plan(input(1, { growth }))!.mapBytes, 4 * GRANULE);
  assertEquals(
    plan(input(1, { growth, budgetLeft: 3 * GRANULE }))!.mapBytes,
    GRANULE,
  );
  assertEquals(plan(input(1, { growth, exact: true }))!.mapBytes, GRANULE);
});

Deno.test("the last granule of several extents is one of its own, but not of exact growth", () => {
  assertEquals(inGranules(plan(input(4))!.create), [4]);
  assertEquals(inGranules(plan(input(5))!.create), [4, 1]);
  assertEquals(inGranules(plan(input(9))!.create), [4, 4, 1]);
  assertEquals(inGranules(plan(input(10, { exact: true }))!.create), [4, 4, 2]);
  const growth = { ...input(1).growth, extentSize: Infinity };
  assertEquals(inGranules(plan(input(10, { growth }))!.create), [10]);
});

Deno.test("requests of a granule or more map ahead, as far as budget and heap allow", () => {
  const growth = { ...input(1).growth, ahead: 3 * GRANULE };
  assertEquals(plan(input(2, { growth }))!.mapBytes, 5 * GRANULE);
  assertEquals(plan(input(0, { growth, bytes: 512 }))!.mapBytes, GRANULE);
  assertEquals(
    plan(input(2, { growth, budgetLeft: 4 * GRANULE }))!.mapBytes,
    2 * GRANULE,
  );
  assertEquals(
    plan(input(2, { growth, mapped: GRANULE }))!.mapBytes,
    3 * GRANULE,
  );
  assertEquals(
    plan(input(2, { growth, exact: true }))!.mapBytes,
    2 * GRANULE,
  );
});

Deno.test("free memory at the frontier is only extended", () => {
  const bytes = 3 * GRANULE + 512;
  const planned = plan(input(0, { bytes, topBytes: 2 * GRANULE + 1024 }))!;
  assertEquals([planned.way, planned.useTop], ["extend", true]);
  assertEquals(planned.mapBytes, GRANULE);
});

Deno.test("candidates are stitched in their order, and no more than needed", () => {
  const sizes = [1, 1, 4, 1].map((count) => count * GRANULE);
  const planned = plan(input(4, { sizes }))!;
  assertEquals(planned.way, "stitch");
  // The first two turn out superfluous once the third is there.
  assertEquals(planned.stitch, [2]);
  assertEquals(planned.create, []);
});

Deno.test("what candidates lack is created behind them", () => {
  const planned = plan(
    input(5, { sizes: [2 * GRANULE], budgetLeft: 3 * GRANULE }),
  )!;
  assertEquals([planned.stitch, inGranules(planned.create)], [[0], [3]]);
});

Deno.test("a budget that does not suffice gives no plan", () => {
  const sizes = [2 * GRANULE];
  assertEquals(plan(input(5, { sizes, budgetLeft: 2 * GRANULE })), undefined);
  assertEquals(plan(input(1, { budgetLeft: 0 })), undefined);
  assert(plan(input(2, { sizes, budgetLeft: 0 })));
});

Deno.test("an exact plan leaves out candidates that are too large", () => {
  const sizes = [4, 1, 1].map((count) => count * GRANULE);
  const planned = plan(input(3, { sizes, exact: true }))!;
  assertEquals([planned.stitch, inGranules(planned.create)], [[1, 2], [1]]);
});

Deno.test("growth is dear or cheap as the policy says", () => {
  const sizes = new Array<number>(8).fill(GRANULE);
  const at = (growthPriceNs: number) => {
    const growth = { ...input(1).growth, extentSize: Infinity, growthPriceNs };
    return plan(input(8, { sizes, growth }))!.way;
  };
  // Eight mappings and unmappings against one extent: what 32 KiB may cost at most.
  const { map, unmap, create } = COSTS;
  const more = costNs(map, 8, 8 * GRANULE) + costNs(unmap, 8, 8 * GRANULE) -
    costNs(map, 1, 8 * GRANULE) - costNs(create, 1, 8 * GRANULE);
  const even = more / (8 * GRANULE / MIB);
  assertEquals(at(0), "grow");
  assertEquals(at(even * 0.99), "grow");
  assertEquals(at(even * 1.01), "stitch");
});

Deno.test("what the budget leaves no choice about has no price", () => {
  const sizes = new Array<number>(8).fill(GRANULE);
  const growth = { ...input(1).growth, growthPriceNs: 0 };
  const planned = plan(input(8, { sizes, growth, budgetLeft: 7 * GRANULE }))!;
  assertEquals(planned.way, "stitch");
});

const granules = fc.integer({ min: 1, max: 40 });
const inputs = fc.record({
  units: fc.integer({ min: 1, max: 8 * 60 }),
  topUnits: fc.nat(8 * 20),
  sizes: fc.array(granules, { maxLength: 20 }),
  budgetLeft: fc.oneof(fc.nat(80), fc.constant(Infinity)),
  mapped: fc.nat(200),
  exact: fc.boolean(),
  least: granules,
  ahead: fc.nat(20),
  extentSize: fc.oneof(granules, fc.constant(Infinity)),
  mostExtents: fc.integer({ min: 1, max: 32 }),
  growthPriceNs: fc.oneof(fc.nat(100_000), fc.constant(1e12)),
}).map((drawn): PlanInput => {
  // A request is only planned if the top does not hold it already.
  const bytes = drawn.exact
    ? roundUp(drawn.units * 512, GRANULE)
    : drawn.units * 512;
  const topBytes = drawn.exact
    ? 0
    : Math.min(drawn.topUnits * 512, bytes - 512);
  return input(0, {
    bytes,
    topBytes,
    sizes: drawn.sizes.map((count) => count * GRANULE),
    budgetLeft: drawn.budgetLeft * GRANULE,
    mapped: drawn.mapped * GRANULE,
    exact: drawn.exact,
    growth: {
      least: drawn.least * GRANULE,
      ahead: drawn.ahead * GRANULE,
      extentSize: drawn.extentSize * GRANULE,
      mostExtents: drawn.mostExtents,
      leastStitched: GRANULE,
      growthPriceNs: drawn.growthPriceNs,
    },
  });
});

Deno.test("a plan covers the request within the budget, by what it was given", () => {
  fc.assert(
    fc.property(inputs, (given) => {
      const before = structuredClone(given);
      const planned = plan(given);
      assertEquals(given, before);
      assertEquals(plan(given), planned);
      const missing = roundUp(given.bytes - given.topBytes, GRANULE);
      if (!planned) return assertNeeded(given, missing);
      const { stitch, create, mapBytes } = planned;
      const { sizes } = given.candidates;
      assertEquals(new Set(stitch).size, stitch.length);
      assert(stitch.every((index) => sizes[index] !== undefined));
      assert(create.every((size) => size > 0 && size % GRANULE === 0));
      const created = create.reduce((sum, one) => sum + one, 0);
      const stitched = stitch.reduce((sum, index) => sum + sizes[index]!, 0);
      assert(created <= given.budgetLeft);
      assertEquals(mapBytes, created + stitched);
      assert(mapBytes >= missing);
      if (given.exact) assertEquals(mapBytes, missing);
      else assertNoneSuperfluous(planned, sizes, missing);
      assert(create.length <= given.growth.mostExtents + 1);
      assertEquals(planned.useTop, given.topBytes > 0);
      const way = stitch.length > 0
        ? "stitch"
        : given.topBytes > 0
        ? "extend"
        : "grow";
      assertEquals(planned.way, way);
      const { costs } = given;
      const parts = costNs(costs.create, create.length, created) +
        costNs(costs.map, create.length, created) +
        costNs(costs.map, stitch.length, stitched) +
        costNs(costs.unmap, stitch.length, stitched);
      assert(Math.abs(planned.expectedNs - parts) <= parts * 1e-12);
      const priceOf = (one: Plan) =>
        one.expectedNs + given.growth.growthPriceNs / MIB *
          one.create.reduce((sum, size) => sum + size, 0);
      const growing = plan({ ...given, candidates: { sizes: [], bytes: 0 } });
      assert(!growing || priceOf(planned) <= priceOf(growing) * (1 + 1e-12));
    }),
    { numRuns: 1000 },
  );
});

/** No plan was found: nothing that fits may have been left. */
function assertNeeded(given: PlanInput, missing: number): void {
  let usable = 0;
  for (const size of given.candidates.sizes) {
    if (!given.exact || usable + size <= missing) usable += size;
  }
  assert(missing - usable > given.budgetLeft);
}

function assertNoneSuperfluous(
  planned: Plan,
  sizes: readonly number[],
  missing: number,
): void {
  if (planned.create.length > 0) return;
  for (const index of planned.stitch) {
    assert(planned.mapBytes - sizes[index]! < missing);
  }
}

Deno.test("costs add up", () => {
  fc.assert(fc.property(
    fc.nat(100),
    fc.nat(100),
    fc.nat(2 ** 30),
    fc.nat(2 ** 30),
    (a, b, aBytes, bBytes) => {
      const together = costNs(COSTS.map, a + b, aBytes + bBytes);
      const apart = costNs(COSTS.map, a, aBytes) +
        costNs(COSTS.map, b, bBytes);
      assert(Math.abs(together - apart) <= together * 1e-12);
    },
  ));
});
