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

const MIB = 1024 * 1024;

/** Nanoseconds that an operation takes on `extents` extents of `bytes` in all. */
export function costNs(
  cost: OperationCost,
  extents: number,
  bytes: number,
): number {
  return cost.perExtentNs * extents + cost.perMiBNs * (bytes / MIB);
}
