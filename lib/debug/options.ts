/**
 * What an instance can be asked to watch for: see docs/debugging.md.
 *
 * @module
 */

import { checkBytes, roundUp } from "../sizes.ts";

/** How to find memory bugs of the program. Nothing of it costs anything while it is off. */
export interface DebugOptions {
  /**
   * `quarantine`: every block gets extents and addresses of its own. Once the work that
   * used a freed block has passed, it is unmapped, and its addresses are never used
   * again: a stale pointer faults instead of reaching other data.
   */
  debug?: "quarantine";
  /**
   * Unmapped addresses on both sides of each block, in bytes; `true` for one granule.
   * A block then ends where its extents end, up to a multiple of 512 bytes, so that
   * running over its end faults too. Needs `debug: "quarantine"`.
   */
  guard?: boolean | number;
  /**
   * Fills what lies around a block in its own capacity with a pattern, checked when the
   * block is freed or resized and by `checkCanaries()`. Frees then wait for the device.
   */
  canaries?: boolean;
  /** Keeps the JavaScript stacks of each allocation and free, for reports. */
  stacks?: boolean;
}

/** Debug options, checked. Sizes in bytes. */
export interface WatchSettings {
  /** Whether freed blocks are quarantined. */
  readonly quarantine: boolean;
  /** Unmapped addresses on either side of a block, a multiple of the granularity. */
  readonly guard: number;
  /** Whether blocks have canaries. */
  readonly canaries: boolean;
  /** Whether stacks are kept. */
  readonly stacks: boolean;
}

/**
 * Checks debug options; undefined if they ask for nothing.
 *
 * @throws {RangeError} if one is out of range or does not go with the others
 */
export function watchSettings(
  options: DebugOptions,
  granularity: number,
): WatchSettings | undefined {
  const { debug, guard = false } = options;
  const canaries = options.canaries ?? false;
  const stacks = options.stacks ?? false;
  if (debug !== undefined && debug !== "quarantine") {
    throw new RangeError(
      `Cannot use debug: "${debug}" is not "quarantine"`,
    );
  }
  const bytes = typeof guard === "boolean"
    ? Number(guard) * granularity
    : roundUp(checkBytes(guard, "the guard"), granularity);
  const quarantine = debug === "quarantine";
  if (bytes > 0 && !quarantine) {
    throw new RangeError(
      'Cannot use guard: only blocks with addresses of their own have room for it; add debug: "quarantine"',
    );
  }
  if (!quarantine && !canaries && !stacks) return undefined;
  return { quarantine, guard: bytes, canaries, stacks };
}
