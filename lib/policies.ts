/**
 * Named policies: what to give up for what.
 *
 * @module
 */

import type { GrowthPolicy } from "./planner.ts";
import { roundUp } from "./sizes.ts";

/** Name of a policy. */
export type PolicyName = "default" | "latency";

const MIB = 1024 ** 2;

/** What each policy sets, for extents of the given granularity. */
const POLICIES: Readonly<
  Record<PolicyName, (granularity: number) => Partial<GrowthPolicy>>
> = {
  /** As little memory as possible, at bounded driver time. */
  default: () => ({}),
  /**
   * No request much slower than the vendor's plain allocation: one extent for each, as
   * large as it needs; extents are stitched only where that is quicker than growing; and
   * small requests are prepared for, which the vendor's allocator serves at once.
   */
  latency: (granularity) => ({
    extentSize: Infinity,
    growthPriceNs: 0,
    least: roundUp(64 * MIB, granularity),
    ahead: roundUp(32 * MIB, granularity),
  }),
};

/** Names of all policies. */
export const POLICY_NAMES: readonly PolicyName[] = Object.keys(
  POLICIES,
) as PolicyName[];

/**
 * How growth is cut into extents under a policy.
 *
 * @throws {RangeError} if there is no policy of that name
 */
export function growthOf(
  name: PolicyName,
  granularity: number,
): GrowthPolicy {
  if (!Object.hasOwn(POLICIES, name)) {
    throw new RangeError(
      `Cannot use the policy "${name}": it is none of ${
        POLICY_NAMES.join(", ")
      }`,
    );
  }
  return {
    least: granularity,
    ahead: 0,
    extentSize: roundUp(16 * MIB, granularity),
    mostExtents: 32,
    leastStitched: granularity,
    growthPriceNs: 60_000,
    ...POLICIES[name](granularity),
  };
}
