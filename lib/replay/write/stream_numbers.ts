/**
 * Streams as other tools want them: by number.
 *
 * @module
 */

/**
 * A number for each stream: its handle as recorded, decimal or hexadecimal, if all have
 * one that is a number below 2^53 and no two the same; otherwise its place in the list.
 */
export function streamNumbers(names: readonly string[]): number[] {
  const handles = names.map((name) =>
    /^(\d{1,16}|0x[0-9a-f]{1,14})$/i.test(name) ? Number(name) : NaN
  );
  const usable = handles.every(Number.isSafeInteger) &&
    new Set(handles).size === handles.length;
  return usable ? handles : names.map((_, index) => index);
}
