/**
 * What users of other allocators ran into, as far as the policy over the model device
 * can show it; the last test says where the rest is shown. The numbers are those of the
 * list of cases.
 */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { openDriver } from "../ffi/devices.ts";
import { MoonBright as NativeMoonBright } from "../ffi/moonbright.ts";
import type { Block } from "../lib/block.ts";
import { InvalidBlockError, OutOfMemoryError } from "../lib/errors.ts";
import type { Kernel } from "../lib/kernel.ts";
import { MoonBright } from "../lib/moonbright.ts";
import type { Stream } from "../lib/stream.ts";
import {
  assertCode,
  GRANULE,
  liveOf,
  memoryOf,
  openModel,
} from "./lib/support.ts";
import { modelImage } from "./model/kernels.ts";
import { ModelDriver } from "./model/model_driver.ts";
import { buildFakeCuda } from "./fake/build.ts";
import { FakeCuda } from "./fake/control.ts";
import { Random } from "./model/random.ts";

const vendorLibrary = await buildFakeCuda();
// The shim stays open, which a test would be blamed for.
openDriver({ device: "host" }).close();

const LONG_NS = 400_000;
const MIB = 2 ** 20;

/** Kernels that fill and check a block late: after they have run for a long time. */
function slowKernels(mb: MoonBright, model: ModelDriver) {
  const damage: string[] = [];
  const durationNs = () => LONG_NS;
  model.registerKernel("slow_fill", {
    durationNs,
    run: (args, memory) =>
      memory.fill(
        Number(args.getBigUint64(0, true)),
        args.getUint32(16, true),
        Number(args.getBigUint64(8, true)),
      ),
  });
  model.registerKernel("slow_check", {
    durationNs,
    run: (args, memory) => {
      const address = Number(args.getBigUint64(0, true));
      const bytes = memory.read(address, Number(args.getBigUint64(8, true)));
      const wanted = args.getUint32(16, true);
      for (const word of new Uint32Array(bytes.buffer)) {
        if (word !== wanted) damage.push(`${word} where ${wanted} was written`);
      }
    },
  });
  const module = mb.loadModule(modelImage);
  const launch =
    (kernel: Kernel) => (block: Block, value: number, stream?: Stream) =>
      kernel.launch({ grid: [1], block: [1], stream }, [
        block,
        { u64: block.size },
        { u32: value },
      ]);
  return {
    fill: launch(module.kernel("slow_fill")),
    check: launch(module.kernel("slow_check")),
    assertUnharmed() {
      mb.synchronize();
      mb.allocator.assertInvariants();
      assertEquals(damage, []);
      assertEquals(model.hazards, []);
      assertEquals(model.lostReason, undefined);
    },
  };
}

Deno.test("case 1: sizes that wrap when rounded are refused and change nothing", () => {
  const { mb } = openModel();
  const block = mb.alloc(GRANULE);
  const before = memoryOf(mb);
  const sizes = [
    -1,
    1.5,
    NaN,
    Infinity,
    2 ** 53,
    2 ** 53 + 2,
    2 ** 64,
    2 ** 64 - 2048,
    -(2n ** 63n),
    2n ** 63n,
    2n ** 64n - 1n,
    2n ** 64n - 511n,
    2n ** 64n,
    2n ** 64n + 1n,
  ];
  for (const size of sizes) {
    assertThrows(() => mb.alloc(size), RangeError);
    assertThrows(() => block.resize(size), RangeError);
    assertThrows(() => mb.alloc(1, { maxSize: size }), RangeError);
  }
  for (const size of ["1", null, {}, true, []]) {
    assertThrows(() => mb.alloc(size as never), TypeError);
    assertThrows(() => block.resize(size as never), TypeError);
  }
  assertEquals(memoryOf(mb), before);
});

Deno.test("case 2: a block of no bytes round-trips and counts nowhere", () => {
  const { mb } = openModel();
  const other = mb.alloc(512);
  const before = memoryOf(mb);
  const [a, b] = [mb.alloc(0), mb.alloc(0n)];
  assertEquals([a.address, a.size, b.size, a.live], [0, 0, 0, true]);
  a.free();
  b.free();
  assertThrows(() => a.free(), InvalidBlockError);
  assertEquals(memoryOf(mb), before);
  assertEquals(mb.alloc(512).address, other.address + 512);
});

