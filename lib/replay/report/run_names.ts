import type { ReplayRun } from "../report_data.ts";

const NAMES: Record<ReplayRun["allocator"], string> = {
  moonbright: "MoonBright",
  plain: "Driver, plain",
  pool: "Driver, pool",
  segments: "Recorded segments",
};

/** What the runs are called in tables and legends; no two alike. */
export function runNames(runs: readonly ReplayRun[]): string[] {
  const names: string[] = [];
  for (const { allocator, policy } of runs) {
    const name = NAMES[allocator] + (policy === undefined ? "" : `, ${policy}`);
    let unique = name;
    for (let n = 2; names.includes(unique); n++) unique = `${name} #${n}`;
    names.push(unique);
  }
  return names;
}
