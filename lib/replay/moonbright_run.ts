/**
 * Replaying a workload through MoonBright.
 *
 * @module
 */

import type { Block } from "../block.ts";
import { type CostModel, costNs } from "../cost_model.ts";
import { OutOfMemoryError } from "../errors.ts";
import type { CallCount, CallKind } from "../mapper.ts";
import type { MoonBright } from "../moonbright.ts";
import { MapRecorder } from "./memory_map.ts";
import type { Way } from "../planner.ts";
import type { Counters } from "../stats.ts";
import { RequestLog, type TimedRun } from "./timed_run.ts";
import { TimelineRecorder } from "./timeline.ts";
import type { Workload } from "./workload.ts";

/** Proves during a replay that blocks hold what is written to them. */
export interface BlockChecker {
  /** Fills a block that was just allocated. */
  fill(block: Block, index: number): void;
  /** Checks a block that is about to be freed; throws if it does not hold what was filled. */
  check(block: Block, index: number): void;
}

/** How to replay. */
export interface MoonBrightRunOptions {
  /** Name of the policy, for the report. */
  policy: string;
  /** What the instance is called in the report, such as `cuda:0`. */
  device: string;
  /** Whether to record where everything lies. */
  map?: boolean;
  /** Fills and checks every block. */
  checker?: BlockChecker;
  /** Of a device that only counts: its costs, and what it has spent so far. */
  model?: { costs: CostModel; spentNs: () => number };
  /** Called now and then; may throw to end the replay. */
  breathe: () => Promise<void>;
}

/** Steps between two calls of `breathe`. */
const BREATHE_EVERY = 4096;

/**
 * Replays a workload through an instance that holds nothing yet. What is live at its
 * end stays live.
 */
export async function replayOnMoonBright(
  mb: MoonBright,
  workload: Workload,
  options: MoonBrightRunOptions,
): Promise<TimedRun> {
  const { steps, block: blockOf, isAlloc, stream: streamOf, bytes } = workload;
  const { checker } = options;
  const { allocator } = mb;
  const { counters, extents, flushQueue } = allocator;
  const spentNs = options.model?.spentNs ?? (() => 0);
  // As programs write it: no options for what follows the default stream.
  const allocOptions = workload.streams.map((_, index) =>
    index === 0 ? undefined : { stream: mb.createStream() }
  );
  const owners: (Block | undefined)[] = new Array(workload.blocks);
  const log = new RequestLog(workload);
  const slow = new SlowWays(counters);
  const timeline = new TimelineRecorder(workload, () => largestFree(mb));
  const map = options.map ? new MapRecorder(allocator) : undefined;
  const rows = new Uint32Array(map ? workload.blocks : 0);
  for (let step = 0; step < steps; step++) {
    if (step % BREATHE_EVERY === 0) await options.breathe();
    const index = blockOf[step]!;
    const size = bytes[index]!;
    if (isAlloc[step] === 1) {
      const { flushes } = flushQueue;
      const { reuses } = counters;
      const before = spentNs();
      const start = performance.now();
      let owner: Block;
      try {
        owner = mb.alloc(size, allocOptions[streamOf[step]!]);
      } catch (error) {
        if (!(error instanceof OutOfMemoryError)) throw error;
        log.refused(step, size, error.message);
        map?.extentsChanged(step);
        timeline.note(step, log.live, extents.totalBytes);
        continue;
      }
      const ns = (performance.now() - start) * 1e6 + spentNs() - before;
      owners[index] = owner;
      const way = counters.reuses > reuses ? "reuse" : slow.taken();
      log.allocated(index, size, ns, way);
      if (way !== "reuse" || flushQueue.flushes > flushes) {
        map?.extentsChanged(step);
      }
      if (map) rows[index] = map.blockCame(step, owner.address, owner.capacity);
      checker?.fill(owner, index);
    } else {
      const owner = owners[index];
      if (owner !== undefined) {
        checker?.check(owner, index);
        owners[index] = undefined;
        const before = spentNs();
        const start = performance.now();
        owner.free();
        const ns = (performance.now() - start) * 1e6 + spentNs() - before;
        log.freed(size, ns);
        map?.blockWent(step, rows[index]!);
      }
    }
    timeline.note(step, log.live, extents.totalBytes);
  }
  if (checker) {
    for (const [index, owner] of owners.entries()) {
      if (owner) checker.check(owner, index);
    }
  }
  const calls = callsOf(mb, options.model?.costs);
  log.ways.flush = { count: flushQueue.flushes, ns: calls.unmap.ns };
  return log.finish({
    allocator: "moonbright",
    policy: options.policy,
    device: options.device,
    budget: mb.budget === Infinity ? undefined : mb.budget,
    mappedPeak: counters.peakMapped,
    driverNs: Object.values(calls).reduce((sum, { ns }) => sum + ns, 0),
    calls,
    timeline: timeline.timeline,
    map: map?.finish(steps),
  });
}

/** Tells which of the slow ways has served a request since it was asked last. */
class SlowWays {
  readonly #now: Counters["ways"];
  readonly #before = { extend: 0, stitch: 0, grow: 0 };

  constructor({ ways }: Counters) {
    this.#now = ways;
    this.taken();
  }

  taken(): Way {
    let taken: Way = "reuse";
    for (const way of ["extend", "stitch", "grow"] as const) {
      if (this.#now[way].count > this.#before[way]) taken = way;
      this.#before[way] = this.#now[way].count;
    }
    return taken;
  }
}

/** Driver calls so far; on a model with what they would have cost. */
function callsOf(
  { allocator }: MoonBright,
  costs: CostModel | undefined,
): Record<CallKind, CallCount> {
  const { calls } = allocator.mapper;
  const copy = (kind: CallKind): CallCount => {
    const count = calls[kind];
    if (!costs) return { ...count };
    // Setting access is part of what mapping costs there.
    const ns = kind === "setAccess"
      ? 0
      : costNs(costs[kind], count.items, count.bytes);
    return { ...count, ns };
  };
  return {
    create: copy("create"),
    map: copy("map"),
    setAccess: copy("setAccess"),
    unmap: copy("unmap"),
    release: copy("release"),
  };
}

function largestFree({ allocator }: MoonBright): number {
  const { heap, blocks } = allocator;
  heap.settle();
  let largest = 0;
  for (const index of heap.free) {
    largest = Math.max(largest, blocks.size[index.largest()] ?? 0);
  }
  return largest;
}
