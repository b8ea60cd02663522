const UNITS: readonly (readonly [string, number])[] = [
  ["ns", 1],
  ["µs", 1e3],
  ["ms", 1e6],
  ["s", 1e9],
];

/** Writes a time given in nanoseconds with three significant digits, such as `1.23 µs`. */
export function formatDuration(ns: number): string {
  for (const [unit, unitNs] of UNITS) {
    const digits = threeDigits(ns / unitNs);
    // 999.7 rounds up to the next unit's 1.00.
    if (Math.abs(Number(digits)) < 1000 || unit === "s") {
      return `${digits} ${unit}`;
    }
  }
  throw new RangeError(`Cannot write the time ${ns}: it is no number`);
}

function threeDigits(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return "0";
  // Rounding may add a digit: 9.996 is 10.0, not 10.00.
  if (magnitude < 9.995) return value.toFixed(2);
  return magnitude < 99.95 ? value.toFixed(1) : value.toFixed(0);
}
