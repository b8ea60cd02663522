/**
 * The shim with address and undefined-behaviour checks, and processes that use it: Deno
 * runs with the sanitizer's runtime loaded ahead of everything.
 *
 * @module
 */

import { fromFileUrl, join } from "@std/path";

const NATIVE = fromFileUrl(new URL("../../native/", import.meta.url));

/** A shim with checks built in, and what processes need to use it. */
export interface SanitizedShim {
  /** The library's file. */
  path: string;
  /** Environment of processes that load it. */
  env: Record<string, string>;
}

/** The engine handles some faults itself; leaks of the whole runtime say nothing. */
const ASAN_OPTIONS = [
  "detect_leaks=0",
  "handle_segv=0",
  "allow_user_segv_handler=1",
  "abort_on_error=1",
  // Freed memory is kept for a while to be checked: little of it, so that growth shows.
  "quarantine_size_mb=4",
  "malloc_context_size=12",
].join(":");

/** Flags that build checks in; what they find ends the process. */
const FLAGS = [
  "-fsanitize=address,undefined",
  "-fno-sanitize-recover=all",
  "-fno-omit-frame-pointer",
];

/**
 * Builds a C library with checks into a folder; undefined if the compiler lacks them.
 *
 * @throws {Error} if the source does not compile
 */
export async function buildSanitized(
  path: string,
  sources: readonly string[],
): Promise<SanitizedShim | undefined> {
  const runtime = await output("cc", ["-print-file-name=libasan.so"]);
  // The compiler repeats the name of a file that it does not have.
  if (!runtime?.includes("/") || !await compiles(`${path}.probe`)) {
    return undefined;
  }
  const { success, stderr } = await new Deno.Command("cc", {
    args: [
      ...["-std=c11", "-g", "-O1", "-fPIC", "-shared", "-pthread"],
      "-fvisibility=hidden",
      ...FLAGS,
      ...["-o", path, ...sources, "-ldl"],
    ],
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return {
    path,
    env: { LD_PRELOAD: runtime, ASAN_OPTIONS, MOONBRIGHT_LIB: path },
  };
}

/** As {@linkcode buildSanitized}, of the shim. */
export function buildSanitizedShim(
  folder: string,
): Promise<SanitizedShim | undefined> {
  const sources = [...Deno.readDirSync(NATIVE)]
    .map(({ name }) => name)
    .filter((name) => name.endsWith(".c"))
    .map((name) => join(NATIVE, name));
  return buildSanitized(join(folder, "libmoonbright.so"), sources);
}

async function output(
  command: string,
  args: string[],
): Promise<string | undefined> {
  const { success, stdout } = await new Deno.Command(command, { args })
    .output();
  return success ? new TextDecoder().decode(stdout).trim() : undefined;
}

async function compiles(path: string): Promise<boolean> {
  const source = `${path}.c`;
  await Deno.writeTextFile(source, "int main(void) { return 0; }\n");
  const { success } = await new Deno.Command("cc", {
    args: [...FLAGS, "-o", path, source],
    stderr: "null",
  }).output();
  return success;
}