Deno.test("case 3: unknown, interior and freed addresses are refused and change nothing", () => {
  const { mb } = openModel();
  const block = mb.alloc(3 * GRANULE);
  const { address } = mb.alloc(512);
  mb.free(address);
  const before = memoryOf(mb);
  const addresses = [
    0,
    1,
    4096,
    block.address + 1,
    block.address + 512,
    block.address - 512,
    address,
    2 ** 52,
    2n ** 64n - 512n,
  ];
  for (const unknown of addresses) {
    assertThrows(() => mb.free(unknown), InvalidBlockError);
  }
  assertEquals(memoryOf(mb), before);
  mb.free(block.address);
  assertEquals(mb.stats().liveBlocks, 0);
});

Deno.test("case 4: a block freed on one stream while another still reads keeps its data", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { mb, model } = openModel({ budget: 4 * GRANULE }, { seed });
    const { fill, check, assertUnharmed } = slowKernels(mb, model);
    const second = mb.createStream();
    for (let round = 1; round <= 20; round++) {
      const block = mb.alloc(2 * GRANULE);
      fill(block, round);
      check(block, round, second);
      block.free();
      const next = mb.alloc(2 * GRANULE);
      fill(next, 1000 + round);
      next.free();
    }
    assertUnharmed();
  }
});

Deno.test("case 5: freed on one stream, reused on a second, then on a third: the pattern survives", () => {
  for (let seed = 1; seed <= 20; seed++) {
    // Adjacent blocks of several streams, so that merging them could lose a wait.
    const { mb, model } = openModel({ budget: 6 * GRANULE }, { seed });
    const { fill, check, assertUnharmed } = slowKernels(mb, model);
    const streams = [1, 2, 3].map(() => mb.createStream());
    for (let round = 0; round < 60; round++) {
      const stream = streams[round % 3]!;
      const blocks = [1, 2, 3].map((size) =>
        mb.alloc(size * GRANULE - 512, { stream })
      );
      blocks.forEach((block, index) => fill(block, 3 * round + index, stream));
      blocks.forEach((block, index) => check(block, 3 * round + index, stream));
      for (const block of blocks) block.free();
    }
    assertUnharmed();
    assert(mb.stats().mapped <= 6 * GRANULE);
  }
});

Deno.test("case 6: 200 rounds of allocate, long kernel, free without a wait: no fault", () => {
  for (const tlb of ["keeps", "keeps-invalid"] as const) {
    const { mb, model } = openModel({ budget: 24 * GRANULE, maxRetired: 3 }, {
      tlb,
      maxPending: 10_000,
    });
    const { fill, check, assertUnharmed } = slowKernels(mb, model);
    const random = new Random(6);
    const kept: Block[] = [];
    for (let round = 0; round < 200; round++) {
      const block = mb.alloc((1 + random.below(5)) * GRANULE);
      fill(block, round);
      check(block, round);
      // Small blocks that stay a while leave holes, so that extents are stitched.
      kept.push(mb.alloc(GRANULE));
      block.free();
      if (kept.length > 4) kept.splice(random.below(4), 1)[0]!.free();
    }
    assert(model.pendingOperations > 0);
    assert(mb.stats().ways.stitch.count > 0);
    assertUnharmed();
  }
});

Deno.test("case 7: a failure at any driver call rolls back, and disposing never throws", () => {
  for (let kth = 1, left = 0; left === 0; kth++) {
    const { mb, model } = openModel();
    const blocks = [1, 2, 3, 4, 5, 6].map(() => mb.alloc(GRANULE));
    for (const index of [0, 2, 4]) blocks[index]!.free();
    const before = liveOf(mb);
    model.failNext("any", kth, "driver");
    const run = () => {
      using large = mb.alloc(8 * GRANULE);
      using growable = mb.alloc(GRANULE, { maxSize: 8 * GRANULE });
      growable.resize(6 * GRANULE);
      large.resize(512);
      mb.trim();
    };
    try {
      run();
    } catch (error) {
      assert(error instanceof Error && "code" in error);
    }
    left = model.failuresLeft;
    model.clearFailures();
    mb.allocator.assertInvariants();
    assertEquals(liveOf(mb), before);
    run();
    mb.allocator.assertInvariants();
    mb[Symbol.dispose]();
    assert(Object.values(model.live()).every((count) => count === 0));
  }
});

