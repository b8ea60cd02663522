/**
 * Exit codes of the command line. Scripts may rely on them.
 *
 * @module
 */

import { type ErrorCode, MoonBrightError } from "../errors.ts";
import { BadFileError } from "./bad_file_error.ts";
import { InterruptedError } from "./interrupted_error.ts";
import { UsageError } from "./usage_error.ts";

/** What a run ended with. */
export const ExitCode = {
  /** All went well. */
  OK: 0,
  /** A failure that no other code describes. */
  FAILURE: 1,
  /** The command line makes no sense. */
  USAGE: 2,
  /** There is no such device, or the library for it can't be used. */
  NO_DEVICE: 3,
  /** The device or the budget has no room. */
  OUT_OF_MEMORY: 4,
  /** Memory did not hold what was written to it, or was not given back. */
  MISMATCH: 5,
  /** A file is not what it should be. */
  BAD_FILE: 6,
  /** No process publishes its memory, or the one asked does not answer. */
  NO_ANSWER: 7,
  /** Something got slower than the run compared with, beyond what is allowed for. */
  REGRESSION: 8,
  /** Ended by Ctrl-C. */
  INTERRUPTED: 130,
} as const;

/** One of the exit codes. */
export type ExitCode = typeof ExitCode[keyof typeof ExitCode];

/** The exit codes in a few words each, for the help. */
export const EXIT_CODE_MEANINGS: Readonly<Record<ExitCode, string>> = {
  [ExitCode.OK]: "success",
  [ExitCode.FAILURE]: "internal failure",
  [ExitCode.USAGE]: "wrong usage",
  [ExitCode.NO_DEVICE]: "no such device, or no usable library for it",
  [ExitCode.OUT_OF_MEMORY]: "out of memory",
  [ExitCode.MISMATCH]: "verification failed",
  [ExitCode.BAD_FILE]: "a file is damaged or of a kind that is not known",
  [ExitCode.NO_ANSWER]: "no process that publishes its memory, or no answer",
  [ExitCode.REGRESSION]: "slower than the run compared with",
  [ExitCode.INTERRUPTED]: "interrupted",
};

const CODES: Partial<Record<ErrorCode, ExitCode>> = {
  "out-of-memory": ExitCode.OUT_OF_MEMORY,
  "out-of-addresses": ExitCode.OUT_OF_MEMORY,
  "bad-trace": ExitCode.BAD_FILE,
  "no-answer": ExitCode.NO_ANSWER,
  "no-library": ExitCode.NO_DEVICE,
  "library-mismatch": ExitCode.NO_DEVICE,
  "no-compiler": ExitCode.NO_DEVICE,
  "permission": ExitCode.NO_DEVICE,
  "untrusted": ExitCode.NO_DEVICE,
  "no-device": ExitCode.NO_DEVICE,
  "unsupported": ExitCode.NO_DEVICE,
};

/** The exit code that an error leads to. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError) return ExitCode.USAGE;
  if (error instanceof BadFileError) return ExitCode.BAD_FILE;
  if (error instanceof InterruptedError) return ExitCode.INTERRUPTED;
  // Without the permission there is no library either.
  if (error instanceof Deno.errors.NotCapable) return ExitCode.NO_DEVICE;
  if (error instanceof MoonBrightError) {
    return CODES[error.code] ?? ExitCode.FAILURE;
  }
  return ExitCode.FAILURE;
}
