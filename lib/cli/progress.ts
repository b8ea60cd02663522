/**
 * One line on a terminal that says what is being done.
 *
 * @module
 */

import type { CliStream } from "./host.ts";

const REDRAW_MS = 50;

/** A line that is redrawn in place. Writes nothing where there is no terminal. */
export class Progress {
  readonly #stream: CliStream;
  readonly #shown: boolean;
  #width = 0;
  #lastMs = -Infinity;

  /** Progress on a stream, usually standard error. */
  constructor(stream: CliStream, shown: boolean = stream.isTerminal) {
    this.#stream = stream;
    this.#shown = shown;
  }

  /** Shows a text in place of the last; skipped if the last was shown just now. */
  update(text: string): void {
    const nowMs = performance.now();
    if (!this.#shown || nowMs - this.#lastMs < REDRAW_MS) return;
    this.#lastMs = nowMs;
    // A line that wraps could not be redrawn.
    const line = text.slice(0, Math.max(0, this.#stream.columns() - 1));
    this.#stream.write(`\r${line.padEnd(this.#width)}`);
    this.#width = line.length;
  }

  /** Removes the line. */
  clear(): void {
    if (this.#width === 0) return;
    // Spaces, since terminals that take no colour may take no escapes at all.
    this.#stream.write(`\r${" ".repeat(this.#width)}\r`);
    this.#width = 0;
    this.#lastMs = -Infinity;
  }
}
