/**
 * A benchmark run as text.
 *
 * @module
 */

import { type BenchReport, compare } from "../bench/report.ts";
import { formatSize } from "../sizes.ts";
import { formatDuration } from "./duration.ts";
import type { Style } from "./style.ts";
import { type Column, renderTable } from "./table.ts";

const COLUMNS: readonly Column[] = [
  { title: "size", align: "right" },
  { title: "what" },
  { title: "p50", align: "right" },
  { title: "p99", align: "right" },
  { title: "max", align: "right" },
  { title: "n", align: "right" },
  { title: "ratio", align: "right" },
];

/** Renders a report: a table per group; ratios are of medians to the first of a size. */
export function renderBench(report: BenchReport, style: Style): string {
  const { device, version, commit, deno, platform, processor } =
    report.environment;
  const lines = [
    `${device.name} (${device.backend}:${device.ordinal}, ${device.architecture}), driver ${device.driverVersion}, MoonBright ${version}${
      commit === null ? "" : ` at ${commit.slice(0, 12)}`
    }, Deno ${deno}, ${platform}${processor === null ? "" : `, ${processor}`}`,
  ];
  for (const [group, rows] of compare(report)) {
    lines.push("", style.bold(group));
    let lastSize = -1;
    const cells = rows.map(({ subject, size, unit, summary, ratio }) => {
      const format = unit === "ns" ? formatDuration : formatSize;
      const first = size !== lastSize;
      lastSize = size;
      return [
        first && size > 0 ? formatSize(size) : "",
        subject,
        format(summary.p50),
        format(summary.p99),
        format(summary.max),
        String(summary.count),
        first ? "1" : formatRatio(ratio),
      ];
    });
    lines.push(renderTable(COLUMNS, cells, style).trimEnd());
  }
  return lines.join("\n") + "\n";
}

function formatRatio(ratio: number): string {
  if (!Number.isFinite(ratio)) return "-";
  return ratio >= 100 ? ratio.toFixed(0) : ratio.toPrecision(3);
}
