/**
 * What can stand where on a command line, for completions.
 *
 * @module
 */

import {
  type Command,
  COMMON_FLAGS,
  type Flag,
  VERSION_FLAG,
} from "../command.ts";
import { DEVICE_FLAG } from "../device_flag.ts";

/** What can be completed: files, one of some words, or nothing that is known. */
export type Completion = "files" | "nothing" | readonly string[];

/** All flags of a command. */
export function flagsOf(command: Command): readonly Flag[] {
  return [...command.flags, ...COMMON_FLAGS];
}

/** The flags that may stand before a command. */
export const LEADING_FLAGS: readonly Flag[] = [
  ...COMMON_FLAGS,
  VERSION_FLAG,
  DEVICE_FLAG,
];

/** What a flag's value can be. */
export function valueOf({ value, choices, name }: Flag): Completion {
  if (choices) return choices;
  if (name === DEVICE_FLAG.name) return ["auto", "host", "cuda:0", "hip:0"];
  return value === "FILE" ? "files" : "nothing";
}

/** What the arguments of a command can be, by what its usage calls them. */
export function argumentsOf(
  { usage }: Command,
  commands: readonly Command[],
): Completion {
  if (/\b(FILE|OUT)\b/.test(usage)) return "files";
  if (/\bCOMMAND\b/.test(usage)) return commands.map(({ name }) => name);
  if (/\bSHELL\b/.test(usage)) return ["bash", "zsh", "fish"];
  return "nothing";
}

/** A text in single quotes, as all three shells read it but fish. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
