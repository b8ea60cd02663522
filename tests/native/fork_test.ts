import { assert, assertEquals } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import { Backend } from "../../ffi/symbols.ts";
import { buildFakeCuda, buildFakeHip } from "../fake/build.ts";

const ROOT = fromFileUrl(new URL("../../", import.meta.url));

async function run(program: string, args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(program, { args })
    .output();
  const decoder = new TextDecoder();
  const text = decoder.decode(stdout) + decoder.decode(stderr);
  assert(code === 0, `${program} ended with ${code}:\n${text}`);
  return text;
}

Deno.test("case 17: a forked child gets a clear error, and its parent goes on", async (t) => {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-fork-" });
  try {
    const program = join(dir, "fork_test");
    const sources = [join(ROOT, "tests", "native", "fork_test.c")];
    const native = join(ROOT, "native");
    for await (const { name } of Deno.readDir(native)) {
      if (name.endsWith(".c")) sources.push(join(native, name));
    }
    await run("cc", [
      ...["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-pthread"],
      ...["-o", program, ...sources, "-ldl", "-lm"],
    ]);
    const [cuda, hip] = await Promise.all([buildFakeCuda(), buildFakeHip()]);
    for (
      const [name, args] of [
        ["on the host", [String(Backend.HOST), ""]],
        ["on the fake CUDA driver", [String(Backend.CUDA), cuda]],
        ["on the fake HIP runtime", [String(Backend.HIP), hip]],
      ] as const
    ) {
      await t.step(
        name,
        async () => assertEquals(await run(program, [...args]), ""),
      );
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
