import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { dirname, fromFileUrl, join } from "@std/path";
import { buildHostKernels, buildShim } from "../ffi/build.ts";
import { openLibrary } from "../ffi/library.ts";
import { ABI_VERSION } from "../ffi/symbols.ts";
import { MoonBrightError } from "../lib/errors.ts";
import type { Finding } from "./ffi/find_library.ts";

const ROOT = fromFileUrl(new URL("../", import.meta.url));

/** Compiles a library of one function body for `mb_abi_version`. */
async function fakeShim(path: string, source: string): Promise<string> {
  const unit = `${path}.c`;
  await Deno.writeTextFile(unit, source);
  const { success, stderr } = await new Deno.Command("cc", {
    args: ["-shared", "-fPIC", "-o", path, unit],
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return path;
}

const answering = (version: number) =>
  `int mb_abi_version(void) { return ${version}; }\n`;

/** Runs a test with a temporary folder and, in it, a copy of the module. */
async function inTempDir(
  body: (dir: string, root: string) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-library-" });
  try {
    await body(dir, await copyOfModule(dir));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

interface Run {
  permissions?: string[];
  env?: Record<string, string>;
  /** Where MoonBright and its tests are. */
  root: string;
  args?: string[];
}

/** Runs a script of `tests/ffi/` in a process of its own; returns what it printed. */
async function run(
  script: string,
  { permissions = ["-A"], env = {}, root, args = [] }: Run,
): Promise<string> {
  const path = join(root, "tests", "ffi", script);
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", ...permissions, path, ...args],
    // Empty is as good as unset.
    env: { MOONBRIGHT_LIB: "", CC: "", ...env },
    stdin: "null",
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

async function find(options: Run): Promise<Finding> {
  return JSON.parse(await run("find_library.ts", options));
}

/** Copies the module to where `native/` holds no library unless the test puts it there. */
async function copyOfModule(dir: string): Promise<string> {
  const root = join(dir, "module");
  const parts = [
    "deno.json",
    "vendor",
    "ffi",
    "lib",
    "kernels",
    "native",
    "tests",
  ];
  await Deno.mkdir(root);
  const { success } = await new Deno.Command("cp", {
    args: ["-r", ...parts, root],
    cwd: ROOT,
  }).output();
  assert(success);
  for (const { name } of Deno.readDirSync(join(root, "native"))) {
    if (name.endsWith(".so")) await Deno.remove(join(root, "native", name));
  }
  return root;
}

/** A compiler that builds quickly and writes a line to `calls.log` at each call. */
async function loggingCompiler(dir: string): Promise<string> {
  const path = join(dir, "logging-cc");
  await Deno.writeTextFile(
    path,
    `#!/bin/sh\necho called >> "${dir}/calls.log"\nexec cc "$@" -O0\n`,
    { mode: 0o755 },
  );
  return path;
}

Deno.test("argument, MOONBRIGHT_LIB, module and cache are searched in order", () =>
  inTempDir(async (dir, root) => {
    const built = buildShim();
    const copy = async (path: string) => {
      await Deno.copyFile(built, path);
      return path;
    };
    const argument = await copy(join(dir, "argument.so"));
    const named = await copy(join(dir, "named.so"));
    const beside = await copy(join(root, "native", "libmoonbright.so"));
    const env = { MOONBRIGHT_LIB: named, MOONBRIGHT_CACHE: join(dir, "cache") };

    assertEquals(await find({ root, env, args: [argument] }), {
      path: argument,
      origin: "argument",
    });
    assertEquals(await find({ root, env }), {
      path: named,
      origin: "MOONBRIGHT_LIB",
    });
    env.MOONBRIGHT_LIB = "";
    assertEquals(await find({ root, env }), {
      path: beside,
      origin: "beside the module",
    });
    await Deno.remove(beside);
    const last = await find({
      root,
      env: { ...env, CC: await loggingCompiler(dir) },
    });
    assertEquals(last.origin, "cache");
    assertStringIncludes(last.path!, env.MOONBRIGHT_CACHE);
  }));

Deno.test("an unfit library beside the module is passed over", () =>
  inTempDir(async (dir, root) => {
    const beside = join(root, "native", "libmoonbright.so");
    await fakeShim(beside, answering(ABI_VERSION + 1));
    const compiler = await loggingCompiler(dir);
    const env = { MOONBRIGHT_CACHE: join(dir, "cache"), CC: compiler };
    assertEquals((await find({ root, env })).origin, "cache");
  }));

Deno.test("when nothing serves, the error lists every place and the reason", () =>
  inTempDir(async (dir, root) => {
    const beside = join(root, "native", "libmoonbright.so");
    await fakeShim(beside, answering(ABI_VERSION + 1));
    const env = {
      MOONBRIGHT_CACHE: join(dir, "cache"),
      CC: join(dir, "absent-cc"),
    };
    const { code, message = "" } = await find({ root, env });
    assertEquals(code, "no-compiler");
    assertStringIncludes(message, "MOONBRIGHT_LIB: empty");
    assertStringIncludes(message, `"${beside}"`);
    assertStringIncludes(message, `interface version ${ABI_VERSION + 1}`);
    assertStringIncludes(message, `no C compiler "${env.CC}"`);
    assertStringIncludes(message, "apt-get install gcc");
    await Deno.remove(beside);
    const without = await find({ root, env });
    assertStringIncludes(without.message ?? "", `no file "${beside}"`);
  }));

Deno.test("a library that was asked for is refused, never passed over", () =>
  inTempDir(async (dir, root) => {
    const stale = await fakeShim(join(dir, "stale.so"), answering(0));
    const cases: [path: string, code: string, why: RegExp][] = [
      [join(dir, "absent.so"), "no-library", /No such file/],
      [join(dir, "stale.so.c"), "no-library", /invalid ELF|too short/],
      [stale, "library-mismatch", /interface version 0/],
      [
        await fakeShim(join(dir, "other.so"), "int other(void) { return 1; }"),
        "no-library",
        /mb_abi_version/,
      ],
      [
        await fakeShim(join(dir, "partial.so"), answering(ABI_VERSION)),
        "library-mismatch",
        /undefined symbol: mb_/,
      ],
    ];
    for (const [path, code, why] of cases) {
      const error = assertThrows(() => openLibrary(path), MoonBrightError);
      assertEquals(error.code, code, error.message);
      assertStringIncludes(error.message, `"${path}"`);
      assertMatch(error.message, why);
    }
    const named = await find({ root, env: { MOONBRIGHT_LIB: stale } });
    assertEquals(named.code, "library-mismatch");
    assertStringIncludes(named.message ?? "", "(MOONBRIGHT_LIB)");
  }));

Deno.test("the shim is built once, also by processes that start together", () =>
  inTempDir(async (dir, root) => {
    const cache = join(dir, "deep", "cache");
    const compiler = await loggingCompiler(dir);
    const env = { MOONBRIGHT_CACHE: cache, CC: compiler };
    const found = await Promise.all(
      Array.from({ length: 4 }, () => find({ root, env })),
    );
    const one = found[0]!;
    assertEquals(one.origin, "cache", one.message);
    for (const other of found) assertEquals(other, one);
    const { mtime } = await Deno.stat(one.path!);
    assertEquals(await find({ root, env }), one);
    assertEquals((await Deno.stat(one.path!)).mtime, mtime);
    const log = await Deno.readTextFile(join(dir, "calls.log"));
    assertEquals(log, "called\n");

    const entries = [...Deno.readDirSync(dirname(one.path!))];
    assertEquals(entries.map(({ name }) => name), ["libmoonbright.so"]);
    for (const folder of [cache, dirname(one.path!)]) {
      assertEquals((await Deno.stat(folder)).mode! & 0o777, 0o700, folder);
    }
    // Another compiler may make another library.
    const other = await find({ root, env: { ...env, CC: `env ${compiler}` } });
    assertEquals(other.origin, "cache", other.message);
    assert(other.path !== one.path);
  }));

Deno.test("a build that was broken off is done again, and leaves nothing", () =>
  inTempDir(async (dir, root) => {
    // Ends the process that waits for it, as a power failure would.
    const killer = join(dir, "killing-cc");
    await Deno.writeTextFile(
      killer,
      '#!/bin/sh\n[ -e "$0.done" ] && exec cc "$@" -O0\n' +
        'touch "$0.done"\nkill -9 $PPID\n',
      { mode: 0o755 },
    );
    const env = { MOONBRIGHT_CACHE: join(dir, "cache"), CC: killer };
    await assertRejects(() => find({ root, env }));
    const found = await Promise.all(
      Array.from({ length: 4 }, () => find({ root, env })),
    );
    const { path } = found[0]!;
    for (const other of found) assertEquals(other, { path, origin: "cache" });
    const entries = [...Deno.readDirSync(dirname(path!))];
    assertEquals(entries.map(({ name }) => name), ["libmoonbright.so"]);
  }));

Deno.test("a build that fails shows what the compiler said, and leaves nothing", () =>
  inTempDir(async (dir, root) => {
    const compiler = join(dir, "broken-cc");
    await Deno.writeTextFile(
      compiler,
      '#!/bin/sh\necho "out of ideas" >&2\nexit 1\n',
      { mode: 0o755 },
    );
    const cache = join(dir, "cache");
    const { code, message = "" } = await find({
      root,
      env: { MOONBRIGHT_CACHE: cache, CC: compiler },
    });
    assertEquals(code, "no-compiler");
    assertStringIncludes(message, `"${compiler}" failed`);
    assertStringIncludes(message, "out of ideas");
    for (const { name, isDirectory } of Deno.readDirSync(cache)) {
      if (isDirectory) {
        assertEquals([...Deno.readDirSync(join(cache, name))], []);
      }
    }
  }));

Deno.test("a cache folder that can't be used gives an error that names it", () =>
  inTempDir(async (dir, root) => {
    const file = join(dir, "file");
    await Deno.writeTextFile(file, "");
    const { code, message = "" } = await find({
      root,
      env: { MOONBRIGHT_CACHE: file },
    });
    assertEquals(code, "no-library", message);
    assertStringIncludes(message, `Cannot use the cache folder "${file}"`);
    assertStringIncludes(message, "set MOONBRIGHT_CACHE");
  }));

Deno.test("a missing permission gives an error that names the flag", () =>
  inTempDir(async (dir, root) => {
    const cache = join(dir, "cache");
    const all = ["--allow-ffi", "--allow-env", "--allow-sys=uid"];
    const cases: [permissions: string[], flag: string][] = [
      [["--allow-ffi", "--allow-read"], "--allow-env=MOONBRIGHT_LIB"],
      [["--allow-ffi", "--allow-env", "--allow-read"], "--allow-sys=uid"],
      [all, "--allow-read"],
      [[...all, "--allow-read"], "--allow-write="],
      [[...all, "--allow-read", "--allow-write"], "--allow-run=cc"],
      // With files named, what may not be looked at is vouched for.
      [[`--allow-ffi=${cache}`, "--allow-env"], `--allow-read="${cache}"`],
    ];
    for (const [permissions, flag] of cases) {
      const { code, message = "" } = await find({
        root,
        permissions,
        env: { MOONBRIGHT_CACHE: cache },
      });
      assertEquals(code, "permission", message);
      assertStringIncludes(message, flag);
    }
    const path = buildShim();
    const { code, message = "" } = await find({
      root,
      permissions: ["--allow-read", "--allow-env"],
      args: [path],
    });
    assertEquals(code, "permission");
    assertStringIncludes(message, `--allow-ffi="${path}"`);
  }));

Deno.test("real work needs no more than one library, reading and the environment", async () => {
  buildHostKernels("pattern");
  const output = await run("host_work.ts", {
    root: ROOT,
    env: { CC: Deno.env.get("CC") ?? "" },
    permissions: [`--allow-ffi=${buildShim()}`, "--allow-read", "--allow-env"],
  });
  assertEquals(output, "done\n");
});
