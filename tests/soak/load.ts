/**
 * A load on one device for a given time, all of it checked, and one table at its end:
 *
 *     deno run -A tests/soak/load.ts --device cuda:0 --minutes 10
 *
 * It goes through rounds. Each opens an instance in another way (policies, zeroing, all
 * debug options), does random steps, gives everything back, closes, and looks at what the
 * process still holds. Exits with 1 if data did not match, something was left, or the
 * process grew.
 *
 * @module
 */

import { parseArgs } from "@std/cli/parse-args";
import { buildHostKernels } from "../../ffi/build.ts";
import { kernelImage, type KernelSet } from "../../ffi/kernels.ts";
import { MoonBright, type OpenOptions } from "../../ffi/moonbright.ts";
import type { DeviceInfo } from "../../lib/driver.ts";
import { formatSize, parseSize } from "../../lib/sizes.ts";
import { renderTable } from "../../lib/cli/table.ts";
import { Random } from "../model/random.ts";
import { type ProcessFigures, processFigures } from "./process_figures.ts";
import { noCounts, type SoakCounts, SoakWorld } from "./soak_world.ts";

const HELP = `deno run -A tests/soak/load.ts [flags]
  --device DEVICE      auto, host, cuda:N (default auto)
  --minutes N          how long (default 1), but at least a round of each setup
  --budget SIZE        budget of each instance (default 1/16 of the device's memory,
                       at most 8GiB; 256MiB on the host)
  --seed N             decides the steps (default 1)
  --most-growth SIZE   growth of the process's memory that is accepted (default 16MiB)
  --vendor-library F   the vendor's library; kernels are then built for the host
  --setup N            only the Nth way to open an instance, from 1
  --progress           print a line about each round on standard error
  --json               print JSON instead of the table
`;

/** A way to open the instance of a round. */
interface Setup {
  name: string;
  options: OpenOptions;
}

const SETUPS: readonly Setup[] = [
  { name: "default", options: {} },
  { name: "latency", options: { policy: "latency" } },
  {
    name: "zeroed, small arena",
    options: { zero: true, addressSpace: 2 ** 36 },
  },
  {
    name: "quarantine, guards, canaries",
    options: { debug: "quarantine", guard: true, canaries: true, stacks: true },
  },
  { name: "canaries", options: { canaries: true, freshAddresses: 2 ** 34 } },
];

/** Rounds in which the process reaches its usual size: each setup twice. */
const WARM_ROUNDS = 2 * SETUPS.length;
/** Rounds with fewer after the warm-up say nothing about growth. */
const LEAST_ROUNDS = 2 * SETUPS.length;
/** V8's flags for a young generation of one size, and for `gc()`. */
const STEADY = "--expose-gc,--min-semi-space-size=8,--max-semi-space-size=8";
const MOST_ROUND_MS = 20_000;
const LEAST_ROUND_MS = 150;

/** What a load came to. */
export interface LoadReport {
  /** The device. */
  device: string;
  /** Its name. */
  name: string;
  /** Seed of the steps. */
  seed: number;
  /** Budget of each instance, in bytes. */
  budget: number;
  /** How long it took, in seconds. */
  seconds: number;
  /** Instances opened and closed. */
  rounds: number;
  /** What was done. */
  counts: SoakCounts;
  /** Requests by the way they were served. */
  ways: Record<string, number>;
  /** Coherence points. */
  flushes: number;
  /**
   * The least that the process held after a round in the first and in the second half of
   * the time behind the warm-up; `null` if there were too few rounds.
   */
  process: [ProcessFigures, ProcessFigures] | null;
  /** Bytes free on the device at the beginning and at the end. */
  deviceFree: [number, number];
  /** What went wrong; empty if nothing did. */
  problems: string[];
}

interface LoadOptions {
  device: string;
  seconds: number;
  seed: number;
  budget: number | undefined;
  mostGrowth: number;
  vendorLibrary: string | undefined;
  progress: boolean;
  setups: readonly Setup[];
}

