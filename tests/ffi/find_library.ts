/**
 * Run as a script by the tests: finds the shim and prints how it went, as JSON.
 *
 * @module
 */

import { openLibrary } from "../../ffi/library.ts";
import { MoonBrightError } from "../../lib/errors.ts";

/** What the script prints: where the library was found, or the error. */
export interface Finding {
  path?: string;
  origin?: string;
  code?: string;
  message?: string;
}

function find(path: string | undefined): Finding {
  try {
    const library = openLibrary(path);
    return { path: library.path, origin: library.origin };
  } catch (error) {
    if (!(error instanceof MoonBrightError)) throw error;
    return { code: error.code, message: error.message };
  }
}

if (import.meta.main) console.log(JSON.stringify(find(Deno.args[0])));
