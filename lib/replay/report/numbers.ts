/**
 * How reports write numbers. Missing values are a dash.
 *
 * @module
 */

import { formatDuration } from "../../cli/duration.ts";
import { formatSize } from "../../sizes.ts";

/** Stands for a value that is not there. */
export const MISSING = "–";

/** Writes a whole number with commas between thousands. */
export function countText(count: number): string {
  return count.toLocaleString("en-US");
}

/** Writes a size, or a dash. */
export function sizeText(bytes: number | undefined): string {
  return bytes === undefined ? MISSING : formatSize(bytes);
}

/** Writes nanoseconds, or a dash. */
export function timeText(ns: number | undefined): string {
  return ns === undefined ? MISSING : formatDuration(ns);
}

/** Writes a part of a whole in percent with one digit, or a dash if there is no whole. */
export function percentText(part: number | undefined, whole: number): string {
  if (part === undefined || whole === 0) return MISSING;
  return `${(100 * part / whole).toFixed(1)} %`;
}

/** Writes how many there are of something. */
export function amountText(count: number, one: string, many?: string): string {
  return `${countText(count)} ${count === 1 ? one : many ?? one + "s"}`;
}
