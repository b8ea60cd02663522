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
import { roundUp } from "./sizes.ts";

/** Addresses that share a lowest page table with 2 MiB entries, on NVIDIA devices. */
const TABLE_BYTES = 512 * 1024 ** 2;

/** Maps the anchor; returns its bytes, 0 if the device has no room for it. */
export function dropAnchor(driver: Driver, arena: Arena): number {
  const { granularity } = driver.info;
  // At a table's beginning, so that what is mapped first shares it.
  const before = roundUp(arena.base, TABLE_BYTES) - arena.base;
  if (before < arena.size / 16) arena.extend(before);
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
