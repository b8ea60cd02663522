/**
 * Completions for fish.
 *
 * @module
 */

import type { Command, Flag } from "../command.ts";
import {
  argumentsOf,
  type Completion,
  flagsOf,
  LEADING_FLAGS,
  valueOf,
} from "./words.ts";

/** The script: one \`complete\` for each word. */
export function fishCompletions(commands: readonly Command[]): string {
  const lines = [
    "complete -c moonbright -f",
    ...commands.map(({ name, summary }) =>
      complete("__fish_use_subcommand", `-a ${name} -d ${fishQuoted(summary)}`)
    ),
    ...LEADING_FLAGS.map((flag) =>
      complete("__fish_use_subcommand", flagOptions(flag))
    ),
  ];
  for (const command of commands) {
    const when = `__fish_seen_subcommand_from ${command.name}`;
    for (const flag of flagsOf(command)) {
      lines.push(complete(when, flagOptions(flag)));
    }
    const others = argumentsOf(command, commands);
    if (others !== "nothing") {
      lines.push(complete(when, completionOptions(others)));
    }
  }
  return `# Completions of moonbright for fish. Made by "moonbright completions fish".
${lines.join("\n")}
`;
}

function complete(condition: string, options: string): string {
  return `complete -c moonbright -n ${fishQuoted(condition)} ${options}`;
}

function flagOptions(flag: Flag): string {
  const { name, letter, summary, value } = flag;
  return [
    `-l ${name}`,
    letter === undefined ? "" : `-s ${letter}`,
    value === undefined ? "" : valueOptions(valueOf(flag)),
    `-d ${fishQuoted(summary)}`,
  ].filter(Boolean).join(" ");
}

/** A value is required; files are completed only where it is one. */
function valueOptions(completion: Completion): string {
  return completion === "files"
    ? "-r -F"
    : completion === "nothing"
    ? "-x"
    : `-x ${completionOptions(completion)}`;
}

function completionOptions(completion: Completion): string {
  if (completion === "files") return "-F";
  if (completion === "nothing") return "";
  return `-a ${fishQuoted(completion.join(" "))}`;
}

/** A text in single quotes, in which fish knows two escapes. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
}
