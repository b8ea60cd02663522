import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Arena } from "../../lib/arena.ts";
import { DriverError } from "../../lib/errors.ts";
import { Extents } from "../../lib/extents.ts";
import { FlushQueue, mergeRanges } from "../../lib/flush.ts";
import { Mapper } from "../../lib/mapper.ts";
import { Streams } from "../../lib/streams.ts";
import { GatedDriver, GRANULE } from "./support.ts";

const ARENA_GRANULES = 64;

/** A queue over a device, with a stream besides the default one. */
function setUp() {
  const driver = new GatedDriver();
  const size = ARENA_GRANULES * GRANULE;
  const arena = new Arena(driver.reserve(size), size, 0);
  const extents = new Extents(arena.base, GRANULE);
  const streams = new Streams(driver);
  streams.create();
  const mapper = new Mapper(driver);
  const queue = new FlushQueue(arena, extents, streams, mapper);
  /** Maps new extents side by side; returns their slots. */
  const map = (...granules: number[]) => {
    const sizes = granules.map((count) => count * GRANULE);
    const bytes = sizes.reduce((sum, one) => sum + one, 0);
    const address = arena.take(bytes);
    assert(address >= 0);
    extents.prepare(sizes.length, address + bytes);
    let at = address;
    return mapper.install(address, [], 0, sizes, () => {}).map((id, index) => {
      const slot = extents.add(id, sizes[index]!);
      extents.place(slot, at);
      at += sizes[index]!;
      return slot;
    });
  };
  const retire = (slot: number, stream = 0, toArena = true) =>
    queue.retire(slot, stream, streams.clocks[stream]!.recorded, toArena);
  const check = () => {
    arena.assertInvariants();
    extents.assertInvariants();
    queue.assertInvariants();
  };
  return { driver, arena, extents, streams, queue, map, retire, check };
}

Deno.test("a retired mapping stays installed and its addresses stay taken", () => {
  const { driver, arena, queue, map, retire, check } = setUp();
  const [slot] = map(2);
  retire(slot!);
  check();
  assertEquals(driver.live().mappings, 1);
  assertEquals([queue.count, queue.retiredBytes], [1, 2 * GRANULE]);
  assertEquals(arena.recyclableBytes, 0);
});

Deno.test("a flush leaves alone what an event has not passed for", () => {
  const { driver, arena, queue, map, retire, check } = setUp();
  const [slot] = map(2);
  retire(slot!, 1);
  assertEquals(queue.flush(false), 0);
  assertEquals(queue.flush(false), 0);
  assertEquals(driver.live().mappings, 1);
  driver.pass(1);
  assertEquals(queue.flush(false), 2 * GRANULE);
  check();
  assertEquals(driver.live().mappings, 0);
  assertEquals(arena.recyclableBytes, 2 * GRANULE);
  assertEquals(queue.flushes, 1);
});

Deno.test("a flush that waits does so before it unmaps", () => {
  const { driver, queue, map, retire } = setUp();
  const [a, b, c] = map(1, 1, 1);
  retire(a!, 0);
  retire(c!, 1);
  retire(b!, 1);
  driver.log.length = 0;
  assertEquals(queue.flush(true), 3 * GRANULE);
  assertEquals(driver.log.map((line) => line.split(" ")[0]), [
    "record",
    "synchronize",
    "record",
    "synchronize",
    "unmap",
  ]);
});

Deno.test("contiguous ranges are unmapped as one", () => {
  const { driver, queue, map, retire } = setUp();
  const slots = map(1, 1, 1, 1, 1);
  for (const index of [3, 0, 1]) retire(slots[index]!);
  queue.flush(true);
  assertEquals(driver.log.at(-1), "unmap 2");
});

Deno.test("a refused unmap flushes nothing and can be repeated", () => {
  const { driver, arena, queue, map, retire, check } = setUp();
  const [slot] = map(1);
  retire(slot!);
  driver.failNext("unmap", 1, "driver");
  assertThrows(() => queue.flush(true), DriverError);
  check();
  assertEquals([queue.count, arena.recyclableBytes], [1, 0]);
  assertEquals(queue.flush(true), GRANULE);
  check();
});

Deno.test("an empty queue is flushed without a call", () => {
  const { driver, queue } = setUp();
  assertEquals([queue.flush(true), queue.flush(false)], [0, 0]);
  assertEquals(driver.log, []);
});

Deno.test("a retired mapping is revived without a driver call", () => {
  const { driver, extents, queue, map, retire, check } = setUp();
  const [slot] = map(1);
  const address = extents.address[slot!]!;
  retire(slot!, 0, false);
  driver.log.length = 0;
  assertEquals(queue.revive(address + GRANULE, 0), 0);
  assertEquals(queue.revive(address, 0), slot);
  check();
  assertEquals(driver.log, []);
  assertEquals([queue.count, extents.at(address)], [0, slot]);
});

Deno.test("a mapping is not revived for a stream that must wait, or once stitched elsewhere", () => {
  const { driver, arena, extents, queue, map, retire, check } = setUp();
  const [slot] = map(1);
  const address = extents.address[slot!]!;
  retire(slot!, 1, false);
  assertEquals(queue.revive(address, 0), 0);
  const elsewhere = arena.take(GRANULE);
  driver.map(elsewhere, [extents.driverId[slot!]!]);
  extents.place(slot!, elsewhere);
  assertEquals(queue.revive(address, 1), 0);
  check();
});

