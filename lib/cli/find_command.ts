import type { Command } from "./command.ts";
import { didYouMean } from "./suggest.ts";
import { UsageError } from "./usage_error.ts";

/**
 * The command of a name.
 *
 * @throws {UsageError} if there is none, with the nearest one's name
 */
export function findCommand(
  name: string,
  commands: readonly Command[],
): Command {
  const found = commands.find((command) => command.name === name);
  if (found) return found;
  throw new UsageError(
    `Unknown command "${name}"${
      didYouMean(name, commands.map((command) => command.name))
    }`,
  );
}
