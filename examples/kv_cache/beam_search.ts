/**
 * Beam search as the cache sees it: which beams go on, and from which others.
 *
 * @module
 */

/** A beam: a sequence and how likely it is. */
export interface Beam {
  /** The sequence's number. */
  sequence: number;
  /** The higher the better. */
  score: number;
}

/** Continuations of each beam that are weighed against those of the others. */
const CANDIDATES = 2;

/**
 * Weighs continuations of all beams and keeps as many as there are beams, the best.
 * Those with the same sequence come one after another.
 */
export function nextBeams(
  beams: readonly Beam[],
  random: () => number,
): Beam[] {
  const candidates = beams.flatMap(({ sequence, score }) =>
    Array.from({ length: CANDIDATES }, () => ({
      sequence,
      score: score + Math.log(random() + Number.EPSILON),
    }))
  );
  return candidates
    .sort((a, b) => b.score - a.score)
    .slice(0, beams.length)
    .sort((a, b) => a.sequence - b.sequence);
}
