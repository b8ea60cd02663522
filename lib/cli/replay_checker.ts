import type { Block } from "../block.ts";
import type { BlockChecker } from "../replay/moonbright_run.ts";
import { formatSize } from "../sizes.ts";
import type { Verifier } from "./verifier.ts";

/** A block did not hold what was written to it. */
export class MismatchError extends Error {
  override name = "MismatchError";
}

/** Checks the blocks of a replay one by one, each just before its free. */
export class ReplayChecker implements BlockChecker, Disposable {
  /** Blocks checked. */
  checked = 0;
  readonly #verifier: Verifier;

  /** A checker that has a verifier do the work, and disposes of it. */
  constructor(verifier: Verifier) {
    this.#verifier = verifier;
  }

  /** Fills a block with the pattern of its index. */
  fill(block: Block, index: number): void {
    this.#verifier.fill(block, index);
  }

  /**
   * Checks a block and waits for the result.
   *
   * @throws {MismatchError} if it does not hold its pattern
   */
  check(block: Block, index: number): void {
    this.#verifier.check(block, index);
    const [mismatch] = this.#verifier.finish();
    this.checked++;
    if (!mismatch) return;
    throw new MismatchError(
      `MISMATCH: block ${index} of the workload (${
        formatSize(block.size)
      }): ${mismatch.words} words differ, the first at byte ${mismatch.firstByte}`,
    );
  }

  /** Disposes of the verifier. */
  [Symbol.dispose](): void {
    this.#verifier[Symbol.dispose]();
  }
}
