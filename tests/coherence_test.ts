/**
 * The whole allocator under random use: no access ever sees another block's data.
 *
 * `MOONBRIGHT_SEED=n` runs that seed alone, `MOONBRIGHT_STEPS` a list of steps as a
 * failure prints it, both in every kind of world that `--filter` lets through.
 */

import { COHERENCE_KINDS } from "./lib/coherence_kinds.ts";
import { chosenWalks, walk, walkError } from "./lib/random_walk.ts";

/** Half a million and more in all. */
const STEPS = 25_000;

for (const kind of COHERENCE_KINDS) {
  for (const { seed, steps } of chosenWalks([1, 2], STEPS)) {
    Deno.test(`coherence: ${kind.name}, seed ${seed}`, () => {
      const failed = walk(kind, seed, steps());
      if (failed) throw walkError(failed);
    });
  }
}
