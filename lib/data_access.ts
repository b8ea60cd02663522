/**
 * What reading, writing and filling have in common, whoever owns the memory.
 *
 * @module
 */

import { bytesOf } from "./bytes.ts";
import type { Driver } from "./driver.ts";
import { checkBytes } from "./sizes.ts";

/** Memory of the device, and the driver's id of the stream to use it in. */
export interface DataRange {
  /** First byte. */
  address: number;
  /** The driver's id of the stream. */
  driverId: number;
}

/**
 * The host's bytes to read into: those given, or new ones.
 *
 * @throws {RangeError} if more than `most` are asked for
 */
export function destinationOf(
  destination: ArrayBufferView | ArrayBuffer | number,
  most: number,
): Uint8Array {
  return typeof destination === "number"
    ? new Uint8Array(checkBytes(destination, "the length to read", most))
    : bytesOf(destination);
}

/**
 * Checks the value of a fill.
 *
 * @throws {RangeError} if it is no whole number of `width` bytes
 */
export function checkFillValue(value: number, width: number): void {
  if (width !== 1 && width !== 2 && width !== 4) {
    throw new RangeError(`Cannot fill: width ${width} is not 1, 2 or 4`);
  }
  if (!Number.isInteger(value) || value < 0 || value >= 2 ** (8 * width)) {
    throw new RangeError(
      `Cannot fill: ${value} is not a whole number of ${width} bytes`,
    );
  }
}

/**
 * Fills a range that was checked.
 *
 * @throws {RangeError} if it does not hold whole elements
 */
export function fillRange(
  driver: Driver,
  { address, driverId }: DataRange,
  value: number,
  width: 1 | 2 | 4,
  bytes: number,
  offset: number,
): void {
  if (bytes % width !== 0 || address % width !== 0) {
    throw new RangeError(
      `Cannot fill: ${bytes} bytes at offset ${offset} are not whole elements of ${width} bytes`,
    );
  }
  if (bytes === 0) return;
  driver.fill(address, value, width, bytes / width, driverId);
}

/** Copies to the device on another thread, or at once where the driver has none. */
export async function copyInAsync(
  driver: Driver,
  { address, driverId }: DataRange,
  source: Uint8Array,
): Promise<void> {
  if (source.byteLength === 0) return;
  if (driver.copyInAsync) await driver.copyInAsync(address, source, driverId);
  else driver.copyIn(address, source, driverId);
}

/** Copies from the device on another thread, or at once where the driver has none. */
export async function copyOutAsync(
  driver: Driver,
  { address, driverId }: DataRange,
  destination: Uint8Array,
): Promise<void> {
  if (destination.byteLength === 0) return;
  if (driver.copyOutAsync) {
    await driver.copyOutAsync(destination, address, driverId);
  } else driver.copyOut(destination, address, driverId);
}
