import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { BlockState } from "../../lib/blocks.ts";
import { Extents } from "../../lib/extents.ts";
import { Heap, isLive } from "../../lib/heap.ts";
import { Streams } from "../../lib/streams.ts";
import { GatedDriver, GRANULE } from "./support.ts";

const BASE = 2 ** 44;

/** A heap over streams 0 and 1, with a way to back more of the arena. */
function setUp() {
  const driver = new GatedDriver();
  const extents = new Extents(BASE, GRANULE);
  const streams = new Streams(driver);
  const heap = new Heap(extents, streams, GRANULE);
  streams.create();
  heap.index(1);
  let frontier = BASE;
  /** Backs granules at the frontier, or behind a gap, with one extent each. */
  const back = (granules: number, stream = 0, gap = 0) => {
    const address = frontier + gap * GRANULE;
    extents.prepare(granules, address + granules * GRANULE);
    for (let index = 0; index < granules; index++) {
      extents.place(extents.add(1, GRANULE), address + index * GRANULE);
    }
    frontier = address + granules * GRANULE;
    return heap.add(address, granules * GRANULE, stream, true);
  };
  const check = () => {
    heap.assertInvariants();
    extents.assertInvariants();
  };
  return { driver, extents, streams, heap, blocks: heap.blocks, back, check };
}

Deno.test("a block is taken from the start of a free one and the rest stays free", () => {
  const { heap, blocks, back, check } = setUp();
  back(2);
  const id = heap.take(0, 1024);
  check();
  assertEquals([blocks.address[id], blocks.size[id]], [BASE, 1024]);
  assertEquals(isLive(blocks, id, blocks.generation[id]!), true);
  assertEquals(heap.index(0).bytes, 2 * GRANULE - 1024);
  assertEquals(heap.take(0, 2 * GRANULE), 0);
  assertEquals(heap.take(1, 512), 0);
});

Deno.test("a freed block merges with free neighbours on both sides", () => {
  const { heap, blocks, back, check } = setUp();
  back(1);
  const [a, b, c] = [0, 1, 2].map(() => heap.take(0, 512));
  heap.release(a!, 0);
  heap.release(c!, 0);
  check();
  assertEquals(heap.index(0).count, 2);
  heap.release(b!, 0);
  check();
  assertEquals(heap.index(0).count, 1);
  assertEquals(heap.index(0).wholeBytes, GRANULE);
  assertEquals(blocks.size[heap.index(0).largest()], GRANULE);
});

Deno.test("a record used again has another generation", () => {
  const { heap, blocks, back } = setUp();
  back(1);
  const first = heap.take(0, GRANULE);
  const generation = blocks.generation[first]!;
  heap.release(first, 0);
  const second = heap.take(0, GRANULE);
  assertEquals(second, first);
  assertEquals(isLive(blocks, first, generation), false);
  assertEquals(isLive(blocks, -1, 0), false);
});

Deno.test("neighbours of two streams merge only once the other's work is done", () => {
  const { driver, streams, heap, back, check } = setUp();
  back(1);
  const a = heap.take(0, 2048);
  const b = heap.take(0, 2048);
  heap.release(a, 1);
  heap.release(b, 0);
  check();
  assertEquals([heap.index(0).bytes, heap.index(1).bytes], [2048, 2048]);
  const again = heap.take(0, 2048);
  streams.tick(1);
  driver.pass(streams.clocks[1]!.driverId);
  streams.pollAll();
  heap.release(again, 0);
  check();
  assertEquals([heap.index(0).bytes, heap.index(1).bytes], [GRANULE, 0]);
});

Deno.test("another stream's block is taken only once it may be seen", () => {
  const { streams, heap, blocks, back, check } = setUp();
  back(1, 1);
  assertEquals(heap.takeFromOthers(0, 512), 0);
  streams.join(0, 1);
  const id = heap.takeFromOthers(0, 512);
  check();
  assertEquals([blocks.stream[id], blocks.size[id]], [0, 512]);
  assertEquals(heap.index(0).bytes, GRANULE - 512);
});

