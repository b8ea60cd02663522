/**
 * A name as it can be shown: names come from programs, and one with control characters in
 * it could move a terminal's cursor or break a table. Cut to `longest` letters.
 */
export function printable(name: string, longest = Infinity): string {
  const clean = name.toWellFormed().replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "?");
  const letters = [...clean];
  if (letters.length <= longest) return clean;
  return `${letters.slice(0, longest - 1).join("")}~`;
}
