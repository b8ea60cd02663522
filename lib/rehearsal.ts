/**
 * Runs the slow path on a device that does nothing, so that the engine has compiled it
 * before the first request that matters: unrehearsed, that one takes milliseconds.
 *
 * @module
 */

import { Allocator } from "./allocator.ts";
import { CostDevice } from "./cost_device.ts";
import { releaseCached } from "./trim.ts";

/** Rounds in which the engine reaches its better code; about 25 ms. */
const ROUNDS = 400;
const GRANULARITY = 2 * 1024 ** 2;

/** Rehearses growing, stitching, flushing and releasing. */
export function rehearse(): void {
  const a = new Allocator(new CostDevice(GRANULARITY), {
    addressSpace: 2 ** 40,
  });
  const allocate = (granules: number) =>
    a.allocate(granules * GRANULARITY, granules * GRANULARITY, 0);
  const free = (id: number) => a.free(id, a.blocks.generation[id]!);
  for (let round = 0; round < ROUNDS; round++) {
    free(allocate(1));
    releaseCached(a, true);
    if (round % 16 > 0) continue;
    // Every other of a row is free: the next request has to be stitched.
    const row = Array.from({ length: 8 }, () => allocate(1));
    for (let i = 0; i < row.length; i += 2) free(row[i]!);
    free(allocate(4));
    for (let i = 1; i < row.length; i += 2) free(row[i]!);
    releaseCached(a, true);
  }
}