Deno.test("the rest of another stream's block carries the taker's epoch", () => {
  const { streams, heap, blocks, back } = setUp();
  back(1, 1);
  streams.tick(0);
  streams.join(0, 1);
  heap.takeFromOthers(0, 512);
  const rest = heap.index(0).largest();
  assertEquals(blocks.epoch[rest], streams.clocks[0]!.recorded);
});

Deno.test("adopting moves what may be seen and merges it", () => {
  const { streams, heap, back, check } = setUp();
  back(1, 0);
  back(1, 1);
  back(1, 0);
  assertEquals([heap.index(0).count, heap.index(1).count], [2, 1]);
  heap.adopt(0);
  assertEquals(heap.index(1).count, 1);
  streams.join(0, 1);
  heap.adopt(0);
  check();
  assertEquals([heap.index(0).count, heap.index(1).count], [1, 0]);
  assertEquals(heap.index(0).wholeBytes, 3 * GRANULE);
});

Deno.test("a lengthened block is as recently used as what was mapped behind it", () => {
  const { driver, extents, streams, heap, blocks, back, check } = setUp();
  const top = back(1);
  streams.tick(0);
  driver.pass(0);
  streams.pollAll();
  assertEquals(streams.isPassed(0, blocks.epoch[top]!), true);
  extents.prepare(1, BASE + 2 * GRANULE);
  extents.place(extents.add(1, GRANULE), BASE + GRANULE);
  heap.lengthen(top, GRANULE);
  check();
  assertEquals(heap.index(0).wholeBytes, 2 * GRANULE);
  assertEquals(streams.isPassed(0, blocks.epoch[top]!), false);
});

Deno.test("a live block widens into what is free behind it, and not further", () => {
  const { heap, blocks, back, check } = setUp();
  back(1);
  const a = heap.take(0, 512);
  const b = heap.take(0, 512);
  assertEquals(heap.widen(a, 1024), false);
  heap.release(b, 0);
  assertEquals(heap.widen(a, GRANULE + 512), false);
  assertEquals(heap.widen(a, 2048), true);
  check();
  assertEquals(blocks.size[a], 2048);
  assertEquals(heap.widen(a, GRANULE), true);
  check();
  assertEquals(heap.index(0).count, 0);
});

Deno.test("a live block does not widen into another stream's memory", () => {
  const { heap, back } = setUp();
  back(1);
  const a = heap.take(0, 512);
  heap.release(heap.take(0, GRANULE - 512), 1);
  assertEquals(heap.widen(a, 1024), false);
});

Deno.test("cutting a live block gives a live rest", () => {
  const { heap, blocks, back, check } = setUp();
  back(1);
  const a = heap.take(0, GRANULE);
  const rest = heap.cut(a, 512);
  assertEquals(blocks.state[rest], BlockState.LIVE);
  heap.release(rest, 0);
  check();
  assertEquals(heap.index(0).bytes, GRANULE - 512);
});

Deno.test("carving ends the chain at the hole", () => {
  const { extents, heap, blocks, back, check } = setUp();
  const id = back(4);
  const slot = extents.at(BASE + GRANULE);
  heap.carve(id, BASE + GRANULE, BASE + 2 * GRANULE);
  extents.lift(slot, 0, 0);
  check();
  assertEquals(heap.index(0).count, 2);
  assertEquals(heap.index(0).bytes, 3 * GRANULE);
  const [before, after] = [...heap.index(0).ascending(0)];
  assertEquals([blocks.next[before!], blocks.previous[after!]], [0, 0]);
  assertEquals(heap.top, after);
});

Deno.test("carving a whole block leaves nothing and forgets the top", () => {
  const { extents, heap, back, check } = setUp();
  const id = back(1);
  const slot = extents.at(BASE);
  heap.carve(id, BASE, BASE + GRANULE);
  extents.lift(slot, 0, 0);
  check();
  assertEquals([heap.index(0).count, heap.top], [0, 0]);
  back(1);
  check();
  assertEquals(heap.index(0).count, 1);
});

Deno.test("blocks on either side of a gap in the addresses don't merge", () => {
  const { heap, back, check } = setUp();
  back(1);
  back(1, 0, 1);
  check();
  assertEquals(heap.index(0).count, 2);
});

