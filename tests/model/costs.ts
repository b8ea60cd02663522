/**
 * Time by size: points of [bytes, nanoseconds], ascending. Between points the
 * time is interpolated, below the first it is the first's, above the last the
 * last slope goes on.
 */
export type CostCurve = readonly (readonly [bytes: number, ns: number])[];

/** What the calls of the model device take, in nanoseconds of simulated time. */
export interface CostTable {
  /** Per extent, by its size. */
  createExtentNs: CostCurve;
  /** Per extent, by its size. */
  releaseExtentNs: CostCurve;
  /** Per extent, by its size. */
  mapNs: CostCurve;
  /** Per extent, by its size; a map call pays it too. */
  setAccessNs: CostCurve;
  /** Per mapping, by its size. */
  unmapNs: CostCurve;
  /** Per reservation. */
  reserveNs: number;
  /** Per launch, fill or copy. */
  enqueueNs: number;
  /** Any other call. */
  callNs: number;
}

const mib = 2 ** 20;

/** Medians measured on an H200. */
export const h200Costs: CostTable = {
  createExtentNs: [[128 * mib, 15_000], [1024 * mib, 21_000]],
  releaseExtentNs: [
    [2 * mib, 10_000],
    [16 * mib, 14_000],
    [128 * mib, 45_000],
    [1024 * mib, 274_000],
  ],
  mapNs: [[2 * mib, 900]],
  setAccessNs: [
    [2 * mib, 22_000],
    [16 * mib, 22_000],
    [128 * mib, 44_000],
    [1024 * mib, 67_000],
  ],
  unmapNs: [
    [2 * mib, 15_000],
    [16 * mib, 15_000],
    [128 * mib, 22_000],
    [1024 * mib, 30_000],
  ],
  reserveNs: 2_000,
  enqueueNs: 2_000,
  callNs: 300,
};

/** Reads a curve at a size. */
export function costAt(curve: CostCurve, bytes: number): number {
  const first = curve[0];
  if (!first) return 0;
  if (bytes <= first[0]) return first[1];
  let upper = 1;
  while (upper < curve.length - 1 && curve[upper]![0] < bytes) upper++;
  const to = curve[upper];
  if (!to) return first[1];
  const from = curve[upper - 1]!;
  return from[1] + (bytes - from[0]) / (to[0] - from[0]) * (to[1] - from[1]);
}
