// Which rows of placements are there at a step.

/** @type {import("./unpack.js").Rows} */
export const NO_ROWS = {
  count: 0,
  address: new Float64Array(0),
  bytes: new Float64Array(0),
  from: new Uint32Array(0),
  to: new Uint32Array(0),
};

/** The rows of placements that are there at one step. */
export class Present {
  /** @param {import("./unpack.js").Rows} rows */
  constructor(rows) {
    this.rows = rows;
    /** Number of rows there. */
    this.count = 0;
    /** Which, in the order in which they came, from 0 to `count`. */
    this.row = new Uint32Array(rows.count);
    /** Bytes of them all. */
    this.bytes = 0;
  }

  /**
   * Moves to a step.
   *
   * @param {number} step
   */
  moveTo(step) {
    const { count, from, to, bytes } = this.rows;
    let found = 0;
    let sum = 0;
    // Sorted by `from`: nothing after the first later row has come yet.
    for (let row = 0; row < count && from[row] <= step; row++) {
      if (to[row] <= step) continue;
      this.row[found++] = row;
      sum += bytes[row];
    }
    this.count = found;
    this.bytes = sum;
  }

  /**
   * The row that covers an address, or -1.
   *
   * @param {number} where
   * @returns {number}
   */
  at(where) {
    const { address, bytes } = this.rows;
    for (let i = 0; i < this.count; i++) {
      const row = this.row[i];
      if (where >= address[row] && where < address[row] + bytes[row]) {
        return row;
      }
    }
    return -1;
  }

  /**
   * The row that follows another one by address, or precedes it, or -1.
   *
   * @param {number} row -1 for the first or last of all
   * @param {boolean} forward
   * @returns {number}
   */
  beside(row, forward) {
    const { address } = this.rows;
    const here = row >= 0 ? address[row] : forward ? -1 : Infinity;
    let best = -1;
    for (let i = 0; i < this.count; i++) {
      const other = this.row[i];
      const there = address[other];
      if (forward ? there <= here : there >= here) continue;
      if (
        best < 0 || (forward ? there < address[best] : there > address[best])
      ) best = other;
    }
    return best;
  }

  /**
   * The rows with the most bytes, largest first.
   *
   * @param {number} limit
   * @returns {number[]}
   */
  largest(limit) {
    const { address, bytes } = this.rows;
    return Array.from(this.row.subarray(0, this.count)).sort((a, b) =>
      bytes[b] - bytes[a] || address[a] - address[b]
    ).slice(0, limit);
  }
}
