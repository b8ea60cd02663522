import type { Histogram, ReplayReport } from "../report_data.ts";
import {
  chartBase,
  largest,
  legend,
  lineType,
  valueAxis,
} from "./chart_parts.ts";
import type { ChartOption } from "./json.ts";
import { timeText } from "./numbers.ts";
import { runLook, type Theme } from "./palette.ts";
import { runNames } from "./run_names.ts";

/** Where the count axis begins: a logarithm has no 0, and a bin of one sample must still show. */
const FLOOR = 0.5;
/** Bins are a quarter of a doubling wide. */
const BIN_RATIO = 2 ** 0.25;

/** How long allocations took, both axes logarithmic, one outline a run. */
export function latencyChart(report: ReplayReport, theme: Theme): ChartOption {
  const names = runNames(report.runs);
  const series: ChartOption[] = [];
  let from = Infinity;
  let to = 0;
  report.runs.forEach(({ alloc, allocHistogram }, index) => {
    const outline = histogramOutline(allocHistogram);
    if (outline.length === 0) return;
    from = Math.min(from, outline[0]![0]);
    to = Math.max(to, outline.at(-1)![0]);
    const look = runLook(theme, index);
    series.push({
      type: "line",
      name: `${names[index]}, median ${timeText(alloc.p50)}`,
      unit: "count",
      data: outline,
      encode: { x: 0, y: 1, tooltip: [2] },
      step: "end",
      showSymbol: false,
      symbol: look.symbol,
      color: look.color,
      lineStyle: { width: 2, color: look.color, type: lineType(look) },
      itemStyle: { color: look.color },
      areaStyle: { color: look.color, opacity: 0.12, origin: "start" },
      emphasis: { disabled: true },
      markLine: {
        silent: true,
        symbol: ["none", look.symbol],
        symbolSize: 9,
        label: { show: false },
        lineStyle: { color: look.color, width: 1.5, type: lineType(look) },
        data: alloc.p50 > 0 ? [{ xAxis: alloc.p50, name: "median" }] : [],
      },
    });
  });
  const most = largest(report.runs.map((run) => run.allocHistogram.counts));
  return {
    ...chartBase(
      theme,
      "Histogram of the time that allocations took, for each allocator. Both axes are logarithmic; vertical lines mark medians.",
    ),
    legend: legend(theme),
    grid: { left: 84, right: 24, top: 34, bottom: 48 },
    xAxis: valueAxis(theme, "ns", "Time of an allocation", {
      type: "log",
      min: from === Infinity ? 1 : from,
      max: to === 0 ? 1000 : to,
      nameLocation: "middle",
      nameGap: 28,
      splitLine: { show: false },
    }),
    yAxis: valueAxis(theme, "count", "Allocations in a bin", {
      type: "log",
      min: FLOOR,
      max: Math.max(10, 10 ** Math.ceil(Math.log10(Math.max(1, most)))),
      nameTextStyle: {
        color: theme.quietInk,
        fontSize: 12,
        align: "left",
        padding: [0, 0, 2, -56],
      },
    }),
    series,
  };
}

/** Corners of a histogram's outline, `[ns, height, samples]`, with its feet on the floor. */
function histogramOutline(
  { fromNs, counts }: Histogram,
): [number, number, number][] {
  const first = counts.findIndex((count) => count > 0);
  if (first < 0) return [];
  const last = counts.findLastIndex((count) => count > 0);
  const start = (bin: number) =>
    fromNs[bin] || (fromNs[bin + 1] ?? BIN_RATIO) / BIN_RATIO;
  const outline: [number, number, number][] = [[start(first), FLOOR, 0]];
  for (let bin = first; bin <= last; bin++) {
    outline.push([start(bin), Math.max(FLOOR, counts[bin]!), counts[bin]!]);
  }
  outline.push([fromNs[last + 1] ?? start(last) * BIN_RATIO, FLOOR, 0]);
  return outline;
}
