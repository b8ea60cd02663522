// Takes random walks through the allocator and through paged spaces until told otherwise,
// far more than the tests do. A walk that fails is cut down, printed, and ends it.
//
//   deno task walk                       five million steps
//   deno task walk --steps=20000000
//   deno task walk --seed=700            begins with another seed
//   deno task walk --only=paged          kinds of world whose names contain this
//
// Walks of one kind and seed are the same on every machine.

import { parseArgs } from "@std/cli/parse-args";
import { COHERENCE_KINDS } from "../tests/lib/coherence_kinds.ts";
import { randomSteps, walk, walkError } from "../tests/lib/random_walk.ts";
import { FAKE_CUDA } from "../tests/paging/paged_bench.ts";
import { PAGED_KINDS } from "../tests/paging/paged_kinds.ts";

const STEPS_A_WALK = 25_000;

const flags = parseArgs(Deno.args, {
  string: ["steps", "seed", "only"],
  default: { steps: "5000000", seed: "1000", only: "" },
  unknown: (name) => fail(`unknown flag or argument "${name}"`),
});
const wanted = wholeNumber("steps", flags.steps);
let seed = wholeNumber("seed", flags.seed);
if (FAKE_CUDA.skip) console.error(`without paged spaces: ${FAKE_CUDA.skip}`);
const kinds = [...COHERENCE_KINDS, ...(FAKE_CUDA.skip ? [] : PAGED_KINDS)]
  .filter(({ name }) => name.includes(flags.only));
if (kinds.length === 0) fail(`no kind of world is called "${flags.only}"`);

const start = performance.now();
let steps = 0;
for (let walks = 0; steps < wanted; walks++) {
  const kind = kinds[walks % kinds.length]!;
  const failed = walk(kind, seed, randomSteps(seed, STEPS_A_WALK));
  if (failed) {
    progress("");
    console.error(walkError(failed).message);
    Deno.exit(1);
  }
  steps += STEPS_A_WALK;
  progress(`${steps} steps, seed ${seed}, ${kind.name}`);
  if (walks % kinds.length === kinds.length - 1) seed++;
}
progress("");
const seconds = ((performance.now() - start) / 1000).toFixed(0);
console.log(`${steps} steps in ${kinds.length} kinds of world, ${seconds} s`);

/** Shows how far it has come, on a terminal. */
function progress(text: string): void {
  if (!Deno.stderr.isTerminal()) return;
  Deno.stderr.writeSync(new TextEncoder().encode(`\r\x1b[K${text}`));
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    fail(`--${name}: "${text}" is not a whole number above 0`);
  }
  return value;
}

function fail(why: string): never {
  console.error(`soak: ${why}`);
  Deno.exit(2);
}
