/**
 * The virtual pages of a table: fresh ones first; those of a freed range come back only
 * once their entries have been cleared, in batches.
 *
 * @module
 */

/** A stretch of virtual pages. */
export interface PageSpan {
  /** First page. */
  first: number;
  /** Number of pages. */
  count: number;
}

/** Which virtual pages are in use, retired, or cleared. */
export class VirtualPages {
  /** Pages of the table. */
  readonly total: number;
  /** All pages from here on are unused, and their entries invalid. */
  #frontier = 0;
  /** Freed, entries still in the table. */
  #retired: PageSpan[] = [];
  /** Cleared, by page; neighbours merged. */
  readonly #cleared: PageSpan[] = [];

  /** All pages fresh. */
  constructor(total: number) {
    this.total = total;
  }

  /** Pages whose entries wait to be cleared. */
  retiredPages = 0;

  /** Takes pages: fresh ones, else cleared ones; -1 if neither suffice. */
  take(count: number): number {
    if (this.#frontier + count <= this.total) {
      const first = this.#frontier;
      this.#frontier += count;
      return first;
    }
    const at = this.#cleared.findIndex((span) => span.count >= count);
    if (at < 0) return -1;
    const span = this.#cleared[at]!;
    const { first } = span;
    span.first += count;
    span.count -= count;
    if (span.count === 0) this.#cleared.splice(at, 1);
    return first;
  }

  /** Retires pages: their entries are to be cleared at the next coherence point. */
  retire(first: number, count: number): void {
    this.#retired.push({ first, count });
    this.retiredPages += count;
  }

  /** Takes all retired spans, to have their entries cleared. */
  drain(): PageSpan[] {
    const spans = this.#retired;
    this.#retired = [];
    this.retiredPages = 0;
    return spans;
  }

  /** Makes cleared pages usable again. */
  recycle(spans: readonly PageSpan[]): void {
    for (const { first, count } of spans) {
      let at = this.#cleared.findIndex((span) => span.first > first);
      if (at < 0) at = this.#cleared.length;
      const before = this.#cleared[at - 1];
      const after = this.#cleared[at];
      if (before && before.first + before.count === first) {
        before.count += count;
        if (after && first + count === after.first) {
          before.count += after.count;
          this.#cleared.splice(at, 1);
        }
      } else if (after && first + count === after.first) {
        after.first = first;
        after.count += count;
      } else this.#cleared.splice(at, 0, { first, count });
    }
    this.#lowerFrontier();
  }

  /** What is cleared up to the frontier is as good as fresh: one stretch with the rest. */
  #lowerFrontier(): void {
    const last = this.#cleared[this.#cleared.length - 1];
    if (last && last.first + last.count === this.#frontier) {
      this.#frontier = last.first;
      this.#cleared.pop();
    }
  }
}
