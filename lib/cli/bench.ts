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
import { makeReport } from "../bench/report.ts";
import { benchReuse } from "../bench/reuse.ts";
import type { Series } from "../bench/samples.ts";
import { benchStitch } from "../bench/stitch.ts";
import { asTimedDriver } from "../bench/timed_driver.ts";
import { benchTranslate } from "../bench/translate.ts";
import type { MoonBright } from "../moonbright.ts";
import { renderBench } from "./bench_report.ts";
import type { Command } from "./command.ts";
import type { CommandContext } from "./context.ts";
import { DEVICE_FLAG, openDevice } from "./device_flag.ts";
import { ExitCode } from "./exit_codes.ts";
import { writeTextFile } from "./files.ts";
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
Every ratio relates to a peer measured in the same run.`,
  flags: [
    DEVICE_FLAG,
    {
      name: "quick",
      summary: "take a tenth of the samples, leave out the longest",
    },
    {
      name: "out",
      value: "FILE",
      summary: "also write the JSON document, with every sample, to a file",
    },
  ],
  examples: [
    { args: "bench", what: "everything, on a GPU if there is one" },
    {
      args: "bench reuse --device cuda:0 --json",
      what: "one benchmark, every sample as JSON",
    },
  ],
  async run(context) {
    const names = chosen(context.flags.positionals);
    using mb = openDevice(context);
    const report = makeReport(
      context.host.environment(mb.device),
      await measure(context, mb, names),
    );
    context.progress.clear();
    const out = context.flags.text("out");
    if (out !== undefined) writeTextFile(out, JSON.stringify(report));
    if (context.json) context.printJson(report);
    else context.print(renderBench(report, context.style));
    return ExitCode.OK;
  },
};

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
