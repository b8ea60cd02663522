import { assert, assertEquals } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import {
  AMD_ARCHITECTURES,
  BUILD_DIR,
  buildKernels,
  differingFiles,
} from "../kernels/build.ts";
import { packArguments } from "../lib/kernel.ts";

const SOURCE_DIR = fromFileUrl(new URL("../kernels/", import.meta.url));

/** Bytes of the argument block of every kernel, by source file. */
const KERNELS: Record<string, Record<string, number>> = {
  paging_copy: { mb_gather: 88, mb_scatter: 88, mb_copy_pages: 528 },
  paging_entries: {
    mb_materialize: 560,
    mb_materialize_list: 56,
    mb_invalidate: 536,
    mb_protect: 552,
    mb_checksum: 32,
  },
  paging_read: {
    mb_read_direct: 24,
    mb_read_paged: 72,
    mb_translate_each: 72,
  },
  pattern: { mb_pattern_fill: 24, mb_pattern_verify: 32 },
  busy: { mb_spin: 8, mb_empty: 8 },
};

const WORD_MASK = 2n ** 64n - 1n;

/** Whether programs are there, and the end of the test's name if one is not. */
function need(...programs: string[]): { ignore: boolean; reason: string } {
  const missing = programs.filter((program) => {
    try {
      new Deno.Command(program, { args: ["--version"] }).outputSync();
      return false;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return true;
      throw error;
    }
  });
  return {
    ignore: missing.length > 0,
    reason: missing.length > 0
      ? ` (ignored: ${missing.join(", ")} not installed)`
      : "",
  };
}

const clang = need("clang-19", "ld.lld-19", "llvm-objcopy-19");
const readelf = need("llvm-readelf-19");
const ptxas = need("ptxas");
const cc = need("cc");

async function run(program: string, args: string[]): Promise<string> {
  const output = await new Deno.Command(program, { args }).output();
  const decoder = new TextDecoder();
  assert(output.success, decoder.decode(output.stderr));
  return decoder.decode(output.stdout);
}

