/**
 * A whole replay: MoonBright and its peers, in rounds, under a budget or in search of
 * the smallest.
 *
 * @module
 */

import { asTimedDriver } from "../bench/timed_driver.ts";
import type { CostModel } from "../cost_model.ts";
import type { MoonBright, MoonBrightOptions } from "../moonbright.ts";
import type { GrowthPolicy } from "../planner.ts";
import type { PolicyName } from "../policies.ts";
import { formatSize, roundUp } from "../sizes.ts";
import { plainAllocator, poolAllocator, replayOnVendor } from "./driver_run.ts";
import { type BudgetTrial, smallestBudget } from "./min_budget.ts";
import {
  type BlockChecker,
  type MoonBrightRunOptions,
  replayOnMoonBright,
} from "./moonbright_run.ts";
import type {
  ComparedRequest,
  PlainComparison,
  ReplayReport,
} from "./report_data.ts";
import { replaySegments } from "./segments_run.ts";
import { combineRounds, type TimedRun } from "./timed_run.ts";
import type { Workload } from "./workload.ts";

/** A peer to replay beside MoonBright. */
export type Baseline = "plain" | "pool" | "segments";

/** What to replay, and on what. */
export interface ReplayOptions {
  /** Opens an instance that holds nothing. */
  open: (options: MoonBrightOptions) => MoonBright;
  /** What a device that only counts has spent, and its costs; undefined for a real one. */
  model?: (mb: MoonBright) => NonNullable<MoonBrightRunOptions["model"]>;
  /** The policy. */
  policy: PolicyName;
  /** What of it is to differ. */
  growth: Partial<GrowthPolicy>;
  /** Most that all extents may take, in bytes. */
  budget: number;
  /** Whether to look for the smallest budget that completes, too. */
  findBudget: boolean;
  /** How often to replay everything; of each request the median time is told. */
  rounds: number;
  /** The peers. */
  baselines: readonly Baseline[];
  /** Whether to record where everything lies. */
  map: boolean;
  /** Makes what proves blocks sound, if they are to be proved. */
  checker?: (mb: MoonBright) => (BlockChecker & Disposable) | undefined;
  /** Told what is being done. */
  progress: (what: string) => void;
  /** Called now and then; may throw to end the replay. */
  breathe: () => Promise<void>;
}

const MIB = 1024 ** 2;

/** Ways to cut growth finer than by default, each more costly than the one before. */
const FINER_CUTS: readonly Partial<GrowthPolicy>[] = [
  { extentSize: 8 * MIB, mostExtents: 64 },
  { extentSize: 8 * MIB, mostExtents: 96 },
  { extentSize: 6 * MIB, mostExtents: 96 },
];

/** Most slow requests that are told one by one. */
const MOST_TOLD = 20;

/** A request more than this many times slower than plain allocation is counted. */
const TOLERATED = 1.5;

/** Replays a workload through MoonBright and the peers, alternating, and reports. */
export async function replay(
  workload: Workload,
  options: ReplayOptions,
): Promise<ReplayReport> {
  const rounds = new Map<string, TimedRun[]>();
  const add = (name: string, run: TimedRun) => {
    const list = rounds.get(name);
    if (list) list.push(run);
    else rounds.set(name, [run]);
  };
  const first = new FirstInstance();
  for (let round = 0; round < options.rounds; round++) {
    const of = options.rounds > 1 ? `, round ${round + 1}` : "";
    options.progress(`replaying on MoonBright${of}`);
    add(
      "moonbright",
      await onMoonBright(workload, options, first, options.budget),
    );
    for (const baseline of options.baselines) {
      options.progress(`replaying: ${baseline}${of}`);
      add(baseline, await onBaseline(baseline, workload, options));
    }
  }
  const combined = new Map(
    [...rounds].map(([name, runs]) => [name, combineRounds(runs)]),
  );
  const plain = combined.get("plain");
  const free = combined.get("moonbright")!;
  const mine = [free];
  if (options.findBudget && free.run.completed) {
    mine.push(await underSmallestBudget(workload, options, first, free));
  }
  if (plain) {
    for (const one of mine) {
      one.run.againstPlain = compare(workload, one, plain);
    }
  }
  combined.delete("moonbright");
  return {
    workload: workload.figures,
    runs: [...mine, ...combined.values()].map(({ run }) => run),
  };
}

