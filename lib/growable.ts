/**
 * Typed arrays that grow by doubling, so that tables of records need no objects.
 *
 * @module
 */

type Numbers =
  | Float64Array
  | Int32Array
  | Uint32Array
  | Uint16Array
  | Uint8Array;

/** Returns the array, or a copy at least `length` long with zeros behind. */
export function grown<T extends Numbers>(array: T, length: number): T {
  if (length <= array.length) return array;
  const Class = array.constructor as new (length: number) => T;
  const copy = new Class(Math.max(length, array.length * 2));
  copy.set(array);
  return copy;
}
