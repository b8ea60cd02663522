/**
 * Samples of one measurement and their summary.
 *
 * @module
 */

/** What a sample counts. */
export type Unit = "ns" | "bytes";

/** What was measured, with every sample. */
export interface Series {
  /** Group of the measurement, such as `first allocation`. */
  group: string;
  /** What was done, such as `MoonBright` or `plain alloc`. */
  subject: string;
  /** Bytes per request, 0 where that has no meaning. */
  size: number;
  /** What the samples count. */
  unit: Unit;
  /** Every sample. */
  samples: number[];
}

/** Order statistics of samples. */
export interface Summary {
  /** Number of samples. */
  count: number;
  /** Median. */
  p50: number;
  /** 99th percentile. */
  p99: number;
  /** 99.9th percentile. */
  p999: number;
  /** Smallest. */
  min: number;
  /** Largest. */
  max: number;
}

/** Puts samples in nanoseconds together with what they are of. */
export function series(
  group: string,
  subject: string,
  size: number,
  samplesNs: ArrayLike<number>,
): Series {
  return {
    group,
    subject,
    size,
    unit: "ns",
    samples: Array.from(samplesNs),
  };
}

/**
 * The q-quantile (0 to 1) of sorted samples, by linear interpolation between the two
 * nearest (definition 7 of Hyndman and Fan, "Sample quantiles in statistical
 * packages", 1996); NaN if there are none.
 */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  if (sorted.length === 0) return NaN;
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (at - low);
}

/** Summarizes samples. */
export function summarize(samples: ArrayLike<number>): Summary {
  const sorted = Float64Array.from(samples).sort();
  return {
    count: sorted.length,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
    min: sorted[0] ?? NaN,
    max: sorted[sorted.length - 1] ?? NaN,
  };
}

/** Adds samples of several stages up, round by round. */
export function addUp(...stages: ArrayLike<number>[]): number[] {
  return Array.from(
    stages[0]!,
    (_, i) => stages.reduce((sum, stage) => sum + stage[i]!, 0),
  );
}

/** Times one run in nanoseconds. */
export function timeOnce(run: () => void): number {
  const start = performance.now();
  run();
  return (performance.now() - start) * 1e6;
}

/** Times batches of runs; each sample is the time per run in nanoseconds. */
export function timeBatches(
  samples: number,
  batch: number,
  run: () => void,
): number[] {
  const ns: number[] = [];
  for (let i = 0; i < samples; i++) {
    const start = performance.now();
    for (let j = 0; j < batch; j++) run();
    ns.push((performance.now() - start) * 1e6 / batch);
  }
  return ns;
}
