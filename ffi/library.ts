/**
 * Finds and opens the shim.
 *
 * It looks, in this order, at the path it is given, at `MOONBRIGHT_LIB`, beside the
 * module (`native/libmoonbright.so`), and in the cache, where it is built on first use.
 *
 * @module
 */

import { fromFileUrl } from "@std/path";
import { MoonBrightError } from "../lib/errors.ts";
import { buildShim } from "./build.ts";
import { readEnv } from "./env.ts";
import { ABI_VERSION, SYMBOLS } from "./symbols.ts";

/** The shim's functions. */
export type ShimSymbols = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

/** Where a library came from. */
export type LibraryOrigin =
  | "argument"
  | "MOONBRIGHT_LIB"
  | "beside the module"
  | "cache";

/** An open shim. Never closed: calling into a closed library kills the process. */
export interface Library {
  /** Its file. */
  path: string;
  /** How it was found. */
  origin: LibraryOrigin;
  /** Its functions. */
  symbols: ShimSymbols;
}

const opened = new Map<string, Library>();

/**
 * Finds and opens the shim, building it if need be.
 *
 * @param path the library to use, and no other
 * @throws {MoonBrightError} listing every place tried and why it was not taken
 */
export function openLibrary(path?: string): Library {
  const explicit = path ?? readEnv("MOONBRIGHT_LIB");
  if (explicit !== undefined) {
    const origin = path === undefined ? "MOONBRIGHT_LIB" : "argument";
    return openAt(explicit, origin);
  }
  const tried: string[] = [];
  const beside = besideModule();
  if (beside !== undefined) {
    if (isFile(beside)) return openAt(beside, "beside the module");
    tried.push(`"${beside}": no such file`);
  }
  try {
    return openAt(buildShim(), "cache");
  } catch (cause) {
    if (!(cause instanceof MoonBrightError)) throw cause;
    tried.push(`cache: ${cause.message}`);
    throw new MoonBrightError(
      cause.code,
      "open",
      `Cannot open MoonBright's native library. Tried MOONBRIGHT_LIB: not set; ${
        tried.join("; ")
      }`,
      { cause },
    );
  }
}

function openAt(path: string, origin: LibraryOrigin): Library {
  const known = opened.get(path);
  if (known) return { ...known, origin };
  const library = { path, origin, symbols: load(path, origin) };
  opened.set(path, library);
  return library;
}

function load(path: string, origin: LibraryOrigin): ShimSymbols {
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
    throw new MoonBrightError(
      "library-mismatch",
      "open",
      `Cannot use "${path}" (${origin}): it has interface version ${version}, this MoonBright needs ${ABI_VERSION}; remove it or build it anew with "deno task build"`,
    );
  }
  return Deno.dlopen(path, SYMBOLS).symbols;
}

function besideModule(): string | undefined {
  const url = new URL("../native/libmoonbright.so", import.meta.url);
  return url.protocol === "file:" ? fromFileUrl(url) : undefined;
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    // Not allowed to look is as good as not there: the cache comes next.
    return false;
  }
}
