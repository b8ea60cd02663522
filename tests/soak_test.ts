import { assert, assertEquals, assertMatch } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import { buildHostKernels } from "../ffi/build.ts";
import { buildFakeCuda } from "./fake/build.ts";
import type { LoadReport } from "./soak/load.ts";
import { buildSanitized, buildSanitizedShim } from "./soak/sanitizers.ts";

const LOAD = fromFileUrl(new URL("soak/load.ts", import.meta.url));
/** As long as the suite can spare; `deno task soak` takes a minute. */
const MINUTES = 0.06;

async function inTempDir(body: (dir: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-soak-" });
  try {
    await body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

async function load(
  args: string[],
  env: Record<string, string> = {},
): Promise<LoadReport> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", LOAD, "--minutes", `${MINUTES}`, "--json", ...args],
    env,
    stdin: "null",
  }).output();
  const text = new TextDecoder().decode(stdout);
  assert(text !== "", new TextDecoder().decode(stderr));
  return JSON.parse(text);
}

function assertSound({ problems, counts, rounds }: LoadReport): void {
  assertEquals(problems, []);
  assertEquals(counts.mismatches, 0);
  assert(rounds >= 5, `${rounds} rounds`);
  // How much a machine does in the time given is its own affair.
  assert(counts.checks > 5 && counts.blocks > 5, JSON.stringify(counts));
}

Deno.test("a load on the host, with sanitizers in the shim, finds nothing amiss", async (t) => {
  await inTempDir(async (dir) => {
    const shim = await buildSanitizedShim(dir);
    await t.step({
      name: `the load${shim ? "" : " (without sanitizers: cc has none)"}`,
      fn: async () =>
        assertSound(await load(["--device", "host"], shim?.env ?? {})),
    });
  });
});

Deno.test("a load on the fake CUDA driver finds nothing amiss", async () => {
  buildHostKernels("pattern");
  const fake = await buildFakeCuda();
  assertSound(
    await load([
      ...["--device", "cuda:0", "--vendor-library", fake],
      ...["--budget", "192MiB"],
    ]),
  );
});

Deno.test("sanitizers do see what a library does wrong in Deno", async (t) => {
  await inTempDir(async (dir) => {
    const source = join(dir, "wrong.c");
    await Deno.writeTextFile(
      source,
      `#include <stdlib.h>
__attribute__((visibility("default"))) int past_the_end(int n) {
  volatile char *memory = malloc(8);
  memory[n] = 1;
  free((void *)memory);
  return 0;
}
__attribute__((visibility("default"))) int overflow(int n) { return 2147483647 + n; }
`,
    );
    const wrong = await buildSanitized(join(dir, "wrong.so"), [source]);
    const script = join(dir, "call.ts");
    await Deno.writeTextFile(
      script,
      `const { symbols } = Deno.dlopen(${
        JSON.stringify(join(dir, "wrong.so"))
      }, {
  past_the_end: { parameters: ["i32"], result: "i32" },
  overflow: { parameters: ["i32"], result: "i32" },
});
symbols[Deno.args[0]](Number(Deno.args[1]));
console.log("survived");
`,
    );
    const cases: [name: string, argument: string, found?: RegExp][] = [
      ["past_the_end", "7"],
      ["past_the_end", "8", /heap-buffer-overflow|insufficient space/],
      ["overflow", "0"],
      ["overflow", "1", /signed integer overflow/],
    ];
    for (const [name, argument, found] of cases) {
      await t.step({
        name: `${name} ${argument}`,
        ignore: wrong === undefined,
        async fn() {
          const { success, stderr, stdout } = await new Deno.Command(
            Deno.execPath(),
            {
              args: ["run", "-A", "--no-check", script, name, argument],
              env: wrong!.env,
              stdin: "null",
            },
          ).output();
          assertEquals(success, found === undefined);
          assertEquals(
            new TextDecoder().decode(stdout),
            success ? "survived\n" : "",
          );
          assertMatch(new TextDecoder().decode(stderr), found ?? /^$/);
        },
      });
    }
  });
});
