/**
 * The checksum of page-table entries that `mb_checksum` works out on the device, for
 * comparing a table there with the host's.
 *
 * Words are two 32-bit halves here: whole numbers of 64 bits would be bigints, and many
 * times slower.
 *
 * @module
 */

/** A 64-bit word that the functions below work on. */
let low = 0;
let high = 0;

function xorShift(bits: number): void {
  const shiftedLow = (low >>> bits | high << 32 - bits) >>> 0;
  low = (low ^ shiftedLow) >>> 0;
  high = (high ^ high >>> bits) >>> 0;
}

/** Upper half of the product of two 32-bit numbers. */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xFFFF, aHigh = a >>> 16;
  const bLow = b & 0xFFFF, bHigh = b >>> 16;
  // Each is below 2^48, which doubles hold exactly.
  const middle = aHigh * bLow + (aLow * bLow >>> 16);
  const other = aLow * bHigh + middle % 65536;
  return aHigh * bHigh + Math.floor(middle / 65536) + Math.floor(other / 65536);
}

function multiply(byLow: number, byHigh: number): void {
  const carried = multiplyHigh(low, byLow);
  high = carried + Math.imul(low, byHigh) + Math.imul(high, byLow) >>> 0;
  low = Math.imul(low, byLow) >>> 0;
}

/** The finalizer of SplitMix64. */
function mix(): void {
  xorShift(30);
  multiply(0x1CE4E5B9, 0xBF58476D);
  xorShift(27);
  multiply(0x133111EB, 0x94D049BB);
  xorShift(31);
}

/**
 * The checksum of entries: it does not depend on the order of the work, but on each
 * entry's place. Checksums of parts add up, modulo 2^64, to that of the whole.
 *
 * @param first index of the first entry in its table
 */
export function checksum(entries: BigUint64Array, first = 0): bigint {
  const halves = new Uint32Array(
    entries.buffer,
    entries.byteOffset,
    2 * entries.length,
  );
  let sumLow = 0;
  let sumHigh = 0;
  for (let i = 0; i < entries.length; i++) {
    const index = first + i + 1;
    low = index >>> 0;
    high = index / 2 ** 32 >>> 0;
    mix();
    low = (low ^ halves[2 * i]!) >>> 0;
    high = (high ^ halves[2 * i + 1]!) >>> 0;
    mix();
    sumLow += low;
    sumHigh += high;
    if (sumLow >= 2 ** 32) {
      sumLow -= 2 ** 32;
      sumHigh++;
    }
    sumHigh %= 2 ** 32;
  }
  return BigInt(sumHigh) << 32n | BigInt(sumLow);
}
