import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { buildHostKernels } from "../../ffi/build.ts";
import { buildFakeCuda } from "../fake/build.ts";
import type { Freed, Survived } from "./use_after_free.ts";

const SCRIPT = fromFileUrl(new URL("use_after_free.ts", import.meta.url));

interface Ended {
  signal: string | null;
  code: number;
  freed: Freed;
  survived: Survived | undefined;
}

async function run(...args: string[]): Promise<Ended> {
  const { signal, code, stdout, stderr } = await new Deno.Command(
    Deno.execPath(),
    { args: ["run", "-A", "--no-check", SCRIPT, ...args], stdin: "null" },
  ).output();
  const [freed, survived] = new TextDecoder().decode(stdout).trim().split("\n");
  assert(freed, new TextDecoder().decode(stderr));
  return {
    signal,
    code,
    freed: JSON.parse(freed),
    survived: survived === undefined ? undefined : JSON.parse(survived),
  };
}

/** The report names the block, and where in the program it came and went. */
function assertNamed({ state, text, address }: Freed): void {
  assertEquals(state, "quarantined");
  assertStringIncludes(text, `0x${(address + 8).toString(16)}: freed`);
  assertStringIncludes(text, 'byte 8 of the block "scores" of 8 KiB');
  assertStringIncludes(text, "allocated");
  assertStringIncludes(text, "freed");
  const calls = text.split("\n").filter((line) => line.startsWith("    at "));
  const own = calls.filter((call) => call.includes("useAfterFree"));
  assertEquals(own.length, 2, text);
  for (const call of calls) assert(!call.includes("/lib/"), call);
}

Deno.test("a stale pointer on the host ends the process by a signal", async () => {
  const { signal, code, freed, survived } = await run("host");
  assertEquals([signal, code], ["SIGSEGV", 139]);
  assertEquals(survived, undefined);
  assertNamed(freed);
});

Deno.test("a stale pointer on the fake CUDA driver loses the device", async () => {
  const ended = await run(
    "cuda:0",
    await buildFakeCuda(),
    buildHostKernels("pattern"),
  );
  assertEquals([ended.signal, ended.code], [null, 0]);
  assertEquals(ended.survived, { code: "lost", state: "quarantined" });
  assertNamed(ended.freed);
});

const gpu = Deno.env.get("MOONBRIGHT_TEST_GPU") === "1";

Deno.test({
  name: `a stale pointer on the GPU loses the device${
    gpu ? "" : " (skipped: MOONBRIGHT_TEST_GPU is not 1)"
  }`,
  ignore: !gpu,
  async fn() {
    const { survived, freed } = await run("cuda:0");
    assertEquals(survived, { code: "lost", state: "quarantined" });
    assertNamed(freed);
  },
});
