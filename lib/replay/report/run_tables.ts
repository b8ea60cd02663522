import type { Quantiles, ReplayRun } from "../report_data.ts";
import { type TableColumn, tableMarkup } from "./markup.ts";
import {
  countText,
  MISSING,
  percentText,
  sizeText,
  timeText,
} from "./numbers.ts";
import { runNames } from "./run_names.ts";
import { callKinds, wayKinds } from "./time_kinds.ts";

const LATENCY = "Time of an allocation";

const FIGURES: readonly TableColumn[] = [
  { title: "Allocator" },
  { title: "Where" },
  { title: "Completed" },
  { title: "Live peak", numeric: true },
  { title: "Mapped peak", numeric: true },
  { title: "Mapped / live", numeric: true },
  { title: "Driver time", numeric: true },
  { title: "Total time", numeric: true },
  { title: "p50", numeric: true, group: LATENCY },
  { title: "p99", numeric: true, group: LATENCY },
  { title: "p99.9", numeric: true, group: LATENCY },
  { title: "max", numeric: true, group: LATENCY },
  { title: "Not served", numeric: true },
];

/** The table of all runs. */
export function runsTable(runs: readonly ReplayRun[]): string {
  const names = runNames(runs);
  return tableMarkup(
    "All runs",
    FIGURES,
    runs.map((run, index) => [
      names[index]!,
      run.budget === undefined
        ? run.device
        : `${run.device}, at most ${sizeText(run.budget)}`,
      run.completed ? "yes" : "no",
      sizeText(run.livePeak),
      sizeText(run.mappedPeak),
      percentText(run.mappedPeak, run.livePeak),
      timeText(run.driverNs),
      timeText(run.totalNs),
      ...quantileCells(run.alloc),
      countText(run.unservedCount),
    ]),
  );
}

/** The table of ways of serving requests. */
export function waysTable(runs: readonly ReplayRun[]): string {
  return tableMarkup(
    "By way of serving requests",
    [
      { title: "Allocator" },
      { title: "Way" },
      { title: "Requests", numeric: true },
      { title: "Time", numeric: true },
      { title: "Mean", numeric: true },
    ],
    kindRows(runs, wayKinds(runs), ({ ways }, kind) => {
      const way = ways[kind];
      return way && [
        countText(way.count),
        timeText(way.ns),
        way.count === 0 ? MISSING : timeText(way.ns / way.count),
      ];
    }),
  );
}

/** The table of driver calls. */
export function callsTable(runs: readonly ReplayRun[]): string {
  return tableMarkup(
    "Driver calls",
    [
      { title: "Allocator" },
      { title: "Call" },
      { title: "Calls", numeric: true },
      { title: "Items", numeric: true },
      { title: "Bytes", numeric: true },
      { title: "Time", numeric: true },
    ],
    kindRows(runs, callKinds(runs), ({ calls }, kind) => {
      const call = calls[kind];
      return call && [
        countText(call.calls),
        countText(call.items),
        sizeText(call.bytes),
        timeText(call.ns),
      ];
    }),
  );
}

/** The table of requests that a run could not serve. */
export function unservedTable(name: string, run: ReplayRun): string {
  return tableMarkup(
    `Requests not served by ${name}`,
    [
      { title: "Step", numeric: true },
      { title: "Asked for", numeric: true },
      { title: "Why" },
    ],
    run.unserved.map(({ step, bytes, reason }) => [
      countText(step),
      sizeText(bytes),
      reason,
    ]),
  );
}

function quantileCells({ count, p50, p99, p999, max }: Quantiles): string[] {
  return [p50, p99, p999, max].map((ns) =>
    count === 0 ? MISSING : timeText(ns)
  );
}

function kindRows(
  runs: readonly ReplayRun[],
  kinds: readonly string[],
  cells: (run: ReplayRun, kind: string) => string[] | undefined,
): string[][] {
  const names = runNames(runs);
  return runs.flatMap((run, index) =>
    kinds.flatMap((kind) => {
      const row = cells(run, kind);
      return row ? [[names[index]!, kind, ...row]] : [];
    })
  );
}
