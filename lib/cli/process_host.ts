/**
 * The process as the outside of the command line.
 *
 * @module
 */

import { describeEnvironment, describeMachine } from "./environment.ts";
import type { CliHost, CliStream, NativeSide } from "./host.ts";

/** The host that is this process and a native library. */
export function processHost(version: string, native: NativeSide): CliHost {
  return {
    ...native,
    version,
    stdout: new ProcessStream(Deno.stdout),
    stderr: new ProcessStream(Deno.stderr),
    noColor: Deno.noColor,
    get unicode() {
      return isUnicode();
    },
    interactive: Deno.stdin.isTerminal(),
    enter: readLine,
    onInterrupt,
    machine: () => describeMachine(version),
    environment: (device) => describeEnvironment(version, device),
  };
}

/** Standard output or standard error. */
class ProcessStream implements CliStream {
  readonly isTerminal: boolean;
  readonly #stream: typeof Deno.stdout;
  readonly #encoder = new TextEncoder();

  constructor(stream: typeof Deno.stdout) {
    this.#stream = stream;
    this.isTerminal = stream.isTerminal();
  }

  write(text: string): void {
    let bytes = this.#encoder.encode(text);
    // A pipe may take less than all at once.
    while (bytes.length > 0) {
      bytes = bytes.subarray(this.#stream.writeSync(bytes));
    }
  }

  columns(): number {
    return consoleSize().columns;
  }

  rows(): number {
    return consoleSize().rows;
  }
}

function consoleSize(): { columns: number; rows: number } {
  let columns = 0;
  let rows = 0;
  try {
    ({ columns, rows } = Deno.consoleSize());
  } catch {
    // There is no terminal.
  }
  // Terminals that were never told their size report zero.
  return { columns: columns || 80, rows: rows || 24 };
}

/** Whether the locale holds all letters; taken for granted where it is not told. */
function isUnicode(): boolean {
  try {
    const { env } = Deno;
    const locale = env.get("LC_ALL") || env.get("LC_CTYPE") || env.get("LANG");
    return !locale || /utf-?8/i.test(locale);
  } catch {
    // Not allowed to look.
    return true;
  }
}

async function readLine(): Promise<void> {
  const bytes = new Uint8Array(256);
  const newline = 10;
  for (;;) {
    const read = await Deno.stdin.read(bytes);
    if (read === null || bytes.subarray(0, read).includes(newline)) return;
  }
}

/** Only the first Ctrl-C asks a command to end; the next one ends the process at once. */
function onInterrupt(handler: () => void): () => void {
  const stop = () => Deno.removeSignalListener("SIGINT", once);
  const once = () => {
    stop();
    handler();
  };
  Deno.addSignalListener("SIGINT", once);
  return stop;
}
