/**
 * Flags of a command line, read by its command's declarations.
 *
 * @module
 */

import { parseArgs } from "@std/cli/parse-args";
import { parseSize } from "../sizes.ts";
import type { Flag } from "./command.ts";
import { didYouMean } from "./suggest.ts";
import { UsageError } from "./usage_error.ts";

/** Flags and the other arguments of a command line. */
export class Flags {
  /** Arguments that are no flags. */
  readonly positionals: readonly string[];
  readonly #values: Readonly<Record<string, unknown>>;

  /** Flags with the values that `parseFlags` found. */
  constructor(
    positionals: readonly string[],
    values: Readonly<Record<string, unknown>>,
  ) {
    this.positionals = positionals;
    this.#values = values;
  }

  /** Whether a flag without a value is on. */
  on(name: string): boolean {
    return this.#values[name] === true;
  }

  /** The value of a flag, if it was given. */
  text(name: string): string | undefined {
    return this.#values[name] as string | undefined;
  }

  /**
   * The value of a flag as a number of bytes, if it was given.
   *
   * @throws {UsageError} if it is no size
   */
  size(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    try {
      return parseSize(text);
    } catch (cause) {
      throw new UsageError(
        `Cannot use --${name}: ${(cause as Error).message}`,
        { cause },
      );
    }
  }

  /**
   * The value of a flag as a whole number, if it was given.
   *
   * @throws {UsageError} if it is none, or not between `min` and `max`
   */
  integer(name: string, min: number, max: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^-?\d+$/.test(text) ? Number(text) : NaN;
    if (!(value >= min && value <= max)) {
      throw new UsageError(
        `Cannot use --${name}: "${text}" is not a whole number between ${min} and ${max}`,
      );
    }
    return value;
  }
}

/**
 * Reads flags by their declarations.
 *
 * @param stopEarly ends at the first argument that is no flag; it and the rest become
 *   positionals
 * @throws {UsageError} if a flag is unknown, lacks its value or has a wrong one
 */
export function parseFlags(
  args: readonly string[],
  declared: readonly Flag[],
  stopEarly = false,
): Flags {
  const switches = declared.filter(({ value }) => value === undefined);
  const valued = declared.filter(({ value }) => value !== undefined);
  const letters = declared.filter(({ letter }) => letter !== undefined);
  checkSwitches(args, switches);
  const parsed = parseArgs([...args], {
    boolean: switches.map(({ name }) => name),
    // "_" keeps positionals such as 512 from becoming numbers.
    string: [...valued.map(({ name }) => name), "_"],
    alias: Object.fromEntries(letters.map((flag) => [flag.letter!, flag.name])),
    stopEarly,
    unknown: (argument, key) => {
      if (key !== undefined) throw unknownFlag(argument, key, declared);
    },
  }) as unknown as Record<string, unknown> & { _: string[] };
  for (const { name, value, choices } of valued) {
    const given = parsed[name];
    if (given === "") {
      throw new UsageError(`Cannot use --${name}: it needs a value, ${value}`);
    }
    if (given !== undefined && choices && !choices.includes(given as string)) {
      throw new UsageError(
        `Cannot use --${name}: "${given}" is none of ${choices.join(", ")}${
          didYouMean(given as string, choices)
        }`,
      );
    }
  }
  return new Flags(parsed._, parsed);
}

/** Refuses `--json=yes`, which the parser would take for on. */
function checkSwitches(
  args: readonly string[],
  switches: readonly Flag[],
): void {
  const end = args.indexOf("--");
  for (const argument of end < 0 ? args : args.slice(0, end)) {
    const match = /^--([^=]+)=(.*)$/.exec(argument);
    if (!match || match[2] === "true" || match[2] === "false") continue;
    if (switches.some(({ name }) => name === match[1])) {
      throw new UsageError(
        `Cannot use --${match[1]}: it is on or off and takes no "${match[2]}"`,
      );
    }
  }
}

function unknownFlag(
  argument: string,
  key: string,
  declared: readonly Flag[],
): UsageError {
  const shown = argument.startsWith("--") ? `--${key}` : argument;
  return new UsageError(
    `Unknown flag "${shown}"${
      didYouMean(key, declared.map(({ name }) => name), "--")
    }`,
  );
}
