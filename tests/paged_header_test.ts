import { assert, assertEquals } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import { packArguments } from "../lib/kernel.ts";
import { viewArguments } from "../lib/paging/argument_blocks.ts";
import { encode, FORMATS } from "../lib/paging/formats.ts";
import { readReport, REPORT_NONE } from "../lib/paging/page_report.ts";
import { DEVICES, KernelBench } from "./paging/kernel_bench.ts";

const KERNELS = fromFileUrl(new URL("../kernels/", import.meta.url));
const EXAMPLES = fromFileUrl(new URL("./paging/", import.meta.url));

const WARNINGS = [
  ...["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion"],
  "-Werror",
];

/** The compilers that the header is for, with a source that each has to accept. */
const COMPILERS: Record<string, string[]> = {
  "gcc": ["-std=c11", ...WARNINGS, "-c", "saxpy.c"],
  "g++": ["-std=c++11", ...WARNINGS, "-c", "host_loop.cc"],
  "clang-19 for NVIDIA": [
    ...["--target=nvptx64-nvidia-cuda", "-march=sm_70"],
    ...["--cuda-feature=+ptx60", "-O3", "-std=c11", "-ffreestanding"],
    ...[...WARNINGS, "-Wno-pass-failed", "-S", "saxpy.c"],
  ],
  "clang-19 for AMD": [
    ...["--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-nogpulib", "-O3"],
    ...["-std=c11", "-ffreestanding", ...WARNINGS, "-c", "saxpy.c"],
  ],
  "clang-19 for HIP": [
    ...["-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib"],
    ...["--cuda-device-only", "-include", "hip_stub.h", "-emit-llvm", "-S"],
    "saxpy.cu",
  ],
  "nvcc": ["-ptx", "saxpy.cu"],
};

/** Compiles an example; the sources and options come after the program's name. */
async function compile(
  [program, ...args]: string[],
  output: string,
): Promise<void> {
  const { success, stderr } = await new Deno.Command(program!, {
    args: ["-I", KERNELS, ...args, "-o", output],
    cwd: EXAMPLES,
  }).output();
  assert(success, new TextDecoder().decode(stderr));
}

/** Runs something with a folder of its own. */
async function withFolder(use: (dir: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-header-" });
  try {
    await use(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

function isThere(program: string): boolean {
  try {
    return new Deno.Command(program, { args: ["--version"] }).outputSync()
      .success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

for (const [name, args] of Object.entries(COMPILERS)) {
  const program = name.split(" ")[0]!;
  const there = isThere(program);
  Deno.test({
    name: `the header compiles with ${name}, trapping or not${
      there ? "" : ` (ignored: ${program} not installed)`
    }`,
    ignore: !there,
    fn: () =>
      withFolder(async (dir) => {
        for (const define of [[], ["-DMB_TRAP"]]) {
          await compile([program, ...define, ...args], join(dir, "out"));
        }
      }),
  });
}

Deno.test("the guide shows the examples that are tested", async () => {
  const guide = await Deno.readTextFile(
    new URL("../docs/paged-kernels.md", import.meta.url),
  );
  for (const [language, file] of [["cuda", "saxpy.cu"], ["c", "saxpy.c"]]) {
    const source = await Deno.readTextFile(join(EXAMPLES, file!));
    assert(guide.includes(`\`\`\`${language}\n${source}\`\`\`\n`), file);
  }
});

/** How to make the example's image, by device; undefined if there is no compiler. */
function exampleCompiler(device: string): string[] | undefined {
  if (device === "host") {
    const flags = ["-O3", "-std=c11", "-fPIC", "-shared"];
    return ["cc", ...flags, "-fvisibility=hidden", "saxpy.c"];
  }
  if (isThere("clang-19")) {
    return ["clang-19", ...COMPILERS["clang-19 for NVIDIA"]!];
  }
  return isThere("nvcc") ? ["nvcc", ...COMPILERS["nvcc"]!] : undefined;
}

const PAGE_SIZE = 4096;
const VALUES_PER_PAGE = PAGE_SIZE / Float32Array.BYTES_PER_ELEMENT;

/** Numbers of the frames behind the pages. */
const FRAMES = [5, 2, 9, 0, 7];

/** Where things are in the memory of the device. */
const AT = { entries: 0, report: 8192, frames: 65536, y: 131072 };

const format = FORMATS.moonbright;

/** Writes 0, 1, 2, ... to the pages, and gives their entries. */
function putPages(bench: KernelBench): BigUint64Array {
  const entries = FRAMES.map((frame, page) => {
    const offset = AT.frames + frame * PAGE_SIZE;
    const first = page * VALUES_PER_PAGE;
    bench.put(
      offset,
      Float32Array.from({ length: VALUES_PER_PAGE }, (_, i) => first + i),
    );
    return encode(format, {
      pageSize: PAGE_SIZE,
      address: bench.memory + offset,
      readOnly: true,
    });
  });
  return new BigUint64Array(entries);
}

/** Adds twice the first n values of the pages to ones. */
function runExample(
  bench: KernelBench,
  saxpy: number,
  entries: BigUint64Array,
  n: number,
) {
  const values = FRAMES.length * VALUES_PER_PAGE;
  bench.put(AT.entries, entries);
  bench.put(AT.y, new Float32Array(values).fill(1));
  bench.put(AT.report, new BigUint64Array([REPORT_NONE]));
  const table = bench.memory + AT.entries;
  const view = { table, pages: FRAMES.length, pageShift: 12, format };
  bench.driver.launch(
    saxpy,
    { grid: [3], block: [64] },
    packArguments([
      ...viewArguments(view),
      { u64: bench.memory + AT.y },
      { f32: 2 },
      { u64: n },
      { u64: bench.memory + AT.report },
    ]),
    0,
  );
  return {
    y: new Float32Array(bench.bytes(AT.y, 4 * values).buffer),
    bad: readReport(bench.words(AT.report, 1)[0]!),
  };
}

/** What the example leaves if it could read the first n values only. */
function expectedAfter(n: number): Float32Array {
  return Float32Array.from(
    { length: FRAMES.length * VALUES_PER_PAGE },
    (_, i) => i < n ? 1 + 2 * i : 1,
  );
}

for (const device of DEVICES) {
  const compiler = exampleCompiler(device);
  Deno.test({
    name:
      `${device}: the example adds up paged values, and reports what it can't read`,
    ignore: compiler === undefined,
    fn: () =>
      withFolder(async (dir) => {
        const output = join(dir, "saxpy");
        await compile(compiler!, output);
        // A final zero ends PTX, and means nothing after a shared object.
        const image = new Uint8Array([...await Deno.readFile(output), 0]);
        using bench = new KernelBench(device, 2 ** 20);
        const saxpy = bench.driver.getFunction(
          bench.driver.loadModule(image),
          "saxpy",
        );
        const entries = putPages(bench);
        const all = FRAMES.length * VALUES_PER_PAGE;
        for (const n of [0, 1, VALUES_PER_PAGE, VALUES_PER_PAGE + 3, all]) {
          const { y, bad } = runExample(bench, saxpy, entries, n);
          assertEquals(bad, undefined);
          assertEquals(y, expectedAfter(n));
        }
        entries.fill(format.invalid, 3);
        const { y, bad } = runExample(bench, saxpy, entries, all);
        assertEquals(bad, { page: 3, fault: "invalid" });
        assertEquals(y, expectedAfter(3 * VALUES_PER_PAGE));
      }),
  });
}
