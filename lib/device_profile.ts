/**
 * What is particular to a kind of device, as data: the policy has no conditions on
 * backends.
 *
 * @module
 */

import type { CostModel } from "./cost_model.ts";
import type { DeviceInfo } from "./driver.ts";
import type { GrowthPolicy } from "./planner.ts";
import { roundUp } from "./sizes.ts";

const MIB = 1024 ** 2;

/** How the policy treats a kind of device. Sizes in bytes. */
export interface DeviceProfile {
  /** Costs of the driver's calls, until they are measured on the device itself. */
  costs: CostModel;
  /** Addresses to reserve at first; halved until the system grants them. */
  addressSpace: number;
  /** Growth takes extents of at least this size, where the driver allows few of them. */
  leastExtent: number;
  /** At most about this many extents are created for one request. */
  mostExtents: number;
  /** Retired mappings at which a coherence point is due. */
  maxRetired: number;
  /**
   * Whether unmapping waits for all work on the device. What it costs can't be measured on
   * an idle one then.
   */
  unmapWaits: boolean;
  /**
   * Whether one extent stays mapped all the time. Where the driver frees page tables
   * with the last mapping in them, the next mapping pays for them again (on an H200
   * 57 µs in place of 29); the anchor keeps them.
   */
  anchored: boolean;
  /** Whether freed memory may stay in use until its addresses are given back as well. */
  memoryFollowsAddresses: boolean;
  /** Whether a device that can't map memory is used all the same, see `plain_extents.ts`. */
  plainExtents: boolean;
}

/** Measured on an H200 with driver 580. */
const CUDA: DeviceProfile = {
  costs: {
    create: { perExtentNs: 15_000, perMiBNs: 6 },
    map: { perExtentNs: 21_000, perMiBNs: 45 },
    unmap: { perExtentNs: 15_000, perMiBNs: 15 },
    release: { perExtentNs: 10_000, perMiBNs: 260 },
  },
  // One reservation costs about 2 µs.
  addressSpace: 64 * 1024 ** 4,
  leastExtent: 0,
  mostExtents: Infinity,
  maxRetired: 16_384,
  unmapWaits: false,
  anchored: true,
  memoryFollowsAddresses: false,
  plainExtents: false,
};

/**
 * From the vendor's source and its users' reports (native/README.md names them); nothing
 * here was measured. Costs are CUDA's twice over, and unmapping counts as the wait for the
 * device that it is.
 */
const HIP: DeviceProfile = {
  costs: {
    create: { perExtentNs: 30_000, perMiBNs: 6 },
    map: { perExtentNs: 42_000, perMiBNs: 45 },
    unmap: { perExtentNs: 200_000, perMiBNs: 15 },
    release: { perExtentNs: 20_000, perMiBNs: 260 },
  },
  // Thirty times the memory of the largest device.
  addressSpace: 8 * 1024 ** 4,
  // A handle may take a file descriptor: few, large ones.
  leastExtent: 32 * MIB,
  mostExtents: 8,
  // Each wait is worth many mappings. Each mapping is one of the process's too, of which
  // Linux allows about 65 000.
  maxRetired: 32_768,
  unmapWaits: true,
  anchored: false,
  memoryFollowsAddresses: true,
  plainExtents: true,
};

/** The host backend: page faults come later, at the first touch. */
const HOST: DeviceProfile = {
  ...CUDA,
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
  hip: HIP,
  host: HOST,
};

/** The profile of a backend; an unknown one is taken for CUDA without an anchor. */
export function profileOf(backend: string): DeviceProfile {
  return PROFILES[backend] ?? { ...CUDA, anchored: false };
}

/**
 * A policy's growth as a device allows it: in extents as few and large as its profile says,
 * and so large that half of the extents that there may be hold all of its memory.
 */
export function growthOn(info: DeviceInfo, growth: GrowthPolicy): GrowthPolicy {
  const { granularity, totalMemory, extentLimit = 0 } = info;
  const { leastExtent, mostExtents } = profileOf(info.backend);
  const share = extentLimit === 0 ? 0 : 2 * totalMemory / extentLimit;
  const least = roundUp(Math.max(leastExtent, share), granularity);
  return {
    ...growth,
    least: Math.max(growth.least, least),
    extentSize: Math.max(growth.extentSize, least),
    mostExtents: Math.min(growth.mostExtents, mostExtents),
  };
}
