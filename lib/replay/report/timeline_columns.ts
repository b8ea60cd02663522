import type { ReplayRun } from "../report_data.ts";

/** A run's figures over time as charts use them; columns that nothing draws are left out. */
export type TimelineColumns = { [column: string]: number[] };

/** The columns of all runs, in their order: the charts' datasets. */
export function timelineColumns(runs: readonly ReplayRun[]): TimelineColumns[] {
  const live = liveRun(runs);
  const reserved = reservedRun(runs);
  return runs.map(({ timeline }, index) => ({
    step: timeline.step,
    timeUs: timeline.timeUs,
    mapped: timeline.mapped,
    idle: timeline.mapped.map((mapped, i) =>
      Math.max(0, mapped - (timeline.live[i] ?? 0))
    ),
    ...(index === live ? { live: timeline.live } : {}),
    ...(index === reserved ? { reserved: timeline.reserved } : {}),
    ...(timeline.largestFree.length > 0
      ? { largestFree: timeline.largestFree }
      : {}),
  }));
}

/** Which run shows what the workload had live: a complete one if there is one; -1 if there is no run. */
export function liveRun(runs: readonly ReplayRun[]): number {
  const complete = runs.findIndex((run) => run.completed);
  return complete >= 0 ? complete : Math.min(0, runs.length - 1);
}

/** Which run knows what the recorded allocator held; -1 if none does. */
export function reservedRun(runs: readonly ReplayRun[]): number {
  return runs.findIndex(({ timeline }) => timeline.reserved.length > 0);
}
