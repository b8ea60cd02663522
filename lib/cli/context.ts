/**
 * What a command is given to work with.
 *
 * @module
 */

import type { Flags } from "./flags.ts";
import type { CliHost } from "./host.ts";
import { InterruptedError } from "./interrupted_error.ts";
import { Progress } from "./progress.ts";
import { type Style, styleFor } from "./style.ts";

/** Version of the layout of every JSON document that commands print. */
export const SCHEMA_VERSION = 1;

const BREATH_EVERY_MS = 50;

/** The surroundings of one run of a command. */
export class CommandContext {
  /** The outside. */
  readonly host: CliHost;
  /** The command's flags. */
  readonly flags: Flags;
  /** Style of standard output. */
  readonly style: Style;
  /** The line of progress. */
  readonly progress: Progress;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  #lastBreathMs = performance.now();

  /** Surroundings of a command with the given flags. */
  constructor(host: CliHost, flags: Flags, signal: AbortSignal) {
    this.host = host;
    this.flags = flags;
    this.style = styleFor(
      host.stdout.isTerminal && !host.noColor && !flags.on("no-color"),
    );
    this.progress = new Progress(host.stderr);
    this.signal = signal;
  }

  /** Whether a JSON document is wanted instead of text. */
  get json(): boolean {
    return this.flags.on("json");
  }

  /** Writes text with its newlines to standard output. */
  print(text: string): void {
    this.progress.clear();
    this.host.stdout.write(text);
  }

  /** Writes the one JSON document of a run to standard output, with its version. */
  printJson(document: object): void {
    const versioned = { schemaVersion: SCHEMA_VERSION, ...document };
    this.print(`${JSON.stringify(versioned, null, 2)}\n`);
  }

  /** Writes a warning to standard error. */
  warn(message: string): void {
    const { stderr, noColor } = this.host;
    this.progress.clear();
    const style = styleFor(
      stderr.isTerminal && !noColor && !this.flags.on("no-color"),
    );
    stderr.write(`${style.yellow("moonbright: warning:")} ${message}\n`);
  }

  /**
   * Lets Ctrl-C be noticed. Loops that may take long call it in every round; most
   * calls return at once.
   *
   * @throws {InterruptedError} after Ctrl-C
   */
  async breathe(): Promise<void> {
    if (performance.now() - this.#lastBreathMs >= BREATH_EVERY_MS) {
      // Signals arrive only in a turn of the event loop.
      await new Promise((resolve) => setTimeout(resolve, 0));
      this.#lastBreathMs = performance.now();
    }
    if (this.signal.aborted) throw new InterruptedError();
  }

  /**
   * Waits for something, at most until Ctrl-C.
   *
   * @throws {InterruptedError} after Ctrl-C
   */
  async until<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this;
    const interrupted = Promise.withResolvers<never>();
    const abort = () => interrupted.reject(new InterruptedError());
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    try {
      return await Promise.race([promise, interrupted.promise]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }
}
