/**
 * Which blocks are used by copies that go on on other threads. Where in the order of a
 * stream such a copy comes is known only once it has ended, so a free before that could
 * hand its memory on too early.
 *
 * @module
 */

import { BlockFlag, type Blocks } from "./blocks.ts";
import { MoonBrightError } from "./errors.ts";

/** Counts the copies of each block. */
export class Copies {
  readonly #counts = new Map<number, number>();

  /** A copy of a live block begins. */
  begin(blocks: Blocks, id: number): void {
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
    blocks.flags[id]! |= BlockFlag.COPYING;
  }

  /** A copy has ended. */
  end(blocks: Blocks, id: number): void {
    const left = this.#counts.get(id)! - 1;
    if (left > 0) this.#counts.set(id, left);
    else {
      this.#counts.delete(id);
      blocks.flags[id]! &= ~BlockFlag.COPYING;
    }
  }

  /** @throws {MoonBrightError} code `busy` if a copy of the block goes on */
  assertNone(blocks: Blocks, id: number, operation: string): void {
    if ((blocks.flags[id]! & BlockFlag.COPYING) === 0) return;
    throw new MoonBrightError(
      "busy",
      operation,
      `Cannot ${operation}: ${
        this.#counts.get(id)
      } copies of the block go on on another thread; await what readAsync or writeAsync returned first`,
    );
  }
}
