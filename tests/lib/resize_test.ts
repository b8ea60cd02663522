import { assertEquals, assertThrows } from "@std/assert";
import { OutOfMemoryError } from "../../lib/errors.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import {
  assertCode,
  GRANULE,
  memoryOf,
  openGated,
  openModel,
  preloaded,
} from "./support.ts";

function check(mb: MoonBright) {
  mb.allocator.assertInvariants();
}

Deno.test("growing within the capacity changes the size alone", () => {
  const { mb, model } = openModel();
  const block = mb.alloc(100);
  const { address } = block;
  const maps = model.counts.map;
  block.resize(512);
  assertEquals([block.size, block.capacity], [512, 512]);
  block.resize(1);
  assertEquals([block.size, block.capacity], [1, 512]);
  assertEquals([block.address, model.counts.map], [address, maps]);
  assertEquals(mb.stats().requested, 1);
  check(mb);
});

Deno.test("growing takes free memory behind the block", () => {
  const { mb, model } = openModel();
  const block = mb.alloc(1024);
  const maps = model.counts.map;
  block.resize(GRANULE);
  assertEquals([block.capacity, model.counts.map], [GRANULE, maps]);
  assertEquals(mb.stats().free, 0);
  check(mb);
});

Deno.test("a block at the frontier grows into newly mapped memory", () => {
  const { mb } = openModel();
  const block = mb.alloc(1024);
  const { address } = block;
  block.write(new Uint8Array(1024).fill(7));
  block.resize(3 * GRANULE + 1);
  assertEquals([block.address, block.size], [address, 3 * GRANULE + 1]);
  assertEquals(block.read(1024), new Uint8Array(1024).fill(7));
  block.fill(1);
  mb.synchronize();
  assertEquals(mb.stats().mapped, 4 * GRANULE);
  check(mb);
});

Deno.test("growing at the frontier stitches free extents", () => {
  const { mb } = preloaded({ budget: 20 * GRANULE });
  const hole = mb.alloc(2 * GRANULE);
  const block = mb.alloc(2 * GRANULE);
  hole.free();
  block.resize(4 * GRANULE);
  check(mb);
  assertEquals([block.size, mb.stats().mapped], [4 * GRANULE, 20 * GRANULE]);
  assertEquals(mb.stats().retiredMappings, 2);
});

Deno.test("a block with others behind it can't grow, and nothing changes", () => {
  const { mb } = openModel();
  const block = mb.alloc(GRANULE);
  mb.alloc(GRANULE);
  const before = memoryOf(mb);
  assertCode("cannot-grow", () => block.resize(GRANULE + 1), "maxSize");
  assertEquals(memoryOf(mb), before);
  check(mb);
});

Deno.test("a block that merely ends at the frontier grows right or not at all", () => {
  // A freed growable block is not chained to what lies before or behind it.
  const { mb } = openModel();
  const keep = mb.alloc(GRANULE);
  mb.alloc(GRANULE, { maxSize: GRANULE }).free();
  const block = mb.alloc(GRANULE);
  assertEquals(block.address, keep.address + GRANULE);
  try {
    block.resize(2 * GRANULE);
  } catch {
    assertEquals(block.size, GRANULE);
  }
  assertEquals(block.capacity >= block.size, true);
  check(mb);
});

Deno.test("shrinking frees the rest for the same stream at once", () => {
  const { mb, model } = openModel();
  const block = mb.alloc(2 * GRANULE);
  const maps = model.counts.map;
  block.resize(512);
  check(mb);
  const next = mb.alloc(2 * GRANULE - 512);
  assertEquals(next.address, block.address + 512);
  assertEquals(model.counts.map, maps);
  check(mb);
});

Deno.test("shrinking a block that others use makes its stream wait for them", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(2 * GRANULE);
  block.useOn(stream);
  const waits = gated.counts.waitEvent!;
  block.resize(GRANULE);
  assertEquals(gated.counts.waitEvent, waits + 1);
  check(mb);
});

