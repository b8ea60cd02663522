/**
 * Compiles C sources into a cache folder, once per version of the sources: safe when
 * several processes do it at once.
 *
 * Run as a script it builds the shim ahead of its first use and prints where it is.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { join } from "@std/path";
import { MoonBrightError } from "../lib/errors.ts";
import { readEnv } from "./env.ts";
import { assertPlatform } from "./platform.ts";
import { assertTrusted } from "./trust.ts";
import { KERNEL_SOURCES, SHIM_SOURCES, type Sources } from "./sources.ts";

const SHIM_FLAGS = [
  "-std=c11",
  "-O2",
  "-fPIC",
  "-shared",
  "-fvisibility=hidden",
  "-pthread",
];

const KERNEL_FLAGS = [
  "-std=c11",
  "-O3",
  "-fPIC",
  "-shared",
  "-fvisibility=hidden",
];

/** What to compile. */
interface Compilation {
  /** Name of the library, without `.so`. */
  name: string;
  /** All sources, headers included. */
  sources: Sources;
  /** Those that are compiled. */
  units: string[];
  flags: readonly string[];
  libraries: readonly string[];
}

/** The folder that built libraries are kept in, undefined if there is no place for one. */
export function cacheFolder(): string | undefined {
  const own = readEnv("MOONBRIGHT_CACHE");
  if (own) return own;
  const cache = readEnv("XDG_CACHE_HOME");
  if (cache) return join(cache, "moonbright");
  const home = readEnv("HOME");
  return home ? join(home, ".cache", "moonbright") : undefined;
}

/**
 * Builds the shim unless the cache has it; returns the library's path.
 *
 * @throws {MoonBrightError} code `no-compiler`, `permission` or `unsupported`, saying what
 *   to do
 */
export function buildShim(): string {
  assertPlatform();
  return build({
    name: "libmoonbright",
    sources: SHIM_SOURCES,
    units: Object.keys(SHIM_SOURCES).filter((name) => name.endsWith(".c")),
    flags: SHIM_FLAGS,
    libraries: ["-ldl"],
  });
}

/**
 * Builds one kernel source of `kernels/` for the host unless the cache has it; returns
 * the library's path.
 *
 * @throws {MoonBrightError} code `no-compiler` or `permission`, saying what to do
 */
export function buildHostKernels(name: string): string {
  const headers = Object.entries(KERNEL_SOURCES).filter(([file]) =>
    file.endsWith(".h")
  );
  const unit = `${name}.c`;
  const source = KERNEL_SOURCES[unit];
  if (source === undefined) {
    throw new MoonBrightError(
      "not-found",
      "build kernels",
      `Cannot build kernels: there is no kernel source "${unit}"`,
    );
  }
  return build({
    name,
    sources: { ...Object.fromEntries(headers), [unit]: source },
    units: [unit],
    flags: KERNEL_FLAGS,
    libraries: [],
  });
}

function build(compilation: Compilation): string {
  const folder = cacheFolder();
  if (folder === undefined) {
    throw new MoonBrightError(
      "permission",
      "build",
      "Cannot build the native library: no cache folder is known; set MOONBRIGHT_CACHE, or allow reading HOME with --allow-env",
    );
  }
  // Split as make does, so that "ccache gcc" works.
  const compiler = (readEnv("CC") ?? "cc").trim().split(/\s+/);
  const { name, sources, flags, libraries } = compilation;
  const key = createHash("sha256").update(
    JSON.stringify([sources, flags, libraries, compiler, Deno.build.target]),
  ).digest("hex").slice(0, 32);
  const library = join(folder, key, `${name}.so`);
  return inCache(folder, () => {
    assertTrusted(library);
    if (exists(library)) return library;
    Deno.mkdirSync(join(folder, key), { recursive: true, mode: 0o700 });
    const lock = Deno.openSync(join(folder, `${key}.lock`), {
      create: true,
      write: true,
    });
    try {
      lock.lockSync(true);
      if (!exists(library)) {
        removeLeftovers(join(folder, key));
        compile(compilation, compiler, library);
      }
    } finally {
      lock.close();
    }
    return library;
  });
}

/** Empties the folder of a library, with its lock: who left something there is gone. */
function removeLeftovers(folder: string): void {
  for (const { name } of Deno.readDirSync(folder)) {
    Deno.removeSync(join(folder, name), { recursive: true });
  }
}

function compile(
  { name, sources, units, flags, libraries }: Compilation,
  [compiler, ...wrapped]: string[],
  library: string,
): void {
  const work = Deno.makeTempDirSync({ dir: join(library, "..") });
  try {
    for (const [file, source] of Object.entries(sources)) {
      Deno.writeTextFileSync(join(work, file), source);
    }
    const output = join(work, `${name}.so`);
    const { success, stderr } = run(compiler || "cc", [
      ...wrapped,
      ...flags,
      "-o",
      output,
      ...units.map((unit) => join(work, unit)),
      ...libraries,
    ]);
    if (!success) {
      throw new MoonBrightError(
        "no-compiler",
        "build",
        `Cannot build the native library: "${compiler}" failed; name another compiler in CC, or set MOONBRIGHT_LIB to a built library. It said:\n${
          new TextDecoder().decode(stderr).trim()
        }`,
      );
    }
    // Renamed when complete: nobody ever opens half a library.
    Deno.renameSync(output, library);
  } finally {
    Deno.removeSync(work, { recursive: true });
  }
}

function run(compiler: string, args: string[]): Deno.CommandOutput {
  try {
    return new Deno.Command(compiler, { args }).outputSync();
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) {
      throw new MoonBrightError(
        "permission",
        "build",
        `Cannot build the native library: running the C compiler is not allowed; add --allow-run=${compiler}, or build ahead with "deno task build"`,
        { cause },
      );
    }
    throw new MoonBrightError(
      "no-compiler",
      "build",
      `Cannot build the native library: there is no C compiler "${compiler}"; install one (Debian and Ubuntu: apt-get install gcc; Fedora: dnf install gcc; Alpine: apk add build-base), name one in CC, or set MOONBRIGHT_LIB to a built library`,
      { cause },
    );
  }
}

/** Runs what needs the cache folder; says what to do where that can't be used. */
function inCache<T>(folder: string, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) {
      throw new MoonBrightError(
        "permission",
        "build",
        `Cannot use the cache folder "${folder}": ${cause.message}; add --allow-read="${folder}" --allow-write="${folder}"`,
        { cause },
      );
    }
    if (!(cause instanceof Error) || cause instanceof MoonBrightError) {
      throw cause;
    }
    throw new MoonBrightError(
      cause instanceof Deno.errors.PermissionDenied
        ? "permission"
        : "no-library",
      "build",
      `Cannot use the cache folder "${folder}": ${cause.message}; set MOONBRIGHT_CACHE to a folder of your own`,
      { cause },
    );
  }
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

if (import.meta.main) console.log(buildShim());
