/**
 * The help: of the whole command line and of each command.
 *
 * @module
 */

import {
  type Command,
  COMMON_FLAGS,
  type Example,
  type Flag,
  VERSION_FLAG,
} from "./command.ts";
import { EXIT_CODE_MEANINGS } from "./exit_codes.ts";
import { type Style, styleFor } from "./style.ts";
import { renderPairs } from "./table.ts";

const PLAIN = styleFor(false);

/** What all commands are and do. */
export function generalHelp(
  commands: readonly Command[],
  style: Style = PLAIN,
): string {
  const examples = commands.flatMap((command) => command.examples.slice(0, 1));
  return `MoonBright allocates GPU memory.\n` +
    section("Usage", "  moonbright COMMAND [FLAGS]\n", style) +
    section(
      "Commands",
      renderPairs(commands.map(({ name, summary }) => [name, summary])),
      style,
    ) +
    section("Flags", renderFlags([...COMMON_FLAGS, VERSION_FLAG]), style) +
    section("Examples", renderExamples(examples), style) +
    section(
      "Exit codes",
      renderPairs(Object.entries(EXIT_CODE_MEANINGS)),
      style,
    ) +
    `\n"moonbright help COMMAND" explains a command.\n`;
}

/** What one command does and takes. */
export function commandHelp(command: Command, style: Style = PLAIN): string {
  const { name, summary, usage, details, flags, examples } = command;
  const line = ["moonbright", name, usage, "[FLAGS]"].filter(Boolean).join(" ");
  return `${summary}\n` +
    section("Usage", `  ${line}\n`, style) +
    (details ? `\n${details}\n` : "") +
    section("Flags", renderFlags([...flags, ...COMMON_FLAGS]), style) +
    section("Examples", renderExamples(examples), style);
}

function section(title: string, body: string, style: Style): string {
  return body === "" ? "" : `\n${style.bold(title)}\n${body}`;
}

function renderFlags(flags: readonly Flag[]): string {
  return renderPairs(flags.map((flag) => {
    const letter = flag.letter === undefined ? "" : `-${flag.letter}, `;
    const value = flag.value === undefined ? "" : ` ${flag.value}`;
    const choices = flag.choices ? ` (${flag.choices.join(", ")})` : "";
    const fallback = flag.default === undefined
      ? ""
      : `; ${flag.default} by default`;
    return [
      `${letter}--${flag.name}${value}`,
      `${flag.summary}${choices}${fallback}`,
    ];
  }));
}

function renderExamples(examples: readonly Example[]): string {
  return examples.map(({ args, what }) =>
    `  moonbright ${args}\n      ${what}\n`
  ).join("");
}