Deno.test("case 8: after many rounds the device's free memory is back at its baseline", () => {
  const { mb, model } = openModel({}, { totalMemory: 8 * 2 ** 30 });
  const baseline = model.memoryInfo().free;
  for (let round = 0; round < 64; round++) {
    const block = mb.alloc(64 * MIB);
    block.fill(round);
    const shared = mb.alloc(MIB, { maxSize: 4 * MIB });
    const stream = mb.createStream();
    shared.useOn(stream);
    shared.resize(2 * MIB);
    block.free();
    shared.free();
    stream.close();
    mb.trim();
    assertEquals(model.memoryInfo().free, baseline);
  }
  assertEquals(model.live().streams, 0);
  assert(model.live().events < 8);
});

Deno.test("case 9: memory that a wait or a release would free is not reported as lacking", () => {
  const whole = 16 * GRANULE;
  const { mb, model } = openModel({ budget: whole });
  const { fill, assertUnharmed } = slowKernels(mb, model);
  const stream = mb.createStream();
  const onOther = mb.alloc(8 * GRANULE, { stream });
  const shared = mb.alloc(8 * GRANULE);
  fill(onOther, 1, stream);
  fill(shared, 2, stream);
  onOther.free();
  shared.free();
  const all = mb.alloc(whole);
  fill(all, 3);
  assertUnharmed();
  const error = assertThrows(() => mb.alloc(1), OutOfMemoryError);
  assertEquals(error.details.live, whole);
});

Deno.test("case 9: a device that others fill up is asked again after the cache is released", () => {
  const { mb, model } = openModel({ growth: { leastStitched: Infinity } }, {
    totalMemory: 8 * GRANULE,
  });
  mb.alloc(6 * GRANULE).free();
  const [extent] = model.createExtents([2 * GRANULE]);
  const block = mb.alloc(6 * GRANULE, { maxSize: 6 * GRANULE });
  assertEquals(block.size, 6 * GRANULE);
  model.releaseExtents([extent!]);
  mb.allocator.assertInvariants();
});

Deno.test("case 10: large, then pinned by small ones, then large again is served", () => {
  const { mb } = openModel({ budget: 64 * GRANULE });
  mb.alloc(4 * GRANULE);
  const medium = Array.from({ length: 30 }, () => mb.alloc(GRANULE));
  const large = mb.alloc(30 * GRANULE);
  large.free();
  for (const [index, block] of medium.entries()) {
    if (index % 2 === 0) block.free();
  }
  const pins = [1, 2, 3].map(() => mb.alloc(512));
  assert(mb.stats().largestFree < 40 * GRANULE);
  assertEquals(mb.alloc(40 * GRANULE).size, 40 * GRANULE);
  assert(mb.stats().mapped <= 64 * GRANULE);
  assert(pins.every((pin) => pin.live));
  const error = assertThrows(() => mb.alloc(40 * GRANULE), OutOfMemoryError);
  for (const word of ["live", "free", "largest", "budget"]) {
    assert(error.message.includes(word), error.message);
  }
  mb.allocator.assertInvariants();
});

Deno.test("case 11: lengths that wander by one do not strand memory", () => {
  const model = new ModelDriver({
    granularity: 2 * MIB,
    totalMemory: 80 * 2 ** 30,
  });
  const mb = new MoonBright(model);
  const random = new Random(11);
  let length = 2000;
  for (let step = 0; step < 1000; step++) {
    length += random.below(3) - 1;
    const layers = Array.from({ length: 24 }, () => [
      mb.alloc(length * 4096 * 2),
      mb.alloc(length * 1024 * 2),
    ]);
    const logits = mb.alloc(length * 32_000);
    const { mapped, live } = mb.stats();
    assert(mapped / live < 1.05, `step ${step}: ${mapped / live}`);
    logits.free();
    for (const blocks of layers) for (const block of blocks) block.free();
    if (step % 50 === 0) mb.allocator.assertInvariants();
  }
});

