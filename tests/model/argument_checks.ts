/** Checks of plain arguments; each throws a RangeError that names the value. */

import type { Access, LaunchGeometry } from "../../lib/driver.ts";

/** Checks for a whole number from `least` to 2^53 - 1. */
export function checkWhole(
  operation: string,
  what: string,
  value: number,
  least = 0,
): void {
  if (!Number.isSafeInteger(value) || value < least) {
    throw new RangeError(
      `Cannot ${operation}: ${what} must be a whole number of at least ` +
        `${least}, got ${value}`,
    );
  }
}

/** Checks for a multiple of `step`, of at least `least`. */
export function checkMultiple(
  operation: string,
  what: string,
  value: number,
  step: number,
  least = 0,
): void {
  checkWhole(operation, what, value, least);
  if (value % step !== 0) {
    throw new RangeError(
      `Cannot ${operation}: ${what} must be a multiple of ${step}, got ${value}`,
    );
  }
}

/** Checks that a range ends below 2^53. */
export function checkRange(
  operation: string,
  address: number,
  size: number,
): void {
  checkWhole(operation, "the address", address);
  checkWhole(operation, "the size", size);
  checkWhole(operation, "the end of the range", address + size);
}

/** Checks that a batch is not empty. */
export function checkBatch(operation: string, items: readonly unknown[]): void {
  if (items.length === 0) {
    throw new RangeError(`Cannot ${operation}: the list is empty`);
  }
}

/** Checks for known access rights. */
export function checkAccess(operation: string, access: Access): void {
  if (!["none", "read", "read-write"].includes(access)) {
    throw new RangeError(
      `Cannot ${operation}: the access must be "none", "read" or ` +
        `"read-write", got "${access}"`,
    );
  }
}

const largestGrid = [2 ** 31 - 1, 65_535, 65_535];
const largestBlock = [1024, 1024, 64];

/** Checks a launch's dimensions against what hardware has at most. */
export function checkGeometry(geometry: LaunchGeometry): void {
  const { grid, block, sharedBytes = 0 } = geometry;
  const threads = block[0] * (block[1] ?? 1) * (block[2] ?? 1);
  checkAtMost("blocks along an axis", grid, largestGrid);
  checkAtMost("threads along an axis", block, largestBlock);
  checkAtMost("threads of a block", [threads], [1024]);
  checkWhole("launch", "the shared memory", sharedBytes);
  if (sharedBytes >= 2 ** 32) {
    throw new RangeError(
      `Cannot launch: ${sharedBytes} bytes of shared memory are too many`,
    );
  }
}

function checkAtMost(
  what: string,
  counts: readonly (number | undefined)[],
  limits: readonly number[],
): void {
  counts.forEach((count = 1, axis) => {
    checkWhole("launch", what, count, 1);
    if (count > limits[axis]!) {
      throw new RangeError(
        `Cannot launch: ${what} may be ${limits[axis]}, got ${count}`,
      );
    }
  });
}