function runLoad(options: LoadOptions): LoadReport {
  const { device, vendorLibrary, seed, setups } = options;
  const base: OpenOptions = {
    device,
    ...(vendorLibrary === undefined ? {} : { vendorLibrary }),
  };
  const image = (set: KernelSet, info: DeviceInfo) =>
    vendorLibrary === undefined
      ? kernelImage(set, info)
      : Deno.readFileSync(buildHostKernels(set));
  const counts = noCounts();
  const ways: Record<string, number> = {};
  const problems: string[] = [];
  const report = (problem: string) => {
    if (problems.length < 20) problems.push(problem);
  };
  const start = performance.now();
  const end = start + options.seconds * 1000;
  const roundMs = Math.min(
    Math.max(options.seconds * 1000 / 40, LEAST_ROUND_MS),
    MOST_ROUND_MS,
  );
  let flushes = 0;
  let rounds = 0;
  const figures: ProcessFigures[] = [];
  let info: DeviceInfo | undefined;
  let budget = 0;
  let freeBefore = 0;
  let freeAfter = 0;
  while (
    problems.length === 0 &&
    (rounds < setups.length || performance.now() < end)
  ) {
    const { name, options: setup } = setups[rounds % setups.length]!;
    using mb = MoonBright.open({ ...base, ...setup });
    info ??= mb.device;
    budget = options.budget ?? usualBudget(mb.device);
    mb.budget = budget;
    freeAfter = mb.driver.memoryInfo().free;
    if (rounds === 0) freeBefore = freeAfter;
    try {
      const world = new SoakWorld({
        mb,
        patterns: {
          kernelImage: image,
          parallel: mb.device.backend !== "host" && vendorLibrary === undefined,
        },
        paging: {
          entries: image("paging_entries", mb.device),
          copy: image("paging_copy", mb.device),
        },
        random: new Random(seed + rounds),
        counts,
        report: (damage) => report(`round ${rounds} (${name}): ${damage}`),
      });
      const roundEnd = performance.now() + roundMs;
      while (performance.now() < roundEnd) world.step();
      world.finish();
    } catch (error) {
      report(`round ${rounds} (${name}): ${(error as Error).stack ?? error}`);
    }
    const stats = mb.stats();
    flushes += stats.flushes;
    for (const [way, { count }] of Object.entries(stats.ways)) {
      ways[way] = (ways[way] ?? 0) + count;
    }
    mb.close();
    rounds++;
    figures.push(processFigures());
    if (options.progress) tellRound(rounds, name, counts.steps, figures);
  }
  const process = leastOfHalves(figures.slice(WARM_ROUNDS));
  if (process) noteGrowth(process, options.mostGrowth, report);
  return {
    device: `${info!.backend}:${info!.ordinal}`,
    name: info!.name,
    seed,
    budget,
    seconds: (performance.now() - start) / 1000,
    rounds,
    counts,
    ways,
    flushes,
    process,
    deviceFree: [freeBefore, freeAfter],
    problems,
  };
}

function tellRound(
  round: number,
  name: string,
  steps: number,
  figures: readonly ProcessFigures[],
): void {
  const { memory, descriptors, threads, areas } = figures[round - 1]!;
  console.error(
    `${round}: ${name}, ${steps} steps; ${
      formatSize(memory)
    }, ${descriptors} descriptors, ${threads} threads, ${areas} areas`,
  );
}

/** The least of each figure in either half of the rounds. */
function leastOfHalves(
  figures: readonly ProcessFigures[],
): [ProcessFigures, ProcessFigures] | null {
  if (figures.length < LEAST_ROUNDS) return null;
  const middle = figures.length >> 1;
  const least = (rounds: readonly ProcessFigures[]): ProcessFigures => ({
    memory: Math.min(...rounds.map(({ memory }) => memory)),
    descriptors: Math.min(...rounds.map(({ descriptors }) => descriptors)),
    threads: Math.min(...rounds.map(({ threads }) => threads)),
    areas: Math.min(...rounds.map(({ areas }) => areas)),
  });
  return [least(figures.slice(0, middle)), least(figures.slice(middle))];
}

