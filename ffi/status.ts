/**
 * The one place where a status of the shim becomes an error.
 *
 * @module
 */

import { DriverError, type ErrorCode } from "../lib/errors.ts";
import { Status } from "./symbols.ts";
import type { ShimSymbols } from "./library.ts";

const CODES: Record<number, ErrorCode> = {
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

const text = new Uint8Array(1024);
const decoder = new TextDecoder();

/** The shim's text for the calling thread's last error. */
export function lastErrorText(symbols: ShimSymbols): string {
  const length = symbols.mb_error_text(text, text.length);
  return decoder.decode(text.subarray(0, Math.min(length, text.length)));
}

/**
 * The error for a failed call.
 *
 * @param why the shim's text; asked for here if left out
 */
export function statusError(
  symbols: ShimSymbols,
  status: number,
  operation: string,
  why: string = lastErrorText(symbols),
): Error {
  const message = `Cannot ${operation}: ${why}`;
  if (status === Status.BAD_ARGUMENT) return new RangeError(message);
  const code = status === Status.BAD_HANDLE
    ? "invalid-handle"
    : CODES[status] ?? "driver";
  return new DriverError(code, operation, message, symbols.mb_driver_code());
}
