/**
 * What every allocator's replay gathers, and how rounds of it become one run.
 *
 * @module
 */

import type { ReplayRun, UnservedRequest, WayFigures } from "./report_data.ts";
import { clockNs, histogramOf, mediansOf, quantilesOf } from "./times.ts";
import type { Workload } from "./workload.ts";

/** Most unserved requests that are told one by one. */
const MOST_UNSERVED = 100;

/** A run with the time of every request. */
export interface TimedRun {
  /** The run's figures. */
  run: ReplayRun;
  /** Nanoseconds of each allocation, by block; NaN where there was none. */
  allocNs: Float64Array;
  /** Nanoseconds of each free, in order. */
  freeNs: Float64Array;
}

/**
 * Gathers what a run's requests took and what became of them. What reading the clock
 * takes is not counted.
 */
export class RequestLog {
  /** How requests were served. */
  readonly ways: Record<string, WayFigures> = {};
  /** Requests that could not be served, the first of them. */
  readonly unserved: UnservedRequest[] = [];
  /** Number of requests that could not be served. */
  unservedCount = 0;
  /** Most bytes live at once. */
  livePeak = 0;
  /** Bytes live. */
  live = 0;
  readonly #allocNs: Float64Array;
  readonly #freeNs: Float64Array;
  readonly #clockNs: number;
  #frees = 0;

  /** A log for a workload's requests; `clock` is what reading the clock takes, in nanoseconds. */
  constructor(
    { blocks, steps }: Pick<Workload, "blocks" | "steps">,
    clock: number = clockNs(),
  ) {
    this.#clockNs = clock;
    this.#allocNs = new Float64Array(blocks).fill(NaN);
    this.#freeNs = new Float64Array(steps - blocks);
  }

  /** Notes what an allocation took, the clock's share included, and how it was served. */
  allocated(block: number, bytes: number, took: number, way: string): void {
    const ns = Math.max(took - this.#clockNs, 0);
    this.#allocNs[block] = ns;
    this.live += bytes;
    if (this.live > this.livePeak) this.livePeak = this.live;
    const figures = this.ways[way] ??= { count: 0, ns: 0 };
    figures.count++;
    figures.ns += ns;
  }

  /** Notes what a free took, the clock's share included. */
  freed(bytes: number, took: number): void {
    this.#freeNs[this.#frees++] = Math.max(took - this.#clockNs, 0);
    this.live -= bytes;
  }

  /** Notes that a request could not be served, and why. */
  refused(step: number, bytes: number, reason: string): void {
    this.unservedCount++;
    if (this.unserved.length < MOST_UNSERVED) {
      this.unserved.push({ step, bytes, reason });
    }
  }

  /** The run, given what only its allocator knows. */
  finish(
    facts: Omit<
      ReplayRun,
      keyof ReturnType<typeof timeFigures> | keyof Outcome
    >,
  ): TimedRun {
    const allocNs = this.#allocNs;
    const freeNs = this.#freeNs.subarray(0, this.#frees);
    const outcome: Outcome = {
      completed: this.unservedCount === 0,
      livePeak: this.livePeak,
      ways: this.ways,
      unserved: this.unserved,
      unservedCount: this.unservedCount,
    };
    return {
      run: { ...facts, ...outcome, ...timeFigures(allocNs, freeNs) },
      allocNs,
      freeNs,
    };
  }
}

type Outcome = Pick<
  ReplayRun,
  "completed" | "livePeak" | "ways" | "unserved" | "unservedCount"
>;

/**
 * One run of several rounds of the same replay: of each request the median time, which
 * leaves out what the machine did to one of them; everything else as in the round
 * whose driver time is the median.
 */
export function combineRounds(rounds: readonly TimedRun[]): TimedRun {
  const byDriverTime = rounds.toSorted((a, b) =>
    a.run.driverNs - b.run.driverNs
  );
  const { run } = byDriverTime[(rounds.length - 1) >> 1]!;
  const allocNs = mediansOf(rounds.map((round) => round.allocNs));
  const freeNs = mediansOf(rounds.map((round) => round.freeNs));
  return {
    run: { ...run, ...timeFigures(allocNs, freeNs) },
    allocNs,
    freeNs,
  };
}

function timeFigures(
  allocNs: Float64Array,
  freeNs: Float64Array,
): Pick<ReplayRun, "alloc" | "free" | "allocHistogram" | "totalNs"> {
  const served = allocNs.filter((ns) => !Number.isNaN(ns));
  const alloc = quantilesOf(served);
  const free = quantilesOf(freeNs);
  return {
    alloc,
    free,
    allocHistogram: histogramOf(served),
    totalNs: alloc.sum + free.sum,
  };
}
