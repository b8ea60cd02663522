/**
 * The random walks find what they are there to find: an allocator that is broken on purpose
 * fails soon, and its failure is cut down to a few steps that can be taken again.
 */

import { assert, assertEquals } from "@std/assert";
import type { Allocator } from "../lib/allocator.ts";
import { coherenceKind } from "./lib/coherence_kinds.ts";
import type { WorldOptions } from "./lib/coherence_world.ts";
import {
  failureOf,
  randomSteps,
  type Step,
  walk,
  walkError,
} from "./lib/random_walk.ts";
import { GRANULE, SINGLE_GRANULES } from "./lib/support.ts";

const STEPS = 1500;
const SEEDS = 40;
/** Few enough to be read. */
const READABLE = 25;

interface Break {
  /** What is broken. */
  name: string;
  /** Breaks it. */
  sabotage?(a: Allocator): void;
  /** How the device differs. */
  device?: WorldOptions["device"];
}

const BREAKS: Break[] = [
  {
    name: "flushes are dropped",
    sabotage: ({ mapper }) => mapper.unmap = () => {},
  },
  {
    name: "the device keeps translations that were flushed",
    device: { unmapFlushes: false },
  },
  {
    name: "mappings are flushed while work still uses them",
    sabotage: ({ streams }) => streams.isPassed = () => true,
  },
  {
    name: "memory of other streams is taken without a wait",
    sabotage: ({ streams }) => streams.isVisibleTo = () => true,
  },
  {
    name: "uses on other streams are forgotten",
    sabotage: ({ pending }) => pending.use = () => {},
  },
  {
    name: "a stream does not wait for another that it joins",
    sabotage: ({ driver }) => driver.waitEvent = () => {},
  },
  {
    name: "graphs don't hold their blocks",
    sabotage: ({ graphs }) => graphs.note = () => {},
  },
  {
    name: "a closed graph's launches are forgotten",
    sabotage: ({ pending }) => pending.usedUntil = () => {},
  },
];

for (const { name, sabotage, device } of BREAKS) {
  Deno.test(`broken on purpose: ${name}`, () => {
    const kind = coherenceKind({
      name,
      allocator: {
        budget: 48 * GRANULE,
        addressSpace: 96 * GRANULE,
        maxRetired: 4,
        growth: SINGLE_GRANULES,
      },
      scarceAddresses: true,
      device: { tlb: "keeps", ...device },
      mostStreams: 3,
      ...(sabotage && { sabotage: (mb) => sabotage(mb.allocator) }),
    });
    // The earlier a walk fails, the less there is to leave out of it.
    let steps = STEPS;
    let seed = 0;
    for (let other = 1; other <= SEEDS; other++) {
      const failure = failureOf(kind, other, randomSteps(other, steps), {
        soundEvery: 20,
      });
      if (failure) [seed, steps] = [other, failure.at + 1];
    }
    const failed = walk(kind, seed, randomSteps(seed, steps), 20);
    assert(failed, "nothing was noticed");
    const { message } = walkError(failed);
    assert(failed.steps.length <= READABLE, message);
    // As pasted from the message.
    const pasted = /MOONBRIGHT_SEED=(\d+) MOONBRIGHT_STEPS='([^']*)'/.exec(
      message,
    );
    const again = failureOf(
      kind,
      Number(pasted![1]),
      JSON.parse(pasted![2]!) as Step[],
    );
    assertEquals(again?.error.message, failed.failure.error.message);
    assert(failed.failure.story.length > 0);
  });
}
