/**
 * Compiles the kernels for the GPUs: `deno run -A kernels/build.ts [--check]`.
 *
 * `--check` builds into a temporary folder and compares it with what is stored in
 * `kernels/build/`. Nothing of the machine that builds goes into the output.
 *
 * @module
 */

import { fromFileUrl, join } from "@std/path";

/** AMD architectures that get a code object of their own. */
export const AMD_ARCHITECTURES: readonly string[] = [
  "gfx90a",
  "gfx942",
  "gfx1030",
  "gfx1100",
  "gfx1200",
];

const SOURCE_DIR = fromFileUrl(new URL(".", import.meta.url));

/** The folder with the compiled kernels that ship. */
export const BUILD_DIR: string = join(SOURCE_DIR, "build");

const COMMON_FLAGS = [
  "-O3",
  "-std=c11",
  "-ffreestanding",
  "-fno-ident",
  "-Wall",
  "-Wextra",
  "-Wpedantic",
  "-Werror",
];

// PTX 6.0 is what the drivers since CUDA 9 load; only --cuda-feature lowers it.
const NVIDIA_FLAGS = [
  "--target=nvptx64-nvidia-cuda",
  "-march=sm_70",
  "--cuda-feature=+ptx60",
  "-S",
];

// Version 4 code objects load on ROCm 5.2 and later.
const AMD_FLAGS = [
  "--target=amdgcn-amd-amdhsa",
  "-mcode-object-version=4",
  "-nogpulib",
  "-Wl,-s",
];

/**
 * Compiles every `kernels/*.c` into `outDir` as `<name>.ptx` and
 * `<name>.<architecture>.hsaco`.
 *
 * @returns the names of the files written, sorted
 * @throws {Error} if a tool is missing (naming its package) or a source does not compile
 */
export async function buildKernels(outDir: string): Promise<string[]> {
  await Deno.mkdir(outDir, { recursive: true });
  const written: string[] = [];
  for (const kernel of await kernelNames()) {
    written.push(await buildPtx(kernel, outDir));
    for (const architecture of AMD_ARCHITECTURES) {
      written.push(await buildCodeObject(kernel, architecture, outDir));
    }
  }
  return written.sort();
}

/**
 * Compares two folders of compiled kernels byte for byte.
 *
 * @returns the names that differ or that only one folder has, sorted
 */
export async function differingFiles(
  left: string,
  right: string,
): Promise<string[]> {
  const names = new Set([...await fileNames(left), ...await fileNames(right)]);
  const differing: string[] = [];
  for (const name of [...names].sort()) {
    const [a, b] = await Promise.all(
      [left, right].map((dir) => readIfThere(join(dir, name))),
    );
    if (!a || !b || !sameBytes(a, b)) differing.push(name);
  }
  return differing;
}

async function kernelNames(): Promise<string[]> {
  return (await fileNames(SOURCE_DIR))
    .filter((name) => name.endsWith(".c"))
    .map((name) => name.slice(0, -2));
}

async function fileNames(dir: string): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(dir)) {
    if (entry.isFile) names.push(entry.name);
  }
  return names.sort();
}

async function buildPtx(kernel: string, outDir: string): Promise<string> {
  const name = `${kernel}.ptx`;
  await runTool("clang-19", "clang-19", [
    ...NVIDIA_FLAGS,
    ...COMMON_FLAGS,
    ...["-o", join(outDir, name), `${kernel}.c`],
  ]);
  return name;
}

async function buildCodeObject(
  kernel: string,
  architecture: string,
  outDir: string,
): Promise<string> {
  const name = `${kernel}.${architecture}.hsaco`;
  const path = join(outDir, name);
  await runTool("clang-19", "clang-19 and lld-19", [
    ...AMD_FLAGS,
    ...COMMON_FLAGS,
    ...[`-mcpu=${architecture}`, "-o", path, `${kernel}.c`],
  ]);
  // The linker writes its own version and vendor there, whatever its flags.
  const strip = ["--remove-section=.comment", path];
  await runTool("llvm-objcopy-19", "llvm-19", strip);
  // Linkers mark their output executable; nobody runs a code object.
  await Deno.chmod(path, 0o644);
  return name;
}

/** Runs in the source folder, so that no path of this machine can reach the output. */
async function runTool(
  tool: string,
  packages: string,
  args: string[],
): Promise<void> {
  const command = new Deno.Command(tool, {
    args,
    cwd: SOURCE_DIR,
    stderr: "piped",
  });
  let output: Deno.CommandOutput;
  try {
    output = await command.output();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new Error(
      `Cannot build the kernels: "${tool}" was not found: install ${packages} (Debian and Ubuntu: apt-get install clang-19 lld-19 llvm-19)`,
      { cause: error },
    );
  }
  if (!output.success) {
    const text = new TextDecoder().decode(output.stderr).trim();
    throw new Error(
      `Cannot build the kernels: "${tool} ${
        args.join(" ")
      }" (it needs ${packages}) ended with code ${output.code}:\n${text}`,
    );
  }
}

async function readIfThere(path: string): Promise<Uint8Array | undefined> {
  try {
    return await Deno.readFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

async function check(): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-kernels-" });
  try {
    await buildKernels(dir);
    const differing = await differingFiles(dir, BUILD_DIR);
    if (differing.length === 0) return;
    console.error(
      `Compiled kernels are out of date, run kernels/build.ts: ${
        differing.map((name) => `"${name}"`).join(", ")
      }`,
    );
    Deno.exitCode = 1;
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

async function main(args: string[]): Promise<void> {
  const unknown = args.find((arg) => arg !== "--check");
  if (unknown !== undefined) {
    console.error(
      `Cannot build the kernels: unknown argument "${unknown}", only "--check" is known`,
    );
    Deno.exitCode = 2;
  } else if (args.length > 0) {
    await check();
  } else {
    // Kernels that no longer exist must not stay behind.
    await Deno.remove(BUILD_DIR, { recursive: true }).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
    for (const name of await buildKernels(BUILD_DIR)) console.log(name);
  }
}

if (import.meta.main) {
  try {
    await main(Deno.args);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exitCode = 1;
  }
}
