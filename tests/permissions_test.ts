/**
 * The README's table of permissions, row by row: with its flags a command does all it
 * does, and without any one of them it ends with a message that names the one.
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import { buildHostKernels, buildShim, cacheFolder } from "../ffi/build.ts";
import { OVERRIDE } from "../ffi/trust.ts";
import { writeTrace } from "../lib/replay/write_trace.ts";
import { makeTrace } from "./replay/make_trace.ts";

const ROOT = fromFileUrl(new URL("../", import.meta.url));
const CLI = join(ROOT, "cli.ts");

/** Flags by what the README's table says they are for, placeholders filled in. */
function tableOf(
  readme: string,
  places: Record<string, string>,
): Map<string, string[]> {
  const section = readme.split(/^## /m).find((text) =>
    text.startsWith("Permissions")
  )!;
  const rows = new Map<string, string[]>();
  for (const line of section.split("\n")) {
    const [, what, flags] = /^\| (.+?) +\| (.+?) +\|$/.exec(line) ?? [];
    if (!what || !flags?.includes("--allow") && flags !== "none") continue;
    const filled = [...flags.matchAll(/--allow-[a-z]+(?:=[^`\s]+)?/g)]
      .map(([flag]) =>
        flag.replace(/\$(\w+)/g, (_, name) => places[name] ?? `$${name}`)
      );
    rows.set(what.replaceAll("`", ""), filled);
  }
  return rows;
}

interface Outcome {
  code: number;
  text: string;
}

async function run(
  flags: string[],
  script: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<Outcome> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", ...flags, script, ...args],
    env: { NO_COLOR: "1", MOONBRIGHT_LIB: "", [OVERRIDE]: "", ...env },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, text: decoder.decode(stdout) + decoder.decode(stderr) };
}

/** Variables that MoonBright reads, as the README lists them. */
function variablesIn(readme: string): string {
  return /`\$ENV` is\s+`([A-Z_,]+)`/.exec(readme)![1]!;
}

/** What to run for a row of the table. */
interface Case {
  row: string;
  args: string[];
  /** What the text says if all went well. */
  says: string;
}

Deno.test("commands need the flags of the README's table, and name each that is missing", async (t) => {
  const lib = buildShim();
  for (const kernels of ["pattern", "busy", "paging_entries", "paging_copy"]) {
    buildHostKernels(kernels);
  }
  const dir = await Deno.makeTempDir({ prefix: "moonbright-flags-" });
  try {
    const file = join(dir, "run.trace");
    const out = join(dir, "out");
    await Deno.writeFile(
      file,
      writeTrace(makeTrace([["ALLOC", 0x1000, 5000, 0, 10]])),
    );
    const readme = await Deno.readTextFile(join(ROOT, "README.md"));
    const ENV = variablesIn(readme);
    const rows = tableOf(readme, {
      ENV,
      lib,
      cache: cacheFolder()!,
      FILE: file,
      OUT: out,
    });
    const host = ["--device", "host"];
    const cases: Case[] = [
      { row: "help, --version", args: ["help"], says: "Exit codes" },
      { row: "help, --version", args: ["--version"], says: "moonbright" },
      {
        row: "info, alloc, bench, table",
        args: ["info", ...host],
        says: "host:0",
      },
      {
        row: "info, alloc, bench, table",
        args: ["alloc", "64KiB", ...host],
        says: "verified",
      },
      {
        row: "info, alloc, bench, table",
        args: ["bench", "free", "--quick", ...host],
        says: "behind",
      },
      {
        row: "info, alloc, bench, table",
        args: ["table", ...host],
        says: "verified",
      },
      {
        row: "bench --out OUT",
        args: ["bench", "free", "--quick", "--out", out, ...host],
        says: "behind",
      },
      { row: "replay FILE", args: ["replay", file, ...host], says: "mapped" },
      {
        row: "replay FILE --model",
        args: ["replay", file, "--model"],
        says: "mapped",
      },
      {
        row: "replay FILE --model --html OUT",
        args: ["replay", file, "--model", "--html", out],
        says: "mapped",
      },
    ];
    for (const { row, args, says } of cases) {
      await t.step(`${row}: ${args[0]}`, async () => {
        const flags = rows.get(row);
        assert(flags, `no row "${row}" among ${[...rows.keys()]}`);
        const complete = await run(flags, CLI, args);
        assertEquals(complete.code, 0, complete.text);
        assertStringIncludes(complete.text.toLowerCase(), says.toLowerCase());
        for (const missing of flags) {
          const rest = flags.filter((flag) => flag !== missing);
          const { code, text } = await run(rest, CLI, args);
          assert(code === 2 || code === 3, `${missing}: ${code}\n${text}`);
          assertStringIncludes(text, missing.split("=")[0]!);
          assert(!/^ {4}at /m.test(text), text);
        }
      });
    }
    await t.step("building: the first use", async () => {
      const args = ["alloc", "64KiB", ...host];
      const build = (cache: string, missing?: string) => {
        const flags = tableOf(readme, { ENV, cache })
          .get("the first use, which builds")!
          .filter((flag) => flag.split("=")[0] !== missing);
        return run(flags, CLI, args, { MOONBRIGHT_CACHE: cache, CC: "" });
      };
      const needed = ["ffi", "read", "write", "env", "run"];
      for (const name of needed) {
        const missing = `--allow-${name}`;
        // A folder each: what was built without a flag would do for the next.
        const { code, text } = await build(join(dir, name), missing);
        assertEquals(code, 3, `${missing}\n${text}`);
        assertStringIncludes(text, missing);
      }
      const complete = await build(join(dir, "cache"));
      assertEquals(complete.code, 0, complete.text);
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
