/**
 * `moonbright replay`: what a recorded workload needs, beside other allocators.
 *
 * @module
 */

import { CostDevice } from "../cost_device.ts";
import { profileOf } from "../device_profile.ts";
import { MoonBright } from "../moonbright.ts";
import type { GrowthPolicy } from "../planner.ts";
import { POLICY_NAMES, type PolicyName } from "../policies.ts";
import { rehearse } from "../rehearsal.ts";
import { readTraces } from "../replay/read/read_trace.ts";
import { type Baseline, replay, type ReplayOptions } from "../replay/replay.ts";
import type { ReplayReport } from "../replay/report_data.ts";
import { htmlReport } from "../replay/report/html_report.ts";
import { svgReport } from "../replay/report/svg_report.ts";
import { type Workload, workloadOf } from "../replay/workload.ts";
import { chooseTrace, TRACE_DEVICE_FLAG } from "./choose_trace.ts";
import type { Command } from "./command.ts";
import type { CommandContext } from "./context.ts";
import { DEVICE_FLAG, deviceOf, openDevice } from "./device_flag.ts";
import { ExitCode } from "./exit_codes.ts";
import { openFile, writeTextFile } from "./files.ts";
import { openVerifier } from "./open_verifier.ts";
import { MismatchError, ReplayChecker } from "./replay_checker.ts";
import { renderReplay } from "./replay_report.ts";
import { UsageError } from "./usage_error.ts";

const BASELINES: readonly Baseline[] = ["plain", "pool", "segments"];

/** More steps than this and a memory map would be too large to look at. */
const MOST_MAPPED_STEPS = 500_000;

/** The granularity of NVIDIA's and AMD's devices. */
const MODEL_GRANULARITY = 2 * 1024 ** 2;

/** The command. */
export const replayCommand: Command = {
  name: "replay",
  summary: "say what a recorded workload needs, beside other allocators",
  usage: "FILE",
  details:
    `FILE is a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot), a log
of RMM (CSV), or MoonBright's own recording, compressed with gzip or not.
Every allocation and free is replayed in order, streams kept. On a device the
driver's plain allocator, its pool, and the recorded allocator's segments
are replayed in the same run; --model needs no device and no memory and counts
what the driver's calls would cost on an NVIDIA H200.
"Mapped" is what MoonBright held, "live" what the workload asked for.
A file that can't be understood makes the exit code 6, requests that could not
be served 4, contents lost under --verify 5.`,
  flags: [
    DEVICE_FLAG,
    { name: "model", summary: "count costs only, without a device" },
    {
      name: "budget",
      value: "SIZE",
      summary: "most that all extents may take",
      default: "no limit",
    },
    {
      name: "min-budget",
      summary: "also find the smallest budget that completes",
    },
    {
      name: "policy",
      value: "POLICY",
      choices: POLICY_NAMES,
      summary: "what counts most",
      default: "default",
    },
    {
      name: "extent-size",
      value: "SIZE",
      summary: "cut growth into extents of this size",
    },
    {
      name: "most-extents",
      value: "NUMBER",
      summary: "extents to create at most for a request",
    },
    {
      name: "baselines",
      value: "LIST",
      summary: "of plain,pool,segments, or none",
      default: "all",
    },
    {
      name: "rounds",
      value: "NUMBER",
      summary: "tell each request's median of so many",
      default: "1",
    },
    {
      name: "verify",
      value: "HOW",
      choices: ["kernel", "host"],
      summary: "fill and check every block",
    },
    TRACE_DEVICE_FLAG,
    { name: "html", value: "FILE", summary: "write a report to look at" },
    { name: "svg", value: "FILE", summary: "write a picture" },
  ],
  examples: [
    {
      args: "replay snapshot.pickle.gz",
      what: "a snapshot on a GPU if there is one",
    },
    {
      args: "replay snapshot.pickle.gz --model --min-budget",
      what: "what it needs at least, without a device",
    },
    {
      args: "replay snapshot.pickle --budget 20GiB --html report.html",
      what: "whether 20 GiB are enough, with a report to look at",
    },
  ],
  async run(context) {
    const { flags } = context;
    const file = fileOf(context);
    const model = flags.on("model");
    const options = optionsOf(context, model);
    const workload = await readWorkload(context, file);
    let report: ReplayReport;
    try {
      report = await replay(workload, withMap(context, options, workload));
    } catch (error) {
      if (!(error instanceof MismatchError)) throw error;
      context.progress.clear();
      context.host.stderr.write(`moonbright: ${error.message}\n`);
      return ExitCode.MISMATCH;
    }
    context.progress.clear();
    const html = flags.text("html");
    if (html !== undefined) writeTextFile(html, await htmlReport(report));
    const svg = flags.text("svg");
    if (svg !== undefined) writeTextFile(svg, await svgReport(report));
    if (context.json) {
      // Maps are for pages: as JSON they are larger than the recording itself.
      const runs = report.runs.map(({ map: _, ...run }) => run);
      context.printJson({ command: "replay", ...report, runs });
    } else context.print(renderReplay(report, context.style));
    const completed = report.runs.every((run) =>
      run.allocator !== "moonbright" || run.completed
    );
    return completed ? ExitCode.OK : ExitCode.OUT_OF_MEMORY;
  },
};

