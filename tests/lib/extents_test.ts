import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Extents } from "../../lib/extents.ts";
import { GRANULE } from "./support.ts";

const BASE = 2 ** 44;
const at = (granule: number) => BASE + granule * GRANULE;

function table(...sizes: number[]) {
  const extents = new Extents(BASE, GRANULE);
  extents.prepare(sizes.length, at(64));
  const slots = sizes.map((size, index) =>
    extents.add(100 + index, size * GRANULE)
  );
  extents.assertInvariants();
  return { extents, slots };
}

Deno.test("a new extent is loose until it is placed", () => {
  const { extents, slots: [slot] } = table(3);
  assertEquals([...extents.loose], [slot]);
  assertEquals(extents.looseBytes, 3 * GRANULE);
  extents.place(slot!, at(2));
  extents.assertInvariants();
  assertEquals(extents.looseBytes, 0);
  assertEquals(
    [1, 2, 4, 5].map((granule) => extents.at(at(granule))),
    [0, slot, slot, 0],
  );
  assertEquals(extents.at(at(5) - 1), slot);
});

Deno.test("a lifted extent keeps its retired mapping and its last use", () => {
  const { extents, slots: [slot] } = table(2);
  extents.place(slot!, at(0));
  extents.lift(slot!, 3, 17);
  extents.assertInvariants();
  assertEquals(extents.at(at(0)), 0);
  assertEquals(extents.retired[slot!], 1);
  assertEquals([extents.lastStream[slot!], extents.lastEpoch[slot!]], [3, 17]);
  extents.place(slot!, at(7));
  extents.assertInvariants();
  assertEquals(extents.at(at(8)), slot);
});

Deno.test("addresses outside of the arena hold no extent", () => {
  const { extents, slots: [slot] } = table(1);
  extents.place(slot!, at(0));
  assertEquals([extents.at(BASE - 1), extents.at(at(10_000))], [0, 0]);
});

Deno.test("whole starts and ends leave out extents cut by a range", () => {
  const { extents, slots } = table(2, 1, 3);
  extents.place(slots[0]!, at(0));
  extents.place(slots[1]!, at(2));
  extents.place(slots[2]!, at(3));
  assertEquals(extents.wholeStart(at(0)), at(0));
  assertEquals(extents.wholeStart(at(0) + 512), at(2));
  assertEquals(extents.wholeStart(at(1)), at(2));
  assertEquals(extents.wholeEnd(at(6)), at(6));
  assertEquals(extents.wholeEnd(at(6) - 512), at(3));
  assertEquals(extents.wholeEnd(at(3)), at(3));
});

Deno.test("slots are used again and the table grows when prepared", () => {
  const { extents, slots } = table(1, 1);
  extents.remove(slots[0]!);
  assertEquals(extents.add(7, GRANULE), slots[0]);
  extents.prepare(5001, at(100_000));
  for (let count = 0; count < 5000; count++) extents.add(count, GRANULE);
  const last = extents.add(9, GRANULE);
  extents.place(last, at(99_999));
  extents.assertInvariants();
  assertEquals(extents.count, 5003);
});

Deno.test("invariants notice a wrong count and a lost extent", () => {
  const { extents, slots: [slot] } = table(2);
  extents.totalBytes++;
  assertThrows(() => extents.assertInvariants(), Error, "counted otherwise");
  extents.totalBytes--;
  extents.loose.delete(slot!);
  assertThrows(() => extents.assertInvariants(), Error, "lost");
});

Deno.test("extents agree with an array of granules", () => {
  const command = fc.record({
    kind: fc.constantFrom("add", "place", "lift", "remove"),
    which: fc.nat(),
    granules: fc.integer({ min: 1, max: 5 }),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 80 }), (commands) => {
      const extents = new Extents(BASE, GRANULE);
      const arena = 64;
      const granules = new Array<number>(arena).fill(0);
      const loose = new Map<number, number>();
      const placed = new Map<number, { first: number; length: number }>();
      for (const { kind, which, granules: length } of commands) {
        const looseSlot = [...loose.keys()][which % loose.size];
        const placedSlot = [...placed.keys()][which % placed.size];
        if (kind === "add") {
          extents.prepare(1, at(arena));
          const slot = extents.add(which % 1000, length * GRANULE);
          assertEquals(loose.has(slot) || placed.has(slot), false);
          loose.set(slot, length);
        } else if (kind === "place" && looseSlot !== undefined) {
          const size = loose.get(looseSlot)!;
          const first = which % (arena - size);
          const free = granules.slice(first, first + size);
          if (free.some((slot) => slot !== 0)) continue;
          extents.place(looseSlot, at(first));
          granules.fill(looseSlot, first, first + size);
          placed.set(looseSlot, { first, length: size });
          loose.delete(looseSlot);
        } else if (kind === "lift" && placedSlot !== undefined) {
          const { first, length: size } = placed.get(placedSlot)!;
          extents.lift(placedSlot, 0, which);
          granules.fill(0, first, first + size);
          placed.delete(placedSlot);
          loose.set(placedSlot, size);
        } else if (kind === "remove" && looseSlot !== undefined) {
          extents.remove(looseSlot);
          loose.delete(looseSlot);
        }
        extents.assertInvariants();
        granules.forEach((slot, granule) =>
          assertEquals(extents.at(at(granule)), slot)
        );
        assertEquals([...extents.loose].sort(), [...loose.keys()].sort());
        assertEquals(extents.count, loose.size + placed.size);
      }
    }),
    { numRuns: 150 },
  );
});