/** What the first instance measured and found: all rounds must decide alike. */
class FirstInstance {
  costs: CostModel | undefined;
  granularity = 1;
}

async function onMoonBright(
  workload: Workload,
  options: ReplayOptions,
  first: FirstInstance,
  budget: number,
): Promise<TimedRun> {
  using mb = options.open({
    policy: options.policy,
    growth: options.growth,
    budget,
    costs: first.costs,
  });
  first.costs = mb.allocator.costs;
  first.granularity = mb.device.granularity;
  using checker = options.checker?.(mb);
  return await replayOnMoonBright(mb, workload, {
    policy: policyText(options),
    device: deviceName(mb),
    map: options.map,
    checker,
    model: options.model?.(mb),
    breathe: options.breathe,
  });
}

async function onBaseline(
  baseline: Baseline,
  workload: Workload,
  { open, breathe }: ReplayOptions,
): Promise<TimedRun> {
  // Given costs, opening measures none.
  using mb = open({ costs: { ...NO_COSTS } });
  const driver = asTimedDriver(mb.driver);
  const device = deviceName(mb);
  switch (baseline) {
    case "plain":
      return await replayOnVendor(
        plainAllocator(driver),
        workload,
        device,
        breathe,
      );
    case "pool":
      return await replayOnVendor(
        poolAllocator(driver, workload),
        workload,
        device,
        breathe,
      );
    case "segments":
      return await replaySegments(driver, workload, device, breathe);
  }
}

const NOTHING = { perExtentNs: 0, perMiBNs: 0 };
const NO_COSTS: CostModel = {
  create: NOTHING,
  map: NOTHING,
  unmap: NOTHING,
  release: NOTHING,
};

/**
 * The run under the smallest budget: with the policy as it is and, unless told how to cut
 * growth, with finer extents too, which cost more calls and leave less stuck.
 */
async function underSmallestBudget(
  workload: Workload,
  options: ReplayOptions,
  first: FirstInstance,
  free: TimedRun,
): Promise<TimedRun> {
  const { granularity } = first;
  const fixed = options.growth.extentSize ?? options.growth.mostExtents;
  const cuts = fixed === undefined ? [{}, ...FINER_CUTS] : [{}];
  const known = Math.min(free.run.mappedPeak!, options.budget);
  let best: BudgetTrial<{ completed: boolean; options: ReplayOptions }> = {
    budget: roundUp(known, granularity),
    run: { completed: true, options },
  };
  for (const cut of cuts) {
    const cutSo = { ...options, growth: { ...options.growth, ...cut } };
    best = await smallestBudget(
      workload.figures.livePeak,
      best,
      granularity,
      async (budget) => {
        options.progress(`replaying under ${formatSize(budget)}`);
        const { run } = await onMoonBright(workload, cutSo, first, budget);
        return { completed: run.completed, options: cutSo };
      },
    );
  }
  const rounds: TimedRun[] = [];
  for (let round = 0; round < options.rounds; round++) {
    options.progress("replaying under the smallest budget");
    rounds.push(
      await onMoonBright(workload, best.run.options, first, best.budget),
    );
  }
  return combineRounds(rounds);
}

function compare(
  { bytes }: Workload,
  run: TimedRun,
  plain: TimedRun,
): PlainComparison {
  const slower: ComparedRequest[] = [];
  let worst = 0;
  run.allocNs.forEach((ns, block) => {
    const plainNs = plain.allocNs[block]!;
    if (Number.isNaN(ns / plainNs)) return;
    worst = Math.max(worst, ns / plainNs);
    if (ns > TOLERATED * plainNs) {
      slower.push({ block, bytes: bytes[block]!, ns, plainNs });
    }
  });
  slower.sort((a, b) => b.ns / b.plainNs - a.ns / a.plainNs);
  return { worst, over: slower.length, slowest: slower.slice(0, MOST_TOLD) };
}

function policyText({ policy, growth }: ReplayOptions): string {
  const { extentSize, mostExtents } = growth;
  const parts: string[] = [policy];
  if (extentSize !== undefined) parts.push(`${formatSize(extentSize)} extents`);
  if (mostExtents !== undefined) parts.push(`${mostExtents} a request`);
  return parts.join(", ");
}

function deviceName({ device }: MoonBright): string {
  return device.backend === "host" || device.backend === "model"
    ? device.backend
    : `${device.backend}:${device.ordinal}`;
}
