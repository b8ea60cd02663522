import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  checkBytes,
  formatSize,
  MAX_BLOCK_BYTES,
  parseSize,
  roundDown,
  roundUp,
} from "../../lib/sizes.ts";

Deno.test("checkBytes takes whole numbers and bigints up to the limit", () => {
  assertEquals(checkBytes(0, "it"), 0);
  assertEquals(checkBytes(MAX_BLOCK_BYTES, "it"), MAX_BLOCK_BYTES);
  assertEquals(checkBytes(7n, "it"), 7);
  assertEquals(checkBytes(10, "it", 10), 10);
});

Deno.test("checkBytes refuses numbers that are no size", () => {
  const numbers = [
    -1,
    0.5,
    NaN,
    Infinity,
    -Infinity,
    MAX_BLOCK_BYTES + 1,
    2 ** 53,
    2 ** 64,
    -1n,
    2n ** 64n,
    2n ** 64n - 1n,
    2n ** 64n - 511n,
    2n ** 128n,
  ];
  for (const bytes of numbers) {
    assertThrows(() => checkBytes(bytes, "it"), RangeError, String(bytes));
  }
});

Deno.test("checkBytes refuses what is no number", () => {
  for (const bytes of ["1", null, undefined, {}, [], true, () => 1]) {
    assertThrows(() => checkBytes(bytes, "the size"), TypeError, "the size");
  }
});

Deno.test("rounding keeps multiples and brackets everything else", () => {
  fc.assert(fc.property(
    fc.nat(2 ** 40),
    fc.constantFrom(1, 512, 4096, 2 ** 21),
    (bytes, multiple) => {
      const up = roundUp(bytes, multiple);
      const down = roundDown(bytes, multiple);
      assertEquals([up % multiple, down % multiple], [0, 0]);
      assertEquals(down <= bytes && bytes <= up, true);
      assertEquals(up - down, bytes % multiple === 0 ? 0 : multiple);
    },
  ));
});

Deno.test("parseSize knows binary and decimal units", () => {
  const sizes: [string, number][] = [
    ["0", 0],
    ["512", 512],
    [" 64MiB ", 64 * 2 ** 20],
    ["1.5 GiB", 1.5 * 2 ** 30],
    ["2g", 2 * 2 ** 30],
    ["2GB", 2e9],
    ["1kb", 1000],
    ["1K", 1024],
    ["3TiB", 3 * 2 ** 40],
    ["7b", 7],
  ];
  for (const [text, bytes] of sizes) assertEquals(parseSize(text), bytes);
});

Deno.test("parseSize refuses what is no size", () => {
  const texts = [
    "",
    "GiB",
    "-1",
    "1.5",
    "1e3",
    "1 2",
    "0.3k",
    "1PiB",
    "9999999TiB",
  ];
  for (const text of texts) {
    assertThrows(() => parseSize(text), RangeError, `"${text}"`);
  }
});

Deno.test("formatSize writes what parseSize reads back nearly", () => {
  assertEquals(formatSize(0), "0 B");
  assertEquals(formatSize(511), "511 B");
  assertEquals(formatSize(1024), "1 KiB");
  assertEquals(formatSize(1536), "1.50 KiB");
  assertEquals(formatSize(64 * 2 ** 20), "64 MiB");
  assertEquals(formatSize(2 ** 50), "1 PiB");
  fc.assert(fc.property(fc.nat(2 ** 40), (bytes) => {
    const [value, unit] = formatSize(bytes).split(" ");
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    const back = Number(value) * 1024 ** units.indexOf(unit!);
    assertEquals(Math.abs(back - bytes) <= bytes / 150, true);
  }));
});
