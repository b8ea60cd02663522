/**
 * Completions for zsh.
 *
 * @module
 */

import type { Command, Flag } from "../command.ts";
import {
  argumentsOf,
  type Completion,
  flagsOf,
  LEADING_FLAGS,
  quoted,
  valueOf,
} from "./words.ts";

/** The script: a function for \`fpath\`, which can also be sourced. */
export function zshCompletions(commands: readonly Command[]): string {
  const described = commands.map(({ name, summary }) =>
    `    ${quoted(`${name}:${escapeColons(summary)}`)}\n`
  );
  const cases = commands.map((command) => {
    const specs = [
      ...flagsOf(command).flatMap(flagSpecs),
      argumentSpec(argumentsOf(command, commands)),
    ].filter((spec) => spec !== "");
    return `        ${command.name})\n          _arguments ${
      specs.join(" \\\n            ")
    }\n          ;;\n`;
  });
  return `#compdef moonbright
# Completions of moonbright for zsh. Made by "moonbright completions zsh".
_moonbright() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands
  commands=(
${described.join("")}  )
  _arguments -C ${LEADING_FLAGS.flatMap(flagSpecs).join(" \\\n    ")} \\
    '1:command:->command' '*::argument:->arguments' && return
  case $state in
    command) _describe command commands ;;
    arguments)
      case $words[1] in
${cases.join("")}      esac
      ;;
  esac
}
if [[ $funcstack[1] == _moonbright ]]; then
  _moonbright "$@"
else
  compdef _moonbright moonbright
fi
`;
}

function flagSpecs(flag: Flag): string[] {
  const { name, letter, summary, value } = flag;
  const text = `[${escapeBrackets(summary)}]`;
  const action = value === undefined
    ? ""
    : `:${value}:${actionOf(valueOf(flag))}`;
  return [
    quoted(`--${name}${value === undefined ? "" : "="}${text}${action}`),
    ...(letter === undefined ? [] : [quoted(`-${letter}${text}${action}`)]),
  ];
}

function argumentSpec(completion: Completion): string {
  return completion === "nothing"
    ? quoted("*:argument: ")
    : quoted(`*:argument:${actionOf(completion)}`);
}

function actionOf(completion: Completion): string {
  if (completion === "files") return "_files";
  if (completion === "nothing") return " ";
  return `(${completion.map(escapeColons).join(" ")})`;
}

function escapeColons(text: string): string {
  return text.replaceAll(":", "\\:");
}

function escapeBrackets(text: string): string {
  return text.replaceAll(/[[\]:\\]/g, "\\$&");
}
