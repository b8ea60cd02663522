/**
 * The command line: finds the command, reads its flags, runs it.
 *
 * @module
 */

import { type Command, COMMON_FLAGS, VERSION_FLAG } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { CommandContext } from "./context.ts";
import { DEVICE_FLAG } from "./device_flag.ts";
import { ExitCode } from "./exit_codes.ts";
import { reportFailure } from "./failure.ts";
import { findCommand } from "./find_command.ts";
import { type Flags, parseFlags } from "./flags.ts";
import { generalHelp } from "./help.ts";
import { printHelp } from "./help_command.ts";
import type { CliHost } from "./host.ts";
import { UsageError } from "./usage_error.ts";

/** Flags that may stand before the command. */
const LEADING_FLAGS = [...COMMON_FLAGS, VERSION_FLAG, DEVICE_FLAG];

/**
 * Runs a command line. Nothing is thrown: errors are told on the host's standard
 * error. Returns the exit code.
 */
export async function runCli(
  args: readonly string[],
  host: CliHost,
  commands: readonly Command[] = COMMANDS,
): Promise<ExitCode> {
  try {
    return await dispatch(args, host, commands);
  } catch (error) {
    // The flags may be what is wrong, so they are looked for in the raw arguments.
    return reportFailure(error, host, {
      json: args.includes("--json"),
      color: !args.includes("--no-color"),
    });
  }
}

async function dispatch(
  args: readonly string[],
  host: CliHost,
  commands: readonly Command[],
): Promise<ExitCode> {
  const end = args.indexOf("--");
  const head = end < 0 ? args : args.slice(0, end);
  const leading = parseFlags(head, LEADING_FLAGS, true);
  const [name] = leading.positionals;
  if (leading.on("version") || name === undefined) {
    return withoutCommand(leading, host, commands);
  }
  const command = findCommand(name, commands);
  const at = head.length - leading.positionals.length;
  const rest = [...args.slice(0, at), ...args.slice(at + 1)];
  try {
    return await runCommand(command, rest, host, commands);
  } catch (error) {
    if (error instanceof UsageError) error.command = command.name;
    throw error;
  }
}

function withoutCommand(
  flags: Flags,
  host: CliHost,
  commands: readonly Command[],
): ExitCode {
  const context = new CommandContext(host, flags, new AbortController().signal);
  if (flags.on("version")) {
    if (context.json) context.printJson({ version: host.version });
    else context.print(`moonbright ${host.version}\n`);
    return ExitCode.OK;
  }
  if (flags.on("help")) {
    printHelp(context, commands);
    return ExitCode.OK;
  }
  if (context.json) throw new UsageError("Cannot run: no command is given");
  host.stderr.write(generalHelp(commands));
  return ExitCode.USAGE;
}

async function runCommand(
  command: Command,
  args: readonly string[],
  host: CliHost,
  commands: readonly Command[],
): Promise<ExitCode> {
  const flags = parseFlags(args, [...command.flags, ...COMMON_FLAGS]);
  const interrupt = new AbortController();
  const context = new CommandContext(host, flags, interrupt.signal);
  if (flags.on("help")) {
    printHelp(context, commands, command);
    return ExitCode.OK;
  }
  if (command.usage === "" && flags.positionals.length > 0) {
    throw new UsageError(
      `Unexpected argument "${
        flags.positionals[0]
      }": ${command.name} takes only flags`,
    );
  }
  const endInterrupts = host.onInterrupt(() => interrupt.abort());
  try {
    return await command.run(context);
  } finally {
    endInterrupts();
    context.progress.clear();
  }
}
