import type { MemoryMap, ReplayReport, ReplayRun } from "../report_data.ts";
import { fragmentationChart } from "./fragmentation_chart.ts";
import type { ChartOption } from "./json.ts";
import { latencyChart } from "./latency_chart.ts";
import { memoryChart } from "./memory_chart.ts";
import { type PackedPlacements, packPlacements } from "./pack_placements.ts";
import { SIZE_CLASSES, type Theme, THEMES } from "./palette.ts";
import { stretches } from "./stretches.ts";
import { callsChart, waysChart } from "./time_chart.ts";
import { timelineColumns } from "./timeline_columns.ts";

/** A run's map as the page reads it. */
export interface PageMap {
  /** Number of steps. */
  steps: number;
  /** First step with the most bytes live. */
  livePeakStep: number;
  /** First step with the most bytes mapped; null if no extents were recorded. */
  mappedPeakStep: number | null;
  /** Stretches of addresses in use, pairs of first byte and length. */
  stretches: number[];
  /** Shape of the packed blocks. */
  blocks: Omit<PackedPlacements, "data">;
  /** Shape of the packed extents. */
  extents: Omit<PackedPlacements, "data">;
}

/** What the page's script draws. */
export interface PageData {
  /** For the page's JSON. */
  json: unknown;
  /** Names of the charts that have something to draw. */
  drawn: string[];
  /** Packed placements by the id of the element that carries them. */
  packed: Record<string, string>;
}

/** Gathers what the page's script draws, from runs with these indices having a map. */
export async function pageData(
  report: ReplayReport,
  mapped: readonly number[],
): Promise<PageData> {
  const packed: Record<string, string> = {};
  const maps = await Promise.all(mapped.map(async (run, index) => {
    const map = report.runs[run]!.map!;
    const { data: blockData, ...blocks } = await packPlacements(map.blocks);
    const { data: extentData, ...extents } = await packPlacements(map.extents);
    packed[`map-${index}-blocks`] = blockData;
    packed[`map-${index}-extents`] = extentData;
    return { ...mapFacts(map), blocks, extents } satisfies PageMap;
  }));
  const light = charts(report, THEMES.light);
  return {
    json: {
      datasets: timelineColumns(report.runs),
      charts: { light, dark: charts(report, THEMES.dark) },
      themes: THEMES,
      sizeClasses: SIZE_CLASSES.map(({ below, color }) => ({
        below: Math.min(below, Number.MAX_SAFE_INTEGER),
        color,
      })),
      maps,
    },
    drawn: Object.keys(light),
    packed,
  };
}

/** Indices of the runs that have a map. */
export function runsWithMap(runs: readonly ReplayRun[]): number[] {
  return [...runs.keys()].filter((index) => runs[index]!.map !== undefined);
}

function charts(
  report: ReplayReport,
  theme: Theme,
): Record<string, ChartOption> {
  const all = {
    memory: memoryChart(report, theme),
    latency: latencyChart(report, theme),
    ways: waysChart(report.runs, theme),
    calls: callsChart(report.runs, theme),
    fragmentation: fragmentationChart(report, theme),
  };
  return Object.fromEntries(
    Object.entries(all).filter(([, { series }]) =>
      (series as unknown[]).length > 0
    ),
  );
}

function mapFacts(map: MemoryMap) {
  return {
    steps: map.steps,
    livePeakStep: peakStep(map.blocks, map.steps),
    mappedPeakStep: map.extents.address.length === 0
      ? null
      : peakStep(map.extents, map.steps),
    stretches: stretches(map),
  };
}

/** The first step at which placements take the most bytes. */
function peakStep(
  { bytes, from, to }: MemoryMap["blocks"],
  steps: number,
): number {
  const change = new Float64Array(steps + 1);
  from.forEach((step, i) => change[step] = change[step]! + bytes[i]!);
  to.forEach((step, i) => change[step] = change[step]! - bytes[i]!);
  let sum = 0;
  let most = 0;
  let peak = 0;
  change.forEach((by, step) => {
    sum += by;
    if (sum > most) [most, peak] = [sum, step];
  });
  return peak;
}
