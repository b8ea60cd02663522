/**
 * A comparison with an earlier benchmark run, as text.
 *
 * @module
 */

import {
  regressions,
  type RunComparison,
  type SeriesChange,
} from "../bench/compare_runs.ts";
import { formatSize } from "../sizes.ts";
import { formatDuration } from "./duration.ts";
import type { Style } from "./style.ts";
import { type Column, renderTable } from "./table.ts";

const COLUMNS: readonly Column[] = [
  { title: "benchmark" },
  { title: "size", align: "right" },
  { title: "what" },
  { title: "before", align: "right" },
  { title: "now", align: "right" },
  { title: "change", align: "right" },
  { title: "at least", align: "right" },
  { title: "at most", align: "right" },
  { title: "verdict" },
];

/** Renders a comparison: whatever is not the same, then a line that sums up. */
export function renderComparison(
  comparison: RunComparison,
  style: Style,
): string {
  const { before, machine, allowed, changes, unmatched } = comparison;
  const commit = before.commit === null ? "" : ` at ${before.commit}`;
  const told = changes.filter(({ verdict }) =>
    verdict === "slower" || verdict === "faster"
  );
  const count = (verdict: SeriesChange["verdict"]) =>
    changes.filter((change) => change.verdict === verdict).length;
  const slower = regressions(comparison).length;
  const lines = [
    "",
    style.bold(`compared with the run of ${before.time}${commit}`),
    `peers took ${
      percent(machine)
    } of the time: that much is the machine, and taken off below`,
  ];
  if (told.length > 0) {
    lines.push(
      renderTable(COLUMNS, told.map(cellsOf), style).trimEnd(),
    );
  }
  lines.push(
    `${slower} slower and ${count("faster")} faster by more than ${
      percent(allowed)
    }, ${count("same")} the same, ${
      count("unclear")
    } with too few samples to tell${
      unmatched === 0 ? "" : `, ${unmatched} in one run only`
    }`,
  );
  return `${lines.join("\n")}\n`;
}

function cellsOf(change: SeriesChange): string[] {
  const { group, subject, size, unit, medians, shift, verdict } = change;
  const format = unit === "ns" ? formatDuration : formatSize;
  return [
    group,
    size > 0 ? formatSize(size) : "",
    subject,
    format(medians.before),
    format(medians.after),
    signed(shift.ratio),
    signed(shift.low),
    signed(shift.high),
    verdict,
  ];
}

function percent(ratio: number): string {
  return `${Number((100 * ratio).toFixed(1))} %`;
}

function signed(ratio: number): string {
  const change = 100 * (ratio - 1);
  return `${change >= 0 ? "+" : ""}${change.toFixed(1)} %`;
}
