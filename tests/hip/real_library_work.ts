/**
 * Run as a script by the tests: looks at AMD's own runtime, if there is one, and prints
 * what it found as JSON. In a process of its own, as the runtime starts threads.
 *
 * @module
 */

import { openDriver } from "../../ffi/devices.ts";
import { MoonBrightError } from "../../lib/errors.ts";

/** What the script prints; nothing if no runtime is installed. */
export interface RealLibrary {
  /** Name of the library that was found. */
  name: string;
  /** Functions that the backend calls and the library lacks. */
  missing: string[];
  /** Code and message of the error of opening a device, undefined if there is one. */
  refusal?: [code: string, message: string];
}

/** As the backend looks for it. */
const NAMES = [7, 6, 5].map((version) => `libamdhip64.so.${version}`)
  .concat("libamdhip64.so");

/** Names of the functions in `native/hip_api.h`. */
export function symbolNames(): string[] {
  const header = Deno.readTextFileSync(
    new URL("../../native/hip_api.h", import.meta.url),
  );
  return [...header.matchAll(/\bX\([\w *]+, (hip\w+),/g)].map(([, name]) =>
    name!
  );
}

function missingIn(name: string): string[] | undefined {
  const symbols = Object.fromEntries(
    symbolNames().map((symbol) => [symbol, {
      type: "pointer",
      optional: true,
    }]),
  ) as Record<string, { type: "pointer"; optional: true }>;
  try {
    // Never closed, as little as the backend closes it.
    const found = Deno.dlopen(name, symbols).symbols;
    return Object.keys(symbols).filter((symbol) => found[symbol] === null);
  } catch {
    return undefined;
  }
}

function refusal(): [string, string] | undefined {
  try {
    openDriver({ device: "hip:0" }).close();
    return undefined;
  } catch (error) {
    if (error instanceof MoonBrightError) return [error.code, error.message];
    throw error;
  }
}

if (import.meta.main) {
  for (const name of NAMES) {
    const missing = missingIn(name);
    if (missing === undefined) continue;
    console.log(JSON.stringify({ name, missing, refusal: refusal() }));
    break;
  }
}
