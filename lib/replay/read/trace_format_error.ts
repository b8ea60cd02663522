/**
 * What is thrown where the file of a recorded workload can't be read.
 *
 * @module
 */

import { MoonBrightError } from "../../errors.ts";

/** Where in a file something is wrong. */
export interface TracePlace {
  /** Bytes from the beginning of the data, after decompression. */
  offset?: number;
  /** Line of a text file, the first is 1. */
  line?: number;
}

/** A file is no recorded workload, is damaged, or is of a kind that is not supported. */
export class TraceFormatError extends MoonBrightError {
  override name = "TraceFormatError";
  /** The file, as the caller named it. */
  readonly file: string;
  /** Where it went wrong in a binary file, in bytes after decompression. */
  readonly offset: number | undefined;
  /** Where it went wrong in a text file; the first line is 1. */
  readonly line: number | undefined;

  /** Makes an error; `problem` says what was expected and what to do. */
  constructor(
    file: string,
    problem: string,
    place: TracePlace = {},
    options?: ErrorOptions,
  ) {
    super(
      "bad-trace",
      "read",
      `Cannot read "${file}"${describe(place)}: ${problem}`,
      options,
    );
    this.file = file;
    this.offset = place.offset;
    this.line = place.line;
  }
}

/** Makes the error for something that is wrong at the place that has been reached. */
export type Fail = (problem: string) => TraceFormatError;

function describe({ offset, line }: TracePlace): string {
  if (line !== undefined) return ` at line ${line}`;
  if (offset !== undefined) return ` at byte ${offset}`;
  return "";
}
