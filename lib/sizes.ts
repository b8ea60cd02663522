/**
 * Sizes: checking, rounding, reading and writing them. All in bytes.
 *
 * @module
 */

/** Every block starts at a multiple of this many bytes, as cudaMalloc's do at least. */
export const BLOCK_ALIGNMENT = 512;

/** The largest request: sizes are whole numbers that a double holds exactly. */
export const MAX_BLOCK_BYTES = 2 ** 40;

const UNITS: Record<string, number> = {
  "": 1,
  b: 1,
  k: 1024,
  kb: 1e3,
  kib: 1024,
  m: 1024 ** 2,
  mb: 1e6,
  mib: 1024 ** 2,
  g: 1024 ** 3,
  gb: 1e9,
  gib: 1024 ** 3,
  t: 1024 ** 4,
  tb: 1e12,
  tib: 1024 ** 4,
};

/** Rounds up to a multiple. Exact for results below 2^53. */
export function roundUp(bytes: number, multiple: number): number {
  return Math.ceil(bytes / multiple) * multiple;
}

/** Rounds down to a multiple. */
export function roundDown(bytes: number, multiple: number): number {
  return Math.floor(bytes / multiple) * multiple;
}

/**
 * Checks a number of bytes given by a user and returns it as a number.
 *
 * @throws {TypeError} if it is neither a number nor a bigint
 * @throws {RangeError} if it is negative, fractional, not finite, or above `max`
 */
export function checkBytes(
  bytes: unknown,
  what: string,
  max: number = MAX_BLOCK_BYTES,
): number {
  if (typeof bytes !== "number" && typeof bytes !== "bigint") {
    throw new TypeError(
      `Cannot use ${what}: expected a number of bytes, got ${typeof bytes}`,
    );
  }
  // Compared before the conversion: a bigint near 2^64 must not round into range.
  if (bytes < 0 || bytes > max || bytes !== bytes) {
    throw new RangeError(
      `Cannot use ${what}: ${bytes} is not between 0 and ${max} bytes`,
    );
  }
  const value = Number(bytes);
  if (!Number.isInteger(value)) {
    throw new RangeError(
      `Cannot use ${what}: ${bytes} is not a whole number of bytes`,
    );
  }
  return value;
}

/**
 * Reads a size such as `512`, `64MiB`, `1.5 GiB`, `2g` (binary) or `2GB` (decimal).
 *
 * @throws {RangeError} if the text is no size or not a whole number of bytes
 */
export function parseSize(text: string): number {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text);
  const unit = match ? UNITS[match[2]!.toLowerCase()] : undefined;
  if (!match || unit === undefined) {
    throw new RangeError(
      `Cannot read the size "${text}": expected something like 512, 64MiB or 1.5GB`,
    );
  }
  const bytes = Number(match[1]) * unit;
  if (!Number.isInteger(bytes) || bytes > Number.MAX_SAFE_INTEGER) {
    throw new RangeError(
      `Cannot read the size "${text}": it is not a whole number of bytes below 2^53`,
    );
  }
  return bytes;
}

/** Writes a size with a binary unit and at most three digits after the point. */
export function formatSize(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = Number.isInteger(value) ? 0 : value < 10 ? 2 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}
