import { assert, assertEquals, assertThrows } from "@std/assert";
import { OutOfMemoryError } from "../../lib/errors.ts";
import {
  assertCode,
  GRANULE,
  memoryOf,
  openGated,
  openModel,
  preloaded,
} from "./support.ts";

Deno.test("ways are tried cheapest first", () => {
  const { mb, model } = openModel({ budget: 8 * GRANULE });
  const ways = () => {
    mb.allocator.assertInvariants();
    const { reuse, extend, stitch, grow } = mb.stats().ways;
    return [grow, extend, reuse, stitch].map(({ count }) => count);
  };
  const a = mb.alloc(GRANULE);
  assertEquals(ways(), [1, 0, 0, 0]);
  const b = mb.alloc(GRANULE + 512);
  assertEquals(ways(), [2, 0, 0, 0]);
  mb.alloc(2 * GRANULE);
  assertEquals(ways(), [2, 1, 0, 0]);
  a.free();
  mb.alloc(GRANULE).free();
  assertEquals(ways(), [2, 1, 1, 0]);
  b.free();
  const unmaps = model.counts.unmap;
  mb.alloc(4 * GRANULE);
  assertEquals(ways(), [2, 1, 1, 1]);
  assertEquals(model.counts.unmap, unmaps);
});

Deno.test("stitching neither copies nor loses what neighbours hold", () => {
  const { mb } = openModel({ budget: 6 * GRANULE });
  const blocks = [1, 2, 3, 4, 5, 6].map((value) => {
    const block = mb.alloc(GRANULE);
    block.fill(value);
    return block;
  });
  for (const index of [0, 2, 4]) blocks[index]!.free();
  const large = mb.alloc(3 * GRANULE);
  large.fill(9);
  mb.allocator.assertInvariants();
  for (const index of [1, 3, 5]) {
    assertEquals(
      blocks[index]!.read(),
      new Uint8Array(GRANULE).fill(index + 1),
    );
  }
  assertEquals(large.read(), new Uint8Array(3 * GRANULE).fill(9));
  assertEquals(mb.stats().mapped, 6 * GRANULE);
});

Deno.test("another stream's memory is used only after its event", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE, { stream });
  const { address } = block;
  block.free();
  assert(mb.alloc(GRANULE).address !== address);
  mb.allocator.streams.tick(1);
  gated.pass(1);
  assertEquals(mb.alloc(GRANULE).address, address);
  mb.allocator.assertInvariants();
});

Deno.test("under pressure the device waits for another stream, the host does not", () => {
  const { mb, gated } = openGated({ budget: 2 * GRANULE });
  const stream = mb.createStream();
  mb.alloc(2 * GRANULE, { stream }).free();
  gated.log.length = 0;
  mb.alloc(2 * GRANULE);
  mb.allocator.assertInvariants();
  assertEquals(gated.log.some((line) => line.startsWith("synchr")), false);
  assertEquals(gated.counts.waitEvent, 1);
});

Deno.test("memory extended by an extent still in use is not passed on too early", () => {
  const { mb } = openGated({ budget: 4 * GRANULE });
  const stream = mb.createStream();
  const early = mb.alloc(GRANULE);
  const guard = mb.alloc(512);
  early.fill(1);
  // The free rest at the frontier is known to be done; the extent of `early` is not.
  mb.synchronize();
  early.fill(2);
  early.free();
  mb.budget = 2 * GRANULE;
  const extended = mb.alloc(GRANULE + 512);
  mb.allocator.assertInvariants();
  assertEquals(mb.stats().mapped, 2 * GRANULE);
  const other = mb.allocator.heap.takeFromOthers(stream.number, 512);
  assertEquals(other, 0);
  guard.free();
  extended.free();
});

Deno.test("cached extents are released when the device itself is full", () => {
  const { mb, model } = openModel(
    { growth: { leastStitched: 2 * GRANULE } },
    { totalMemory: 4 * GRANULE },
  );
  const blocks = [1, 2, 3].map(() => mb.alloc(GRANULE));
  blocks[0]!.free();
  blocks[2]!.free();
  const large = mb.alloc(3 * GRANULE);
  mb.allocator.assertInvariants();
  assertEquals([large.size, model.live().extents], [3 * GRANULE, 2]);
});

