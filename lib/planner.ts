/**
 * The planner: from the state of the heap to a way of serving one request that no
 * free block can serve. A pure function: it looks at figures and touches nothing.
 *
 * @module
 */

import { type CostModel, costNs } from "./cost_model.ts";
import { roundUp } from "./sizes.ts";

const MIB = 1024 ** 2;

/** How a request was served. */
export type Way = "reuse" | "extend" | "stitch" | "grow";

/** Wholly free extents that may be given a new mapping, in order of preference. */
export interface StitchCandidates {
  /** Bytes of each extent. */
  readonly sizes: readonly number[];
  /** Sum of the sizes. */
  readonly bytes: number;
}

/** What the planner looks at. All sizes in bytes. */
export interface PlanInput {
  /** The request, a multiple of the block alignment. */
  bytes: number;
  /** Sizes of extents are multiples of this. */
  granularity: number;
  /** Free bytes at the arena's frontier that new mappings can extend, 0 for none. */
  topBytes: number;
  /** Wholly free extents, without those at the frontier if `topBytes` counts them. */
  candidates: StitchCandidates;
  /** Bytes of extents that may still be created. */
  budgetLeft: number;
  /** Bytes of all extents. */
  mapped: number;
  /** Costs of the driver's calls. */
  costs: CostModel;
  /** How growth is cut into extents. */
  growth: GrowthPolicy;
  /** Whether to map no more than the request, a multiple of the granularity. */
  exact: boolean;
}

/** How growth is cut into extents. All sizes in bytes. */
export interface GrowthPolicy {
  /** Requests grow by at least this much at once, so that small ones share an extent. */
  least: number;
  /**
   * Requests of a granule or more grow by this much more, so that small ones, which the
   * vendor's allocator serves from what it has mapped, find something too.
   */
  ahead: number;
  /** Growth is cut into extents of this size, `Infinity` for a single one. */
  extentSize: number;
  /** At most about this many extents are created for one request; they get larger instead. */
  mostExtents: number;
  /** Extents smaller than this are never stitched: a new one costs less. */
  leastStitched: number;
  /**
   * What one MiB less of growth is worth, in nanoseconds of driver time: stitching is
   * preferred to growth while it costs no more than that. 0 takes the quicker way.
   */
  growthPriceNs: number;
}

/** A way to serve a request. */
export interface Plan {
  /** How. */
  way: Exclude<Way, "reuse">;
  /** Whether the free block at the frontier is its beginning. */
  useTop: boolean;
  /** Indices into the candidates: extents to map anew. */
  stitch: number[];
  /** Sizes of extents to create, mapped behind the stitched ones. */
  create: number[];
  /** Bytes to map in all. */
  mapBytes: number;
  /** What the driver's calls are expected to take, a later unmapping included. */
  expectedNs: number;
}

/** Plans how to serve a request, or returns undefined if budget and free extents don't suffice. */
export function plan(input: PlanInput): Plan | undefined {
  const { bytes, granularity, topBytes, candidates } = input;
  const missing = roundUp(bytes - topBytes, granularity);
  const chosen = input.exact
    ? chooseWithin(candidates, missing)
    : chooseCovering(candidates, missing);
  const stitching = pricePlan(input, missing, chosen);
  if (chosen.length === 0) return stitching;
  const growing = pricePlan(input, missing, []);
  if (!growing) return stitching;
  if (!stitching) return growing;
  return worth(stitching, input) <= worth(growing, input) ? stitching : growing;
}

/** A plan's driver time, and what its growth is worth avoiding. */
function worth(plan: Plan, { growth }: PlanInput): number {
  let created = 0;
  for (const size of plan.create) created += size;
  if (created === 0) return plan.expectedNs;
  return plan.expectedNs + growth.growthPriceNs * (created / MIB);
}

/** The plan that stitches the chosen candidates and grows by the rest, undefined if it can't. */
function pricePlan(
  input: PlanInput,
  missing: number,
  stitch: number[],
): Plan | undefined {
  const { costs, topBytes } = input;
  let stitched = 0;
  for (const index of stitch) stitched += input.candidates.sizes[index]!;
  const create = stitched >= missing
    ? []
    : growthSizes(missing - stitched, input);
  if (create === undefined) return undefined;
  let created = 0;
  for (const size of create) created += size;
  return {
    way: stitch.length > 0 ? "stitch" : topBytes > 0 ? "extend" : "grow",
    useTop: topBytes > 0,
    stitch,
    create,
    mapBytes: stitched + created,
    expectedNs: costNs(costs.create, create.length, created) +
      costNs(costs.map, stitch.length + create.length, stitched + created) +
      costNs(costs.unmap, stitch.length, stitched),
  };
}

/**
 * The candidates to stitch for `missing` bytes: in order of preference until they
 * suffice, then without those that turn out not to be needed.
 */
function chooseCovering(
  candidates: StitchCandidates,
  missing: number,
): number[] {
  const { sizes } = candidates;
  const chosen: number[] = [];
  let bytes = 0;
  for (let i = 0; i < sizes.length && bytes < missing; i++) {
    chosen.push(i);
    bytes += sizes[i]!;
  }
  let spare = bytes - missing;
  if (spare <= 0) return chosen;
  // The last first: they are in the largest block, which stays the more whole for it.
  const needed: number[] = [];
  for (const index of chosen.reverse()) {
    if (sizes[index]! > spare) needed.push(index);
    else spare -= sizes[index]!;
  }
  return needed.reverse();
}

/** The candidates to stitch, in order of preference, that together fit into `missing` bytes. */
function chooseWithin(
  candidates: StitchCandidates,
  missing: number,
): number[] {
  const { sizes } = candidates;
  const chosen: number[] = [];
  let left = missing;
  for (let i = 0; i < sizes.length && left > 0; i++) {
    if (sizes[i]! > left) continue;
    chosen.push(i);
    left -= sizes[i]!;
  }
  return chosen;
}

/**
 * Sizes of the extents that add up to at least `bytes`, a multiple of the granularity;
 * undefined if the budget is too small.
 */
function growthSizes(bytes: number, input: PlanInput): number[] | undefined {
  const { growth, granularity, budgetLeft } = input;
  if (bytes > budgetLeft) return undefined;
  const ahead = input.bytes < granularity
    ? 0
    : Math.min(growth.ahead, input.mapped);
  let left = roundUp(Math.max(bytes + ahead, growth.least), granularity);
  if (input.exact || left > budgetLeft) left = bytes;
  // What at least doubles the heap comes in one piece: quick, and it happens rarely.
  if (left >= input.mapped) return [left];
  const unit = Math.max(
    growth.extentSize,
    roundUp(left / growth.mostExtents, granularity),
  );
  const sizes: number[] = [];
  // The next request begins in the last granule, which so is often shared: as an extent
  // of its own it keeps no more than itself from being wholly free.
  const edge = left > growth.extentSize && !input.exact ? granularity : 0;
  left -= edge;
  while (left > 0) {
    const size = Math.min(left, unit);
    sizes.push(size);
    left -= size;
  }
  if (edge > 0) sizes.push(edge);
  return sizes;
}
