/**
 * A paged space under random use: no reader ever sees other data than it was promised.
 *
 * `MOONBRIGHT_SEED=n` runs that seed alone, `MOONBRIGHT_STEPS` a list of steps as a failure
 * prints it, both under every configuration that `--filter` lets through.
 */

import { assert } from "@std/assert";
import { randomSteps, type Step } from "../lib/coherence_world.ts";
import { FAKE_CUDA } from "./paged_bench.ts";
import { PagedWorld, type PagedWorldOptions } from "./paged_world.ts";

const STEPS = 20_000;
/** How long a failure may take to be cut down to what matters. */
const SHRINK_MS = 20_000;

const CONFIGURATIONS: PagedWorldOptions[] = [
  {
    name: "few pages and frames",
    pages: 48,
    frames: 24,
    largest: 8,
    streams: 3,
  },
  { name: "one stream", pages: 48, frames: 24, largest: 8, streams: 0 },
  {
    name: "long ranges of single frames",
    pages: 700,
    frames: 400,
    largest: 150,
    streams: 2,
  },
  {
    name: "many streams",
    pages: 96,
    frames: 40,
    largest: 5,
    streams: 7,
  },
  {
    name: "captures",
    pages: 96,
    frames: 48,
    largest: 6,
    streams: 3,
    captures: true,
  },
];

/** Runs steps to the end; returns what went wrong and at which step. */
function failureOf(
  options: PagedWorldOptions,
  seed: number,
  steps: readonly Step[],
): { error: Error; at: number } | undefined {
  let at = 0;
  using world = new PagedWorld(options, seed);
  try {
    for (; at < steps.length; at++) world.run(steps[at]!);
    world.finish();
    if (steps.length < STEPS) return undefined;
    assert(world.checked > STEPS / 8 && world.refused > 10);
    return undefined;
  } catch (error) {
    return { error: error as Error, at };
  }
}

/** Leaves steps out as long as it still goes wrong. */
function shrunk(
  options: PagedWorldOptions,
  seed: number,
  steps: Step[],
): Step[] {
  const end = performance.now() + SHRINK_MS;
  let left = steps;
  for (let chunk = left.length >> 1; chunk > 0;) {
    let removed = false;
    for (let from = 0; from < left.length; from += chunk) {
      if (performance.now() > end) return left;
      const fewer = left.toSpliced(from, chunk);
      const failure = failureOf(options, seed, fewer);
      if (!failure) continue;
      left = fewer.slice(0, failure.at + 1);
      removed = true;
      from -= chunk;
    }
    if (!removed || chunk > 1) chunk >>= 1;
  }
  return left;
}

const onlySeed = Deno.env.get("MOONBRIGHT_SEED");
const onlySteps = Deno.env.get("MOONBRIGHT_STEPS");
const seeds = onlySeed === undefined ? [1, 2] : [Number(onlySeed)];

for (const options of CONFIGURATIONS) {
  for (const seed of seeds) {
    Deno.test({
      name: `paged coherence: ${options.name}, seed ${seed}`,
      ignore: FAKE_CUDA.skip !== undefined,
      fn() {
        const steps: Step[] = onlySteps === undefined
          ? randomSteps(seed, STEPS)
          : JSON.parse(onlySteps);
        const failure = failureOf(options, seed, steps);
        if (!failure) return;
        const few = shrunk(options, seed, steps.slice(0, failure.at + 1));
        const { error } = failureOf(options, seed, few) ?? failure;
        throw new Error(
          `MOONBRIGHT_SEED=${seed} MOONBRIGHT_STEPS='${
            JSON.stringify(few)
          }' replays this failure: ${error.message}`,
          { cause: error },
        );
      },
    });
  }
}
