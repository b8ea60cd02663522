import { type Command, COMMON_FLAGS } from "./command.ts";
import type { CommandContext } from "./context.ts";
import { ExitCode } from "./exit_codes.ts";
import { findCommand } from "./find_command.ts";
import { commandHelp, generalHelp } from "./help.ts";
import { UsageError } from "./usage_error.ts";

/** The command that explains the others. */
export function helpCommand(commands: () => readonly Command[]): Command {
  return {
    name: "help",
    summary: "explain the command line or a command",
    usage: "[COMMAND]",
    flags: [],
    examples: [
      { args: "help", what: "what commands there are" },
      { args: "help alloc", what: "what alloc takes" },
    ],
    run(context) {
      const [name, ...rest] = context.flags.positionals;
      if (rest.length > 0) {
        throw new UsageError(
          `Cannot explain "${rest[0]}": help takes one command`,
        );
      }
      printHelp(
        context,
        commands(),
        name === undefined ? undefined : findCommand(name, commands()),
      );
      return ExitCode.OK;
    },
  };
}

/** Prints what the command line, or one command of it, does and takes. */
export function printHelp(
  context: CommandContext,
  commands: readonly Command[],
  command?: Command,
): void {
  if (context.json) {
    context.printJson({
      commonFlags: COMMON_FLAGS,
      commands: command ? [command] : commands,
    });
  } else {
    context.print(
      command
        ? commandHelp(command, context.style)
        : generalHelp(commands, context.style),
    );
  }
}
