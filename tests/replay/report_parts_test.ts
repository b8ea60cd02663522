import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { byteAxis } from "../../lib/replay/report/chart_parts.ts";
import { latencyChart } from "../../lib/replay/report/latency_chart.ts";
import {
  runLook,
  type Theme,
  THEMES,
} from "../../lib/replay/report/palette.ts";
import { runNames } from "../../lib/replay/report/run_names.ts";
import { stretches } from "../../lib/replay/report/stretches.ts";
import { timelineColumns } from "../../lib/replay/report/timeline_columns.ts";
import { verdict } from "../../lib/replay/report/verdict.ts";
import type { Placements } from "../../lib/replay/report_data.ts";
import { emptyReport, sampleReport } from "./sample_report.ts";

function placements(rows: [address: number, bytes: number][]): Placements {
  return {
    address: Float64Array.from(rows, ([address]) => address),
    bytes: Float64Array.from(rows, ([, bytes]) => bytes),
    from: new Uint32Array(rows.length),
    to: new Uint32Array(rows.length).fill(1),
  };
}

/** The contrast of two colours as WCAG defines it. */
function contrast(one: string, two: string): number {
  const light = (color: string) => {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const part = parseInt(color.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const [dim, bright] = [light(one), light(two)].sort((a, b) => a - b);
  return (bright! + 0.05) / (dim! + 0.05);
}

Deno.test("text and lines stand out from what is behind them", () => {
  for (const theme of Object.values(THEMES) as Theme[]) {
    for (const behind of [theme.paper, theme.panel]) {
      for (
        const text of [theme.ink, theme.quietInk, theme.accent, theme.alarm]
      ) {
        assert(contrast(text, behind) >= 4.5, `${text} on ${behind}`);
      }
    }
    for (const line of [...theme.runs, theme.live, theme.reserved]) {
      assert(contrast(line, theme.panel) >= 3, `${line} on ${theme.panel}`);
    }
  }
});

Deno.test("runs can be told apart without their colours", () => {
  const looks = Array.from({ length: 36 }, (_, i) => runLook(THEMES.light, i));
  const unlike = (parts: (index: number) => unknown) =>
    new Set(looks.map((_, index) => JSON.stringify(parts(index)))).size;
  assertEquals(unlike((i) => [looks[i]!.color, looks[i]!.dash]), 36);
  assertEquals(unlike((i) => [looks[i]!.color, looks[i]!.decal]), 36);
  assert(unlike((i) => [looks[i]!.symbol, looks[i]!.dash]) >= 12);
  assertEquals(
    new Set(looks.slice(0, 6).map(({ decal }) => JSON.stringify(decal))).size,
    6,
  );
});

Deno.test("runs have names of their own", () => {
  const { runs } = sampleReport({ blocks: 0 });
  assertEquals(runNames([...runs, runs[0]!, runs[0]!, runs[2]!]), [
    "MoonBright, stitch",
    "Recorded segments",
    "Driver, plain",
    "MoonBright, stitch #2",
    "MoonBright, stitch #3",
    "Driver, plain #2",
  ]);
});

Deno.test("the verdict says what is known", () => {
  const report = sampleReport({ blocks: 0 });
  const GIB = 2 ** 30;
  const { workload, runs: [run, segments] } = report;
  Object.assign(workload, { livePeak: 10 * GIB, reservedPeak: 13 * GIB });
  run!.mappedPeak = 11 * GIB;
  assertEquals(verdict(report), [
    "This workload needs 10 GiB at its live peak; MoonBright held 11 GiB (110.0 %), the recorded allocator 13 GiB (130.0 %).",
  ]);
  workload.reservedPeak = undefined;
  assertEquals(
    verdict({ workload, runs: [{ ...run!, mappedPeak: 12 * GIB }, run!] }),
    [
      "This workload needs 10 GiB at its live peak; MoonBright held 11 GiB (110.0 %).",
    ],
  );
  assertEquals(
    verdict({
      workload,
      runs: [{ ...run!, completed: false, unservedCount: 2 }],
    })[1],
    "MoonBright could not serve 2 requests.",
  );
  assertEquals(
    verdict({
      workload,
      runs: [{ ...run!, completed: false, unservedCount: 1, budget: 3 * GIB }],
    })[1],
    "MoonBright could not serve 1 request within 3 GiB.",
  );
  workload.reservedPeak = 13 * GIB;
  assertEquals(verdict({ workload, runs: [segments!] }), [
    "This workload needs 10 GiB at its live peak; the recorded allocator held 13 GiB (130.0 %).",
  ]);
  assertEquals(verdict(emptyReport()), [
    "This workload needs 0 B at its live peak.",
  ]);
});

Deno.test("axes of bytes have a few round steps that reach the largest value", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 2 ** 50, noNaN: true }), (most) => {
      const { max, interval } = byteAxis(THEMES.light, "", most) as {
        max: number;
        interval: number;
      };
      assert(max >= most && max - interval <= most);
      assert(max / interval <= 5 && Number.isInteger(max / interval));
      assert(Number.isInteger(interval));
    }),
  );
});

Deno.test("stretches cover all placements and nothing else", () => {
  const list = fc.array(fc.tuple(fc.nat(200), fc.integer({ min: 1, max: 20 })));
  fc.assert(fc.property(list, list, (blocks, extents) => {
    const pairs = stretches({
      steps: 1,
      blocks: placements(blocks),
      extents: placements(extents),
    });
    const cover = (rows: [number, number][]) => {
      const bytes = new Set<number>();
      for (const [first, length] of rows) {
        for (let i = 0; i < length; i++) bytes.add(first + i);
      }
      return [...bytes].sort((a, b) => a - b);
    };
    const rows = pairs.flatMap((first, i): [number, number][] =>
      i % 2 === 0 ? [[first, pairs[i + 1]!]] : []
    );
    assertEquals(cover(rows), cover([...blocks, ...extents]));
    rows.slice(1).forEach(([first], i) => {
      assert(first > rows[i]![0] + rows[i]![1], "stretches that touch are one");
    });
  }));
});

Deno.test("columns hold live and recorded bytes once", () => {
  const { runs } = sampleReport({ blocks: 500 });
  const columns = timelineColumns(runs);
  assertEquals(columns.map((run) => "live" in run), [true, false, false]);
  assertEquals(columns.map((run) => "reserved" in run), [true, false, false]);
  assertEquals(columns.map((run) => "largestFree" in run), [
    true,
    false,
    false,
  ]);
  const { mapped, live } = runs[0]!.timeline;
  assertEquals(columns[0]!.idle, mapped.map((bytes, i) => bytes - live[i]!));
});

Deno.test("a histogram's outline stands on the floor and keeps the counts", () => {
  const report = emptyReport();
  const run = report.runs[0]!;
  run.allocHistogram = {
    fromNs: [0, 1, 2, 4, 8],
    counts: [0, 3, 0, 1, 2],
  };
  const { series } = latencyChart(report, THEMES.light);
  assertEquals((series as { data: unknown }[])[0]!.data, [
    [1, 0.5, 0],
    [1, 3, 3],
    [2, 0.5, 0],
    [4, 1, 1],
    [8, 2, 2],
    [8 * 2 ** 0.25, 0.5, 0],
  ]);
});