Deno.test("case 12: odd sizes keep their own length beside the device's", () => {
  const { mb, model } = openModel();
  const sizes = [1, 128, 6912, GRANULE - 1, GRANULE, GRANULE + 1];
  for (const maxSize of [undefined, 4 * GRANULE]) {
    for (const size of sizes) {
      const block = mb.alloc(size, { maxSize });
      assertEquals(block.size, size);
      assert(block.capacity >= size);
      assertEquals(block.capacity % (maxSize ? GRANULE : 512), 0);
      block.fill(size % 256);
      assertEquals(block.read(), new Uint8Array(size).fill(size % 256));
      assertThrows(() => block.read(size + 1), RangeError);
      block.resize(size + 1);
      assertEquals(block.size, size + 1);
      mb.allocator.assertInvariants();
    }
  }
  const { mapped, requested } = mb.stats();
  assertEquals(mapped % GRANULE, 0);
  assertEquals(
    requested,
    2 * sizes.reduce((sum, size) => sum + size + 1, 0),
  );
  assertEquals(model.lostReason, undefined);
});

Deno.test("case 13: a refused reservation halves, is configurable, and ends in a typed error", () => {
  const small = openModel(
    { addressSpace: 2 ** 46 },
    { reservable: 100 * GRANULE },
  );
  assertEquals(small.mb.stats().reserved, 64 * GRANULE);
  assertEquals(small.mb.alloc(60 * GRANULE).size, 60 * GRANULE);
  const chosen = openModel({ addressSpace: 10 * GRANULE });
  assertEquals(chosen.mb.stats().reserved, 10 * GRANULE);
  assertEquals(chosen.model.counts.reserve, 1);
  assertCode(
    "out-of-addresses",
    () => openModel({}, { reservable: GRANULE - 1 }),
    "addressSpace",
  );
  assertCode("out-of-addresses", () => chosen.mb.alloc(11 * GRANULE));
});

Deno.test("case 14: 10 000 rounds in a small arena recycle addresses, always after a flush", () => {
  const arena = 96 * GRANULE;
  const used = new Set<number>();
  let recycled = 0;
  class WatchedDriver extends ModelDriver {
    override map(address: number, extents: readonly number[]) {
      const times = super.map(address, extents);
      // The model refuses what is still mapped; here it must have been flushed too.
      if (used.has(address)) recycled++;
      used.add(address);
      return times;
    }
  }
  const model = new WatchedDriver({ granularity: GRANULE });
  const mb = new MoonBright(model, {
    addressSpace: arena,
    budget: 32 * GRANULE,
    growth: { extentSize: GRANULE, mostExtents: 64 },
  });
  const random = new Random(14);
  const blocks: { block: Block; value: number }[] = [];
  for (let round = 0; round < 10_000; round++) {
    const size = 1 + random.below(8 * GRANULE);
    if (blocks.length > 0 && (mb.stats().live + size > 16 * GRANULE)) {
      const [one] = blocks.splice(random.below(blocks.length), 1);
      const bytes = one!.block.read(Math.min(16, one!.block.size));
      assert(bytes.every((byte) => byte === one!.value));
      one!.block.free();
      continue;
    }
    const block = mb.alloc(size);
    block.fill(round % 256);
    blocks.push({ block, value: round % 256 });
    if (round % 8 === 0) mb.trim();
    if (round % 100 === 0) mb.allocator.assertInvariants();
  }
  mb.synchronize();
  mb.allocator.assertInvariants();
  assertEquals([model.hazards.length, model.lostReason], [0, undefined]);
  const { driver, flushes } = mb.stats();
  assert(driver.map.bytes > 20 * arena, "the arena was not worn out");
  assert(recycled > 1000 && flushes > 10);
});

Deno.test("case 15: access is granted by one call for a mapped range, however many extents", () => {
  using fake = new FakeCuda(vendorLibrary);
  using mb = NativeMoonBright.open({ device: "cuda:0", vendorLibrary });
  const { granularity } = mb.device;
  mb.allocator.growth.extentSize = granularity;
  mb.alloc(8 * granularity);
  const counts = () => ["cuMemMap", "cuMemSetAccess"].map((n) => fake.calls(n));
  for (const [granules, maxSize] of [[6, 0], [3, 9 * granularity]] as const) {
    const [maps, accesses] = counts();
    mb.alloc(granules * granularity, maxSize > 0 ? { maxSize } : {});
    assertEquals(counts(), [maps! + granules, accesses! + 1]);
  }
  const { map, setAccess } = mb.stats().driver;
  assertEquals(setAccess.calls, map.calls);
  assert(map.items > map.calls);
});

