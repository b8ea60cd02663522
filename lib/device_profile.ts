/**
 * What is particular to a kind of device, as data: the policy has no conditions on
 * backends.
 *
 * @module
 */

import type { CostModel } from "./cost_model.ts";

/** How the policy treats a kind of device. */
export interface DeviceProfile {
  /** Costs of the driver's calls, until they are measured on the device itself. */
  costs: CostModel;
  /** Retired mappings at which a coherence point is due. */
  maxRetired: number;
  /**
   * Whether one extent stays mapped all the time. Where the driver frees page tables
   * with the last mapping in them, the next mapping pays for them again (on an H200
   * 57 µs in place of 29); the anchor keeps them.
   */
  anchored: boolean;
}

/** Measured on an H200 with driver 580. */
const CUDA: DeviceProfile = {
  costs: {
    create: { perExtentNs: 15_000, perMiBNs: 6 },
    map: { perExtentNs: 21_000, perMiBNs: 45 },
    unmap: { perExtentNs: 15_000, perMiBNs: 15 },
    release: { perExtentNs: 10_000, perMiBNs: 260 },
  },
  maxRetired: 16_384,
  anchored: true,
};

/** The host backend: page faults come later, at the first touch. */
const HOST: DeviceProfile = {
  costs: {
    create: { perExtentNs: 1_500, perMiBNs: 0 },
    map: { perExtentNs: 2_500, perMiBNs: 0 },
    unmap: { perExtentNs: 2_000, perMiBNs: 10 },
    release: { perExtentNs: 1_500, perMiBNs: 50 },
  },
  // Linux allows a process about 65 000 mappings.
  maxRetired: 8_192,
  anchored: false,
};

const PROFILES: Readonly<Record<string, DeviceProfile>> = {
  cuda: CUDA,
  host: HOST,
};

/** The profile of a backend; an unknown one is taken for a GPU without an anchor. */
export function profileOf(backend: string): DeviceProfile {
  return PROFILES[backend] ?? { ...CUDA, anchored: false };
}
