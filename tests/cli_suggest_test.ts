import { assertEquals } from "@std/assert";
import { didYouMean, editDistance, nearest } from "../lib/cli/suggest.ts";

Deno.test("editDistance counts inserted, deleted, replaced and swapped letters", () => {
  assertEquals(editDistance("alloc", "alloc"), 0);
  assertEquals(editDistance("aloc", "alloc"), 1);
  assertEquals(editDistance("allocc", "alloc"), 1);
  assertEquals(editDistance("allok", "alloc"), 1);
  assertEquals(editDistance("inof", "info"), 1);
  assertEquals(editDistance("", "info"), 4);
  assertEquals(editDistance("info", ""), 4);
  assertEquals(editDistance("kitten", "sitting"), 3);
  // Unrestricted Damerau-Levenshtein would give 2 here.
  assertEquals(editDistance("ca", "abc"), 3);
});

Deno.test("nearest finds slips and beginnings, and nothing else", () => {
  const names = ["info", "alloc", "bench", "help"];
  assertEquals(nearest("Alloc", names), "alloc");
  assertEquals(nearest("becnh", names), "bench");
  assertEquals(nearest("al", names), "alloc");
  assertEquals(nearest("benchmarks", names), undefined);
  assertEquals(nearest("x", names), undefined);
  assertEquals(nearest("frobnicate", names), undefined);
});

Deno.test("didYouMean words the nearest name", () => {
  assertEquals(
    didYouMean("vrify", ["seed", "verify"], "--"),
    `; did you mean "--verify"?`,
  );
  assertEquals(didYouMean("zzz", ["seed", "verify"]), "");
});
