/**
 * Zeroing what is handed out, so that no block shows what another owner left there.
 *
 * Memory fresh from the driver is zeroed too: no vendor promises that it is clear.
 *
 * @module
 */

import type { Allocator } from "./allocator.ts";
import { BlockFlag } from "./blocks.ts";

const WIDTH = 4;

/**
 * Zeroes all that is set aside for a live block, in its stream's order, and has it stay
 * so where the block grows.
 *
 * @throws {DriverError} if the driver refuses
 */
export function zeroBlock(a: Allocator, id: number): void {
  zeroFrom(a, id, 0);
  a.blocks.flags[id]! |= BlockFlag.ZEROED;
}

/**
 * Zeroes a live block from a byte of it on, in its stream's order.
 *
 * @throws {DriverError} if the driver refuses
 */
export function zeroFrom(a: Allocator, id: number, offset: number): void {
  const { blocks, streams, driver } = a;
  const { driverId } = streams.clocks[blocks.stream[id]!]!;
  const address = blocks.address[id]!;
  // Blocks begin and end at multiples of 512; only the offset may not be one of 4.
  const from = Math.min(Math.ceil(offset / WIDTH) * WIDTH, blocks.size[id]!);
  if (from > offset) {
    driver.fill(address + offset, 0, 1, from - offset, driverId);
  }
  const words = (blocks.size[id]! - from) / WIDTH;
  if (words > 0) driver.fill(address + from, 0, WIDTH, words, driverId);
}
