/**
 * Blocks that lie alone in a stretch of addresses and may grow to its end: only their
 * beginning is backed.
 *
 * @module
 */

/** Where each growable block's addresses end. */
export class Growables {
  readonly #ends = new Map<number, number>();

  /** Notes a block whose addresses go up to `end`. */
  add(id: number, end: number): void {
    this.#ends.set(id, end);
  }

  /** The end of the block's addresses. */
  endOf(id: number): number {
    return this.#ends.get(id)!;
  }

  /** Forgets a block; returns the end of its addresses. */
  remove(id: number): number {
    const end = this.#ends.get(id)!;
    this.#ends.delete(id);
    return end;
  }

  /** Blocks and the ends of their addresses. */
  entries(): IterableIterator<[number, number]> {
    return this.#ends.entries();
  }
}