Deno.test("out of memory says what there was, and changes nothing", () => {
  const { mb } = openModel({ budget: 4 * GRANULE });
  mb.alloc(512);
  const hole = mb.alloc(512);
  mb.alloc(3 * GRANULE - 512);
  hole.free();
  const before = memoryOf(mb);
  const error = assertThrows(() => mb.alloc(2 * GRANULE), OutOfMemoryError);
  assertEquals(memoryOf(mb), before);
  mb.allocator.assertInvariants();
  const { details } = error;
  assertEquals(error.code, "out-of-memory");
  assertEquals(details.requested, 2 * GRANULE);
  assertEquals(details.live, 3 * GRANULE);
  assertEquals(details.mapped, 4 * GRANULE);
  assertEquals(details.free, details.mapped - details.live);
  assertEquals(details.budget, 4 * GRANULE);
  assert(details.largestFree < 2 * GRANULE && details.largestFree > 0);
  for (const word of ["live 12 KiB", "budget 16 KiB", "model:0"]) {
    assert(error.message.includes(word), error.message);
  }
});

Deno.test("raising the budget serves what was refused", () => {
  const { mb } = openModel({ budget: GRANULE });
  mb.alloc(GRANULE);
  assertThrows(() => mb.alloc(512), OutOfMemoryError);
  mb.budget = Infinity;
  assertEquals(mb.alloc(512).size, 512);
  mb.budget = 0;
  assertEquals(mb.alloc(512).size, 512);
  assertThrows(() => mb.alloc(GRANULE), OutOfMemoryError);
});

Deno.test("at the arena's end addresses that were flushed serve, not only the top", () => {
  const { mb } = openModel({ addressSpace: 8 * GRANULE });
  const blocks = [1, 2, 3, 4].map(() => mb.alloc(GRANULE));
  const low = mb.alloc(3 * GRANULE);
  const top = mb.alloc(512);
  for (const block of blocks) block.free();
  mb.trim();
  assertEquals(mb.stats().recyclable, 4 * GRANULE);
  const served = mb.alloc(4 * GRANULE);
  mb.allocator.assertInvariants();
  assert(served.address < low.address);
  assertEquals(top.live, true);
});

Deno.test("cached memory gives up its addresses before they run out", () => {
  const { mb } = openModel({ addressSpace: 4 * GRANULE, freshAddresses: 0 });
  const blocks = [1, 2, 3, 4].map(() =>
    mb.alloc(GRANULE, { maxSize: GRANULE })
  );
  // Freed growable blocks are not chained, and so lie side by side unmerged.
  for (const block of blocks) block.free();
  assertEquals(mb.alloc(4 * GRANULE).size, 4 * GRANULE);
  mb.allocator.assertInvariants();
});

Deno.test("an arena without room is a typed error that changes nothing", () => {
  const { mb } = openModel({ addressSpace: 4 * GRANULE });
  const blocks = [1, 2, 3, 4].map(() => mb.alloc(GRANULE));
  blocks[1]!.free();
  blocks[3]!.free();
  mb.trim();
  const before = memoryOf(mb);
  assertCode("out-of-addresses", () => mb.alloc(2 * GRANULE), "addressSpace");
  assertCode(
    "out-of-addresses",
    () => mb.alloc(1, { maxSize: 2 * GRANULE }),
    "maxSize",
  );
  assertEquals(memoryOf(mb), before);
  mb.allocator.assertInvariants();
});

Deno.test("retired mappings beyond the threshold are flushed by the next slow request", () => {
  const { mb } = preloaded({ maxRetired: 2 });
  const blocks = [1, 2, 3, 4, 5, 6].map(() => mb.alloc(GRANULE));
  for (const index of [0, 2, 4]) blocks[index]!.free();
  mb.alloc(3 * GRANULE);
  assertEquals([mb.stats().retiredMappings, mb.stats().flushes], [3, 0]);
  mb.synchronize();
  mb.alloc(3 * GRANULE);
  assertEquals([mb.stats().retiredMappings, mb.stats().flushes], [0, 1]);
  mb.allocator.assertInvariants();
});

