/**
 * What a command is.
 *
 * @module
 */

import type { CommandContext } from "./context.ts";
import type { ExitCode } from "./exit_codes.ts";

/** A flag of a command. One with a `value` takes a value; others are on or off. */
export interface Flag {
  /** Name, without dashes. */
  readonly name: string;
  /** A letter that stands for it. */
  readonly letter?: string;
  /** What it does, in a few words. */
  readonly summary: string;
  /** What its value is, such as `SIZE`. */
  readonly value?: string;
  /** The only values it takes. */
  readonly choices?: readonly string[];
  /** The value when it is not given, as the help shows it. */
  readonly default?: string;
}

/** A line that shows how to use a command. */
export interface Example {
  /** Arguments after `moonbright`. */
  readonly args: string;
  /** What it does. */
  readonly what: string;
}

/** A command: a file, and a row in `commands.ts`. */
export interface Command {
  /** Its name on the command line. */
  readonly name: string;
  /** What it does, in one line. */
  readonly summary: string;
  /** What stands after its name, flags left out, such as `SPEC...`; empty if nothing may. */
  readonly usage: string;
  /** More about it, in lines of at most 78 letters. */
  readonly details?: string;
  /** Its flags, without those of all commands. */
  readonly flags: readonly Flag[];
  /** How to use it. */
  readonly examples: readonly Example[];
  /** Does it. Errors it throws become messages and exit codes. */
  run(context: CommandContext): ExitCode | Promise<ExitCode>;
}

/** Flags that every command has. */
export const COMMON_FLAGS: readonly Flag[] = [
  { name: "json", summary: "print one JSON document instead of text" },
  { name: "no-color", summary: "print no colour, as with NO_COLOR set" },
  { name: "help", letter: "h", summary: "explain the command" },
];

/** A flag that stands only before or without a command. */
export const VERSION_FLAG: Flag = {
  name: "version",
  summary: "print the version",
};
