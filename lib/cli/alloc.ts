/**
 * `moonbright alloc`: allocates what it is told, proves that the memory is sound, gives
 * it back, and says what each step took.
 *
 * @module
 */

import type { Block } from "../block.ts";
import type { MoonBright } from "../moonbright.ts";
import {
  type AllocReport,
  renderAllocReport,
  type SpecReport,
  type Usage,
  waysBetween,
} from "./alloc_report.ts";
import { type AllocSpec, parseAllocSpecs } from "./alloc_spec.ts";
import { CallTally } from "./call_tally.ts";
import type { Command } from "./command.ts";
import type { CommandContext } from "./context.ts";
import { DEVICE_FLAG, openDevice } from "./device_flag.ts";
import { ExitCode } from "./exit_codes.ts";
import { seededRandom, shuffle } from "./random.ts";
import { openVerifier } from "./open_verifier.ts";
import { UsageError } from "./usage_error.ts";
import type { Verifier } from "./verifier.ts";

/** The command. */
export const allocCommand: Command = {
  name: "alloc",
  summary: "allocate blocks, verify their contents, give them back",
  usage: "SPEC...",
  details:
    `SPEC is a size such as 64MiB, or a size and a number of blocks such as
"64MiB x 100" (also 64MiBx100). Every block is filled with a pattern of its
own, then all are checked, by kernels on the device or, where those can't be
had, by copies to the host. A block that lost its pattern, or memory that was
not given back, makes the exit code 5. Times are of single calls, as this
process sees them.`,
  flags: [
    DEVICE_FLAG,
    {
      name: "budget",
      value: "SIZE",
      summary: "most that all extents together may take",
      default: "no limit",
    },
    {
      name: "verify",
      value: "HOW",
      choices: ["kernel", "host", "none"],
      summary: "who checks the contents",
    },
    {
      name: "order",
      value: "ORDER",
      choices: ["fifo", "lifo", "random"],
      summary: "order of freeing",
      default: "fifo",
    },
    {
      name: "seed",
      value: "NUMBER",
      summary: "decides the random order",
      default: "1",
    },
    { name: "hold", summary: "keep the blocks until Enter is pressed" },
  ],
  examples: [
    { args: `alloc "64MiB x 100"`, what: "100 blocks of 64 MiB" },
    {
      args: "alloc 1GiB 512x10000 --device cuda:0",
      what: "one large block and many small ones on the first NVIDIA GPU",
    },
    {
      args: "alloc 64MiBx16 --order random --budget 2GiB --json",
      what: "freed in random order, under a budget, as JSON",
    },
  ],
  async run(context) {
    const { flags } = context;
    const specs = parseAllocSpecs(flags.positionals);
    const order = flags.text("order") ?? "fifo";
    const seed = flags.integer("seed", 0, 2 ** 32 - 1) ?? 1;
    if (flags.on("hold") && !context.host.interactive) {
      throw new UsageError(
        "Cannot hold the blocks: standard input is no terminal to press Enter on",
      );
    }
    const calls = new CallTally();
    using mb = openDevice(context, {
      budget: flags.size("budget"),
      onDriverCall: calls.add,
    });
    using verifier = openVerifier(context, mb, context.flags.text("verify"));
    const before = usageOf(mb);
    const blocks: Block[] = [];
    const reports: SpecReport[] = [];
    for (const spec of specs) {
      reports.push(await allocateSpec(context, mb, spec, blocks, calls));
    }
    const verification = await verify(context, verifier, blocks, specs);
    const allocated = usageOf(mb);
    if (flags.on("hold")) await hold(context);
    calls.take();
    const times = await release(context, mb, blocks, order, seed);
    const after = usageOf(mb);
    const report: AllocReport = {
      command: "alloc",
      device: mb.device,
      budget: flags.size("budget") ?? null,
      specs: reports,
      verification,
      release: {
        order,
        seed,
        ...times,
        driverCalls: calls.take(),
        before,
        allocated,
        after,
        complete: after.live === 0 && after.mapped === 0,
      },
    };
    if (context.json) context.printJson(report);
    else context.print(renderAllocReport(report, context.style));
    const sound = verification.mismatches.length === 0 &&
      report.release.complete;
    return sound ? ExitCode.OK : ExitCode.MISMATCH;
  },
};

async function allocateSpec(
  context: CommandContext,
  mb: MoonBright,
  spec: AllocSpec,
  blocks: Block[],
  calls: CallTally,
): Promise<SpecReport> {
  const timesNs = new Float64Array(spec.count);
  const waysBefore = mb.stats().ways;
  calls.take();
  for (let i = 0; i < spec.count; i++) {
    await context.breathe();
    context.progress.update(`allocating ${spec.text}: ${i} of ${spec.count}`);
    const start = performance.now();
    const block = mb.alloc(spec.size);
    timesNs[i] = (performance.now() - start) * 1e6;
    blocks.push(block);
  }
  timesNs.sort();
  return {
    ...spec,
    bytes: spec.size * spec.count,
    ways: waysBetween(waysBefore, mb.stats().ways),
    allocNs: {
      p50: timesNs[Math.floor((spec.count - 1) / 2)]!,
      max: timesNs[spec.count - 1]!,
    },
    driverCalls: calls.take(),
  };
}

async function verify(
  context: CommandContext,
  verifier: Verifier | undefined,
  blocks: readonly Block[],
  specs: readonly AllocSpec[],
): Promise<AllocReport["verification"]> {
  if (!verifier) {
    return { mode: "none", blocks: 0, bytes: 0, ns: 0, mismatches: [] };
  }
  const start = performance.now();
  for (const step of ["fill", "check"] as const) {
    for (const [index, block] of blocks.entries()) {
      await context.breathe();
      context.progress.update(
        `${step}ing blocks: ${index} of ${blocks.length}`,
      );
      verifier[step](block, index);
    }
  }
  const mismatches = verifier.finish().map((mismatch) => ({
    ...mismatch,
    spec: specOf(specs, mismatch.index),
  }));
  return {
    mode: verifier.mode,
    blocks: blocks.length,
    bytes: specs.reduce((sum, { size, count }) => sum + size * count, 0),
    ns: (performance.now() - start) * 1e6,
    mismatches,
  };
}

/** Text of the spec that the block of an index came from. */
function specOf(specs: readonly AllocSpec[], index: number): string | null {
  let left = index;
  for (const { text, count } of specs) {
    if (left >= 0 && left < count) return text;
    left -= count;
  }
  return null;
}

async function hold(context: CommandContext): Promise<void> {
  context.progress.clear();
  context.host.stderr.write("holding the blocks; press Enter to free them\n");
  await context.until(context.host.enter());
}

async function release(
  context: CommandContext,
  mb: MoonBright,
  blocks: Block[],
  order: string,
  seed: number,
): Promise<{ freeNs: number; trimNs: number }> {
  if (order === "lifo") blocks.reverse();
  if (order === "random") shuffle(blocks, seededRandom(seed));
  const start = performance.now();
  for (const block of blocks) {
    await context.breathe();
    context.progress.update("freeing blocks");
    block.free();
  }
  const freed = performance.now();
  mb.trim();
  const trimmed = performance.now();
  return { freeNs: (freed - start) * 1e6, trimNs: (trimmed - freed) * 1e6 };
}

function usageOf(mb: MoonBright): Usage {
  const { live, mapped } = mb.stats();
  return { live, mapped, deviceFree: mb.driver.memoryInfo().free };
}
