/**
 * The ways in which the whole allocator is used at random: by tests for a while, by the
 * soak for as long as one likes.
 *
 * @module
 */

import { CoherenceWorld, type WorldOptions } from "./coherence_world.ts";
import type { WorldKind } from "./random_walk.ts";
import { GRANULE, SINGLE_GRANULES } from "./support.ts";

const roomy = 2 ** 40;

const options: WorldOptions[] = [
  {
    name: "fresh addresses alone",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      freshAddresses: roomy,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps" },
    mostStreams: 4,
  },
  {
    name: "a TLB that keeps invalid entries",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      freshAddresses: roomy,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps-invalid" },
    mostStreams: 3,
  },
  {
    name: "addresses recycled after a while",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: 512 * GRANULE,
      freshAddresses: 64 * GRANULE,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps" },
    mostStreams: 3,
  },
  {
    name: "an arena hardly larger than the budget",
    allocator: {
      budget: 64 * GRANULE,
      addressSpace: 80 * GRANULE,
      growth: SINGLE_GRANULES,
    },
    scarceAddresses: true,
    device: { tlb: "keeps-invalid" },
    mostStreams: 2,
  },
  {
    name: "extents of several granules",
    allocator: {
      budget: 160 * GRANULE,
      addressSpace: roomy,
      growth: {
        least: 4 * GRANULE,
        extentSize: 4 * GRANULE,
        mostExtents: 4,
        leastStitched: 2 * GRANULE,
      },
    },
    device: { tlb: "keeps" },
    mostStreams: 3,
  },
  {
    name: "frequent coherence points",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      maxRetired: 4,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps-invalid", maxPending: 64 },
    mostStreams: 6,
  },
  {
    name: "one stream",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps" },
    mostStreams: 0,
  },
  {
    name: "an anchor and growth at its usual price",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      growth: { extentSize: 2 * GRANULE },
    },
    device: { tlb: "keeps" },
    backend: "cuda",
    mostStreams: 3,
  },
  {
    name: "a device that runs full",
    allocator: {
      addressSpace: roomy,
      growth: { ...SINGLE_GRANULES, growthPriceNs: 0 },
    },
    device: { tlb: "keeps", totalMemory: 80 * GRANULE },
    mostStreams: 3,
  },
  {
    name: "the latency policy",
    allocator: {
      policy: "latency",
      budget: 160 * GRANULE,
      addressSpace: roomy,
      growth: { least: 8 * GRANULE, ahead: 4 * GRANULE },
    },
    device: { tlb: "keeps" },
    mostStreams: 3,
  },
  {
    name: "calls that fail now and then",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: 512 * GRANULE,
      freshAddresses: 64 * GRANULE,
      maxRetired: 16,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps" },
    mostStreams: 4,
    faultOneIn: 60,
  },
  {
    name: "calls that often fail, in a small arena",
    allocator: {
      budget: 64 * GRANULE,
      addressSpace: 96 * GRANULE,
      maxRetired: 4,
      growth: { extentSize: 2 * GRANULE, mostExtents: 8 },
    },
    scarceAddresses: true,
    device: { tlb: "keeps-invalid", maxPending: 200 },
    mostStreams: 3,
    faultOneIn: 8,
  },
  {
    name: "the latency policy in a small arena, flushed often",
    allocator: {
      policy: "latency",
      budget: 96 * GRANULE,
      addressSpace: 256 * GRANULE,
      maxRetired: 2,
      growth: { least: 6 * GRANULE, ahead: 2 * GRANULE },
    },
    scarceAddresses: true,
    device: { tlb: "keeps-invalid" },
    mostStreams: 4,
  },
];

/** A kind of world with the given options. */
export function coherenceKind(options: WorldOptions): WorldKind {
  return {
    name: options.name,
    open: (seed, telling) => new CoherenceWorld(options, seed, telling),
  };
}

/** All of them. */
export const COHERENCE_KINDS: readonly WorldKind[] = options.map(coherenceKind);
