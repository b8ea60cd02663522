/**
 * How a run that failed is told.
 *
 * @module
 */

import { MoonBrightError, OutOfMemoryError } from "../errors.ts";
import { BadFileError } from "./bad_file_error.ts";
import { SCHEMA_VERSION } from "./context.ts";
import { type ExitCode, exitCodeOf } from "./exit_codes.ts";
import type { CliHost } from "./host.ts";
import { InterruptedError } from "./interrupted_error.ts";
import { styleFor } from "./style.ts";
import { UsageError } from "./usage_error.ts";

/**
 * Tells an error to people on standard error and, if JSON is wanted, to programs on
 * standard output. Returns the exit code.
 */
export function reportFailure(
  error: unknown,
  host: CliHost,
  wants: { json: boolean; color: boolean },
): ExitCode {
  const exitCode = exitCodeOf(error);
  // Whoever read the output, such as `head`, has had enough: nobody is left to tell.
  if (error instanceof Deno.errors.BrokenPipe) return exitCode;
  const style = styleFor(
    host.stderr.isTerminal && !host.noColor && wants.color,
  );
  host.stderr.write(
    `${style.red(`moonbright: ${messageOf(error)}`)}\n${hintOf(error)}`,
  );
  if (wants.json) {
    const document = {
      schemaVersion: SCHEMA_VERSION,
      error: {
        name: error instanceof Error ? error.name : "Error",
        message: error instanceof Error ? error.message : String(error),
        exitCode,
        ...(error instanceof MoonBrightError
          ? { code: error.code, operation: error.operation }
          : {}),
        ...(error instanceof OutOfMemoryError
          ? { details: { ...error.details, budget: finite(error) } }
          : {}),
      },
    };
    host.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  }
  return exitCode;
}

/** What to say first: the message alone where it explains itself, else the stack too. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const explained = error instanceof MoonBrightError ||
    error instanceof UsageError || error instanceof BadFileError ||
    error instanceof InterruptedError ||
    error instanceof Deno.errors.NotCapable;
  return explained ? error.message : error.stack ?? error.message;
}

/** What to say next, with its newlines. */
function hintOf(error: unknown): string {
  if (error instanceof UsageError) {
    const command = error.command === undefined ? "" : ` ${error.command}`;
    return `Try "moonbright${command} --help"\n`;
  }
  return "";
}

/** JSON knows no infinity. */
function finite(error: OutOfMemoryError): number | null {
  const { budget } = error.details;
  return budget === Infinity ? null : budget;
}
