/**
 * Lines of a text file.
 *
 * @module
 */

import type { ByteSource } from "./byte_source.ts";
import { MAX_LINE } from "./limits.ts";
import type { TraceFormatError } from "./trace_format_error.ts";

const CARRIAGE_RETURN = 13;

/** The lines of a source from where it is, without their ends. */
export class TextLines {
  /** The file's name. */
  readonly name: string;
  /** Number of the line that was given last; the first is 1. */
  number = 0;
  readonly #source: ByteSource;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  /** Text that has not been given out. */
  #text = "";
  #at = 0;
  #ended = false;
  /** Whether the line that was given last has no end, since the file ends there. */
  #cut = false;

  /** Reads text from a source; a byte order mark is left out. */
  constructor(source: ByteSource) {
    this.name = source.name;
    this.#source = source;
  }

  /** The next line, undefined at the end. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const line = this.#take();
      if (line !== undefined || this.#ended) return line;
      await this.#read();
    }
  }

  /** Visits all lines that are left. */
  async forEach(visit: (line: string) => void): Promise<void> {
    for (;;) {
      for (
        let line = this.#take();
        line !== undefined;
        line = this.#take()
      ) visit(line);
      if (this.#ended) return;
      await this.#read();
    }
  }

  /** Makes an error at the line that was given last. */
  error(problem: string): TraceFormatError {
    const hint = this.#cut && this.number > 1
      ? "; the file ends in this line: if its recorder was stopped, delete the line"
      : "";
    return this.#source.error(problem + hint, { line: this.number });
  }

  /** The next line of the text at hand, undefined if there is no whole one. */
  #take(): string | undefined {
    let end = this.#text.indexOf("\n", this.#at);
    if (end < 0) {
      if (!this.#ended || this.#at === this.#text.length) return undefined;
      this.#cut = true;
      end = this.#text.length;
    }
    const line = this.#text.slice(
      this.#at,
      this.#text.charCodeAt(end - 1) === CARRIAGE_RETURN && end > this.#at
        ? end - 1
        : end,
    );
    this.#at = Math.min(end + 1, this.#text.length);
    this.number++;
    return line;
  }

  async #read(): Promise<void> {
    const bytes = await this.#source.take();
    this.#ended = bytes === undefined;
    const more = this.#decode(bytes);
    this.#text = this.#text.slice(this.#at) + more;
    this.#at = 0;
    // Only an unfinished line can have been left over.
    if (this.#text.length - more.length > MAX_LINE) {
      throw this.#source.error(
        `it is longer than ${MAX_LINE} characters, so this is no text of lines`,
        { line: this.number + 1 },
      );
    }
  }

  #decode(bytes: Uint8Array | undefined): string {
    try {
      return bytes === undefined
        ? this.#decoder.decode()
        : this.#decoder.decode(bytes, { stream: true });
    } catch {
      throw this.#source.error(
        "expected text in UTF-8; the file is damaged, or something else",
        { line: this.number + 1 },
      );
    }
  }
}
