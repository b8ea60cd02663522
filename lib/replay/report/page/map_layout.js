// Where addresses lie on the memory map: the stretches in use one after another, the
// gaps between them cut out, broken into rows of one length.

/** No row is shorter than a page. */
const SHORTEST_ROW = 4096;

/** Where addresses lie on the memory map. */
export class MapLayout {
  /**
   * @param {number[]} stretches pairs of first byte and length, in order
   * @param {number} mostRows
   */
  constructor(stretches, mostRows) {
    /** First bytes of the stretches. */
    this.starts = stretches.filter((_, i) => i % 2 === 0);
    const lengths = stretches.filter((_, i) => i % 2 === 1);
    /** Where stretches begin once the gaps are cut out. */
    this.offsets = [];
    /** Bytes of all stretches. */
    this.total = 0;
    for (const length of lengths) {
      this.offsets.push(this.total);
      this.total += length;
    }
    /** Bytes in a row. */
    this.rowBytes = SHORTEST_ROW;
    while (this.rowBytes * mostRows < this.total) this.rowBytes *= 2;
    /** Number of rows, at least one. */
    this.rows = Math.max(1, Math.ceil(this.total / this.rowBytes));
  }

  /**
   * Where an address in a stretch lies once the gaps are cut out.
   *
   * @param {number} address
   * @returns {number}
   */
  offsetOf(address) {
    const i = lastAtOrBefore(this.starts, address);
    return i < 0 ? 0 : this.offsets[i] + (address - this.starts[i]);
  }

  /**
   * The address that lies there.
   *
   * @param {number} offset
   * @returns {number}
   */
  addressAt(offset) {
    const i = lastAtOrBefore(this.offsets, offset);
    return i < 0 ? 0 : this.starts[i] + (offset - this.offsets[i]);
  }
}

/**
 * Index of the last value that is not above another, in ascending order; -1 if all are.
 *
 * @param {ArrayLike<number>} values
 * @param {number} value
 * @returns {number}
 */
export function lastAtOrBefore(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
