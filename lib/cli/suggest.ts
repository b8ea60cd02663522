/**
 * The nearest known word to a mistyped one.
 *
 * @module
 */

/**
 * Edits that turn one word into another: inserting, deleting or replacing a letter,
 * and swapping two neighbours (Damerau and Levenshtein, no letter edited twice).
 */
export function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const current = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let distance = Math.min(
        previous[j]! + 1,
        current[j - 1]! + 1,
        previous[j - 1]! + (same ? 0 : 1),
      );
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] &&
        from[i - 2] === to[j - 1];
      if (swapped) distance = Math.min(distance, beforePrevious[j - 2]! + 1);
      current.push(distance);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[to.length]!;
}

/** The candidate nearest to a word, or nothing if none is near. The first of equals wins. */
export function nearest(
  word: string,
  candidates: readonly string[],
): string | undefined {
  const wanted = word.toLowerCase();
  let best: string | undefined;
  // More edits than a third of the word make another word, not a slip.
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best ??
    candidates.find((one) => wanted.length > 1 && one.startsWith(wanted));
}

/** `; did you mean "…"?`, or nothing if no candidate is near. */
export function didYouMean(
  word: string,
  candidates: readonly string[],
  prefix = "",
): string {
  const candidate = nearest(word, candidates);
  return candidate === undefined
    ? ""
    : `; did you mean "${prefix}${candidate}"?`;
}
