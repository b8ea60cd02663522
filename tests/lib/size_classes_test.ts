import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { CLASSES, classOf } from "../../lib/size_classes.ts";
import { BLOCK_ALIGNMENT } from "../../lib/sizes.ts";

const units = fc.oneof(
  fc.integer({ min: 1, max: 200 }),
  fc.integer({ min: 1, max: 2 ** 31 }),
  // Around the powers of two, where levels change.
  fc.tuple(fc.integer({ min: 1, max: 31 }), fc.integer({ min: -2, max: 2 }))
    .map(([log, delta]) => Math.max(1, 2 ** log + delta)),
);

Deno.test("a larger size never has a smaller class", () => {
  fc.assert(
    fc.property(units, units, (a, b) => {
      const [low, high] = a < b ? [a, b] : [b, a];
      const lowClass = classOf(low * BLOCK_ALIGNMENT);
      const highClass = classOf(high * BLOCK_ALIGNMENT);
      assert(lowClass <= highClass);
      assert(highClass < CLASSES && Number.isInteger(highClass));
    }),
    { numRuns: 1000 },
  );
});

Deno.test("a class spans at most a 32nd of its sizes", () => {
  fc.assert(
    fc.property(units, (size) => {
      const next = Math.floor(size * 33 / 32) + 1;
      assert(
        classOf(size * BLOCK_ALIGNMENT) < classOf(next * BLOCK_ALIGNMENT),
      );
    }),
    { numRuns: 1000 },
  );
});

Deno.test("sizes below 32 KiB have classes of their own", () => {
  const classes = new Set<number>();
  for (let size = 512; size < 32 * 1024; size += 512) {
    classes.add(classOf(size));
  }
  assertEquals(classes.size, 63);
});

Deno.test("sizes beyond every level share a valid class", () => {
  const last = classOf(2 ** 41);
  assert(last < CLASSES);
  assertEquals(classOf(2 ** 50), last);
  assertEquals(classOf(Number.MAX_SAFE_INTEGER - 511), last);
});
