import { assert, assertEquals } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { buildHostKernels } from "../../ffi/build.ts";
import { SYMBOLS } from "../../ffi/symbols.ts";
import { buildFakeCuda, buildFakeHip } from "../fake/build.ts";
import { buildSanitizedShim, type SanitizedShim } from "../soak/sanitizers.ts";
import type { HostileReport } from "./hostile_calls.ts";

const SCRIPT = fromFileUrl(new URL("hostile_calls.ts", import.meta.url));
/** Calls a run makes: enough for every function to be called some twenty times. */
const CALLS = 4000;

async function hostile(
  target: string,
  seed: number,
  env: Record<string, string>,
): Promise<HostileReport> {
  const { stdout, stderr, signal } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", "--no-check", SCRIPT, target, "--json"],
      ...["--calls", `${CALLS}`, "--seed", `${seed}`],
    ],
    env,
    stdin: "null",
  }).output();
  const text = new TextDecoder().decode(stdout);
  const said = new TextDecoder().decode(stderr);
  assert(text !== "", `seed ${seed} on ${target}: ${signal}\n${said}`);
  return JSON.parse(text);
}

Deno.test("whatever the shim is called with, it returns a status", async (t) => {
  buildHostKernels("busy");
  const targets = [
    ["host", "host"],
    ["fake cuda", await buildFakeCuda()],
    ["fake hip", await buildFakeHip()],
  ];
  const dir = await Deno.makeTempDir({ prefix: "moonbright-hostile-" });
  try {
    const shim: SanitizedShim | undefined = await buildSanitizedShim(dir);
    const seed = Number(Deno.env.get("MOONBRIGHT_SEED") ?? 1);
    for (const [name, target] of targets) {
      await t.step(`${name}, seed ${seed}`, async () => {
        const { problems, calls, statuses } = await hostile(
          target!,
          seed,
          shim?.env ?? {},
        );
        assertEquals(problems, []);
        assertEquals(calls, CALLS);
        const { OK = 0, BAD_ARGUMENT = 0, BAD_HANDLE = 0 } = statuses;
        for (const count of [OK, BAD_ARGUMENT, BAD_HANDLE]) {
          assert(count > CALLS / 20, JSON.stringify(statuses));
        }
      });
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

/** Here the caller vouches for the address: a hostile one is the program's own crash. */
const VOUCHED_FOR = ["mb_wrap", "mb_unwrap"];

Deno.test("every function of the shim is among those called", async () => {
  const source = await Deno.readTextFile(SCRIPT);
  for (const name of Object.keys(SYMBOLS)) {
    if (VOUCHED_FOR.includes(name)) continue;
    assert(new RegExp(`^  ${name}: \\[`, "m").test(source), name);
  }
});
