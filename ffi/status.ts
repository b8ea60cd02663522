/**
 * The one place where a status of the shim becomes an error.
 *
 * @module
 */

import { DriverError, type ErrorCode } from "../lib/errors.ts";
import { Status } from "./symbols.ts";
import type { ShimSymbols } from "./library.ts";

const CODES: Record<number, ErrorCode> = {
  [Status.BAD_HANDLE]: "invalid-handle",
  [Status.OUT_OF_MEMORY]: "out-of-memory",
  [Status.OUT_OF_ADDRESSES]: "out-of-addresses",
  [Status.NO_LIBRARY]: "no-library",
  [Status.NO_DEVICE]: "no-device",
  [Status.UNSUPPORTED]: "unsupported",
  [Status.NOT_MAPPED]: "not-mapped",
  [Status.NOT_FOUND]: "not-found",
  [Status.LOST]: "lost",
  [Status.LIMIT]: "limit",
  [Status.DRIVER]: "driver",
};

/** What a status means where the shim's own text is out of reach. */
const MEANINGS: Record<number, string> = {
  [Status.BAD_ARGUMENT]: "an argument is out of range or misaligned",
  [Status.BAD_HANDLE]: "an id is unknown or stale",
  [Status.OUT_OF_MEMORY]: "no memory is left",
  [Status.UNSUPPORTED]: "the device or its driver can't do this",
  [Status.NOT_MAPPED]: "the range is not mapped and accessible throughout",
  [Status.LOST]: "the device is lost: an earlier operation faulted",
  [Status.LIMIT]: "a table of the shim or the system is full",
};

const text = new Uint8Array(1024);
const decoder = new TextDecoder();

/** The shim's text for the calling thread's last error. */
export function lastErrorText(symbols: ShimSymbols): string {
  const length = symbols.mb_error_text(text, text.length);
  return decoder.decode(text.subarray(0, Math.min(length, text.length)));
}

/** The error for a call of this thread that failed just now. */
export function statusError(
  symbols: ShimSymbols,
  status: number,
  operation: string,
): Error {
  const why = lastErrorText(symbols);
  return makeError(status, operation, why, symbols.mb_driver_code());
}

/** The error for a call that failed on another thread, which kept text and code. */
export function asyncStatusError(status: number, operation: string): Error {
  const why = MEANINGS[status] ?? `the shim gave status ${status}`;
  return makeError(status, operation, why, 0);
}

function makeError(
  status: number,
  operation: string,
  why: string,
  driverCode: number,
): Error {
  const message = `Cannot ${operation}: ${why}`;
  if (status === Status.BAD_ARGUMENT) return new RangeError(message);
  const code = CODES[status] ?? "driver";
  return new DriverError(code, operation, message, driverCode);
}
