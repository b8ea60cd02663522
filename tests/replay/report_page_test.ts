import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { formatDuration } from "../../lib/cli/duration.ts";
import * as formatters from "../../lib/replay/report/page/formatters.js";
import {
  lastAtOrBefore,
  MapLayout,
} from "../../lib/replay/report/page/map_layout.js";
import { Present } from "../../lib/replay/report/page/present.js";
import { zoomed } from "../../lib/replay/report/page/zoom_keys.js";
import { pageScript } from "../../lib/replay/report/page_script.ts";
import { formatSize } from "../../lib/sizes.ts";

Deno.test("the page writes sizes and times as the rest of the project does", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 2 ** 53, noNaN: true }), (value) => {
      assertEquals(formatters.formatSize(value), formatSize(value));
    }),
  );
  fc.assert(
    fc.property(fc.double({ min: -1e15, max: 1e15, noNaN: true }), (value) => {
      assertEquals(formatters.formatDuration(value), formatDuration(value));
    }),
  );
  for (
    const value of [0, 1, 999.4, 999.6, 1000, 9995, 1023, 1024, 99_950, 2 ** 30]
  ) {
    assertEquals(formatters.formatSize(value), formatSize(value));
    assertEquals(formatters.formatDuration(value), formatDuration(value));
  }
});

Deno.test("axes and series get the functions of their units", () => {
  const option = formatters.addFormatters({
    xAxis: { unit: "us", axisLabel: {} },
    yAxis: { unit: "bytes", axisLabel: {} },
    series: [{ unit: "ns" }, {}],
    // deno-lint-ignore no-explicit-any
  } as any);
  assertEquals(option.xAxis.axisLabel.formatter(2_500_000), "2.5 s");
  assertEquals(
    option.xAxis.axisPointer.label.formatter({ value: 2_500_000 }),
    "2.50 s",
  );
  assertEquals(option.yAxis.axisLabel.formatter(0), "0");
  assertEquals(option.yAxis.axisLabel.formatter(1.5 * 2 ** 30), "1.5 GiB");
  assertEquals(option.yAxis.axisLabel.formatter(20 * 2 ** 30), "20 GiB");
  assertEquals(option.series[0].tooltip.valueFormatter(1500), "1.50 µs");
  assertEquals(option.series[0].tooltip.valueFormatter(undefined), "–");
  assertEquals(option.series[1], {});
});

Deno.test("the rows there at a step are those that came and did not go", () => {
  const row = fc.record({
    address: fc.nat(1000),
    bytes: fc.integer({ min: 1, max: 50 }),
    from: fc.nat(20),
    stay: fc.nat(10),
  });
  fc.assert(
    fc.property(
      fc.array(row),
      fc.nat(32),
      fc.nat(1050),
      (list, step, where) => {
        const rows = list.toSorted((a, b) => a.from - b.from);
        const present = new Present({
          count: rows.length,
          address: Float64Array.from(rows, (r) => r.address),
          bytes: Float64Array.from(rows, (r) => r.bytes),
          from: Uint32Array.from(rows, (r) => r.from),
          to: Uint32Array.from(rows, (r) => r.from + r.stay),
        });
        present.moveTo(step);
        const there = [...rows.keys()].filter((i) =>
          rows[i]!.from <= step && rows[i]!.from + rows[i]!.stay > step
        );
        assertEquals([...present.row.subarray(0, present.count)], there);
        assertEquals(
          present.bytes,
          there.reduce((sum, i) => sum + rows[i]!.bytes, 0),
        );
        const covering = there.filter((i) =>
          where >= rows[i]!.address && where < rows[i]!.address + rows[i]!.bytes
        );
        assertEquals(present.at(where), covering[0] ?? -1);
        const walk: number[] = [];
        for (
          let i = present.beside(-1, true);
          i >= 0;
          i = present.beside(i, true)
        ) {
          walk.push(rows[i]!.address);
        }
        assertEquals(
          walk,
          [...new Set(there.map((i) => rows[i]!.address))].sort((a, b) =>
            a - b
          ),
        );
        const back: number[] = [];
        for (
          let i = present.beside(-1, false);
          i >= 0;
          i = present.beside(i, false)
        ) {
          back.push(rows[i]!.address);
        }
        assertEquals(back, walk.toReversed());
        assertEquals(
          present.largest(3).map((i: number) => rows[i]!.bytes),
          there.map((i) => rows[i]!.bytes).sort((a, b) => b - a).slice(0, 3),
        );
      },
    ),
  );
});

Deno.test("the map's layout cuts gaps out and finds addresses again", () => {
  const layout = new MapLayout([0, 6 * 2 ** 20, 2 ** 40, 2 * 2 ** 20], 4);
  assertEquals(layout.total, 8 * 2 ** 20);
  assertEquals(layout.rowBytes, 2 * 2 ** 20);
  assertEquals(layout.rows, 4);
  assertEquals(layout.offsetOf(2 ** 40 + 5), 6 * 2 ** 20 + 5);
  for (const address of [0, 1, 6 * 2 ** 20 - 1, 2 ** 40, 2 ** 40 + 12345]) {
    assertEquals(layout.addressAt(layout.offsetOf(address)), address);
  }
  const empty = new MapLayout([], 40);
  assertEquals([empty.total, empty.rows], [0, 1]);
});

Deno.test("the last value at or before another one is found", () => {
  fc.assert(fc.property(fc.array(fc.nat(100)), fc.nat(110), (list, value) => {
    const values = list.sort((a, b) => a - b);
    assertEquals(
      lastAtOrBefore(values, value),
      values.findLastIndex((other) => other <= value),
    );
  }));
});

Deno.test("keys zoom within bounds", () => {
  const keys = fc.array(
    fc.constantFrom("+", "-", "ArrowLeft", "ArrowRight", "0"),
  );
  fc.assert(fc.property(keys, (pressed) => {
    let [start, end] = [0, 100];
    for (const key of pressed) {
      [start, end] = zoomed(key, start, end)!;
      assert(
        start >= 0 && end <= 100 && start < end,
        `${key}: ${start} to ${end}`,
      );
    }
  }));
  assertEquals(zoomed("a", 0, 100), undefined);
});

Deno.test("the page's modules become one script", () => {
  const script = pageScript();
  assert(!/^(import|export)\b/m.test(script));
  // Throws a SyntaxError if two modules declare the same name.
  new Function(script);
});
