import { assert, assertEquals } from "@std/assert";
import type { Driver } from "../../lib/driver.ts";
import { type ErrorCode, MoonBrightError } from "../../lib/errors.ts";

/** What a backend under the contract can do beyond the driver interface. */
export interface ContractOptions {
  /** Gives the image made of a file of `kernels/`; without it those cases are skipped. */
  kernelImage?: (
    file: "pattern" | "busy",
    driver: Driver,
  ) => Uint8Array | Promise<Uint8Array>;
  /** Why the cases can't run here; shown in their names. */
  skip?: string;
  /** Bytes that `memoryInfo` may be off by; without it the figures are not compared. */
  memorySlack?: number;
  /** Whether unmapping waits for all work on the device. */
  unmapWaits?: boolean;
  /** Whether a new driver finds as much memory free as the one before it found. */
  memoryComesBack?: boolean;
}

/** One case of the contract: gets an open driver that is closed behind it. */
export interface ContractCase {
  /** What must hold. */
  name: string;
  /** Whether it needs the kernels. */
  needsKernels?: boolean;
  /** Checks it. */
  check(
    driver: Driver,
    options: ContractOptions,
    open: () => Driver,
  ): void | Promise<void>;
}

/** Bytes that differ from place to place and from seed to seed. */
export function testBytes(length: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = Math.imul(seed + 1, 0x9e3779b1);
  for (let at = 0; at < length; at++) {
    state = Math.imul(state, 1664525) + 1013904223;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

/** Compares long byte arrays; the message names the first difference. */
export function assertSameBytes(actual: Uint8Array, expected: Uint8Array) {
  assertEquals(actual.length, expected.length);
  const at = actual.findIndex((byte, index) => byte !== expected[index]);
  assert(
    at < 0,
    `byte ${at} of ${actual.length} is ${actual[at]}, not ${expected[at]}`,
  );
}

/** Device bytes, read in stream order. */
export function readBack(
  driver: Driver,
  address: number,
  length: number,
  stream = 0,
): Uint8Array {
  const bytes = new Uint8Array(length);
  driver.copyOut(bytes, address, stream);
  return bytes;
}

/** Reserves room for new extents of the given sizes and maps them side by side. */
export function mapNew(driver: Driver, sizes: readonly number[]) {
  const size = sizes.reduce((sum, one) => sum + one, 0);
  const address = driver.reserve(size);
  const extents = driver.createExtents(sizes);
  driver.map(address, extents);
  return { address, size, extents };
}

/** A size of at least `least` bytes that an extent may have. */
export function extentSize(driver: Driver, least: number): number {
  const { granularity } = driver.info;
  return Math.max(1, Math.ceil(least / granularity)) * granularity;
}

/** How a call may be refused: `argument` is a TypeError or RangeError. */
export type Refusal = ErrorCode | "argument";

/** Checks that a call is refused, in one of the given ways. */
export function assertRefused(
  what: string,
  body: () => unknown,
  ...allowed: Refusal[]
): void {
  let error: unknown;
  try {
    body();
  } catch (thrown) {
    error = thrown;
  }
  assert(error instanceof Error, `${what} was not refused`);
  const refusal = error instanceof MoonBrightError
    ? error.code
    : error instanceof RangeError || error instanceof TypeError
    ? "argument"
    : undefined;
  assert(
    refusal !== undefined && allowed.includes(refusal),
    `${what} was refused with ${refusal} (${error}), not ${allowed}`,
  );
  assert(error.message.startsWith("Cannot "), error.message);
}

/** Checks a figure of `memoryInfo`, if the backend tells it well enough. */
export function assertFree(
  options: ContractOptions,
  driver: Driver,
  expected: number,
): void {
  if (options.memorySlack === undefined) return;
  const { free } = driver.memoryInfo();
  assert(
    Math.abs(free - expected) <= options.memorySlack,
    `${free} bytes are free, not ${expected}`,
  );
}

/** An argument block of 8-byte words. */
export function argumentWords(...words: (number | bigint)[]): Uint8Array {
  return new Uint8Array(BigUint64Array.from(words.map(BigInt)).buffer);
}
