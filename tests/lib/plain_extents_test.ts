import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Arena } from "../../lib/arena.ts";
import { DriverError, MoonBrightError } from "../../lib/errors.ts";
import {
  isPlain,
  PlainArena,
  type PlainDriver,
  PlainExtents,
  PlainMapper,
} from "../../lib/plain_extents.ts";
import { ModelDriver } from "../model/model_driver.ts";
import { GRANULE } from "./support.ts";

Deno.test("extents anywhere are found by any address in them, and by no other", () => {
  const place = fc.record({
    gap: fc.nat(3),
    granules: fc.integer({ min: 1, max: 5 }),
    removed: fc.boolean(),
  });
  fc.assert(fc.property(
    fc.array(place, { maxLength: 30 }),
    fc.infiniteStream(fc.nat()),
    (places, order) => {
      let end = 2 ** 40;
      const all = places.map(({ gap, granules, removed }) => {
        const address = end + gap * GRANULE;
        const size = granules * GRANULE;
        end = address + size;
        return { address, size, removed, slot: 0 };
      });
      const extents = new PlainExtents();
      // In whatever order the driver hands them out.
      const shuffled = all.map((one) => ({ one, at: order.next().value }))
        .sort((a, b) => a.at - b.at).map(({ one }) => one);
      for (const one of shuffled) {
        extents.prepare(1, 0);
        one.slot = extents.add(7, one.size);
        extents.place(one.slot, one.address);
        extents.assertInvariants();
      }
      for (const one of shuffled.filter(({ removed }) => removed)) {
        extents.lift(one.slot, 0, 0);
        extents.retired[one.slot] = 0;
        extents.remove(one.slot);
        extents.assertInvariants();
      }
      const left = all.filter(({ removed }) => !removed);
      for (let address = 2 ** 40; address < end; address += GRANULE / 2) {
        const holder = left.find((one) =>
          address >= one.address && address < one.address + one.size
        );
        assertEquals(extents.at(address), holder?.slot ?? 0);
      }
      assertEquals(extents.at(end), 0);
    },
  ));
});

/** A driver whose plain allocator counts up, and refuses when told. */
class CountingDriver extends ModelDriver implements PlainDriver {
  refuse = false;
  readonly held: Set<number> = new Set();
  #next = 2 ** 41;

  plainAlloc(size: number): number {
    const address = this.#next;
    this.#next += size;
    this.held.add(address);
    return address;
  }

  plainFree(address: number): void {
    if (this.refuse) {
      throw new DriverError("driver", "free", "Cannot free", 999);
    }
    assert(this.held.delete(address), "freed twice");
  }
}

Deno.test("a release that fails half-way goes on where it stopped", () => {
  const driver = new CountingDriver({ granularity: GRANULE });
  const mapper = new PlainMapper(driver, "it is a test");
  const ids = [1, 2, 3].map((n) => mapper.create(n * GRANULE));
  assertEquals(new Set(ids).size, 3);
  assertEquals(ids.map((id) => mapper.addressOf(id)), [...driver.held]);
  mapper.release(ids.slice(0, 1), GRANULE);
  driver.refuse = true;
  assertThrows(() => mapper.release(ids, 6 * GRANULE), DriverError);
  assertEquals(driver.held.size, 2);
  driver.refuse = false;
  mapper.release(ids, 6 * GRANULE);
  assertEquals(driver.held.size, 0);
  assertEquals(mapper.addressOf(ids[1]!), undefined);
});

Deno.test("a driver without a plain allocator is refused", () => {
  const driver = new ModelDriver({ granularity: GRANULE });
  const error = assertThrows(
    () => new PlainMapper(driver, "it is old"),
    MoonBrightError,
    "it can't map memory (it is old)",
  );
  assertEquals(error.code, "unsupported");
  assert(!isPlain(driver));
  // One that has both maps memory, unless it says that it can't.
  assert(!isPlain(new CountingDriver({ granularity: GRANULE })));
});

Deno.test("the plain arena has no addresses and wants none", () => {
  const arena: Arena = new PlainArena();
  assertEquals(arena.take(GRANULE), -1);
  arena.recycle(2 ** 40, GRANULE);
  assertEquals([arena.usedBytes, arena.recyclableBytes, arena.size], [0, 0, 0]);
  arena.assertInvariants();
});

/** An arena of four granules on a driver of its own. */
function arenaOn(driver: ModelDriver): Arena {
  return new Arena(driver.reserve(4 * GRANULE), 4 * GRANULE);
}

Deno.test("an unused arena is renewed, one in use or untouched is not", () => {
  const driver = new ModelDriver({ granularity: GRANULE });
  const arena = arenaOn(driver);
  const { base } = arena;
  assert(!arena.renew(driver), "never used");
  const address = arena.take(GRANULE);
  assert(!arena.renew(driver), "in use");
  arena.recycle(address, GRANULE);
  assert(arena.renew(driver));
  arena.assertInvariants();
  assert(arena.base !== base);
  assertEquals([arena.frontier, arena.usedBytes], [arena.base, 0]);
  assertEquals(arena.take(4 * GRANULE), arena.base);
  // The old addresses are gone, the new ones are the driver's.
  assertThrows(() => driver.unreserve(base));
  driver.unreserve(arena.base);
  driver.close();
});

Deno.test("an arena that can't be renewed stays as it is", () => {
  for (
    const [call, code] of [
      ["reserve", "out-of-addresses"],
      ["reserve", "driver"],
      ["unreserve", "driver"],
    ] as const
  ) {
    const driver = new ModelDriver({ granularity: GRANULE });
    const arena = arenaOn(driver);
    arena.recycle(arena.take(2 * GRANULE), 2 * GRANULE);
    const { base } = arena;
    const real = driver[call].bind(driver) as (value: number) => number;
    let refusals = 1;
    Object.assign(driver, {
      [call]: (value: number) => {
        if (refusals-- > 0) throw new DriverError(code, call, "Cannot", 1);
        return real(value);
      },
    });
    if (code === "out-of-addresses") assert(!arena.renew(driver));
    else assertThrows(() => arena.renew(driver), DriverError);
    assertEquals([arena.base, arena.recyclableBytes], [base, 2 * GRANULE]);
    arena.assertInvariants();
    // No second range is left behind, and the next time works.
    assert(arena.renew(driver));
    driver.unreserve(arena.base);
    driver.close();
  }
});