Deno.test({
  name: `the stored kernels are what the sources compile to${clang.reason}`,
  ignore: clang.ignore,
  async fn() {
    const dir = await Deno.makeTempDir({ prefix: "moonbright-kernels-" });
    try {
      const written = await buildKernels(dir);
      const expected = Object.keys(KERNELS).flatMap((name) => [
        `${name}.ptx`,
        ...AMD_ARCHITECTURES.map((arch) => `${name}.${arch}.hsaco`),
      ]);
      assertEquals(written, expected.sort());
      assertEquals(await differingFiles(dir, BUILD_DIR), []);
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  },
});

Deno.test("differingFiles finds changed, missing and added files", async () => {
  const [left, right] = [await Deno.makeTempDir(), await Deno.makeTempDir()];
  try {
    const write = (dir: string, name: string, text: string) =>
      Deno.writeTextFile(join(dir, name), text);
    await write(left, "same", "x");
    await write(right, "same", "x");
    await write(left, "changed", "x");
    await write(right, "changed", "y");
    await write(left, "longer", "xx");
    await write(right, "longer", "x");
    await write(left, "missing", "");
    await write(right, "added", "");
    assertEquals(
      await differingFiles(left, right),
      ["added", "changed", "longer", "missing"],
    );
  } finally {
    await Deno.remove(left, { recursive: true });
    await Deno.remove(right, { recursive: true });
  }
});

Deno.test("kernels that take plain arguments get as many bytes as they expect", () => {
  const word = { u64: 8 };
  const blocks = {
    mb_pattern_fill: packArguments([word, word, word]),
    mb_pattern_verify: packArguments([word, word, word, word]),
    mb_spin: packArguments([word]),
    mb_empty: packArguments([word]),
  };
  assertEquals(
    Object.fromEntries(
      Object.entries(blocks).map(([name, { length }]) => [name, length]),
    ),
    { ...KERNELS.pattern, ...KERNELS.busy },
  );
});

for (const [file, kernels] of Object.entries(KERNELS)) {
  Deno.test(`${file}.ptx is PTX 6.0 for sm_70 with its entries`, async () => {
    const ptx = await Deno.readTextFile(join(BUILD_DIR, `${file}.ptx`));
    assert(/^\.version 6\.0$/m.test(ptx));
    assert(/^\.target sm_70$/m.test(ptx));
    assert(/^\.address_size 64$/m.test(ptx));
    const entries = [...ptx.matchAll(
      /\.visible \.entry (\w+)\(\s*\.param \.align 8 \.b8 \w+\[(\d+)\]\s*\)/g,
    )].map(([, name, bytes]) => [name, Number(bytes)]);
    assertEquals(Object.fromEntries(entries), kernels);
    assertEquals(ptx.match(/\.entry/g)?.length, Object.keys(kernels).length);
    assert(!ptx.includes(".local"), "the stack is used");
  });

  Deno.test({
    name: `${file}.ptx assembles without a stack${ptxas.reason}`,
    ignore: ptxas.ignore,
    async fn() {
      const { success, stderr } = await new Deno.Command("ptxas", {
        args: [
          ...["-v", "-arch=sm_90", "-o", "/dev/null"],
          join(BUILD_DIR, `${file}.ptx`),
        ],
      }).output();
      const text = new TextDecoder().decode(stderr);
      assert(success, text);
      const stacks = [...text.matchAll(/(\d+) bytes stack frame/g)];
      assertEquals(
        stacks.map(([, bytes]) => bytes),
        Object.keys(kernels).map(() => "0"),
      );
    },
  });

  for (const architecture of AMD_ARCHITECTURES) {
    const object = `${file}.${architecture}.hsaco`;
    Deno.test({
      name: `${object} has its kernels and no scratch${readelf.reason}`,
      ignore: readelf.ignore,
      async fn() {
        const path = join(BUILD_DIR, object);
        const notes = await run("llvm-readelf-19", ["--notes", path]);
        assert(
          notes.includes(
            `amdhsa.target:   amdgcn-amd-amdhsa--${architecture}\n`,
          ),
          notes,
        );
        // Metadata version 1.1 is what code object version 4 carries.
        assert(/amdhsa\.version:\s+- 1\s+- 1\s/.test(notes), notes);
        const values = (key: string) =>
          [...notes.matchAll(new RegExp(`\\.${key}:\\s+(\\S+)`, "g"))]
            .map(([, value]) => value);
        assertEquals(values("name"), Object.keys(kernels));
        assertEquals(
          values("kernarg_segment_size").map(Number),
          Object.values(kernels),
        );
        // One argument, the block, and none that the driver would have to add.
        const blocks = [...notes.matchAll(
          /\.args:\s+- \.offset: +0\s+\.size: +(\d+)\s+\.value_kind: +by_value\s+\.group_segment/g,
        )].map(([, bytes]) => Number(bytes));
        assertEquals(blocks, Object.values(kernels));
        const none = Object.keys(kernels).map(() => "0");
        assertEquals(values("private_segment_fixed_size"), none);
        assertEquals(values("sgpr_spill_count"), none);
        assertEquals(values("vgpr_spill_count"), none);

        // The loader looks kernels up in the dynamic symbol table.
        const symbols = await run("llvm-readelf-19", ["--dyn-syms", path]);
        for (const name of Object.keys(kernels)) {
          assert(
            new RegExp(`OBJECT +GLOBAL PROTECTED +\\d+ ${name}\\.kd\\n`)
              .test(symbols),
            symbols,
          );
        }
      },
    });
  }
}

type Words = BigUint64Array<ArrayBuffer>;

interface Geometry {
  grid: number[];
  block: number[];
}

/** Compiles a kernel file for the host and passes its symbols to `use`. */
async function withHostKernels<Name extends string>(
  file: string,
  names: readonly Name[],
  use: (
    launch: (name: Name, args: Words, geometry?: Geometry) => void,
  ) => void,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-kernels-" });
  try {
    const path = join(dir, `${file}.so`);
    await run("cc", [
      ...["-O3", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden"],
      ...["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion"],
      ...["-Werror", "-o", path, join(SOURCE_DIR, `${file}.c`)],
    ]);
    const symbols = Object.fromEntries(names.map((name) => [name, {
      parameters: ["buffer", "buffer"],
      result: "void",
    }])) as Record<Name, { parameters: ["buffer", "buffer"]; result: "void" }>;
    const library = Deno.dlopen(path, symbols);
    try {
      const functions = library.symbols as Record<
        Name,
        (args: BufferSource, geometry: BufferSource) => void
      >;
      use((name, args, { grid, block } = { grid: [1], block: [32] }) => {
        const axes = ([x, y = 1, z = 1]: number[]) => [x ?? 1, y, z];
        functions[name](
          args,
          new Uint32Array([...axes(grid), ...axes(block), 0]),
        );
      });
    } finally {
      library.close();
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

function addressOf(array: Words, word = 0): bigint {
  return BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(array))) +
    8n * BigInt(word);
}

/** SplitMix64 of seed + index, worked out with big integers. */
function patternWord(seed: bigint, index: bigint): bigint {
  let x = (seed + index) * 0x9E3779B97F4A7C15n & WORD_MASK;
  x = (x ^ x >> 30n) * 0xBF58476D1CE4E5B9n & WORD_MASK;
  x = (x ^ x >> 27n) * 0x94D049BB133111EBn & WORD_MASK;
  return x ^ x >> 31n;
}

const GEOMETRIES: Geometry[] = [
  { grid: [1], block: [1] },
  { grid: [1], block: [32] },
  { grid: [3], block: [7] },
  { grid: [2, 3, 2], block: [4, 2, 3] },
  { grid: [100], block: [256] },
];

Deno.test({
  name:
    `pattern kernels fill and verify exactly their range on the host${cc.reason}`,
  ignore: cc.ignore,
  async fn() {
    const seed = WORD_MASK - 2n; // seed + index passes 2^64
    const names = ["mb_pattern_fill", "mb_pattern_verify"] as const;
    await withHostKernels("pattern", names, (launch) => {
      for (const geometry of GEOMETRIES) {
        for (const count of [0, 1, 2, 3, 31, 32, 33, 1000]) {
          for (const offset of [1, 2]) {
            const words = new BigUint64Array(count + 4).fill(7n);
            const range = [addressOf(words, offset), BigInt(count), seed];
            launch("mb_pattern_fill", new BigUint64Array(range), geometry);
            const expected = Array.from(words, (_, i) => {
              const index = i - offset;
              const inside = index >= 0 && index < count;
              return inside ? patternWord(seed, BigInt(index)) : 7n;
            });
            assertEquals([...words], expected);

            const result = new BigUint64Array([0n, WORD_MASK]);
            const block = new BigUint64Array([...range, addressOf(result)]);
            launch("mb_pattern_verify", block, geometry);
            assertEquals([...result], [0n, WORD_MASK]);
            for (const bad of new Set([count - 1, count >> 1, 0])) {
              if (bad < 0 || bad >= count) continue;
              words[offset + bad]! ^= 1n << 63n;
              const before = result[0]!;
              launch("mb_pattern_verify", block, geometry);
              assert(result[0]! > before);
              assertEquals(result[1], BigInt(bad));
            }
          }
        }
      }
    });
  },
});

Deno.test({
  name:
    `a part of a pattern verifies with its first index added to the seed on the host${cc.reason}`,
  ignore: cc.ignore,
  async fn() {
    const names = ["mb_pattern_fill", "mb_pattern_verify"] as const;
    await withHostKernels("pattern", names, (launch) => {
      const words = new BigUint64Array(64);
      const fill = new BigUint64Array([addressOf(words), 64n, 5n]);
      launch("mb_pattern_fill", fill);
      const result = new BigUint64Array([0n, WORD_MASK]);
      const verify = (seed: bigint) =>
        launch(
          "mb_pattern_verify",
          new BigUint64Array([
            addressOf(words, 17),
            40n,
            seed,
            addressOf(result),
          ]),
        );
      verify(5n + 17n);
      assertEquals([...result], [0n, WORD_MASK]);
      verify(5n);
      assertEquals([...result], [40n, 0n]);
    });
  },
});

Deno.test({
  name: `mb_spin takes its time and mb_empty none on the host${cc.reason}`,
  ignore: cc.ignore,
  async fn() {
    await withHostKernels("busy", ["mb_spin", "mb_empty"], (launch) => {
      const elapsedMs = (body: () => void) => {
        const start = performance.now();
        body();
        return performance.now() - start;
      };
      const geometry = { grid: [4], block: [64] };
      const spin = new BigUint64Array([20_000_000n]);
      const spunMs = elapsedMs(() => launch("mb_spin", spin, geometry));
      // One thread of 256 spins: all of them would take 5 s.
      assert(spunMs >= 20 && spunMs < 2000, `took ${spunMs} ms`);
      const empty = new BigUint64Array(1);
      const emptyMs = elapsedMs(() => launch("mb_empty", empty, geometry));
      assert(emptyMs < 20, `took ${emptyMs} ms`);
    });
  },
});
