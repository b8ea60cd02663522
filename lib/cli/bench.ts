/**
 * `moonbright bench`: latencies of every way to allocate, beside the driver's own.
 *
 * @module
 */

import type { BenchContext, Benchmark } from "../bench/context.ts";
import { benchFirst, benchSteps } from "../bench/first.ts";
import { benchFree } from "../bench/free.ts";
import { benchGrow } from "../bench/grow.ts";
import { benchLaunch } from "../bench/launch.ts";
import { benchMaterialize } from "../bench/materialize.ts";
import { benchMemory } from "../bench/memory.ts";
import { benchPages } from "../bench/pages.ts";
import { compareRuns, regressions } from "../bench/compare_runs.ts";
import { type BenchReport, makeReport } from "../bench/report.ts";
import { benchReuse } from "../bench/reuse.ts";
import type { Series } from "../bench/samples.ts";
import { benchStitch } from "../bench/stitch.ts";
import { asTimedDriver } from "../bench/timed_driver.ts";
import { benchTranslate } from "../bench/translate.ts";
import { MoonBrightError } from "../errors.ts";
import type { MoonBright } from "../moonbright.ts";
import { renderBench } from "./bench_report.ts";
import type { Command } from "./command.ts";
import { renderComparison } from "./comparison_report.ts";
import type { CommandContext } from "./context.ts";
import { DEVICE_FLAG, openDevice } from "./device_flag.ts";
import { ExitCode } from "./exit_codes.ts";
import { writeTextFile } from "./files.ts";
import type { Flags } from "./flags.ts";
import { readRun, saveRun } from "./saved_runs.ts";
import { didYouMean } from "./suggest.ts";
import { UsageError } from "./usage_error.ts";

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  first: benchFirst,
  steps: benchSteps,
  reuse: benchReuse,
  grow: benchGrow,
  stitch: benchStitch,
  free: benchFree,
  launch: benchLaunch,
  memory: benchMemory,
  materialize: benchMaterialize,
  pages: benchPages,
  translate: benchTranslate,
};

/** What is told as slower or faster where --fail-over is not given. */
const DEFAULT_ALLOWED = 0.1;

/** The command. */
export const benchCommand: Command = {
  name: "bench",
  summary: "measure allocation latencies beside the driver's own",
  usage: "[BENCHMARK...]",
  details: `Benchmarks, all of them if none is named:
  first        first allocation with nothing cached, beside plain allocation
  steps        what a first allocation consists of
  reuse        allocate and free what is cached, beside the driver's pool
  grow         growth of a heap that is all in use
  stitch       1 GiB out of scattered extents, beside the bare driver calls
  free         freeing behind a running kernel
  launch       launch latency of kernels while another thread maps memory
  memory       host memory that the bookkeeping of a million blocks takes
  materialize  page-table entries by kernels, beside the host's loop and copy
  pages        1 GiB of pages allocated and forked, beside mapping as much
  translate    reading through a page table, beside reading without one
Every ratio relates to a peer measured in the same run.
--compare says what got slower or faster since an earlier run. With --fail-over
the exit code is 8 if anything got slower by more than that, and that is certain
to 99.99 %.`,
  flags: [
    DEVICE_FLAG,
    {
      name: "quick",
      summary: "take a tenth of the samples, leave out the longest",
    },
    {
      name: "out",
      value: "FILE",
      summary: "also write the JSON document, with every sample",
    },
    {
      name: "save",
      value: "FOLDER",
      summary: "also write it into a folder, by machine and device",
    },
    {
      name: "compare",
      value: "PATH",
      summary: "compare with a file, or the newest in a --save folder",
    },
    {
      name: "fail-over",
      value: "PERCENT",
      summary: "how much slower than that is a failure, such as 10%",
    },
  ],
  examples: [
    { args: "bench", what: "everything, on a GPU if there is one" },
    {
      args: "bench reuse --device cuda:0 --json",
      what: "one benchmark, every sample as JSON",
    },
    {
      args: "bench --compare runs --fail-over 10% --save runs",
      what: "keep runs, and notice when one is slower than the last",
    },
  ],
  async run(context) {
    const names = chosen(context.flags.positionals);
    const allowed = allowedOf(context.flags);
    using mb = openDevice(context);
    const environment = context.host.environment(mb.device);
    // Read before measuring: a wrong path should not cost minutes.
    const earlier = context.flags.text("compare");
    const before = earlier === undefined
      ? undefined
      : readRun(earlier, environment);
    const report = makeReport(
      environment,
      await measure(context, mb, names),
    );
    context.progress.clear();
    store(context.flags, report);
    const comparison = before &&
      compareRuns(before, report, allowed ?? DEFAULT_ALLOWED);
    if (context.json) context.printJson({ ...report, comparison });
    else {
      context.print(renderBench(report, context.style));
      if (comparison) {
        context.print(renderComparison(comparison, context.style));
      }
    }
    const failed = comparison && allowed !== undefined &&
      regressions(comparison).length > 0;
    return failed ? ExitCode.REGRESSION : ExitCode.OK;
  },
};

/** What is allowed for, 0.1 for 10 %; undefined if no difference is a failure. */
function allowedOf(flags: Flags): number | undefined {
  const text = flags.text("fail-over");
  if (text === undefined) return undefined;
  if (flags.text("compare") === undefined) {
    throw new UsageError(
      "Cannot use --fail-over without --compare: name the run to compare with",
    );
  }
  const match = /^(\d+(?:\.\d+)?)\s*%?$/.exec(text);
  if (!match) {
    throw new UsageError(
      `Cannot use --fail-over: "${text}" is no percentage such as 10%`,
    );
  }
  return Number(match[1]) / 100;
}

function store(flags: Flags, report: BenchReport): void {
  const out = flags.text("out");
  if (out !== undefined) writeTextFile(out, JSON.stringify(report));
  const folder = flags.text("save");
  if (folder !== undefined) saveRun(folder, report);
}

function chosen(names: readonly string[]): string[] {
  const known = Object.keys(BENCHMARKS);
  for (const name of names) {
    if (!known.includes(name)) {
      throw new UsageError(
        `Unknown benchmark "${name}"${didYouMean(name, known)}`,
      );
    }
  }
  return names.length === 0 ? known : [...names];
}

async function measure(
  context: CommandContext,
  mb: MoonBright,
  names: readonly string[],
): Promise<Series[]> {
  const { plainReason } = mb.device;
  if (plainReason !== undefined) {
    throw new MoonBrightError(
      "unsupported",
      "benchmark",
      `Cannot benchmark a device that can't map memory: ${plainReason}`,
    );
  }
  const busy = mb.loadModule(context.host.kernelImage("busy", mb.device));
  const bench: BenchContext = {
    mb,
    driver: asTimedDriver(mb.driver),
    spin: busy.kernel("mb_spin"),
    empty: busy.kernel("mb_empty"),
    images: (name) => context.host.kernelImage(name, mb.device),
    available: mb.driver.memoryInfo().free,
    quick: context.flags.on("quick"),
    async step(what) {
      context.progress.update(what);
      await context.breathe();
    },
  };
  const series: Series[] = [];
  for (const name of names) series.push(...await BENCHMARKS[name]!(bench));
  return series;
}