Deno.test("a held block is in no index until it is put back", () => {
  const { heap, blocks, back, check } = setUp();
  const id = back(2);
  heap.hold(id, 0);
  assertEquals([heap.take(0, 512), blocks.state[id]], [0, BlockState.PENDING]);
  heap.unhold(id);
  check();
  assertEquals(heap.index(0).bytes, 2 * GRANULE);
});

Deno.test("whole bytes count extents inside a range only", () => {
  const { heap, back } = setUp();
  back(3);
  assertEquals(heap.wholeBytes(BASE, GRANULE - 512), 0);
  assertEquals(heap.wholeBytes(BASE, GRANULE), GRANULE);
  assertEquals(heap.wholeBytes(BASE + 512, 2 * GRANULE), GRANULE);
  assertEquals(heap.wholeBytes(BASE + 512, 2 * GRANULE - 1024), 0);
});

Deno.test("invariants notice a block that is not backed", () => {
  const { extents, heap, back } = setUp();
  back(2);
  extents.lift(extents.at(BASE + GRANULE), 0, 0);
  assertThrows(() => heap.assertInvariants(), Error, "not backed");
});

Deno.test("a heap agrees with a map of intervals", () => {
  const command = fc.record({
    kind: fc.constantFrom(
      "back",
      "take",
      "take",
      "take",
      "release",
      "release",
      "widen",
      "cut",
      "carve",
      "others",
      "join",
      "adopt",
    ),
    stream: fc.nat(1),
    units: fc.integer({ min: 1, max: 20 }),
    which: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 100 }), (commands) => {
      const { extents, streams, heap, blocks, back, check } = setUp();
      const live = new Map<number, { address: number; size: number }>();
      let backed = 0;
      const note = (id: number, size: number) => {
        assertEquals(blocks.size[id], size);
        live.set(id, { address: blocks.address[id]!, size });
      };
      for (const { kind, stream, units, which } of commands) {
        const size = units * 512;
        const picked = [...live.keys()][which % live.size];
        if (kind === "back") {
          back(1 + which % 4, stream, which % 3);
          backed += (1 + which % 4) * GRANULE;
        } else if (kind === "take") {
          const largest = blocks.size[heap.index(stream).largest()]!;
          const id = heap.take(stream, size);
          assertEquals(id !== 0, largest >= size);
          if (id !== 0) note(id, size);
        } else if (kind === "others") {
          const id = heap.takeFromOthers(stream, size);
          if (id !== 0) note(id, size);
        } else if (kind === "join") streams.join(stream, 1 - stream);
        else if (kind === "adopt") heap.adopt(stream);
        else if (kind === "carve") {
          const holder = [...heap.index(stream).ascending(GRANULE)]
            .find((id) => blocks.whole[id]! > 0);
          if (holder === undefined) continue;
          const from = extents.wholeStart(blocks.address[holder]!);
          const slot = extents.at(from);
          heap.carve(holder, from, from + GRANULE);
          extents.lift(slot, stream, 0);
          backed -= GRANULE;
        } else if (picked !== undefined) {
          const before = live.get(picked)!;
          if (kind === "release") {
            live.delete(picked);
            heap.release(picked, stream);
          } else if (kind === "widen") {
            if (heap.widen(picked, before.size + size)) {
              note(picked, before.size + size);
            }
          } else if (kind === "cut" && before.size > size) {
            note(heap.cut(picked, size), before.size - size);
            note(picked, size);
          }
        }
        check();
        assertDisjoint([...live.values()]);
        for (const [id, { address, size }] of live) {
          assertEquals(blocks.state[id], BlockState.LIVE);
          assertEquals([blocks.address[id], blocks.size[id]], [address, size]);
        }
        const used = [...live.values()].reduce((sum, one) => sum + one.size, 0);
        assertEquals(used + heap.index(0).bytes + heap.index(1).bytes, backed);
      }
    }),
    { numRuns: 300 },
  );
});

function assertDisjoint(ranges: { address: number; size: number }[]): void {
  ranges.sort((a, b) => a.address - b.address);
  ranges.forEach(({ address, size }, index) => {
    const next = ranges[index + 1];
    assert(!next || address + size <= next.address, "live blocks overlap");
  });
}
