/**
 * The anchor: one small extent that stays mapped at the arena's beginning, so that the
 * driver keeps the page tables above it (see device_profile.ts). Nothing is stored in
 * it, and it counts as no one's memory.
 *
 * @module
 */

import type { Arena } from "./arena.ts";
import type { Driver } from "./driver.ts";
import { DriverError } from "./errors.ts";

/** Maps the anchor; returns its bytes, 0 if the device has no room for it. */
export function dropAnchor(driver: Driver, arena: Arena): number {
  const { granularity } = driver.info;
  const address = arena.take(granularity);
  let extents: number[] = [];
  try {
    extents = driver.createExtents([granularity]);
    driver.map(address, extents, "read");
    return granularity;
  } catch (error) {
    arena.giveBack(address, granularity);
    if (extents.length > 0) driver.releaseExtents(extents);
    if (error instanceof DriverError && error.code === "out-of-memory") {
      return 0;
    }
    throw error;
  }
}
