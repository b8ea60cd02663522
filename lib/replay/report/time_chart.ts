import type { ReplayRun } from "../report_data.ts";
import { chartBase, legend, valueAxis } from "./chart_parts.ts";
import type { ChartOption } from "./json.ts";
import { runLook, type Theme } from "./palette.ts";
import { runNames } from "./run_names.ts";
import { callKinds, wayKinds } from "./time_kinds.ts";

/** Nanoseconds by way of serving a request, a group of bars a way. */
export function waysChart(
  runs: readonly ReplayRun[],
  theme: Theme,
): ChartOption {
  return barChart(
    runs,
    theme,
    wayKinds(runs),
    (run, kind) => run.ways[kind]?.ns,
    "Bar chart of the time spent by way of serving requests, for each allocator.",
  );
}

/** Nanoseconds in the driver by kind of call, a group of bars a kind. */
export function callsChart(
  runs: readonly ReplayRun[],
  theme: Theme,
): ChartOption {
  return barChart(
    runs,
    theme,
    callKinds(runs),
    (run, kind) => run.calls[kind]?.ns,
    "Bar chart of the time spent in the driver by kind of call, for each allocator.",
  );
}

function barChart(
  runs: readonly ReplayRun[],
  theme: Theme,
  kinds: string[],
  nsOf: (run: ReplayRun, kind: string) => number | undefined,
  description: string,
): ChartOption {
  const names = runNames(runs);
  return {
    ...chartBase(theme, description),
    legend: legend(theme),
    grid: { left: 84, right: 32, top: 8, bottom: 48 },
    xAxis: valueAxis(theme, "ns", "Time", {
      nameLocation: "middle",
      nameGap: 28,
      min: 0,
      splitNumber: 4,
    }),
    yAxis: {
      type: "category",
      inverse: true,
      data: kinds,
      axisLine: { lineStyle: { color: theme.quietInk } },
      axisTick: { show: false },
      axisLabel: {
        color: theme.ink,
        fontSize: 12,
        width: 72,
        overflow: "truncate",
      },
    },
    series: runs.flatMap((run, index) => {
      const values = kinds.map((kind) => nsOf(run, kind) ?? null);
      if (values.every((value) => value === null)) return [];
      const { color, decal } = runLook(theme, index);
      return [{
        type: "bar",
        name: names[index]!,
        unit: "ns",
        data: values,
        barMaxWidth: 14,
        barMinHeight: 1,
        itemStyle: { color, decal },
        emphasis: { disabled: true },
      }];
    }),
  };
}
