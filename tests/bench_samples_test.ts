import { assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { compare, makeReport } from "../lib/bench/report.ts";
import { addUp, quantile, series, summarize } from "../lib/bench/samples.ts";
import { ModelDriver } from "./model/model_driver.ts";

Deno.test("quantiles interpolate between the two nearest samples", () => {
  assertEquals(quantile([10, 20, 30, 40], 0.5), 25);
  assertEquals(quantile([10, 20, 30, 40], 0), 10);
  assertEquals(quantile([10, 20, 30, 40], 1), 40);
  assertAlmostEquals(quantile([10, 20, 30, 40], 0.9), 37);
  assertEquals(quantile([7], 0.99), 7);
  assertEquals(quantile([], 0.5), NaN);
});

Deno.test("a summary is in order and leaves the samples as they were", () => {
  fc.assert(fc.property(
    fc.array(fc.double({ min: 0, max: 1e12, noNaN: true }), { minLength: 1 }),
    (samples) => {
      const before = [...samples];
      const { count, min, p50, p99, p999, max } = summarize(samples);
      assertEquals(samples, before);
      assertEquals(count, samples.length);
      assertEquals([min, max], [Math.min(...samples), Math.max(...samples)]);
      const rising = [min, p50, p99, p999, max];
      assertEquals(rising, rising.toSorted((a, b) => a - b));
    },
  ));
});

Deno.test("stages add up round by round", () => {
  assertEquals(addUp([1, 2], [10, 20], [100, 200]), [111, 222]);
});

Deno.test("ratios relate to the first of the same group and size", () => {
  const report = makeReport({
    version: "0",
    commit: null,
    deno: "0",
    platform: "test",
    processor: null,
    device: new ModelDriver().info,
    time: "2000-01-01T00:00:00.000Z",
  }, [
    series("a", "peer", 512, [100]),
    series("a", "ours", 512, [25, 25]),
    series("a", "peer", 1024, [10]),
    series("a", "ours", 1024, [30]),
    series("b", "ours", 512, [7]),
  ]);
  const ratios = [...compare(report)].map(([group, rows]) => [
    group,
    rows.map(({ subject, size, ratio }) => [subject, size, ratio]),
  ]);
  assertEquals(ratios, [
    ["a", [
      ["peer", 512, 1],
      ["ours", 512, 0.25],
      ["peer", 1024, 1],
      ["ours", 1024, 3],
    ]],
    ["b", [["ours", 512, 1]]],
  ]);
});
