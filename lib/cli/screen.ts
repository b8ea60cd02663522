/**
 * A terminal that is drawn anew in place.
 *
 * @module
 */

import type { CliStream } from "./host.ts";

// Control sequences of ECMA-48, which every terminal and ssh pass on.
const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";
const CLEAR = "\x1b[2J";
const HOME = "\x1b[H";
const CLEAR_LINE = "\x1b[K";
const CLEAR_BELOW = "\x1b[J";

/** Letters of a line, with escape sequences that take no room. */
// deno-lint-ignore no-control-regex
const PIECES = /\x1b\[[0-9;]*m|./gu;

/** Draws whole screens. Dispose it, so that the cursor comes back. */
export class Screen implements Disposable {
  readonly #stream: CliStream;

  /** Clears the terminal. */
  constructor(stream: CliStream) {
    this.#stream = stream;
    stream.write(HIDE_CURSOR + CLEAR);
  }

  /** Draws a text; what does not fit is left out. */
  draw(text: string): void {
    const rows = this.#stream.rows();
    const columns = this.#stream.columns();
    const lines = text.split("\n");
    // A line feed on the last row would scroll.
    const drawn = lines.slice(0, rows - 1)
      .map((line) => cut(line, columns) + CLEAR_LINE);
    this.#stream.write(HOME + drawn.join("\r\n") + CLEAR_BELOW);
  }

  /** Gives the cursor back, below what is drawn. */
  [Symbol.dispose](): void {
    this.#stream.write(`\r\n${SHOW_CURSOR}`);
  }
}

function cut(line: string, columns: number): string {
  let left = columns;
  return (line.match(PIECES) ?? []).filter((piece) =>
    piece.startsWith("\x1b") || left-- > 0
  ).join("");
}
