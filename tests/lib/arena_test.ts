import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Arena, reserveArena } from "../../lib/arena.ts";
import { DriverError, MoonBrightError } from "../../lib/errors.ts";
import { ModelDriver } from "../model/model_driver.ts";
import { GRANULE } from "./support.ts";

const BASE = 2 ** 44;

Deno.test("fresh addresses go out lowest first", () => {
  const arena = new Arena(BASE, 8 * GRANULE);
  assertEquals(arena.take(2 * GRANULE), BASE);
  assertEquals(arena.take(GRANULE), BASE + 2 * GRANULE);
  assertEquals(arena.usedBytes, 3 * GRANULE);
  assertEquals(arena.take(6 * GRANULE), -1);
  assertEquals(arena.usedBytes, 3 * GRANULE);
  assertEquals(arena.take(5 * GRANULE), BASE + 3 * GRANULE);
  assertEquals(arena.take(GRANULE), -1);
  arena.assertInvariants();
});

Deno.test("flushed ranges wait until fresh addresses are scarce", () => {
  const arena = new Arena(BASE, 8 * GRANULE, 4 * GRANULE);
  const first = arena.take(2 * GRANULE);
  arena.recycle(first, 2 * GRANULE);
  assertEquals(arena.take(2 * GRANULE), BASE + 2 * GRANULE);
  assertEquals(arena.take(GRANULE), BASE);
  assertEquals(arena.take(GRANULE), BASE + GRANULE);
  assertEquals(arena.take(GRANULE), BASE + 4 * GRANULE);
  arena.assertInvariants();
});

Deno.test("a flushed range at the frontier serves together with fresh addresses", () => {
  const arena = new Arena(BASE, 8 * GRANULE);
  arena.take(5 * GRANULE);
  arena.recycle(BASE + 2 * GRANULE, 3 * GRANULE);
  assertEquals(arena.take(7 * GRANULE), -1);
  assertEquals(arena.take(6 * GRANULE), BASE + 2 * GRANULE);
  assertEquals([arena.recyclableBytes, arena.frontier], [0, arena.end]);
  arena.assertInvariants();
});

Deno.test("the smallest flushed range that fits is used", () => {
  const arena = new Arena(BASE, 16 * GRANULE, 0);
  arena.take(16 * GRANULE);
  arena.recycle(BASE, 4 * GRANULE);
  arena.recycle(BASE + 6 * GRANULE, 2 * GRANULE);
  assertEquals(arena.take(2 * GRANULE), BASE + 6 * GRANULE);
  assertEquals(arena.take(2 * GRANULE), BASE);
  assertEquals(arena.recyclableBytes, 2 * GRANULE);
});

Deno.test("recycled neighbours merge on both sides", () => {
  const arena = new Arena(BASE, 8 * GRANULE, 0);
  arena.take(8 * GRANULE);
  arena.recycle(BASE, GRANULE);
  arena.recycle(BASE + 2 * GRANULE, GRANULE);
  arena.recycle(BASE + GRANULE, GRANULE);
  arena.assertInvariants();
  assertEquals(arena.take(3 * GRANULE), BASE);
});

Deno.test("extend takes what lies at the frontier or nothing", () => {
  const arena = new Arena(BASE, 4 * GRANULE);
  arena.take(GRANULE);
  assertEquals(arena.extend(3 * GRANULE), true);
  assertEquals(arena.extend(GRANULE), false);
  assertEquals(arena.frontier, arena.end);
});

Deno.test("giving back undoes a take, fresh or recycled", () => {
  const arena = new Arena(BASE, 4 * GRANULE, 0);
  const address = arena.take(2 * GRANULE);
  arena.giveBack(address, 2 * GRANULE);
  assertEquals([arena.frontier, arena.usedBytes], [BASE, 0]);
  arena.take(3 * GRANULE);
  arena.recycle(BASE, GRANULE);
  assertEquals(arena.take(GRANULE), BASE);
  arena.giveBack(BASE, GRANULE);
  assertEquals(arena.recyclableBytes, GRANULE);
  arena.recycle(BASE, 0);
  arena.assertInvariants();
});

