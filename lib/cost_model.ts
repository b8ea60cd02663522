/**
 * What the driver's calls cost, for choosing between ways to serve a request.
 *
 * @module
 */

/** Nanoseconds per call and per byte of one operation. */
export interface OperationCost {
  /** Nanoseconds for each extent, whatever its size. */
  perExtentNs: number;
  /** Nanoseconds for each MiB on top. */
  perMiBNs: number;
}

/** Costs of the driver's calls on a device. */
export interface CostModel {
  /** Creating an extent. */
  create: OperationCost;
  /** Mapping an extent and setting its access. */
  map: OperationCost;
  /** Unmapping an extent. */
  unmap: OperationCost;
  /** Releasing an extent. */
  release: OperationCost;
}

/** Measured on an H200 with driver 580; other NVIDIA devices differ by less than a policy notices. */
export const CUDA_COSTS: CostModel = {
  create: { perExtentNs: 15_000, perMiBNs: 6 },
  map: { perExtentNs: 21_000, perMiBNs: 45 },
  unmap: { perExtentNs: 15_000, perMiBNs: 15 },
  release: { perExtentNs: 10_000, perMiBNs: 260 },
};

/** The host backend: page faults come later, at the first touch. */
export const HOST_COSTS: CostModel = {
  create: { perExtentNs: 1_500, perMiBNs: 0 },
  map: { perExtentNs: 2_500, perMiBNs: 0 },
  unmap: { perExtentNs: 2_000, perMiBNs: 10 },
  release: { perExtentNs: 1_500, perMiBNs: 50 },
};

const MIB = 1024 * 1024;

/** Nanoseconds that an operation takes on `extents` extents of `bytes` in all. */
export function costNs(
  cost: OperationCost,
  extents: number,
  bytes: number,
): number {
  return cost.perExtentNs * extents + cost.perMiBNs * (bytes / MIB);
}

/** The stored costs of a backend. */
export function costsOf(backend: string): CostModel {
  return backend === "host" ? HOST_COSTS : CUDA_COSTS;
}
