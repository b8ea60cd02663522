/**
 * What all charts have in common.
 *
 * Axes and tooltips say what they count in `unit`: `bytes`, `ns`, `us`, `count` or
 * `step`. page/formatters.js turns that into the functions that ECharts wants.
 *
 * @module
 */

import type { ChartOption, Json } from "./json.ts";
import type { Look, Theme } from "./palette.ts";

/** Fonts that every system has one of. */
export const FONT =
  "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif";

/** Parts of an option that do not depend on the chart. */
export function chartBase(theme: Theme, description: string): ChartOption {
  return {
    animation: false,
    backgroundColor: "transparent",
    textStyle: { fontFamily: FONT, color: theme.ink },
    aria: { enabled: true, label: { description } },
    tooltip: {
      trigger: "axis",
      confine: true,
      backgroundColor: theme.panel,
      borderColor: theme.rule,
      textStyle: { color: theme.ink, fontSize: 12, fontFamily: FONT },
      axisPointer: {
        type: "line",
        lineStyle: { color: theme.quietInk, type: "dashed" },
      },
    },
  };
}

/** An axis of numbers, named at its end or middle. */
export function valueAxis(
  theme: Theme,
  unit: string,
  name: string,
  more: ChartOption = {},
): ChartOption {
  return {
    type: "value",
    unit,
    name,
    nameTextStyle: { color: theme.quietInk, fontSize: 12 },
    axisLine: { show: true, lineStyle: { color: theme.quietInk } },
    axisTick: { show: true, lineStyle: { color: theme.quietInk } },
    axisLabel: { color: theme.quietInk, fontSize: 12, hideOverlap: true },
    splitLine: { lineStyle: { color: theme.rule, opacity: 0.7 } },
    ...more,
  };
}

/** An axis of bytes from 0 on with about five round steps in a binary unit. */
export function byteAxis(theme: Theme, name: string, max: number): ChartOption {
  const interval = byteStep(max / 5);
  return valueAxis(theme, "bytes", name, {
    min: 0,
    max: Math.max(1, Math.ceil(max / interval)) * interval,
    interval,
    nameLocation: "end",
    nameTextStyle: {
      color: theme.quietInk,
      fontSize: 12,
      align: "left",
      padding: [0, 0, 2, -56],
    },
  });
}

/** The round size next above: 1, 2, 4, 5, 8, 10 … 500 or 512 of a binary unit. */
function byteStep(bytes: number): number {
  let unit = 1;
  while (bytes > unit * 512) unit *= 1024;
  const steps = [
    1,
    2,
    4,
    5,
    8,
    10,
    16,
    20,
    25,
    32,
    50,
    64,
    100,
    128,
    200,
    256,
    512,
  ];
  return unit * steps.find((step) => step * unit >= bytes)!;
}

/** The horizontal axis of charts over time: of steps; a page may switch it to recorded time. */
export function courseAxis(theme: Theme): ChartOption {
  return valueAxis(theme, "step", "Step (allocation or free)", {
    min: 0,
    max: "dataMax",
    minInterval: 1,
    nameLocation: "middle",
    nameGap: 28,
    splitLine: { show: false },
  });
}

/** A line of steps through a column of a run's dataset, its peak marked. */
export function courseLine(
  theme: Theme,
  look: Look,
  name: string,
  datasetIndex: number,
  column: string,
  more: ChartOption = {},
): ChartOption {
  return {
    type: "line",
    name,
    unit: "bytes",
    datasetIndex,
    encode: { x: "step", y: column, tooltip: [column] },
    step: "end",
    showSymbol: false,
    symbol: look.symbol,
    color: look.color,
    lineStyle: { width: 2, color: look.color, type: lineType(look) },
    itemStyle: { color: look.color },
    emphasis: { disabled: true },
    markPoint: {
      symbol: look.symbol,
      symbolSize: 11,
      silent: true,
      label: { show: false },
      itemStyle: {
        color: look.color,
        borderColor: theme.panel,
        borderWidth: 1.5,
      },
      data: [{ type: "max", valueDim: column, name: "peak" }],
    },
    ...more,
  };
}

/** A look's dashes as ECharts wants them. */
export function lineType(look: Look): Json {
  return look.dash.length === 0 ? "solid" : look.dash;
}

/** A built-in legend, for pictures; pages draw their own. */
export function legend(theme: Theme, more: ChartOption = {}): ChartOption {
  return {
    show: false,
    itemWidth: 34,
    itemHeight: 10,
    itemGap: 16,
    textStyle: { color: theme.ink, fontSize: 12 },
    ...more,
  };
}

/** An option over the datasets of the runs. */
export function withDatasets(
  option: ChartOption,
  datasets: { [column: string]: number[] }[],
): ChartOption {
  return { ...option, dataset: datasets.map((source) => ({ source })) };
}

/** The largest number of columns, 0 of none. */
export function largest(columns: readonly (readonly number[])[]): number {
  let max = 0;
  for (const column of columns) {
    for (const value of column) if (value > max) max = value;
  }
  return max;
}
