/**
 * Summaries of the times of many requests.
 *
 * @module
 */

import { quantile } from "../bench/samples.ts";
import type { Histogram, Quantiles } from "./report_data.ts";

/** Bins to a doubling. */
const BINS_PER_DOUBLING = 4;
/** Shorter times share the first bin. */
const SHORTEST_NS = 16;

/**
 * Nanoseconds that reading the clock twice takes: the median of many readings with
 * nothing in between. Every measured time holds as much.
 */
export function clockNs(): number {
  const readings = new Float64Array(2001);
  // Round after round into the same places: the last is of code that is compiled.
  for (let i = 0; i < 20 * readings.length; i++) {
    const start = performance.now();
    readings[i % readings.length] = (performance.now() - start) * 1e6;
  }
  return readings.sort()[readings.length >> 1]!;
}

/** Quantiles of times in nanoseconds; all zero if there are none. */
export function quantilesOf(times: Float64Array): Quantiles {
  const sorted = times.toSorted();
  const count = sorted.length;
  if (count === 0) return { count, p50: 0, p99: 0, p999: 0, max: 0, sum: 0 };
  let sum = 0;
  for (const ns of times) sum += ns;
  return {
    count,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
    max: sorted[count - 1]!,
    sum,
  };
}

/** How many times fell into each bin, from the first bin in use to the last. */
export function histogramOf(times: Float64Array): Histogram {
  const counts: number[] = [];
  let first = Infinity;
  for (const ns of times) {
    const bin = ns <= SHORTEST_NS
      ? 0
      : Math.floor(Math.log2(ns / SHORTEST_NS) * BINS_PER_DOUBLING);
    while (counts.length <= bin) counts.push(0);
    counts[bin]!++;
    first = Math.min(first, bin);
  }
  if (counts.length === 0) return { fromNs: [], counts };
  return {
    fromNs: counts.map((_, bin) => SHORTEST_NS * 2 ** (bin / BINS_PER_DOUBLING))
      .slice(first),
    counts: counts.slice(first),
  };
}

/**
 * Element by element the median of several runs of the same steps, which leaves out what
 * the machine did to one of them; of an even number the lower one.
 */
export function mediansOf(runs: readonly Float64Array[]): Float64Array {
  if (runs.length === 1) return runs[0]!;
  const middle = (runs.length - 1) >> 1;
  const one = new Float64Array(runs.length);
  return Float64Array.from(runs[0]!, (_, i) => {
    for (let run = 0; run < runs.length; run++) one[run] = runs[run]![i]!;
    return one.sort()[middle]!;
  });
}
