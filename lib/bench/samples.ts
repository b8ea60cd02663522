/**
 * Samples of one measurement and their summary.
 *
 * @module
 */

/** What was measured, with every sample. */
export interface Series {
  /** What was done, such as `reuse` or `plain alloc`. */
  subject: string;
  /** Group of the measurement, such as `first allocation`. */
  group: string;
  /** Bytes per request, 0 where that has no meaning. */
  size: number;
  /** Nanoseconds of each sample. */
  samplesNs: number[];
}

/** Order statistics of samples, in nanoseconds. */
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

/** Summarizes samples in nanoseconds. */
export function summarize(samplesNs: ArrayLike<number>): Summary {
  const sorted = Float64Array.from(samplesNs).sort();
  return {
    count: sorted.length,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
    min: sorted[0] ?? NaN,
    max: sorted[sorted.length - 1] ?? NaN,
  };
}

/** Times `run` once per sample; `after` runs between samples, untimed. */
export function timeEach(
  samples: number,
  run: () => void,
  after: () => void = () => {},
): number[] {
  const ns: number[] = [];
  for (let i = 0; i < samples; i++) {
    const start = performance.now();
    run();
    ns.push((performance.now() - start) * 1e6);
    after();
  }
  return ns;
}

/** Times batches of `batch` runs; each sample is the time per run. */
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
