/**
 * Numbers that look random and depend only on a seed.
 *
 * @module
 */

/** Spreads every bit of a 32-bit number over all bits of another; no two give the same. */
export function mixBits(value: number): number {
  let x = value | 0;
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
  return (x ^ (x >>> 15)) >>> 0;
}

/** Numbers in [0, 1) in an order that a seed (32 bits of it) determines. */
export function randomFrom(seed: number): () => number {
  let count = mixBits(seed);
  return () => {
    count = (count + 0x9e3779b9) | 0;
    return mixBits(count) / 2 ** 32;
  };
}