function noteGrowth(
  [before, after]: [ProcessFigures, ProcessFigures],
  mostGrowth: number,
  report: (problem: string) => void,
): void {
  const change = `from ${formatSize(before.memory)} to ${
    formatSize(after.memory)
  }`;
  if (after.memory - before.memory > mostGrowth) {
    report(`memory grew ${change}`);
  }
  for (const figure of ["descriptors", "threads"] as const) {
    if (after[figure] > before[figure]) {
      report(`${figure} grew from ${before[figure]} to ${after[figure]}`);
    }
  }
}

function usualBudget({ backend, totalMemory }: DeviceInfo): number {
  if (backend === "host") return 256 * 1024 ** 2;
  return Math.min(Math.floor(totalMemory / 16), 8 * 1024 ** 3);
}

function render(report: LoadReport): string {
  const { counts, process } = report;
  const count = (value: number) => value.toLocaleString("en");
  const change = (figure: keyof ProcessFigures, show = count) =>
    process?.map((half) => show(half[figure])).join(" to ") ?? "too few rounds";
  const rows: [string, string][] = [
    ["device", `${report.device}, ${report.name}`],
    ["time", `${report.seconds.toFixed(1)} s, seed ${report.seed}`],
    ["rounds", `${report.rounds}, budget ${formatSize(report.budget)} each`],
    ["steps", count(counts.steps)],
    ["blocks", `${count(counts.blocks)} of ${formatSize(counts.bytes)} in all`],
    ["refused", count(counts.refused)],
    ["resizes", count(counts.resizes)],
    ["graph launches", count(counts.graphs)],
    ["paged ranges", count(counts.ranges)],
    [
      "ways",
      Object.entries(report.ways).map(([way, n]) => `${way} ${count(n)}`)
        .join(", "),
    ],
    ["flushes", count(report.flushes)],
    ["checks", count(counts.checks)],
    ["mismatches", count(counts.mismatches)],
    ["process memory", change("memory", formatSize)],
    ["descriptors", change("descriptors")],
    ["threads", change("threads")],
    ["memory areas", change("areas")],
    ["free on the device", report.deviceFree.map(formatSize).join(" to ")],
    ["problems", report.problems.length === 0 ? "none" : ""],
  ];
  return renderTable([{ title: "figure" }, { title: "value" }], rows) +
    report.problems.map((problem) => `  ${problem}\n`).join("");
}

/**
 * Runs this script again in a process whose engine takes no more memory as it goes on, and
 * collects garbage when it is told: else the engine's own growth would be the largest.
 */
function runSteadily(): never {
  const { code } = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", `--v8-flags=${STEADY}`, import.meta.filename!],
      ...Deno.args,
    ],
    stdout: "inherit",
    stderr: "inherit",
  }).outputSync();
  Deno.exit(code);
}

if (import.meta.main) {
  if (!("gc" in globalThis)) runSteadily();
  const flags = parseArgs(Deno.args, {
    string: [
      "device",
      "minutes",
      "budget",
      "seed",
      "most-growth",
      "setup",
      "vendor-library",
    ],
    boolean: ["json", "help", "progress"],
    unknown(flag) {
      console.error(`Unknown argument ${flag}\n${HELP}`);
      Deno.exit(2);
    },
  });
  if (flags.help) {
    console.log(HELP);
    Deno.exit(0);
  }
  const report = runLoad({
    device: flags.device ?? "auto",
    seconds: Number(flags.minutes ?? 1) * 60,
    seed: Number(flags.seed ?? 1),
    budget: flags.budget === undefined ? undefined : parseSize(flags.budget),
    mostGrowth: parseSize(flags["most-growth"] ?? "16MiB"),
    vendorLibrary: flags["vendor-library"],
    progress: flags.progress,
    setups: flags.setup === undefined
      ? SETUPS
      : SETUPS.slice(Number(flags.setup) - 1, Number(flags.setup)),
  });
  console.log(flags.json ? JSON.stringify(report, null, 2) : render(report));
  Deno.exit(report.problems.length === 0 ? 0 : 1);
}
