/**
 * The whole allocator under random use: no access ever sees another block's data.
 *
 * `MOONBRIGHT_SEED=n` runs that seed alone, `MOONBRIGHT_STEPS` a list of steps as a
 * failure prints it, both under every configuration that `--filter` lets through.
 */

import {
  CoherenceWorld,
  randomSteps,
  type Step,
  type WorldOptions,
} from "./lib/coherence_world.ts";
import { GRANULE, SINGLE_GRANULES } from "./lib/support.ts";

const STEPS = 25_000;
const SOUND_EVERY = 100;
const SHRINK_MS = 20_000;

const roomy = 2 ** 40;

const configurations: WorldOptions[] = [
  {
    name: "fresh addresses alone",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      freshAddresses: roomy,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps" },
    mostStreams: 4,
  },
  {
    name: "a TLB that keeps invalid entries",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      freshAddresses: roomy,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps-invalid" },
    mostStreams: 3,
  },
  {
    name: "addresses recycled after a while",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: 512 * GRANULE,
      freshAddresses: 64 * GRANULE,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps" },
    mostStreams: 3,
  },
  {
    name: "an arena hardly larger than the budget",
    allocator: {
      budget: 64 * GRANULE,
      addressSpace: 80 * GRANULE,
      growth: SINGLE_GRANULES,
    },
    scarceAddresses: true,
    device: { tlb: "keeps-invalid" },
    mostStreams: 2,
  },
  {
    name: "extents of several granules",
    allocator: {
      budget: 160 * GRANULE,
      addressSpace: roomy,
      growth: {
        least: 4 * GRANULE,
        extentSize: 4 * GRANULE,
        mostExtents: 4,
        leastStitched: 2 * GRANULE,
      },
    },
    device: { tlb: "keeps" },
    mostStreams: 3,
  },
  {
    name: "frequent coherence points",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      maxRetired: 4,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps-invalid", maxPending: 64 },
    mostStreams: 6,
  },
  {
    name: "one stream",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      growth: SINGLE_GRANULES,
    },
    device: { tlb: "keeps" },
    mostStreams: 0,
  },
  {
    name: "an anchor and growth at its usual price",
    allocator: {
      budget: 96 * GRANULE,
      addressSpace: roomy,
      growth: { extentSize: 2 * GRANULE },
    },
    device: { tlb: "keeps" },
    backend: "cuda",
    mostStreams: 3,
  },
  {
    name: "a device that runs full",
    allocator: {
      addressSpace: roomy,
      growth: { ...SINGLE_GRANULES, growthPriceNs: 0 },
    },
    device: { tlb: "keeps", totalMemory: 80 * GRANULE },
    mostStreams: 3,
  },
];

/** Runs steps to the end; returns what went wrong and at which step. */
function failureOf(
  options: WorldOptions,
  seed: number,
  steps: readonly Step[],
  soundEvery: number,
): { error: Error; at: number } | undefined {
  let at = 0;
  try {
    const world = new CoherenceWorld(options, seed);
    for (; at < steps.length; at++) {
      world.run(steps[at]!);
      if (at % soundEvery === 0 || world.damage.length > 0) {
        world.assertSound();
      }
    }
    world.finish();
    return undefined;
  } catch (error) {
    return { error: error as Error, at };
  }
}

/** Leaves steps out as long as it still goes wrong. */
function shrunk(options: WorldOptions, seed: number, steps: Step[]): Step[] {
  const end = performance.now() + SHRINK_MS;
  let left = steps;
  for (let chunk = left.length >> 1; chunk > 0;) {
    let removed = false;
    for (let from = 0; from < left.length; from += chunk) {
      if (performance.now() > end) return left;
      const fewer = left.toSpliced(from, chunk);
      const failure = failureOf(options, seed, fewer, 1);
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

for (const options of configurations) {
  for (const seed of seeds) {
    Deno.test(`coherence: ${options.name}, seed ${seed}`, () => {
      const steps: Step[] = onlySteps === undefined
        ? randomSteps(seed, STEPS)
        : JSON.parse(onlySteps);
      const failure = failureOf(options, seed, steps, SOUND_EVERY);
      if (!failure) return;
      const few = shrunk(options, seed, steps.slice(0, failure.at + 1));
      const { error } = failureOf(options, seed, few, 1) ?? failure;
      throw new Error(
        `MOONBRIGHT_SEED=${seed} MOONBRIGHT_STEPS='${
          JSON.stringify(few)
        }' replays this failure: ${error.message}`,
        { cause: error },
      );
    });
  }
}
