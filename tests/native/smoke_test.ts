import { assert } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import { buildFakeCuda, buildFakeHip } from "../fake/build.ts";
import { asHipImage } from "../fake/control.ts";

const ROOT = fromFileUrl(new URL("../../", import.meta.url));

/** Address and undefined-behaviour checks; where the compiler lacks them, none. */
const SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover"];

async function run(program: string, args: string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args,
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = new TextDecoder().decode(stdout) +
    new TextDecoder().decode(stderr);
  assert(success, `${program} ${args.join(" ")} failed:\n${text}`);
}

async function cSources(): Promise<string[]> {
  const sources = [join(ROOT, "tests", "native", "smoke_test.c")];
  const native = join(ROOT, "native");
  for await (const { name } of Deno.readDir(native)) {
    if (name.endsWith(".c")) sources.push(join(native, name));
  }
  return sources;
}

async function buildSmokeTest(path: string): Promise<void> {
  const sources = await cSources();
  const build = (extra: string[]) =>
    run("cc", [
      ...["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-pthread", ...extra],
      ...["-o", path, ...sources, "-ldl", "-lm"],
    ]);
  const probe = await new Deno.Command("cc", {
    args: [...SANITIZERS, "-x", "c", "-o", path, "-"],
    stdin: "piped",
    stderr: "null",
  }).spawn();
  const input = probe.stdin.getWriter();
  await input.write(new TextEncoder().encode("int main(void) { return 0; }"));
  await input.close();
  await build((await probe.status).success ? SANITIZERS : []);
}

async function buildModule(dir: string, name: string): Promise<string> {
  const path = join(dir, `${name}.so`);
  const source = join(ROOT, "kernels", `${name}.c`);
  const flags = ["-O3", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden"];
  await run("cc", [...flags, "-o", path, source]);
  return path;
}

Deno.test("the shim does what its header says", async (t) => {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-smoke-" });
  try {
    const program = join(dir, "smoke_test");
    await buildSmokeTest(program);
    const modules = [
      await buildModule(dir, "pattern"),
      await buildModule(dir, "busy"),
    ];
    await t.step("on the host", () => run(program, ["host", "", ...modules]));
    const cuda = await buildFakeCuda();
    await t.step(
      "on the fake CUDA driver",
      () => run(program, ["fake-cuda", cuda, ...modules]),
    );
    const hip = await buildFakeHip();
    const codeObjects = await Promise.all(modules.map(async (module) => {
      const path = `${module}.hsaco`;
      await Deno.writeFile(path, asHipImage(await Deno.readFile(module)));
      return path;
    }));
    await t.step(
      "on the fake HIP runtime",
      () => run(program, ["fake-hip", hip, ...codeObjects]),
    );
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