Deno.test("flushing a range leaves its addresses with the block that owns them", () => {
  const { arena, extents, queue, map, retire, check } = setUp();
  const [a, b] = map(1, 1);
  const address = extents.address[a!]!;
  retire(a!, 0, false);
  retire(b!, 0, false);
  queue.flushRange(address, GRANULE);
  check();
  assertEquals(arena.recyclableBytes, 0);
  assertEquals(queue.within(address, 4 * GRANULE).map(({ extent }) => extent), [
    b,
  ]);
});

Deno.test("an abandoned range is recycled at once where nothing is installed", () => {
  const { arena, extents, queue, map, retire, check } = setUp();
  const [a, b] = map(1, 1);
  const rest = arena.take(2 * GRANULE);
  retire(b!, 0, false);
  queue.abandon(extents.address[a!]! + GRANULE, 3 * GRANULE);
  check();
  assertEquals(arena.recyclableBytes, 2 * GRANULE);
  queue.flush(true);
  check();
  assertEquals(arena.recyclableBytes, 3 * GRANULE);
  assertEquals(arena.take(3 * GRANULE), rest - GRANULE);
});

Deno.test("merging ranges keeps their bytes and leaves no neighbours", () => {
  const gaps = fc.array(
    fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 3 })),
    { maxLength: 30 },
  );
  fc.assert(fc.property(gaps, fc.nat(), (pairs, turn) => {
    let at = 0;
    const ranges = pairs.map(([gap, size]) => {
      const address = at + gap;
      at = address + size;
      return { address, size };
    });
    const cut = ranges.length === 0 ? 0 : turn % ranges.length;
    const shuffled = [...ranges.slice(cut), ...ranges.slice(0, cut)];
    const before = structuredClone(shuffled);
    const merged = mergeRanges(shuffled);
    assertEquals(shuffled, before);
    const bytesOf = (list: typeof ranges) =>
      list.flatMap(({ address, size }) =>
        Array.from({ length: size }, (_, index) => address + index)
      );
    assertEquals(bytesOf(merged), bytesOf(ranges));
    merged.forEach(({ address, size }, index) =>
      assert(merged[index + 1]?.address !== address + size)
    );
  }));
});

Deno.test("no unmap comes before the events, and no address is recycled before its unmap", () => {
  const command = fc.record({
    kind: fc.constantFrom(
      "map",
      "map",
      "work",
      "retire",
      "retire",
      "pass",
      "tick",
      "flush",
      "wait",
      "range",
    ),
    stream: fc.nat(1),
    which: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 80 }), (commands) => {
      const { driver, arena, extents, streams, queue, map, retire, check } =
        setUp();
      const current: number[] = [];
      /** Work queued and done per stream, and how much of it each event covers. */
      const queued = [0, 0];
      const done = [0, 0];
      const covered: { event: number; work: number }[][] = [[], []];
      const needs = new Map<number, { stream: number; work: number }>();
      const installed = new Set<number>();
      const record = driver.recordEvent.bind(driver);
      driver.recordEvent = (event, id) => {
        const stream = id === 0 ? 0 : 1;
        covered[stream]!.push({ event, work: queued[stream]! });
        record(event, id);
      };
      const finish = (stream: number, count: number) => {
        for (const { work } of covered[stream]!.splice(0, count)) {
          done[stream] = work;
        }
      };
      const synchronize = driver.synchronizeEvent.bind(driver);
      driver.synchronizeEvent = (event) => {
        for (const stream of [0, 1]) {
          finish(
            stream,
            1 + covered[stream]!.findIndex((one) => one.event === event),
          );
        }
        synchronize(event);
      };
      driver.onUnmap = ({ address, size }) => {
        for (let at = address; at < address + size; at += GRANULE) {
          const need = needs.get(at);
          assert(need, "an unmapped mapping was never retired");
          assert(done[need.stream]! >= need.work, "unmapped before its work");
          needs.delete(at);
          installed.delete(at);
        }
      };
      for (const { kind, stream, which } of commands) {
        if (kind === "map" && current.length < 12) {
          const before = arena.recyclableBytes;
          const [slot] = map(1);
          const address = extents.address[slot!]!;
          assert(!installed.has(address), "an address is mapped twice");
          assert(arena.recyclableBytes <= before);
          installed.add(address);
          current.push(slot!);
        } else if (kind === "work") queued[stream]!++;
        else if (kind === "retire" && current.length > 0) {
          const [slot] = current.splice(which % current.length, 1);
          needs.set(extents.address[slot!]!, { stream, work: queued[stream]! });
          retire(slot!, stream, which % 3 > 0);
        } else if (kind === "pass") {
          finish(stream, which % 3);
          driver.pass(streams.clocks[stream]!.driverId, which % 3);
        } else if (kind === "tick") streams.tick(stream);
        else if (kind === "flush") queue.flush(false);
        else if (kind === "wait") queue.flush(true);
        else if (kind === "range") {
          const granule = which % ARENA_GRANULES;
          queue.flushRange(arena.base + granule * GRANULE, 4 * GRANULE);
        }
        check();
        assertEquals(driver.live().mappings, installed.size);
        assertEquals(queue.retiredBytes, needs.size * GRANULE);
      }
    }),
    { numRuns: 150 },
  );
});
