import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { type Workload, workloadOf } from "../../lib/replay/workload.ts";
import { makeTrace, type ShortEvent } from "./make_trace.ts";

/** The steps in short: `+bytes` and `-bytes`. */
function stepsOf(workload: Workload): string[] {
  return Array.from({ length: workload.steps }, (_, i) => {
    const bytes = workload.bytes[workload.block[i]!]!;
    return `${workload.isAlloc[i] === 1 ? "+" : "-"}${bytes}`;
  });
}

Deno.test("a recording becomes steps; addresses used again are other blocks", () => {
  const workload = workloadOf(
    "two.pickle",
    makeTrace(
      [
        ["ALLOC", 0x1000, 512, 0, 100],
        ["FREE_REQUESTED", 0x1000, 512, 0, 101],
        ["FREE", 0x1000, 512, 0, 102],
        ["ALLOC", 0x1000, 700, 1, 110],
        ["OOM", 5, 1e9, 0, 111],
        ["ALLOC", 0x2000, 30, 0, 112],
        ["FREE", 0x1000, 700, 1, 120],
      ],
      [],
      ["0", "77"],
    ),
  );
  assertEquals(stepsOf(workload), ["+512", "-512", "+700", "+30", "-700"]);
  assertEquals([...workload.block.subarray(0, 5)], [0, 0, 1, 2, 1]);
  assertEquals([...workload.stream.subarray(0, 5)], [0, 0, 1, 0, 1]);
  assertEquals([...workload.timeUs.subarray(0, 5)], [0, 2, 10, 12, 20]);
  assertEquals(workload.figures, {
    name: "two.pickle",
    source: "pytorch",
    device: 0,
    allocations: 3,
    frees: 2,
    liveAtStart: 0,
    streams: 2,
    bytesAllocated: 1242,
    livePeak: 730,
    reservedPeak: undefined,
  });
});

Deno.test("blocks from before the recording are allocated first, by address", () => {
  const workload = workloadOf(
    "middle",
    makeTrace([
      ["FREE_REQUESTED", 0x3000, 300],
      ["FREE", 0x3000, 300],
      ["ALLOC", 0x3000, 40],
      ["FREE", 0x2000, 200],
      // Of this one nobody knows the size.
      ["FREE", 0x9000, 0],
    ], [{
      address: 0x1000,
      bytes: 0x4000,
      stream: 0,
      live: [
        { address: 0x1000, bytes: 100 },
        { address: 0x3000, bytes: 40 },
      ],
    }]),
  );
  assertEquals(stepsOf(workload), [
    "+100",
    "+200",
    "+300",
    "-300",
    "+40",
    "-200",
  ]);
  assertEquals(workload.figures.liveAtStart, 3);
  assertEquals(workload.figures.livePeak, 600);
});

Deno.test("a free is when it is complete, or when it was asked for if only that was kept", () => {
  const requested: ShortEvent[] = [
    ["ALLOC", 1, 10],
    ["FREE_REQUESTED", 1, 10],
    ["ALLOC", 2, 20],
  ];
  assertEquals(stepsOf(workloadOf("", makeTrace(requested))), [
    "+10",
    "-10",
    "+20",
  ]);
  assertEquals(
    stepsOf(workloadOf("", makeTrace([...requested, ["FREE", 1, 10]]))),
    ["+10", "+20", "-10"],
  );
});

Deno.test("an address allocated twice without a free ends the first block's life", () => {
  const events: ShortEvent[] = [["ALLOC", 1, 10], ["ALLOC", 1, 20]];
  assertEquals(stepsOf(workloadOf("", makeTrace(events))), [
    "+10",
    "-10",
    "+20",
  ]);
});

Deno.test("what the recorded allocator held is known after every step", () => {
  const workload = workloadOf(
    "segments",
    makeTrace([
      ["ALLOC", 0x100, 5],
      ["SEGMENT_ALLOC", 0x5000, 2000],
      ["ALLOC", 0x5000, 6],
      ["SEGMENT_FREE", 0x7000, 500],
      ["SEGMENT_MAP", 0x9000, 300],
      ["ALLOC", 0x9000, 7],
      ["SEGMENT_UNMAP", 0x9000, 100],
      ["FREE", 0x9000, 7],
    ], [
      { address: 0x100, bytes: 1000, stream: 0, live: [] },
      { address: 0x5000, bytes: 2000, stream: 0, live: [] },
    ]),
  );
  // 1000 of a segment that was always there, 500 of one that is given back.
  assertEquals([...workload.reserved], [1500, 3500, 3300, 3200]);
  assertEquals(workload.figures.reservedPeak, 3500);
  assertEquals(
    workload.segmentSteps.map(({ step, address, take, mapped }) => [
      step,
      address,
      take,
      mapped,
    ]),
    [
      [0, 0x7000, true, false],
      [0, 0x100, true, false],
      [1, 0x5000, true, false],
      [2, 0x7000, false, false],
      [2, 0x9000, true, true],
      [3, 0x9000, false, true],
    ],
  );
});

Deno.test("whatever was recorded, every block is allocated once and freed at most once after", () => {
  const action = fc.constantFrom(
    "ALLOC" as const,
    "FREE" as const,
    "FREE_REQUESTED" as const,
    "OOM" as const,
    "SEGMENT_ALLOC" as const,
    "SEGMENT_FREE" as const,
  );
  const events = fc.array(
    fc.tuple(action, fc.nat(12), fc.nat(100), fc.nat(2), fc.nat(1000)),
    { maxLength: 60 },
  );
  const live = fc.array(
    fc.record({ address: fc.nat(12), bytes: fc.nat(100) }),
    { maxLength: 5 },
  );
  fc.assert(fc.property(events, live, (drawn, live) => {
    const segments = [{ address: 0, bytes: 4000, stream: 0, live }];
    const workload = workloadOf("any", makeTrace(drawn, segments));
    const state = new Uint8Array(workload.blocks);
    let bytes = 0;
    let peak = 0;
    for (let i = 0; i < workload.steps; i++) {
      const block = workload.block[i]!;
      const isAlloc = workload.isAlloc[i]!;
      assertEquals(state[block], isAlloc === 1 ? 0 : 1);
      state[block]!++;
      assert(workload.bytes[block]! > 0);
      bytes += (isAlloc === 1 ? 1 : -1) * workload.bytes[block]!;
      peak = Math.max(peak, bytes);
    }
    assert(state.every((uses) => uses > 0));
    assertEquals(workload.figures.livePeak, peak);
    assertEquals(workload.reserved.length, workload.steps);
    assertEquals(
      workload.figures.frees,
      state.reduce((sum, uses) => sum + uses - 1, 0),
    );
  }));
});
