/**
 * Completions for bash.
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

/** The script: a function, and what ties it to the program's name. */
export function bashCompletions(commands: readonly Command[]): string {
  const names = commands.map(({ name }) => name);
  const values = [
    ...LEADING_FLAGS.flatMap((flag) => valueCase("", flag)),
    ...commands.flatMap((command) =>
      flagsOf(command).flatMap((flag) => valueCase(command.name, flag))
    ),
  ];
  const words = [
    wordsCase("", LEADING_FLAGS, names),
    ...commands.map((command) =>
      wordsCase(command.name, flagsOf(command), argumentsOf(command, commands))
    ),
  ];
  return `# Completions of moonbright for bash. Made by "moonbright completions bash".
_moonbright() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local command='' word flags='' choices='' files=''
  # Bash takes "--flag=value" for three words.
  if [[ $current == = ]]; then
    current=''
  elif [[ $previous == = ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    case $word in
      ${names.join("|")}) command=$word; break ;;
    esac
  done
  COMPREPLY=()
  case "$command $previous" in
${values.join("")}    *)
      case $command in
${words.join("")}      esac
      ;;
  esac
  if [[ $current == -* ]]; then choices=$flags; files=''; fi
  if [[ $choices ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
  elif [[ $files ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _moonbright moonbright
`;
}

function valueCase(command: string, flag: Flag): string[] {
  if (flag.value === undefined) return [];
  return [
    `    ${quoted(`${command} --${flag.name}`)}) ${found(valueOf(flag))} ;;\n`,
  ];
}

function wordsCase(
  command: string,
  flags: readonly Flag[],
  others: Completion,
): string {
  const names = flags.flatMap(({ name, letter }) =>
    letter === undefined ? [`--${name}`] : [`--${name}`, `-${letter}`]
  );
  return `        ${quoted(command)}) flags=${quoted(names.join(" "))}; ${
    found(others)
  } ;;\n`;
}

function found(completion: Completion): string {
  if (completion === "files") return "files=yes";
  if (completion === "nothing") return ":";
  return `choices=${quoted(completion.join(" "))}`;
}