Deno.test("a request is not lost when the flush that is due fails", () => {
  const { mb, model } = openModel({ maxRetired: 0 });
  const blocks = [1, 2].map(() => mb.alloc(GRANULE));
  blocks[0]!.free();
  mb.alloc(2 * GRANULE);
  assertEquals(mb.stats().retiredMappings, 1);
  mb.synchronize();
  model.failNext("unmap", 1, "driver");
  const before = memoryOf(mb);
  assertCode("driver", () => mb.alloc(5 * GRANULE));
  assertEquals(memoryOf(mb), before);
  mb.allocator.assertInvariants();
  mb.alloc(5 * GRANULE);
  mb.allocator.assertInvariants();
});

Deno.test("a refusal by a full device gives the addresses back", () => {
  const { mb } = openModel({}, { totalMemory: 4 * GRANULE });
  mb.alloc(2 * GRANULE);
  const { frontier } = mb.snapshot().arena;
  for (let round = 0; round < 3; round++) {
    assertThrows(() => mb.alloc(3 * GRANULE), OutOfMemoryError);
    assertThrows(
      () => mb.alloc(3 * GRANULE, { maxSize: 8 * GRANULE }),
      OutOfMemoryError,
    );
    assertEquals(mb.snapshot().arena.frontier, frontier);
    assertEquals(mb.stats().recyclable, 0);
  }
  mb.allocator.assertInvariants();
});

Deno.test("retired mappings give up their addresses before cached memory is released", () => {
  const { mb, model } = openModel({ addressSpace: 12 * GRANULE });
  mb.alloc(4 * GRANULE);
  const blocks = [1, 2, 3, 4, 5].map(() => mb.alloc(GRANULE));
  for (const index of [0, 1]) blocks[index]!.free();
  mb.alloc(3 * GRANULE);
  assertEquals(mb.stats().retiredMappings, 2);
  blocks[4]!.free();
  // From now on what is cached is left alone: the request grows, and needs addresses.
  mb.allocator.growth.growthPriceNs = 0;
  mb.alloc(2 * GRANULE);
  mb.allocator.assertInvariants();
  assertEquals([mb.stats().flushes, mb.stats().free], [1, GRANULE]);
  assertEquals(model.counts.releaseExtents, undefined);
});

Deno.test("loose extents of another stream are not stitched before they may be seen", () => {
  const { mb, gated } = openGated();
  mb.alloc(16 * GRANULE);
  const stream = mb.createStream();
  const block = mb.alloc(4 * GRANULE, { stream, maxSize: 4 * GRANULE });
  block.resize(GRANULE);
  const looseCount = () =>
    mb.snapshot().extents.filter(({ address }) => address === null).length;
  mb.alloc(2 * GRANULE);
  mb.allocator.assertInvariants();
  assertEquals([looseCount(), mb.stats().ways.stitch.count], [3, 0]);
  mb.allocator.streams.tick(stream.number);
  gated.pass(1);
  mb.alloc(2 * GRANULE);
  mb.allocator.assertInvariants();
  assertEquals([looseCount(), mb.stats().ways.stitch.count], [1, 1]);
});

Deno.test("where the device refuses growth, what is free is stitched though it costs more", () => {
  const { mb, model } = openModel(
    { growth: { growthPriceNs: 0 } },
    { totalMemory: 5 * GRANULE },
  );
  const blocks = [1, 2, 3, 4, 5].map(() => mb.alloc(GRANULE));
  blocks[0]!.free();
  blocks[2]!.free();
  const before = model.counts.releaseExtents;
  const large = mb.alloc(2 * GRANULE);
  mb.allocator.assertInvariants();
  assertEquals([large.size, mb.stats().ways.stitch.count], [2 * GRANULE, 1]);
  assertEquals(model.counts.releaseExtents, before);
});

Deno.test("a price of infinity grows only by what can't be stitched", () => {
  const { mb } = openModel({ growth: { growthPriceNs: Infinity } });
  const blocks = [1, 2, 3].map(() => mb.alloc(GRANULE));
  blocks[0]!.free();
  blocks[2]!.free();
  mb.alloc(2 * GRANULE);
  assertEquals([mb.stats().ways.stitch.count, mb.stats().mapped], [
    1,
    3 * GRANULE,
  ]);
});

Deno.test("a growth policy that can't be followed is refused", () => {
  for (
    const growth of [
      { extentSize: 1000 },
      { extentSize: NaN },
      { mostExtents: -1 },
      { growthPriceNs: NaN },
    ]
  ) assertThrows(() => openModel({ growth }), RangeError, "growth.");
  assertThrows(() => openModel({ addressSpace: NaN }), RangeError);
});