Deno.test("case 16: giving back after the device is gone is quiet, for every owner", () => {
  const { mb, model } = openModel();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE, { stream });
  const growable = mb.alloc(GRANULE, { maxSize: 4 * GRANULE });
  const module = mb.loadModule(modelImage);
  const graph = stream.capture(() => block.fill(1));
  const event = stream.record();
  growable.useOn(stream);
  model.failNext("any", 1, "lost");
  assertCode("lost", () => mb.synchronize());
  mb[Symbol.dispose]();
  for (const owner of [block, growable, graph, event, module, stream, mb]) {
    owner[Symbol.dispose]();
  }
  assertEquals([mb.closed, block.live], [true, false]);
  assert(Object.values(model.live()).every((count) => count === 0));
});

Deno.test("case 18: what a captured graph uses is neither remapped nor handed out", () => {
  const { mb, model } = openModel({ budget: 12 * GRANULE });
  const stream = mb.createStream();
  const kept = mb.alloc(GRANULE, { stream });
  const blocks = [1, 2, 3].map(() => mb.alloc(GRANULE, { stream }));
  const graph = stream.capture(() => blocks.forEach((block) => block.fill(5)));
  graph.launch();
  kept.fill(1);
  for (const block of blocks) block.free();
  const { retired, retiredMappings } = mb.stats();
  // Whatever is asked for now is served by other memory, or not at all.
  const large = mb.alloc(6 * GRANULE, { stream });
  large.fill(2);
  assertThrows(() => mb.alloc(4 * GRANULE, { stream }), OutOfMemoryError);
  mb.trim();
  assertEquals([mb.stats().retired, mb.stats().retiredMappings], [
    retired,
    retiredMappings,
  ]);
  graph.launch();
  mb.synchronize();
  assertEquals([kept.read(1)[0], large.read(1)[0]], [1, 2]);
  assertEquals([model.hazards, model.lostReason], [[], undefined]);
  graph.close();
  assertEquals(mb.alloc(4 * GRANULE, { stream }).size, 4 * GRANULE);
  mb.allocator.assertInvariants();
});

/** What each case is about, and the tests that show more of it than this file can. */
const CASES: Record<number, { title: string; also?: string[] }> = {
  1: { title: "rounding a size wraps" },
  2: { title: "a block of no bytes" },
  3: { title: "freeing an unknown address" },
  4: {
    title: "freed while another stream still copies",
    also: ["contract/instance_stream_cases.ts"],
  },
  5: {
    title: "merging loses a dependency",
    also: ["contract/instance_stream_cases.ts"],
  },
  6: {
    title: "unmapping is not stream-ordered",
    also: ["contract/instance_stream_cases.ts"],
  },
  7: { title: "a map fails half-way" },
  8: {
    title: "memory does not come back",
    also: ["contract/instance_recycling_cases.ts"],
  },
  9: {
    title: "out of memory where a wait would do",
    also: ["contract/instance_pressure_cases.ts"],
  },
  10: {
    title: "out of memory with half of it free",
    also: ["contract/instance_pressure_cases.ts"],
  },
  11: {
    title: "wandering lengths strand memory",
    also: ["contract/instance_recycling_cases.ts"],
  },
  12: {
    title: "an odd size reaches the driver",
    also: ["contract/instance_recycling_cases.ts"],
  },
  13: { title: "a large reservation is refused" },
  14: {
    title: "addresses run out",
    also: ["contract/instance_recycling_cases.ts"],
  },
  15: { title: "access granted piece by piece" },
  16: { title: "the process ends", also: ["concurrency_test.ts"] },
  17: {
    title: "fork",
    also: ["native/fork_test.ts", "concurrency_test.ts"],
  },
  18: {
    title: "remapping under a graph",
    also: [
      "contract/instance_graph_cases.ts",
      "paging/paged_capture_test.ts",
    ],
  },
};

Deno.test("every case has tests that are named after it", () => {
  const read = (file: string) =>
    Deno.readTextFileSync(new URL(file, import.meta.url));
  const here = read("cases_test.ts");
  for (const [number, { title, also = [] }] of Object.entries(CASES)) {
    const named = new RegExp(`case ${number}: `);
    for (const file of also) {
      assert(named.test(read(file)), `case ${number}, ${title}: ${file}`);
    }
    assert(named.test(here) || also.length > 0, `case ${number}, ${title}`);
  }
  assertEquals(Object.keys(CASES).length, 18);
});
