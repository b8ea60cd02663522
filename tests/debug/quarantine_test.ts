import {
  assert,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import type { Block } from "../../lib/block.ts";
import {
  InvalidBlockError,
  MoonBrightError,
  OutOfMemoryError,
} from "../../lib/errors.ts";
import { modelImage } from "../model/kernels.ts";
import {
  assertCode,
  GRANULE,
  memoryOf,
  openGated,
  openModel,
  preloaded,
} from "../lib/support.ts";

const quarantine = { debug: "quarantine" } as const;

Deno.test("debug options that make no sense are refused", () => {
  const refused = [
    { debug: "quarantin" as never },
    { guard: true },
    { guard: GRANULE, canaries: true },
    { ...quarantine, guard: -1 },
    { ...quarantine, guard: 0.5 },
    { ...quarantine, guard: NaN },
  ];
  for (const options of refused) {
    assertThrows(() => openModel(options), RangeError, "Cannot use");
  }
  assertThrows(
    () => openModel({ ...quarantine, guard: "1" as never }),
    TypeError,
  );
});

Deno.test("without debug options nothing watches", () => {
  const off = { guard: false, canaries: false, stacks: false, zero: false };
  assertEquals(openModel(off).mb.allocator.watch, undefined);
  assertEquals(openModel().mb.snapshot().quarantined, undefined);
});

Deno.test("a freed block is unmapped once its event has passed, and not before", () => {
  const { mb, gated } = openGated(quarantine);
  const stream = mb.createStream();
  const block = mb.alloc(100, { stream, name: "freed" });
  const { address } = block;
  block.free();
  assertEquals(mb.explain(address).state, "pending");
  assertEquals(mb.stats().pending, GRANULE);
  mb.alloc(1);
  assert(mb.allocator.extents.at(address) !== 0);
  gated.pass(stream.number);
  mb.alloc(1);
  assertEquals(mb.explain(address).state, "quarantined");
  assertEquals(mb.allocator.extents.at(address), 0);
  assertEquals([mb.stats().pending, mb.stats().retired], [0, 0]);
  mb.allocator.assertInvariants();
});

Deno.test("a freed block waits for every stream that used it", () => {
  const { mb, gated } = openGated(quarantine);
  const streams = [mb.createStream(), mb.createStream(), mb.createStream()];
  const [own, user, last] = streams;
  const block = mb.alloc(GRANULE, { stream: own! });
  const { address } = block;
  block.useOn(user!);
  block.free(last!);
  for (const stream of streams) {
    assertEquals(mb.explain(address).state, "pending");
    gated.pass(stream.number);
    mb.flush();
  }
  assertEquals(mb.explain(address).state, "quarantined");
});

Deno.test("addresses are never used again, memory is", () => {
  const { mb, model } = openModel({ ...quarantine, budget: 4 * GRANULE });
  const seen = new Set<number>();
  for (let round = 0; round < 200; round++) {
    const block = mb.alloc(3 * GRANULE);
    for (let at = 0; at < 3 * GRANULE; at += GRANULE) {
      assert(!seen.has(block.address + at));
      seen.add(block.address + at);
    }
    block.free();
  }
  mb.synchronize();
  assertEquals(mb.stats().mapped, 3 * GRANULE);
  assertEquals(model.live().mappings, 0);
  mb.trim();
  assertEquals(mb.stats().mapped, 0);
});

Deno.test("under pressure the host waits for blocks that were just freed", () => {
  const { mb, gated } = openGated({ ...quarantine, budget: 2 * GRANULE });
  const block = mb.alloc(2 * GRANULE);
  const { address } = block;
  block.free();
  const next = mb.alloc(2 * GRANULE);
  assert(gated.log.some((call) => call.startsWith("synchronize event")));
  assert(next.address !== address);
  assertThrows(() => mb.alloc(1), OutOfMemoryError);
  mb.allocator.assertInvariants();
});

Deno.test("guards leave unmapped addresses on both sides, and blocks end at their extents' end", () => {
  const { mb } = openModel({ ...quarantine, guard: 2 * GRANULE + 1 });
  const { extents } = mb.allocator;
  for (const size of [1, 511, 512, 513, GRANULE, GRANULE + 1, 5000]) {
    const block = mb.alloc(size);
    const { address, capacity } = block;
    assertEquals(capacity, Math.ceil(size / 512) * 512);
    const end = address + capacity;
    assertEquals((end - mb.allocator.arena.base) % GRANULE, 0);
    for (let granule = 0; granule < 3; granule++) {
      assertEquals(extents.at(end + granule * GRANULE), 0);
      assertEquals(mb.explain(end + granule * GRANULE).state, "guard");
    }
    const first = Math.floor(address / GRANULE) * GRANULE;
    for (let granule = 1; granule <= 3; granule++) {
      assertEquals(extents.at(first - granule * GRANULE), 0);
      assertEquals(mb.explain(first - granule * GRANULE).state, "guard");
    }
    if (address > first) assertEquals(mb.explain(first).state, "slack");
  }
  mb.allocator.assertInvariants();
});

Deno.test("a kernel that runs over a guarded block's end faults", () => {
  const { mb, model } = openModel({ ...quarantine, guard: true });
  const fill = mb.loadModule(modelImage).kernel("mb_pattern_fill");
  const block = mb.alloc(512);
  const launch = (words: number) =>
    fill.launch({ grid: [1], block: [1] }, [block, { u64: words }, { u64: 1 }]);
  launch(64);
  mb.synchronize();
  launch(65);
  assertCode("lost", () => mb.synchronize());
  assertStringIncludes(
    model.lostReason!,
    (block.address + 512).toString(16),
  );
});

Deno.test("a launch first unmaps what was freed before it", () => {
  const { mb, gated } = openGated(quarantine);
  const empty = mb.loadModule(modelImage).kernel("mb_empty");
  const block = mb.alloc(100);
  const { address } = block;
  block.free();
  empty.launch({ grid: [1], block: [1] });
  assertEquals(mb.explain(address).state, "quarantined");
  assert(gated.log.includes("unmap 1"));
});

Deno.test("a launch refuses the address of a freed block, and names it", () => {
  const { mb } = openModel({ ...quarantine, stacks: true });
  const empty = mb.loadModule(modelImage).kernel("mb_empty");
  const one: { grid: [number]; block: [number] } = { grid: [1], block: [1] };
  const block = mb.alloc(100, { name: "weights" });
  const { address } = block;
  empty.launch(one, [{ u64: address }]);
  block.free();
  for (
    const argument of [
      { u64: address },
      { u64: BigInt(address) + 99n },
      { i64: address },
    ]
  ) {
    const error = assertThrows(
      () => empty.launch(one, [{ u64: 7 }, argument]),
      InvalidBlockError,
      "argument 1",
    );
    assertStringIncludes(error.message, '"weights"');
    assertStringIncludes(error.message, "quarantine_test.ts");
  }
  empty.launch(one, [{ u64: 2n ** 64n - 1n }, { f64: address }]);
});

Deno.test("a double free names the block, and where it was freed first", () => {
  const { mb } = openModel({ stacks: true });
  const block = mb.alloc(100, { name: "twice" });
  function freesFirst() {
    block.free();
  }
  const other = mb.blockAt(block.address);
  freesFirst();
  for (const owner of [block, other]) {
    const error = assertThrows(
      () => owner.free(),
      InvalidBlockError,
      '"twice"',
    );
    assertStringIncludes(error.message, "freesFirst");
    assertThrows(() => owner.address, InvalidBlockError, '"twice"');
  }
});

Deno.test("an address that no block starts at is explained by the error", () => {
  const { mb } = openModel({ ...quarantine, stacks: true });
  const block = mb.alloc(100, { name: "was here" });
  const { address } = block;
  block.free();
  assertThrows(() => mb.free(address), InvalidBlockError, '"was here"');
});

Deno.test("growable blocks are quarantined with all their room", () => {
  const { mb } = preloaded({ ...quarantine, guard: true });
  const block = mb.alloc(100, { maxSize: 8 * GRANULE, name: "log" });
  const { address } = block;
  block.resize(5 * GRANULE);
  assertEquals(mb.explain(address + 6 * GRANULE).state, "guard");
  block.resize(2 * GRANULE);
  mb.synchronize();
  // Only the room of the same block can hold these addresses again.
  assertEquals(mb.explain(address + 3 * GRANULE).state, "guard");
  block.resize(4 * GRANULE);
  assertEquals(mb.explain(address + 3 * GRANULE).state, "live");
  block.free();
  mb.synchronize();
  for (let at = 0; at < 8 * GRANULE; at += GRANULE) {
    const { state, block: story } = mb.explain(address + at);
    assertEquals([state, story?.name], ["quarantined", "log"]);
  }
  mb.alloc(20 * GRANULE);
  assertEquals(mb.explain(address).state, "quarantined");
  mb.allocator.assertInvariants();
});

Deno.test("a block in quarantine mode keeps its capacity when it shrinks", () => {
  const { mb } = openModel(quarantine);
  const block = mb.alloc(3 * GRANULE);
  block.resize(10);
  assertEquals([block.size, block.capacity], [10, 3 * GRANULE]);
  block.resize(3 * GRANULE);
  assertCode("cannot-grow", () => block.resize(3 * GRANULE + 1));
  mb.allocator.assertInvariants();
});

Deno.test("the snapshot lists the quarantined", () => {
  const { mb } = openModel({ ...quarantine, stacks: true });
  const block = mb.alloc(100, { name: "listed" });
  const { address } = block;
  assertEquals(mb.snapshot().quarantined, []);
  block.free();
  const [story] = mb.snapshot().quarantined!;
  assertEquals([story!.address, story!.size, story!.name], [
    address,
    100,
    "listed",
  ]);
  assertStringIncludes(story!.allocated!.stack!, "quarantine_test.ts");
  assertStringIncludes(story!.freed!.stack!, "quarantine_test.ts");
  JSON.stringify(mb.snapshot());
});

Deno.test("a free that can't record its event changes nothing", () => {
  const { mb, gated } = openGated({ ...quarantine, canaries: true });
  const block = mb.alloc(100, { name: "stays" });
  const before = memoryOf(mb);
  gated.recordEvent = () => {
    throw new Error("no events left");
  };
  assertThrows(() => block.free(), Error, "no events left");
  assertEquals(memoryOf(mb), before);
  assert(block.live);
  mb.allocator.assertInvariants();
  Reflect.deleteProperty(gated, "recordEvent");
  block.free();
  assert(!block.live);
});

Deno.test("what a driver refuses to unmap is unmapped later", () => {
  const { mb, gated } = openGated(quarantine);
  const [first, second] = [mb.alloc(100), mb.alloc(100)];
  const { address } = first;
  first.free();
  gated.pass(0);
  gated.failNext("unmap", 2, "driver");
  gated.failNext("unmap", 1, "driver");
  // Frees don't fail for it, what gives memory back does.
  second.free();
  assertEquals(mb.explain(address).state, "retired");
  assertCode("driver", () => mb.flush());
  assertEquals(mb.explain(address).state, "retired");
  mb.allocator.assertInvariants();
  mb.flush();
  assertEquals(mb.explain(address).state, "quarantined");
  mb.allocator.assertInvariants();
});

Deno.test("whichever driver call fails, a watched instance stays sound and loses nothing", () => {
  const options = {
    ...quarantine,
    guard: true,
    canaries: true,
    zero: true,
    budget: 24 * GRANULE,
  };
  let completed = false;
  let failures = 0;
  for (let kth = 1; !completed; kth++) {
    const { mb, model } = openModel(options);
    const stream = mb.createStream();
    const blocks: Block[] = [];
    model.failNext("any", kth, "driver");
    try {
      blocks.push(mb.alloc(100));
      blocks.push(mb.alloc(3 * GRANULE, { stream }));
      blocks.push(mb.alloc(10, { maxSize: 4 * GRANULE }));
      blocks[2]!.resize(3 * GRANULE);
      blocks[1]!.useOn(mb.defaultStream);
      blocks[1]!.free();
      blocks[0]!.resize(50);
      mb.checkCanaries();
      blocks[2]!.free();
      mb.alloc(8 * GRANULE).free();
      mb.synchronize();
      mb.trim();
      completed = true;
    } catch (error) {
      if (!(error instanceof MoonBrightError)) throw error;
      failures++;
    }
    mb.allocator.assertInvariants();
    for (const block of blocks) block[Symbol.dispose]();
    // Of a request that failed half-way nothing is live but what the program holds.
    const { blocks: left } = mb.snapshot();
    assert(left.every(({ state }) => state !== "live"));
    mb.synchronize();
    mb.trim();
    mb.allocator.assertInvariants();
    assertEquals(mb.stats().mapped, 0);
    assertEquals(model.live().extents, 0);
    mb.close();
  }
  assert(failures > 20, `${failures} failures`);
});

Deno.test("instances that watch close with blocks waiting", () => {
  const { mb, model } = openModel({ ...quarantine, guard: true });
  const stream = mb.createStream();
  mb.alloc(100, { stream }).free();
  mb.alloc(100);
  mb.close();
  assertEquals(model.live().extents, 0);
});

Deno.test("blocks of a stream that is capturing are unmapped after the capture", () => {
  const { mb } = openModel(quarantine);
  const stream = mb.createStream();
  const empty = mb.loadModule(modelImage).kernel("mb_empty");
  let address = 0;
  using graph = stream.capture(() => {
    const block = mb.alloc(100, { stream });
    ({ address } = block);
    block.free();
    empty.launch({ grid: [1], block: [1], stream });
    assertEquals(mb.explain(address).state, "pending");
  });
  mb.synchronize();
  assertEquals(mb.explain(address).state, "quarantined");
  graph.launch();
  mb.synchronize();
});