function fileOf({ flags }: CommandContext): string {
  const [file, ...more] = flags.positionals;
  if (file === undefined || more.length > 0) {
    throw new UsageError(
      `Cannot replay ${
        file === undefined ? "nothing" : `${more.length + 1} files at once`
      }: name one file`,
    );
  }
  return file;
}

function optionsOf(context: CommandContext, model: boolean): ReplayOptions {
  const { flags } = context;
  if (model && (flags.text("device") ?? flags.text("verify")) !== undefined) {
    throw new UsageError(
      "Cannot use --model with --device or --verify: there is no device and no memory then",
    );
  }
  deviceOf(flags);
  const growth: Partial<GrowthPolicy> = {};
  const extentSize = flags.size("extent-size");
  if (extentSize !== undefined) growth.extentSize = extentSize;
  const mostExtents = flags.integer("most-extents", 1, 1e6);
  if (mostExtents !== undefined) growth.mostExtents = mostExtents;
  const how = flags.text("verify");
  return {
    open: (options) =>
      explained(() =>
        model ? openModel(options) : openDevice(context, options)
      ),
    model: model ? modelOf : undefined,
    policy: (flags.text("policy") ?? "default") as PolicyName,
    growth,
    budget: flags.size("budget") ?? Infinity,
    findBudget: flags.on("min-budget"),
    rounds: flags.integer("rounds", 1, 99) ?? 1,
    baselines: baselinesOf(context, model),
    map: false,
    checker: how === undefined ? undefined : (mb) => {
      const verifier = openVerifier(context, mb, how);
      return verifier && new ReplayChecker(verifier);
    },
    progress: (what) => context.progress.update(what),
    breathe: () => context.breathe(),
  };
}

/** Opens; which sizes extents can have is known only then. */
function explained(open: () => MoonBright): MoonBright {
  try {
    return open();
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const message = cause.message.replace("growth.extentSize", "--extent-size");
    throw new UsageError(message, { cause });
  }
}

function baselinesOf(context: CommandContext, model: boolean): Baseline[] {
  const text = context.flags.text("baselines");
  if (text === undefined) return model ? [] : [...BASELINES];
  if (text === "none") return [];
  const names = text.split(",");
  for (const name of names) {
    if (!BASELINES.includes(name as Baseline)) {
      throw new UsageError(
        `Cannot use --baselines: "${name}" is none of ${
          BASELINES.join(", ")
        }, none`,
      );
    }
  }
  if (model) {
    throw new UsageError(
      "Cannot use --baselines with --model: it knows no costs of other allocators",
    );
  }
  return names as Baseline[];
}

function withMap(
  context: CommandContext,
  options: ReplayOptions,
  { steps }: Workload,
): ReplayOptions {
  if (context.flags.text("html") === undefined) return options;
  if (steps <= MOST_MAPPED_STEPS) return { ...options, map: true };
  context.warn(
    `the report has no memory map: ${steps} steps are more than ${MOST_MAPPED_STEPS}`,
  );
  return options;
}

async function readWorkload(
  context: CommandContext,
  file: string,
): Promise<Workload> {
  context.progress.update(`reading ${file}`);
  const name = file.split(/[/\\]/).at(-1)!;
  const traces = await readTraces(name, await openFile(file));
  return workloadOf(name, chooseTrace(context, traces, "replay"));
}

/** An instance over a device that counts what calls would cost on an NVIDIA H200. */
function openModel(
  options: ConstructorParameters<typeof MoonBright>[1],
): MoonBright {
  rehearse();
  const { costs } = profileOf("cuda");
  return new MoonBright(new CostDevice(MODEL_GRANULARITY, costs), {
    ...options,
    costs,
  });
}

function modelOf(mb: MoonBright): ReturnType<
  NonNullable<ReplayOptions["model"]>
> {
  const device = mb.driver as CostDevice;
  return { costs: profileOf("cuda").costs, spentNs: () => device.spentNs };
}
