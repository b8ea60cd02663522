/**
 * Proof that blocks hold what is written to them: each gets a pattern of its own, then
 * all are checked, so a block that overlaps another, or memory mapped wrongly, shows.
 *
 * @module
 */

import type { Block } from "../block.ts";

/** A block that does not hold its pattern. */
export interface Mismatch {
  /** Index of the block, as given. */
  index: number;
  /** Words of eight bytes that differ (of four in host mode). */
  words: number;
  /** First byte of the first word that differs, within the block. */
  firstByte: number;
}

/** Fills blocks with patterns and checks them. */
export interface Verifier extends Disposable {
  /** Who does the work: a kernel on the device, or the host through copies. */
  readonly mode: "kernel" | "host";
  /** Fills a block with the pattern of an index, in its stream's order. */
  fill(block: Block, index: number): void;
  /** Checks a block that was filled; results may come only with `finish`. */
  check(block: Block, index: number): void;
  /** Waits for the checks and returns the blocks that failed. */
  finish(): Mismatch[];
}
