/**
 * Builds the fake vendor libraries that the tests of the GPU backends load.
 *
 * @module
 */

import { fromFileUrl, join } from "@std/path";

const SOURCE_DIR = fromFileUrl(new URL(".", import.meta.url));

/** Builds that were asked for, by the library's name. */
const building = new Map<string, Promise<string>>();

/**
 * Compiles the fake libcuda into a folder named after its sources, unless it is there.
 *
 * @returns the path of the library, usable for `Deno.dlopen` and as a backend's library
 * @throws {Error} if `cc` is missing or the source does not compile
 */
export function buildFakeCuda(): Promise<string> {
  return buildOnce("libfakecuda.so", "cuda.c", []);
}

/**
 * The same for the fake libamdhip64: as ROCm 6 and later export it, or without what ROCm
 * 5 lacks.
 */
export function buildFakeHip(rocm: 5 | 6 = 6): Promise<string> {
  return rocm === 5
    ? buildOnce("libfakehip5.so", "hip.c", ["-DFAKE_ROCM_5"])
    : buildOnce("libfakehip.so", "hip.c", []);
}

function buildOnce(
  name: string,
  source: string,
  defines: string[],
): Promise<string> {
  let built = building.get(name);
  if (!built) building.set(name, built = build(name, source, defines));
  return built;
}

async function build(
  name: string,
  source: string,
  defines: string[],
): Promise<string> {
  const dir = join(
    Deno.env.get("TMPDIR") ?? "/tmp",
    `moonbright-fake-gpu-${Deno.uid()}-${await sourceDigest()}`,
  );
  const path = join(dir, name);
  try {
    await Deno.stat(path);
    return path;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  await Deno.mkdir(dir, { recursive: true, mode: 0o700 });
  // Test processes that run at once must never load half a library.
  const unfinished = join(dir, `unfinished-${Deno.pid}-${crypto.randomUUID()}`);
  await compile(unfinished, source, defines);
  await Deno.rename(unfinished, path);
  return path;
}

async function sourceDigest(): Promise<string> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(SOURCE_DIR)) {
    if (/\.[ch]$/.test(entry.name)) names.push(entry.name);
  }
  const texts = await Promise.all(
    names.sort().map((name) => Deno.readTextFile(join(SOURCE_DIR, name))),
  );
  const bytes = new TextEncoder().encode(texts.join("\0"));
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest).subarray(0, 8)]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

async function compile(
  path: string,
  source: string,
  defines: string[],
): Promise<void> {
  const args = ["-std=c11", "-O1", "-g", "-fPIC", "-shared", "-pthread"];
  const { success, stderr } = await new Deno.Command("cc", {
    args: [...args, ...defines, "-o", path, join(SOURCE_DIR, source), "-ldl"],
    stderr: "piped",
  }).output();
  if (!success) {
    const text = new TextDecoder().decode(stderr).trim();
    throw new Error(`Cannot build the fake driver: "cc" failed:\n${text}`);
  }
}
