import type { ReplayRun } from "../report_data.ts";

const WAYS = ["reuse", "extend", "stitch", "grow", "flush"];
const CALLS = ["create", "map", "setAccess", "unmap", "release"];

/** The ways of serving requests that any run used or could have used, usual ones first. */
export function wayKinds(runs: readonly ReplayRun[]): string[] {
  return inOrder(WAYS, runs.flatMap(({ ways }) => Object.keys(ways)));
}

/** The kinds of driver calls that any run made or could have made, usual ones first. */
export function callKinds(runs: readonly ReplayRun[]): string[] {
  return inOrder(CALLS, runs.flatMap(({ calls }) => Object.keys(calls)));
}

function inOrder(usual: string[], names: string[]): string[] {
  const all = new Set(names);
  return [...usual.filter((name) => all.has(name)), ...all].filter(
    (name, index, list) => list.indexOf(name) === index,
  );
}