Deno.test("a growable block grows in place to its limit and not beyond", () => {
  const { mb } = openModel();
  const block = mb.alloc(100, { maxSize: 4 * GRANULE - 1 });
  mb.alloc(GRANULE);
  const { address } = block;
  assertEquals(block.capacity, GRANULE);
  block.resize(2 * GRANULE);
  check(mb);
  assertEquals(mb.stats().mapped, 3 * GRANULE);
  block.resize(4 * GRANULE);
  check(mb);
  assertEquals(block.address, address);
  const before = memoryOf(mb);
  assertCode("cannot-grow", () => block.resize(4 * GRANULE + 1), "maxSize");
  assertEquals(memoryOf(mb), before);
});

Deno.test("what a shrunk growable block gave up comes back without a driver call", () => {
  const { mb, model } = preloaded();
  const block = mb.alloc(4 * GRANULE, { maxSize: 4 * GRANULE });
  block.resize(GRANULE);
  check(mb);
  assertEquals(mb.stats().retiredMappings, 3);
  const { map, unmap } = model.counts;
  block.resize(3 * GRANULE);
  check(mb);
  assertEquals([model.counts.map, model.counts.unmap], [map, unmap]);
  assertEquals(mb.stats().retiredMappings, 1);
});

Deno.test("what was stitched elsewhere meanwhile is replaced", () => {
  const { mb } = preloaded();
  const block = mb.alloc(4 * GRANULE, { maxSize: 4 * GRANULE });
  block.fill(1);
  block.resize(GRANULE);
  const other = mb.alloc(2 * GRANULE);
  other.fill(2);
  block.resize(4 * GRANULE);
  block.fill(3, { offset: GRANULE });
  check(mb);
  assertEquals(block.read(GRANULE), new Uint8Array(GRANULE).fill(1));
  assertEquals(other.read(), new Uint8Array(2 * GRANULE).fill(2));
  assertEquals(mb.stats().mapped, 22 * GRANULE);
});

Deno.test("an extent that reaches over the new end stays with the block", () => {
  const { mb } = openModel({ growth: { extentSize: 4 * GRANULE } });
  const block = mb.alloc(8 * GRANULE, { maxSize: 8 * GRANULE });
  block.resize(GRANULE);
  check(mb);
  // The first growth of a heap comes in one extent.
  assertEquals([block.size, block.capacity], [GRANULE, 8 * GRANULE]);
});

Deno.test("a freed growable block gives the addresses behind it back", () => {
  const { mb } = preloaded({ freshAddresses: 0 });
  const block = mb.alloc(2 * GRANULE, { maxSize: 8 * GRANULE });
  block.resize(GRANULE);
  block.free();
  check(mb);
  assertEquals(mb.stats().recyclable, 6 * GRANULE);
  mb.flush({ wait: true });
  check(mb);
  assertEquals(mb.stats().recyclable, 7 * GRANULE);
});

Deno.test("growth that runs out of memory changes nothing", () => {
  for (const maxSize of [undefined, 8 * GRANULE]) {
    const { mb } = preloaded({ budget: 20 * GRANULE });
    const block = mb.alloc(2 * GRANULE, { maxSize });
    const before = memoryOf(mb);
    assertThrows(() => block.resize(5 * GRANULE), OutOfMemoryError);
    assertEquals(memoryOf(mb), before);
    check(mb);
    block.resize(4 * GRANULE);
    check(mb);
  }
});

Deno.test("sizes that are none are refused", () => {
  const { mb } = openModel();
  const block = mb.alloc(512);
  const before = memoryOf(mb);
  for (const size of [0, -1, 0.5, NaN, 2 ** 53, 2n ** 64n]) {
    assertThrows(() => block.resize(size), RangeError);
  }
  assertThrows(() => block.resize("1" as unknown as number), TypeError);
  assertEquals(memoryOf(mb), before);
  const empty = mb.alloc(0);
  empty.resize(0);
  assertThrows(() => empty.resize(1), RangeError, "empty");
});