Deno.test("an arena agrees with an array of granules", () => {
  const granules = 24;
  const command = fc.record({
    kind: fc.constantFrom("take", "extend", "recycle", "undo"),
    count: fc.integer({ min: 1, max: 7 }),
    which: fc.nat(),
  });
  fc.assert(
    fc.property(
      fc.array(command, { maxLength: 60 }),
      fc.integer({ min: 0, max: granules }),
      (commands, fresh) => {
        const arena = new Arena(BASE, granules * GRANULE, fresh * GRANULE);
        const out = new Set<number>();
        let frontier = 0;
        /** Longest run of granules that are not out, fresh or flushed. */
        const longestFree = () => {
          let longest = 0;
          for (let at = 0, run = 0; at < granules; at++) {
            run = out.has(at) ? 0 : run + 1;
            longest = Math.max(longest, run);
          }
          return longest;
        };
        const hand = (address: number, count: number) => {
          const first = (address - BASE) / GRANULE;
          for (let at = first; at < first + count; at++) {
            assert(!out.has(at), `granule ${at} handed out twice`);
            out.add(at);
          }
          frontier = Math.max(frontier, first + count);
          assert(frontier <= granules);
          return first;
        };
        for (const { kind, count, which } of commands) {
          const size = count * GRANULE;
          const room = frontier + count <= granules;
          if (kind === "extend") {
            const before = frontier;
            assertEquals(arena.extend(size), room);
            if (room) hand(BASE + before * GRANULE, count);
          } else if (kind === "recycle") {
            const first = which % granules;
            let length = 0;
            while (length < count && out.has(first + length)) length++;
            arena.recycle(BASE + first * GRANULE, length * GRANULE);
            for (let at = first; at < first + length; at++) out.delete(at);
          } else {
            const preferFresh = frontier + count <= fresh;
            const fits = longestFree() >= count;
            const before = frontier;
            const address = arena.take(size);
            assertEquals(address >= 0, fits);
            if (!fits) continue;
            const first = hand(address, count);
            if (preferFresh) assertEquals(first, before);
            if (kind === "undo") {
              arena.giveBack(address, size);
              for (let at = first; at < first + count; at++) out.delete(at);
              if (first + count === frontier) frontier = first;
            }
          }
          arena.assertInvariants();
          assertEquals(arena.frontier, BASE + frontier * GRANULE);
          assertEquals(arena.usedBytes, out.size * GRANULE);
        }
      },
    ),
    { numRuns: 400 },
  );
});

Deno.test("a refused reservation is halved until it is granted", () => {
  const driver = new ModelDriver({ reservable: 100 * GRANULE });
  const arena = reserveArena(driver, 1024 * GRANULE, GRANULE);
  assertEquals(arena.size, 64 * GRANULE);
  assertEquals(driver.counts.reserve, 5);
});

Deno.test("an arena that is to be renewed leaves room for another one", () => {
  for (const reservable of [1, 2, 3, 64, 100, 127, 128, 2048, 5000]) {
    const driver = new ModelDriver({ reservable: reservable * GRANULE });
    const wanted = 1024 * GRANULE;
    const arena = reserveArena(driver, wanted, GRANULE, { renewable: true });
    const most = Math.min(1024, 2 ** Math.floor(Math.log2(reservable / 2)));
    assertEquals(arena.size, Math.max(most, 1) * GRANULE, `${reservable}`);
    arena.recycle(arena.take(GRANULE), GRANULE);
    assertEquals(arena.renew(driver), reservable > 1, `${reservable}`);
    driver.unreserve(arena.base);
    driver.close();
  }
});

Deno.test("nothing stays reserved when the second reservation fails for good", () => {
  const driver = new ModelDriver();
  const real = driver.reserve.bind(driver);
  let calls = 0;
  driver.reserve = (size) => {
    if (++calls === 2) throw new DriverError("lost", "reserve", "Cannot", 1);
    return real(size);
  };
  assertThrows(
    () => reserveArena(driver, 64 * GRANULE, GRANULE, { renewable: true }),
    DriverError,
  );
  assertEquals([driver.counts.reserve, driver.counts.unreserve], [1, 1]);
});

Deno.test("sizes are rounded down to granules, and up to one", () => {
  const driver = new ModelDriver();
  assertEquals(reserveArena(driver, 2.5 * GRANULE, 1).size, 2 * GRANULE);
  assertEquals(reserveArena(driver, 1, 1).size, GRANULE);
});

Deno.test("no reservation at all is a typed error that says what to do", () => {
  const driver = new ModelDriver({ reservable: GRANULE });
  const error = assertThrows(
    () => reserveArena(driver, 1024 * GRANULE, 2 * GRANULE),
    MoonBrightError,
    "addressSpace",
  );
  assertEquals(error.code, "out-of-addresses");
  assert(error.cause instanceof MoonBrightError);
});

Deno.test("a lost device is not asked for a smaller reservation", () => {
  const driver = new ModelDriver();
  driver.failNext("reserve", 1, "lost");
  const error = assertThrows(
    () => reserveArena(driver, 1024 * GRANULE, GRANULE),
    MoonBrightError,
  );
  assertEquals([error.code, driver.counts.reserve], ["lost", 1]);
});
