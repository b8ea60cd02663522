import type { ReplayReport } from "../report_data.ts";
import {
  byteAxis,
  chartBase,
  courseAxis,
  courseLine,
  largest,
  legend,
} from "./chart_parts.ts";
import type { ChartOption } from "./json.ts";
import { sizeText } from "./numbers.ts";
import { liveLook, reservedLook, runLook, type Theme } from "./palette.ts";
import { runNames } from "./run_names.ts";
import { liveRun, reservedRun } from "./timeline_columns.ts";

/** Live, mapped and recorded bytes over time; draws from the datasets of `timelineColumns`. */
export function memoryChart(report: ReplayReport, theme: Theme): ChartOption {
  const { runs, workload } = report;
  const names = runNames(runs);
  const series: ChartOption[] = [];
  const live = liveRun(runs);
  if (live >= 0 && runs[live]!.timeline.live.length > 0) {
    series.push(courseLine(
      theme,
      liveLook(theme),
      `Live, peak ${sizeText(workload.livePeak)}`,
      live,
      "live",
      { areaStyle: { color: theme.live, opacity: 0.25 }, z: 1 },
    ));
  }
  runs.forEach(({ mappedPeak, timeline }, index) => {
    if (mappedPeak === undefined || timeline.mapped.length === 0) return;
    series.push(courseLine(
      theme,
      runLook(theme, index),
      `${names[index]}: mapped, peak ${sizeText(mappedPeak)}`,
      index,
      "mapped",
    ));
  });
  const reserved = reservedRun(runs);
  if (reserved >= 0) {
    series.push(courseLine(
      theme,
      reservedLook(theme),
      `Recorded allocator: reserved, peak ${
        sizeText(
          workload.reservedPeak ?? largest([runs[reserved]!.timeline.reserved]),
        )
      }`,
      reserved,
      "reserved",
    ));
  }
  const max = largest(
    runs.flatMap((
      { timeline },
    ) => [timeline.live, timeline.mapped, timeline.reserved]),
  );
  return {
    ...chartBase(
      theme,
      "Line chart of bytes over the course of the replay: what was live, what each allocator held from the driver, and what the recorded allocator had reserved.",
    ),
    legend: legend(theme),
    grid: { left: 84, right: 24, top: 34, bottom: 48 },
    xAxis: courseAxis(theme),
    yAxis: byteAxis(theme, "Bytes", max),
    series,
  };
}
