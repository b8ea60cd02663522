/**
 * Blocks that captured work uses. Each launch of a graph writes and reads them again, so
 * their memory stays as it is for as long as the graph is there: a block that is freed
 * meanwhile stays pending (see pending.ts), one that is shrunk gives nothing back.
 *
 * A block is noted by its first use in a capture, which holds it; the graph made of the
 * capture takes that over.
 *
 * @module
 */

import { BlockFlag, type Blocks } from "./blocks.ts";

/** A capture under way. */
interface Capture {
  /** Records of the blocks that it uses. */
  readonly blocks: Set<number>;
  /** What undoes what was done on the strength of its work, in order. */
  readonly undos: (() => void)[];
}

/** Which blocks captures and graphs hold. */
export class GraphHolds {
  readonly #blocks: Blocks;
  /** By stream. */
  readonly #captures = new Map<number, Capture>();
  /** How many captures and graphs hold each held block. */
  readonly #holders = new Map<number, number>();

  /** Nothing is held. */
  constructor(blocks: Blocks) {
    this.#blocks = blocks;
  }

  /** Begins to note what a stream's capture uses. */
  begin(stream: number): void {
    this.#captures.set(stream, { blocks: new Set(), undos: [] });
  }

  /** Notes that work of a capturing stream uses a block. */
  note(stream: number, id: number): void {
    const noted = this.#captures.get(stream)?.blocks;
    if (!noted || noted.has(id)) return;
    noted.add(id);
    this.#holders.set(id, (this.#holders.get(id) ?? 0) + 1);
    this.#blocks.flags[id]! |= BlockFlag.CAPTURED;
  }

  /**
   * Has something undone should a stream's capture fail: what it would have done on the
   * device is never done then. It must not fail, nor use the stream.
   */
  onFailure(stream: number, undo: () => void): void {
    this.#captures.get(stream)?.undos.push(undo);
  }

  /** Ends a stream's capture; whoever gets the records holds them until it drops them. */
  end(stream: number): ReadonlySet<number> {
    const { blocks } = this.#captures.get(stream)!;
    this.#captures.delete(stream);
    return blocks;
  }

  /** Ends a stream's capture of which no graph is made. */
  fail(stream: number): void {
    const { blocks, undos } = this.#captures.get(stream)!;
    this.#captures.delete(stream);
    for (const undo of undos.toReversed()) undo();
    this.drop(blocks);
  }

  /** Lets go of blocks whose graph is gone. */
  drop(ids: ReadonlySet<number>): void {
    for (const id of ids) {
      const left = this.#holders.get(id)! - 1;
      if (left > 0) this.#holders.set(id, left);
      else {
        this.#holders.delete(id);
        this.#blocks.flags[id]! &= ~BlockFlag.CAPTURED;
      }
    }
  }
}
