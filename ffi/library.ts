/**
 * Finds and opens the shim.
 *
 * It looks, in this order, at the path it is given, at `MOONBRIGHT_LIB`, beside the
 * module (`native/libmoonbright.so`), and in the cache, where it is built on first use.
 * A path that was asked for is used or refused; one that was guessed may be passed over.
 * None is used that another user may have written (trust.ts).
 *
 * @module
 */

import { fromFileUrl, isAbsolute, resolve } from "@std/path";
import { MoonBrightError } from "../lib/errors.ts";
import { buildShim } from "./build.ts";
import { readEnv, whyUnset } from "./env.ts";
import { ABI_VERSION, SYMBOLS } from "./symbols.ts";
import { assertTrusted } from "./trust.ts";

/** The shim's functions. */
export type ShimSymbols = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

/** Where a library came from. */
export type LibraryOrigin =
  | "argument"
  | "MOONBRIGHT_LIB"
  | "beside the module"
  | "cache";

/**
 * A user's hold on the shim. The library is closed with the last one: calling into a
 * closed library kills the process, so nothing may be called after `dispose`.
 */
export interface Library extends Disposable {
  /** Its file. */
  readonly path: string;
  /** How it was found. */
  readonly origin: LibraryOrigin;
  /** Its functions. */
  readonly symbols: ShimSymbols;
}

interface Opened {
  library: Deno.DynamicLibrary<typeof SYMBOLS>;
  holds: number;
}

const opened = new Map<string, Opened>();

/**
 * Finds and opens the shim, building it if need be. Dispose of what it returns.
 *
 * @param path the library to use, and no other
 * @throws {MoonBrightError} listing every place tried and why it was not taken
 */
export function openLibrary(path?: string): Library {
  if (path !== undefined) return openAt(path, "argument");
  const named = readEnv("MOONBRIGHT_LIB");
  if (named !== undefined) return openAt(named, "MOONBRIGHT_LIB");
  const tried = [`MOONBRIGHT_LIB: ${whyUnset("MOONBRIGHT_LIB")}`];
  const beside = openBeside();
  if (typeof beside !== "string") return beside;
  tried.push(`beside the module: ${beside}`);
  try {
    return openAt(buildShim(), "cache");
  } catch (cause) {
    if (!(cause instanceof MoonBrightError)) throw cause;
    tried.push(`cache: ${cause.message}`);
    throw new MoonBrightError(
      cause.code,
      "open",
      `Cannot open MoonBright's native library. Tried ${tried.join("; ")}`,
      { cause },
    );
  }
}

/** The library beside the module, or why it was not taken. */
function openBeside(): Library | string {
  const url = new URL("../native/libmoonbright.so", import.meta.url);
  if (url.protocol !== "file:") return "the module was not loaded from a file";
  const path = fromFileUrl(url);
  try {
    if (!Deno.statSync(path).isFile) return `"${path}" is no file`;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return `no file "${path}"`;
    if (!(error instanceof Deno.errors.NotCapable)) throw error;
    return `"${path}" not looked at, as that needs --allow-read="${path}"`;
  }
  try {
    return openAt(path, "beside the module");
  } catch (error) {
    if (!(error instanceof MoonBrightError)) throw error;
    return error.message;
  }
}

function openAt(file: string, origin: LibraryOrigin): Library {
  // A bare name would have the system search for it.
  const path = isAbsolute(file) ? file : resolve(file);
  let known = opened.get(path);
  if (!known) {
    known = { library: load(path, origin), holds: 0 };
    opened.set(path, known);
  }
  const entry = known;
  entry.holds++;
  let held = true;
  return {
    path,
    origin,
    symbols: entry.library.symbols,
    [Symbol.dispose]() {
      if (!held) return;
      held = false;
      if (--entry.holds > 0) return;
      opened.delete(path);
      entry.library.close();
    },
  };
}

function load(
  path: string,
  origin: LibraryOrigin,
): Deno.DynamicLibrary<typeof SYMBOLS> {
  assertTrusted(path);
  // The version is asked through a table of its own: an older library may lack symbols.
  let version: number;
  try {
    const probe = Deno.dlopen(
      path,
      { mb_abi_version: SYMBOLS.mb_abi_version } as const,
    );
    version = probe.symbols.mb_abi_version();
    probe.close();
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) {
      throw new MoonBrightError(
        "permission",
        "open",
        `Cannot open "${path}" (${origin}): native libraries are not allowed; add --allow-ffi="${path}"`,
        { cause },
      );
    }
    throw new MoonBrightError(
      "no-library",
      "open",
      `Cannot open "${path}" (${origin}): ${
        cause instanceof Error ? cause.message : cause
      }`,
      { cause },
    );
  }
  if (version !== ABI_VERSION) {
    throw mismatch(
      path,
      origin,
      `it has interface version ${version}, this MoonBright needs ${ABI_VERSION}`,
    );
  }
  try {
    return Deno.dlopen(path, SYMBOLS);
  } catch (cause) {
    throw mismatch(path, origin, (cause as Error).message, cause);
  }
}

function mismatch(
  path: string,
  origin: LibraryOrigin,
  why: string,
  cause?: unknown,
): MoonBrightError {
  return new MoonBrightError(
    "library-mismatch",
    "open",
    `Cannot use "${path}" (${origin}): ${why}; remove it, or put the library there that "deno task build" makes`,
    { cause },
  );
}
