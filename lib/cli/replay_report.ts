/**
 * The report of a replay as text.
 *
 * @module
 */

import type { ReplayReport, ReplayRun } from "../replay/report_data.ts";
import { formatSize } from "../sizes.ts";
import { formatDuration } from "./duration.ts";
import type { Style } from "./style.ts";
import { renderTable } from "./table.ts";

const WAYS = ["reuse", "extend", "stitch", "grow", "flush"];
const NOTHING = "-";
const MIB = 1024 ** 2;

/** The report as text. */
export function renderReplay(report: ReplayReport, style: Style): string {
  const mine = report.runs.filter(({ allocator }) =>
    allocator === "moonbright"
  );
  return [
    renderWorkload(report),
    renderRuns(report, style),
    ...mine.map((run) => renderWays(run, style)),
    ...report.runs.map(renderUnserved),
  ].filter(Boolean).join("\n");
}

function renderWorkload({ workload: w }: ReplayReport): string {
  const recorder = { pytorch: "PyTorch", rmm: "RMM", moonbright: "MoonBright" };
  const reserved = w.reservedPeak === undefined
    ? ""
    : `, ${recorder[w.source]} reserved ${formatSize(w.reservedPeak)} (${
      percent(w.livePeak, w.reservedPeak)
    } of it live)`;
  return `${w.name}: ${w.allocations} allocations of ${
    formatSize(w.bytesAllocated)
  } in all, ${w.frees} frees, ${w.streams} streams, ${w.liveAtStart} blocks live before the recording\n` +
    `live peak ${formatSize(w.livePeak)}${reserved}\n`;
}

function renderRuns({ runs }: ReplayReport, style: Style): string {
  const right = (title: string) => ({ title, align: "right" as const });
  return renderTable(
    [
      { title: "allocator" },
      { title: "on" },
      right("mapped peak"),
      right("live / mapped"),
      right("total"),
      right("driver"),
      right("alloc p50"),
      right("p99"),
      right("p99.9"),
      right("max"),
      right("free p50"),
      right("served"),
    ],
    runs.map((run) => [
      nameOf(run),
      run.device,
      run.mappedPeak === undefined ? NOTHING : formatSize(run.mappedPeak),
      run.mappedPeak === undefined
        ? NOTHING
        : percent(run.livePeak, run.mappedPeak),
      formatDuration(run.totalNs),
      formatDuration(run.driverNs),
      formatDuration(run.alloc.p50),
      formatDuration(run.alloc.p99),
      formatDuration(run.alloc.p999),
      formatDuration(run.alloc.max),
      formatDuration(run.free.p50),
      run.completed ? "all" : `all but ${run.unservedCount}`,
    ]),
    style,
  );
}

function nameOf({ allocator, policy, budget }: ReplayRun): string {
  switch (allocator) {
    case "plain":
      return "plain driver allocation";
    case "pool":
      return "the driver's pool";
    case "segments":
      return "the recorded segments";
  }
  const under = budget === undefined ? "" : `, budget ${formatSize(budget)}`;
  return `MoonBright (${policy}${under})`;
}

function renderWays(run: ReplayRun, style: Style): string {
  const ways = WAYS.map((way) => [
    way,
    String(run.ways[way]?.count ?? 0),
    formatDuration(run.ways[way]?.ns ?? 0),
    "",
    "",
    "",
  ]);
  const calls = Object.entries(run.calls).filter(([, { calls }]) => calls > 0)
    .map(([kind, { calls, items, bytes, ns }]) => [
      `driver: ${kind}`,
      String(calls),
      formatDuration(ns),
      String(items),
      formatSize(bytes),
      formatDuration(ns / calls),
    ]);
  const right = (title: string) => ({ title, align: "right" as const });
  const compared = run.againstPlain === undefined
    ? ""
    : `slowest request beside the same one allocated plainly: ${
      run.againstPlain.worst.toFixed(2)
    } × its time; ${run.againstPlain.over} requests took more than 1.5 ×\n`;
  const budget = run.budget === undefined
    ? ""
    : `budget ${run.budget / MIB} MiB, ${
      (run.budget / run.livePeak).toFixed(4)
    } × the live peak\n`;
  return `${style.bold(nameOf(run))}\n` + budget + renderTable(
    [
      { title: "way" },
      right("times"),
      right("time"),
      right("items"),
      right("bytes"),
      right("each"),
    ],
    [...ways, ...calls],
    style,
  ) + compared;
}

function renderUnserved(run: ReplayRun): string {
  if (run.unservedCount === 0) return "";
  const shown = run.unserved.slice(0, 10);
  const more = run.unservedCount - shown.length;
  return `${nameOf(run)} could not serve ${run.unservedCount} requests:\n` +
    shown.map(({ step, bytes, reason }) =>
      `  step ${step}, ${formatSize(bytes)}: ${reason}\n`
    ).join("") + (more > 0 ? `  and ${more} more\n` : "");
}

function percent(part: number, whole: number): string {
  return whole === 0 ? NOTHING : `${(100 * part / whole).toFixed(2)} %`;
}
