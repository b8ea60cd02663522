import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { MOST_BLOCKS, parseAllocSpecs } from "../lib/cli/alloc_spec.ts";
import { UsageError } from "../lib/cli/usage_error.ts";

const MIB = 2 ** 20;

for (
  const [args, expected] of [
    [["64MiB"], [[64 * MIB, 1]]],
    [["64MiB x 100"], [[64 * MIB, 100]]],
    [["64MiBx100"], [[64 * MIB, 100]]],
    [["64MiB", "x", "100"], [[64 * MIB, 100]]],
    [["64MiB", "x100"], [[64 * MIB, 100]]],
    [["64 MiB X 3", "512"], [[64 * MIB, 3], [512, 1]]],
    [["1.5 GiB, 2m x2,4GB"], [[1536 * MIB, 1], [2 * MIB, 2], [4e9, 1]]],
    [["512x2", "512x3"], [[512, 2], [512, 3]]],
    [["512", "1KiB"], [[512, 1], [1024, 1]]],
    [["0 x 2"], [[0, 2]]],
    [["1TiB"], [[2 ** 40, 1]]],
  ] as [string[], [number, number][]][]
) {
  Deno.test(`specs ${JSON.stringify(args)}`, () => {
    assertEquals(
      parseAllocSpecs(args).map(({ size, count }) => [size, count]),
      expected,
    );
  });
}

for (
  const [args, message] of [
    [[], "Cannot allocate nothing"],
    [["", " "], "Cannot allocate nothing"],
    [["lots"], `Cannot read "lots"`],
    [["x", "5"], `Cannot read "x"`],
    [["64MiB", "x"], `Cannot read "x"`],
    [["64MiB x 1.5"], `Cannot read "x"`],
    [["64QiB"], `Cannot read the size "64QiB"`],
    [["-5"], `Cannot read "-5"`],
    [["1.5"], `Cannot read the size "1.5"`],
    [["2TiB"], "is not between 0 and"],
    [["99999999999999999999"], `Cannot read the size`],
    [["512 x 0"], `Cannot allocate "512 x 0"`],
    [[`512x${MOST_BLOCKS}`, "512"], `1 to ${MOST_BLOCKS} blocks`],
    [["512x99999999999999999999999"], `1 to ${MOST_BLOCKS} blocks`],
  ] as [string[], string][]
) {
  Deno.test(`specs ${JSON.stringify(args)} are refused`, () => {
    assertThrows(() => parseAllocSpecs(args), UsageError, message);
  });
}

Deno.test("specs mean the same however they are split into arguments", () => {
  const spec = fc.record({
    kib: fc.integer({ min: 1, max: 4096 }),
    count: fc.integer({ min: 1, max: 1000 }),
    parts: fc.constantFrom(
      (size: string, count: number) => [`${size}x${count}`],
      (size: string, count: number) => [`${size} x ${count}`],
      (size: string, count: number) => [size, "x", String(count)],
      (size: string, count: number) => [size, `x${count}`],
    ),
  });
  fc.assert(fc.property(fc.array(spec, { minLength: 1 }), (specs) => {
    const args = specs.flatMap(({ kib, count, parts }) =>
      parts(`${kib}KiB`, count)
    );
    assertEquals(
      parseAllocSpecs(args).map(({ size, count }) => [size, count]),
      specs.map(({ kib, count }) => [kib * 1024, count]),
    );
  }));
});
