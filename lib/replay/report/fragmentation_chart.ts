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
import { runLook, type Theme } from "./palette.ts";
import { runNames } from "./run_names.ts";
import { timelineColumns } from "./timeline_columns.ts";

/** Bytes that are mapped but not live, and the largest free block, over time; draws from the datasets of `timelineColumns`. */
export function fragmentationChart(
  report: ReplayReport,
  theme: Theme,
): ChartOption {
  const { runs } = report;
  const names = runNames(runs);
  const columns = timelineColumns(runs);
  const series: ChartOption[] = [];
  // Of several runs only the first shows its largest free block until asked for more.
  const selected: { [name: string]: boolean } = {};
  const drawn: number[][] = [];
  runs.forEach(({ mappedPeak }, index) => {
    const { idle, largestFree } = columns[index]!;
    const look = runLook(theme, index);
    if (mappedPeak !== undefined && idle!.length > 0) {
      drawn.push(idle!);
      series.push(
        courseLine(
          theme,
          look,
          `${names[index]}: mapped, not live`,
          index,
          "idle",
        ),
      );
    }
    if (largestFree === undefined) return;
    drawn.push(largestFree);
    const name = `${names[index]}: largest free block`;
    if (Object.keys(selected).length > 0) selected[name] = false;
    else selected[name] = true;
    series.push(
      courseLine(theme, { ...look, dash: [1, 3] }, name, index, "largestFree", {
        areaStyle: { color: look.color, opacity: 0.15 },
      }),
    );
  });
  return {
    ...chartBase(
      theme,
      "Line chart of bytes over the course of the replay: what was mapped but not live, and the largest free block.",
    ),
    legend: legend(theme, { selected }),
    grid: { left: 84, right: 24, top: 34, bottom: 48 },
    xAxis: courseAxis(theme),
    yAxis: byteAxis(theme, "Bytes", largest(drawn)),
    series,
  };
}
