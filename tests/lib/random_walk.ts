/**
 * Random walks: lists of steps through a world of some kind, and what to do when one goes
 * wrong. Any list of steps can run, so that a failing one can be cut down to what matters.
 *
 * @module
 */

import { Random } from "../model/random.ts";

/** A step: what to do, and three numbers that choose with what. */
export type Step = readonly [kind: number, a: number, b: number, c: number];

/** Where steps are done. */
export interface World extends Disposable {
  /** Does one step. Throws if anything goes wrong that must not. */
  run(step: Step): void;
  /** Throws if something has gone wrong so far. Costs more than a step. */
  assertSound(): void;
  /** Ends the walk: everything is given back. Throws if anything is left. */
  finish(): void;
  /** Whether something is known to be wrong, without looking closely. */
  readonly suspicious: boolean;
  /** What the steps did, a line each, if the world was told to say so. */
  readonly story: readonly string[];
}

/** A kind of world. */
export interface WorldKind {
  /** Shown in the test's name. */
  name: string;
  /** Makes a fresh one; `telling`: it keeps a story. */
  open(seed: number, telling: boolean): World;
}

/** What went wrong, and at which step. */
export interface Failure {
  error: Error;
  at: number;
  story: readonly string[];
}

/** A walk that failed, cut down. */
export interface FailedWalk {
  kind: WorldKind;
  seed: number;
  steps: Step[];
  failure: Failure;
}

/** Steps that may be taken to cut a failure down to what matters. */
const SHRINK_STEPS = 1_000_000;

/** Makes the steps that belong to a seed. */
export function randomSteps(seed: number, count: number): Step[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (): Step => [
    random.below(1000),
    random.below(2 ** 16),
    random.below(2 ** 16),
    random.below(2 ** 16),
  ]);
}

/** Does all steps; returns what went wrong. Looks closely every so many steps. */
export function failureOf(
  kind: WorldKind,
  seed: number,
  steps: readonly Step[],
  { soundEvery = 1, telling = false } = {},
): Failure | undefined {
  let at = 0;
  using world = kind.open(seed, telling);
  try {
    for (; at < steps.length; at++) {
      world.run(steps[at]!);
      if (at % soundEvery === 0 || world.suspicious) world.assertSound();
    }
    world.finish();
    return undefined;
  } catch (error) {
    return { error: error as Error, at, story: world.story };
  }
}

/** Takes a walk; if it fails, returns the shortest one that was found to fail as well. */
export function walk(
  kind: WorldKind,
  seed: number,
  steps: readonly Step[],
  soundEvery = 100,
): FailedWalk | undefined {
  const failure = failureOf(kind, seed, steps, { soundEvery });
  if (!failure) return undefined;
  const few = shrunk(kind, seed, steps.slice(0, failure.at + 1));
  const told = failureOf(kind, seed, few, { telling: true });
  return { kind, seed, steps: few, failure: told ?? failure };
}

/** The error for a walk that failed: how to take it again, and what happens in it. */
export function walkError({ kind, seed, steps, failure }: FailedWalk): Error {
  const replay = `MOONBRIGHT_SEED=${seed} MOONBRIGHT_STEPS='${
    JSON.stringify(steps)
  }'`;
  return new Error(
    `${replay} replays this failure of "${kind.name}": ${failure.error.message}\n${
      failure.story.map((line, at) => `${at + 1}. ${line}`).join("\n")
    }`,
    { cause: failure.error },
  );
}

/**
 * The walks that a test takes: those of the seeds given or, if `MOONBRIGHT_SEED` says so,
 * of that one alone, or the very steps in `MOONBRIGHT_STEPS`.
 */
export function chosenWalks(
  seeds: readonly number[],
  count: number,
): { seed: number; steps: () => Step[] }[] {
  const onlySeed = Deno.env.get("MOONBRIGHT_SEED");
  const onlySteps = Deno.env.get("MOONBRIGHT_STEPS");
  const chosen = onlySeed === undefined ? seeds : [Number(onlySeed)];
  return chosen.map((seed) => ({
    seed,
    steps: () =>
      onlySteps === undefined
        ? randomSteps(seed, count)
        : JSON.parse(onlySteps) as Step[],
  }));
}

/** Leaves steps out, and makes their numbers smaller, for as long as it still goes wrong. */
function shrunk(kind: WorldKind, seed: number, steps: Step[]): Step[] {
  let left = steps;
  /** Counted in steps, not in seconds: a busy machine must find the same. */
  let budget = SHRINK_STEPS;
  /** Whether other steps fail too: then they are taken, up to where they do. */
  const accept = (steps: Step[]): boolean => {
    const failure = failureOf(kind, seed, steps);
    budget -= failure ? failure.at + 1 : steps.length;
    if (failure) left = steps.slice(0, failure.at + 1);
    return failure !== undefined;
  };
  // Smaller numbers may make more steps needless, and fewer steps smaller numbers do.
  for (let before: Step[] = []; before !== left && budget >= 0;) {
    before = left;
    leaveOut();
    makeSmaller();
  }
  return left;

  function leaveOut(): void {
    for (let chunk = left.length >> 1; chunk > 0;) {
      let removed = false;
      for (let from = 0; from < left.length; from += chunk) {
        if (budget < 0) return;
        if (!accept(left.toSpliced(from, chunk))) continue;
        removed = true;
        from -= chunk;
      }
      if (!removed || chunk > 1) chunk >>= 1;
    }
  }

  function makeSmaller(): void {
    for (let at = 0; at < left.length; at++) {
      for (let part = 1; part < 4; part++) {
        for (const smaller of smallerThan(left[at]![part]!)) {
          if (at >= left.length || budget < 0) return;
          const step = left[at]!.with(part, smaller) as unknown as Step;
          if (accept(left.with(at, step))) break;
        }
      }
    }
  }
}

function smallerThan(value: number): number[] {
  return [0, 1, 2, 3, value & 15, value >> 8, value >> 4, value >> 1]
    .filter((smaller) => smaller < value);
}
