/**
 * `moonbright completions`: what a shell needs to complete command lines.
 *
 * @module
 */

import { bashCompletions } from "./completions/bash.ts";
import { fishCompletions } from "./completions/fish.ts";
import { zshCompletions } from "./completions/zsh.ts";
import type { Command } from "./command.ts";
import { ExitCode } from "./exit_codes.ts";
import { didYouMean } from "./suggest.ts";
import { UsageError } from "./usage_error.ts";

const SHELLS: Record<string, (commands: readonly Command[]) => string> = {
  bash: bashCompletions,
  zsh: zshCompletions,
  fish: fishCompletions,
};

/** The command that prints completions of all commands. */
export function completionsCommand(
  commands: () => readonly Command[],
): Command {
  return {
    name: "completions",
    summary: "print completions for a shell",
    usage: "SHELL",
    details: `SHELL is bash, zsh or fish. The shell must know this program as
"moonbright": an alias, or what "deno install" makes.`,
    flags: [],
    examples: [
      {
        args: "completions bash > moonbright.bash",
        what: "to be sourced, or put into ~/.local/share/bash-completion",
      },
      {
        args: "completions zsh > ~/.zfunc/_moonbright",
        what: "into a folder of fpath",
      },
      {
        args: "completions fish > moonbright.fish",
        what: "to be put into ~/.config/fish/completions",
      },
    ],
    run(context) {
      const [shell, ...more] = context.flags.positionals;
      const names = Object.keys(SHELLS);
      if (shell === undefined || more.length > 0) {
        throw new UsageError(
          `Cannot print completions: name one shell, ${names.join(", ")}`,
        );
      }
      if (!Object.hasOwn(SHELLS, shell)) {
        throw new UsageError(
          `Cannot print completions for "${shell}": it is none of ${
            names.join(", ")
          }${didYouMean(shell, names)}`,
        );
      }
      const script = SHELLS[shell]!(commands());
      if (context.json) {
        context.printJson({ command: "completions", shell, script });
      } else context.print(script);
      return ExitCode.OK;
    },
  };
}
