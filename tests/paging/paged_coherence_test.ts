/**
 * A paged space under random use: no reader ever sees other data than it was promised.
 *
 * `MOONBRIGHT_SEED=n` runs that seed alone, `MOONBRIGHT_STEPS` a list of steps as a failure
 * prints it, both in every kind of world that `--filter` lets through.
 */

import { chosenWalks, walk, walkError } from "../lib/random_walk.ts";
import { FAKE_CUDA } from "./paged_bench.ts";
import { PAGED_KINDS } from "./paged_kinds.ts";

const STEPS = 20_000;

for (const kind of PAGED_KINDS) {
  for (const { seed, steps } of chosenWalks([1, 2], STEPS)) {
    Deno.test({
      name: `coherence, ${kind.name}, seed ${seed}`,
      ignore: FAKE_CUDA.skip !== undefined,
      fn() {
        const failed = walk(kind, seed, steps());
        if (failed) throw walkError(failed);
      },
    });
  }
}
