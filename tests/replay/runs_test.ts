import { assert, assertEquals, assertRejects } from "@std/assert";
import fc from "fast-check";
import { CostDevice } from "../../lib/cost_device.ts";
import { costNs } from "../../lib/cost_model.ts";
import { profileOf } from "../../lib/device_profile.ts";
import { MoonBright, type MoonBrightOptions } from "../../lib/moonbright.ts";
import { replayOnMoonBright } from "../../lib/replay/moonbright_run.ts";
import type { Placements } from "../../lib/replay/report_data.ts";
import { type Workload, workloadOf } from "../../lib/replay/workload.ts";
import { ModelDriver } from "../model/model_driver.ts";
import { makeTrace, type ShortEvent } from "./make_trace.ts";

const GRANULE = 4096;
const breathe = () => Promise.resolve();
const onTest = { policy: "test", device: "test", breathe };

/** Random allocations and frees on three streams. */
const workloads = fc.array(
  fc.tuple(fc.boolean(), fc.nat(15), fc.integer({ min: 1, max: 5 * GRANULE })),
  { minLength: 1, maxLength: 120 },
).map((drawn) =>
  workloadOf(
    "random",
    makeTrace(
      drawn.map(([alloc, address, bytes]): ShortEvent => [
        alloc ? "ALLOC" : "FREE",
        address,
        bytes,
        address % 3,
      ]),
      [],
      ["0", "7", "9"],
    ),
  )
);

function open(options: MoonBrightOptions = {}): MoonBright {
  return new MoonBright(new ModelDriver({ granularity: GRANULE }), {
    addressSpace: 2 ** 30,
    ...options,
  });
}

function livePeak({ steps, block, isAlloc, bytes }: Workload): number {
  let live = 0;
  let peak = 0;
  for (let i = 0; i < steps; i++) {
    live += (isAlloc[i] === 1 ? 1 : -1) * bytes[block[i]!]!;
    peak = Math.max(peak, live);
  }
  return peak;
}

/** Placements that exist after a step, by address. */
function placedAt(
  { address, bytes, from, to }: Placements,
  step: number,
): { address: number; end: number }[] {
  return [...address.keys()]
    .filter((i) => from[i]! <= step && step < to[i]!)
    .map((i) => ({ address: address[i]!, end: address[i]! + bytes[i]! }))
    .sort((a, b) => a.address - b.address);
}

Deno.test("a replay serves every request and its figures add up", async () => {
  await fc.assert(
    fc.asyncProperty(workloads, async (workload) => {
      using mb = open();
      const { run, allocNs, freeNs } = await replayOnMoonBright(mb, workload, {
        ...onTest,
        map: true,
      });
      mb.allocator.assertInvariants();
      const { blocks, steps } = workload;
      assert(run.completed);
      assertEquals(run.livePeak, livePeak(workload));
      assertEquals(run.mappedPeak, mb.stats().peak.mapped);
      assertEquals(allocNs.length, blocks);
      assert(allocNs.every((ns) => ns >= 0));
      assertEquals(freeNs.length, steps - blocks);
      const { flush, ...served } = run.ways;
      assertEquals(flush!.count, 0);
      assertEquals(
        Object.values(served).reduce((sum, { count }) => sum + count, 0),
        blocks,
      );
      assertEquals(run.calls.create!.bytes, mb.stats().mapped);
      assertEquals(Math.max(0, ...run.timeline.live), run.livePeak);
      assertEquals(Math.max(0, ...run.timeline.mapped), run.mappedPeak);
      // Two blocks never share a byte, and every block lies in extents.
      for (let step = 0; step < steps; step++) {
        const live = placedAt(run.map!.blocks, step);
        const mapped = placedAt(run.map!.extents, step);
        for (const [i, block] of live.entries()) {
          assert(i === 0 || live[i - 1]!.end <= block.address);
          let covered = block.address;
          for (const extent of mapped) {
            if (extent.address <= covered && extent.end > covered) {
              covered = extent.end;
            }
          }
          assert(covered >= block.end, `step ${step}: not mapped`);
        }
      }
    }),
    { numRuns: 40 },
  );
});

Deno.test("under a budget the rest is served, and what was not is told with the reason", async () => {
  const workload = workloadOf(
    "tight",
    makeTrace([
      ["ALLOC", 1, 3 * GRANULE],
      ["ALLOC", 2, 2 * GRANULE],
      ["FREE", 2, 2 * GRANULE],
      ["FREE", 1, 3 * GRANULE],
      ["ALLOC", 3, 4 * GRANULE],
    ]),
  );
  using mb = open({ budget: 4 * GRANULE });
  const { run, allocNs } = await replayOnMoonBright(mb, workload, onTest);
  assertEquals([run.completed, run.unservedCount], [false, 1]);
  assertEquals([run.unserved[0]!.step, run.unserved[0]!.bytes], [
    1,
    2 * GRANULE,
  ]);
  assert(run.unserved[0]!.reason.includes("budget 16 KiB"));
  assertEquals([run.livePeak, run.mappedPeak], [4 * GRANULE, 4 * GRANULE]);
  assertEquals(run.budget, 4 * GRANULE);
  assert(Number.isNaN(allocNs[1]!));
  assertEquals(run.free.count, 1);
});

Deno.test("on a device that counts costs, they are part of the requests' times", async () => {
  const { costs } = profileOf("cuda");
  const device = new CostDevice(GRANULE, costs);
  using mb = new MoonBright(device, { costs, addressSpace: 2 ** 30 });
  const workload = workloadOf(
    "cost",
    makeTrace([["ALLOC", 1, GRANULE], ["ALLOC", 2, 10 * GRANULE]]),
  );
  const { run, allocNs } = await replayOnMoonBright(mb, workload, {
    ...onTest,
    model: { costs, spentNs: () => device.spentNs },
  });
  const growth = (bytes: number) =>
    costNs(costs.create, 1, bytes) + costNs(costs.map, 1, bytes);
  const first = growth(GRANULE);
  const second = growth(10 * GRANULE);
  // The policy's own time is part of it too, what reading the clock takes is not.
  assert(allocNs[0]! > 0.9 * first && allocNs[1]! > 0.9 * second);
  assertEquals(Math.round(run.driverNs), Math.round(first + second));
  assertEquals(Math.round(device.spentNs), Math.round(first + second));
  assert(run.totalNs > 0.9 * run.driverNs);
});

Deno.test("every block is filled when it comes and checked before it goes", async () => {
  const workload = workloadOf(
    "checked",
    makeTrace([["ALLOC", 1, 100], ["ALLOC", 2, 100], ["FREE", 1, 100]]),
  );
  const told: string[] = [];
  using mb = open();
  await replayOnMoonBright(mb, workload, {
    ...onTest,
    checker: {
      fill: (block, index) => told.push(`fill ${index} ${block.live}`),
      check: (block, index) => told.push(`check ${index} ${block.live}`),
    },
  });
  assertEquals(told, [
    "fill 0 true",
    "fill 1 true",
    "check 0 true",
    "check 1 true",
  ]);
});

Deno.test("a replay ends when it is told to", async () => {
  const workload = workloadOf("ended", makeTrace([["ALLOC", 1, 100]]));
  using mb = open();
  await assertRejects(
    () =>
      replayOnMoonBright(mb, workload, {
        ...onTest,
        breathe: () => Promise.reject(new Error("enough")),
      }),
    Error,
    "enough",
  );
});
