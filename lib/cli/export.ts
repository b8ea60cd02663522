/**
 * `moonbright export`: recordings and snapshots in the formats of other tools.
 *
 * @module
 */

import { type MappedSnapshot, parseSnapshot } from "../live/read_snapshot.ts";
import { readTraces } from "../replay/read/read_trace.ts";
import type { Trace } from "../replay/trace.ts";
import { writeTrace } from "../replay/write_trace.ts";
import { pyTorchChunks } from "../replay/write/write_pytorch.ts";
import { rmmChunks } from "../replay/write/write_rmm.ts";
import { chooseTrace, TRACE_DEVICE_FLAG } from "./choose_trace.ts";
import type { Command } from "./command.ts";
import type { CommandContext } from "./context.ts";
import { ExitCode } from "./exit_codes.ts";
import { openFile, writeStream } from "./files.ts";
import { UsageError } from "./usage_error.ts";

const FORMATS = ["pytorch", "rmm", "moonbright"];

/** The command. */
export const exportCommand: Command = {
  name: "export",
  summary: "write a recording or snapshot in another tool's format",
  usage: "FILE OUT",
  details:
    `FILE is what replay reads (a PyTorch memory snapshot, a log of RMM, or
MoonBright's own recording), or a snapshot as JSON (from snapshot() or
"moonbright map --json"). OUT becomes

  pytorch     a memory snapshot that PyTorch's viewer opens, for all devices
  rmm         a log that RMM's replay benchmark reads, of one device
  moonbright  MoonBright's own recording, of one device

A snapshot as JSON has no events, so it can become only pytorch; there the
names of blocks show as their stack frame. --snapshot adds one to a recording
of the same program.`,
  flags: [
    {
      name: "to",
      value: "FORMAT",
      choices: FORMATS,
      summary: "the format of OUT",
    },
    {
      name: "snapshot",
      value: "FILE",
      summary: "what was held when the recording ended",
    },
    TRACE_DEVICE_FLAG,
  ],
  examples: [
    {
      args: "export --to pytorch run.trace run.pickle",
      what: "open a recording in PyTorch's viewer",
    },
    {
      args: "export --to rmm snapshot.pickle.gz snapshot.csv",
      what: "replay a PyTorch workload with RMM",
    },
  ],
  async run(context) {
    const [from, to] = filesOf(context);
    const format = context.flags.text("to");
    if (format === undefined) {
      throw new UsageError(
        `Cannot export: choose a format with --to: ${FORMATS.join(", ")}`,
      );
    }
    context.progress.update(`reading ${from}`);
    const { traces, snapshot } = await readEither(from);
    const held = snapshot ?? await heldOf(context, format);
    const out = format === "pytorch"
      ? ReadableStream.from(pyTorchChunks(traces, held))
      : convert(context, traces, held, format);
    context.progress.update(`writing ${to}`);
    await writeStream(to, out);
    const events = traces.reduce((sum, { events }) => sum + events.count, 0);
    if (context.json) {
      context.printJson({
        command: "export",
        format,
        file: to,
        devices: traces.length,
        events,
      });
    } else {
      context.print(
        `${to}: ${events} events${held ? " and a snapshot" : ""}\n`,
      );
    }
    return ExitCode.OK;
  },
};

function convert(
  context: CommandContext,
  traces: readonly Trace[],
  held: MappedSnapshot | undefined,
  format: string,
): ReadableStream<Uint8Array> {
  if (held) {
    throw new UsageError(
      `Cannot write a snapshot as ${format}: that format holds only events; use --to pytorch`,
    );
  }
  const trace = chooseTrace(context, traces, "export");
  return format === "moonbright"
    ? writeTrace(trace)
    : ReadableStream.from(rmmChunks(trace)).pipeThrough(
      new TextEncoderStream(),
    );
}

function filesOf({ flags }: CommandContext): [string, string] {
  const [from, to, ...more] = flags.positionals;
  if (from === undefined || to === undefined || more.length > 0) {
    throw new UsageError(
      "Cannot export: name two files, the one to read and the one to write",
    );
  }
  return [from, to];
}

async function heldOf(
  { flags }: CommandContext,
  format: string,
): Promise<MappedSnapshot | undefined> {
  const file = flags.text("snapshot");
  if (file === undefined) return undefined;
  if (format !== "pytorch") {
    throw new UsageError("Cannot use --snapshot: only --to pytorch holds one");
  }
  return parseSnapshot(await new Response(await openFile(file)).text(), file);
}

/** A recording in any format, or a snapshot of MoonBright. */
async function readEither(
  file: string,
): Promise<{ traces: Trace[]; snapshot?: MappedSnapshot }> {
  const name = file.split(/[/\\]/).at(-1)!;
  if (await isSnapshot(file)) {
    const text = await new Response(await openFile(file)).text();
    return { traces: [], snapshot: parseSnapshot(text, file) };
  }
  return { traces: await readTraces(name, await openFile(file)) };
}

/** Whether a file begins as a snapshot does: JSON, but no recording's first line. */
async function isSnapshot(file: string): Promise<boolean> {
  const stream = await openFile(file);
  const reader = stream.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  const head = new TextDecoder("latin1").decode(value?.subarray(0, 200));
  return /^\s*\{/.test(head) && !/^\s*\{[^\n]*"format"\s*:/.test(head);
}
