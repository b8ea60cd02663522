/**
 * How much slower or faster one set of samples is than another.
 *
 * The estimate is that of Hodges and Lehmann ("Estimates of location based on rank
 * tests", 1963): the median of all differences between a sample of one set and one of the
 * other. The interval around it is made of order statistics of the same differences, by
 * the normal approximation of the rank sum test (Hollander, Wolfe and Chicken,
 * "Nonparametric Statistical Methods", 3rd edition, 2014, section 4.3). Neither asks for
 * a distribution, and outliers hardly move them. Differences are of logarithms here, so
 * the results are ratios.
 *
 * @module
 */

/** A ratio of two sets of samples. */
export interface Shift {
  /** The new samples as a multiple of the old ones. */
  ratio: number;
  /** Lower end of the interval that it lies in at 99.99 %; 0 if there are too few samples. */
  low: number;
  /** Upper end; `Infinity` if there are too few samples. */
  high: number;
}

/**
 * Two-sided 99.99 % of the normal distribution: strict, as a run has a hundred series and
 * each is looked at.
 */
const Z = 3.891;

/** Below a clock's resolution samples may be 0, which has no logarithm. In nanoseconds. */
const LEAST_NS = 0.1;

/** Steps of a bisection: more than a double has bits. */
const STEPS = 64;

/** The shift from old samples to new ones; NaN if either set is empty. */
export function shiftOf(
  before: ArrayLike<number>,
  after: ArrayLike<number>,
): Shift {
  const pairs = before.length * after.length;
  if (pairs === 0) return { ratio: NaN, low: 0, high: Infinity };
  const xs = sortedLogs(before);
  const ys = sortedLogs(after);
  const half = pairs / 2;
  const width = Z * Math.sqrt(pairs * (xs.length + ys.length + 1) / 12);
  const rank = Math.floor(half - width);
  const lower = difference(xs, ys, Math.floor((pairs + 1) / 2));
  const upper = difference(xs, ys, Math.floor(half) + 1);
  return {
    ratio: Math.exp((lower + upper) / 2),
    low: rank < 1 ? 0 : Math.exp(difference(xs, ys, rank)),
    high: rank < 1 ? Infinity : Math.exp(difference(xs, ys, pairs + 1 - rank)),
  };
}

function sortedLogs(samples: ArrayLike<number>): Float64Array {
  return Float64Array.from(
    samples,
    (sample) => Math.log(Math.max(sample, LEAST_NS)),
  ).sort();
}

/** The k-th smallest (from 1) of all y − x, without making them: there may be millions. */
function difference(xs: Float64Array, ys: Float64Array, k: number): number {
  let low = ys[0]! - xs.at(-1)!;
  let high = ys.at(-1)! - xs[0]!;
  for (let step = 0; step < STEPS && low < high; step++) {
    const middle = low + (high - low) / 2;
    if (countUpTo(xs, ys, middle) >= k) high = middle;
    else low = middle;
    if (middle === low && high - low <= Number.EPSILON * Math.abs(high)) break;
  }
  return high;
}

/** How many of all y − x are at most `limit`. Both are sorted. */
function countUpTo(
  xs: Float64Array,
  ys: Float64Array,
  limit: number,
): number {
  let count = 0;
  let end = 0;
  for (const x of xs) {
    while (end < ys.length && ys[end]! - x <= limit) end++;
    count += end;
  }
  return count;
}
