import {
  assertEquals,
  assertMatch,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import fc from "fast-check";
import { buildShim } from "../ffi/build.ts";
import { assertTrusted, distrust, OVERRIDE } from "../ffi/trust.ts";
import { MoonBrightError } from "../lib/errors.ts";
import type { Finding } from "./ffi/find_library.ts";

const FINDER = fromFileUrl(new URL("ffi/find_library.ts", import.meta.url));
const STRANGER = 54321;
/** Only root can give files away. */
const isRoot = Deno.uid() === 0;

/** A folder that only its owner can use, below a sticky one. */
async function inPrivateDir(body: (dir: string) => unknown): Promise<void> {
  const dir = await Deno.realPath(
    await Deno.makeTempDir({ prefix: "moonbright-trust-" }),
  );
  try {
    await body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

function assertUntrusted(path: string, at: string, why: RegExp): void {
  const error = assertThrows(() => assertTrusted(path), MoonBrightError);
  assertEquals(error.code, "untrusted", error.message);
  assertStringIncludes(error.message, `"${at}"`);
  assertMatch(error.message, why);
  assertStringIncludes(error.message, "MOONBRIGHT_CACHE");
  assertStringIncludes(error.message, `${OVERRIDE}=1`);
}

/** Makes a file and gives it a mode, whatever the umask. */
function makeFile(path: string, mode: number): string {
  Deno.writeTextFileSync(path, "");
  Deno.chmodSync(path, mode);
  return path;
}

function makeFolder(path: string, mode: number): string {
  Deno.mkdirSync(path);
  Deno.chmodSync(path, mode);
  return path;
}

Deno.test("what others own or can write to is never trusted, all else is", () => {
  fc.assert(fc.property(
    fc.record({
      uid: fc.constantFrom(0, 1000, 1001),
      mode: fc.nat(0o7777),
      isDirectory: fc.boolean(),
    }),
    fc.constantFrom(0, 1000),
    (info, user) => {
      const owned = info.uid === user || info.uid === 0;
      const open = (info.mode & 0o002) !== 0;
      const sticky = info.isDirectory && (info.mode & 0o1000) !== 0;
      assertEquals(
        distrust(info, user) === undefined,
        owned && (!open || sticky),
      );
    },
  ));
});

Deno.test("a user that may not be known is compared with nobody", () => {
  const file = { uid: 1001, mode: 0o644, isDirectory: false };
  assertEquals(distrust(file, null), undefined);
  assertMatch(distrust({ ...file, mode: 0o646 }, null)!, /every user/);
});

Deno.test("files and folders that every user can write to are refused", () =>
  inPrivateDir((dir) => {
    assertTrusted(makeFile(join(dir, "private"), 0o600));
    assertTrusted(makeFile(join(dir, "group"), 0o664));
    const open = makeFile(join(dir, "open"), 0o646);
    assertUntrusted(open, open, /every user/);
    const folder = makeFolder(join(dir, "folder"), 0o777);
    const inside = makeFile(join(folder, "inside"), 0o644);
    assertUntrusted(inside, folder, /every user/);
    assertUntrusted(join(folder, "absent"), folder, /every user/);
    const deep = makeFolder(join(folder, "deep"), 0o700);
    assertUntrusted(join(deep, "file"), folder, /every user/);
    // As /tmp is: nobody but its owner can replace what lies in it.
    Deno.chmodSync(folder, 0o1777);
    assertTrusted(inside);
    assertTrusted(join(folder, "absent"));
  }));

Deno.test("links are followed, and whatever they lead through is checked", () =>
  inPrivateDir((dir) => {
    const open = makeFolder(join(dir, "open"), 0o777);
    const closed = makeFolder(join(dir, "closed"), 0o755);
    const file = makeFile(join(closed, "file"), 0o644);
    const link = (name: string, target: string) => {
      const path = join(dir, name);
      Deno.symlinkSync(target, path);
      return path;
    };
    assertTrusted(link("good", file));
    assertTrusted(join(link("relative", "closed"), "file"));
    assertUntrusted(
      link("bad", makeFile(join(open, "x"), 0o644)),
      open,
      /every/,
    );
    assertUntrusted(join(link("to-open", "open"), "x"), open, /every/);
    // A link in an open folder that leads back to a good file.
    Deno.symlinkSync(file, join(open, "back"));
    assertUntrusted(link("through", join(open, "back")), open, /every/);
    link("loop-a", "loop-b");
    assertThrows(
      () => assertTrusted(link("loop-b", "loop-a")),
      MoonBrightError,
      "too many",
    );
  }));

Deno.test({
  name: `what another user owns is refused${
    isRoot ? "" : " (skipped: not root)"
  }`,
  ignore: !isRoot,
  fn: () =>
    inPrivateDir((dir) => {
      const folder = makeFolder(join(dir, "folder"), 0o755);
      const file = makeFile(join(folder, "file"), 0o644);
      assertTrusted(file);
      Deno.chownSync(file, STRANGER, null);
      assertUntrusted(file, file, new RegExp(`belongs to user ${STRANGER}`));
      Deno.chownSync(file, 0, null);
      Deno.chownSync(folder, STRANGER, null);
      assertUntrusted(file, folder, /belongs to user/);
      Deno.chownSync(folder, 0, null);
      const link = join(dir, "link");
      Deno.symlinkSync(file, link);
      assertTrusted(link);
      const { success } = new Deno.Command("chown", {
        args: ["-h", `${STRANGER}`, link],
      }).outputSync();
      assertEquals(success, true);
      assertUntrusted(link, link, /belongs to user/);
    }),
});

async function find(
  env: Record<string, string>,
  args: string[] = [],
  permissions: string[] = ["-A"],
): Promise<Finding> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", ...permissions, FINDER, ...args],
    env: { MOONBRIGHT_LIB: "", [OVERRIDE]: "", ...env },
    stdin: "null",
  }).output();
  const text = new TextDecoder().decode(stdout);
  if (text === "") throw new Error(new TextDecoder().decode(stderr));
  return JSON.parse(text);
}

Deno.test("the search for the library loads nothing that others may have written", () =>
  inPrivateDir(async (dir) => {
    const open = makeFolder(join(dir, "open"), 0o777);
    const library = join(open, "lib.so");
    await Deno.copyFile(buildShim(), library);
    const named = await find({ MOONBRIGHT_LIB: library });
    assertEquals(named.code, "untrusted");
    assertStringIncludes(named.message!, `"${open}" can be written to`);
    assertEquals((await find({}, [library])).code, "untrusted");
    const cache = join(open, "deep", "cache");
    const cached = await find({ MOONBRIGHT_CACHE: cache });
    assertEquals(cached.code, "untrusted", cached.message);
    // Nothing was made there either.
    assertThrows(() => Deno.statSync(cache), Deno.errors.NotFound);
    const trusted = await find({ MOONBRIGHT_LIB: library, [OVERRIDE]: "1" });
    assertEquals(trusted.path, library, trusted.message);
    // Whoever names the file in a flag vouches for what may not be looked at.
    const flags = [`--allow-ffi=${library}`, "--allow-env"];
    const vouched = await find({ MOONBRIGHT_LIB: library }, [], flags);
    assertEquals(vouched.path, library, vouched.message);
    const looked = await find({ MOONBRIGHT_LIB: library }, [], [
      ...flags,
      "--allow-read",
    ]);
    assertEquals(looked.code, "untrusted");
  }));

Deno.test("a library in the cache that others could write to is not loaded", () =>
  inPrivateDir(async (dir) => {
    const env = { MOONBRIGHT_CACHE: join(dir, "cache") };
    const { path } = await find(env);
    assertEquals((await find(env)).path, path);
    Deno.chmodSync(path!, 0o666);
    const { code, message } = await find(env);
    assertEquals(code, "untrusted");
    assertStringIncludes(message!, `"${path}" can be written to by every user`);
  }));

Deno.test("a relative path is a file, never a name for the system to search", () =>
  inPrivateDir(async (dir) => {
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", FINDER, "libc.so.6"],
      cwd: dir,
      stdin: "null",
    }).output();
    const { code, message } = JSON.parse(new TextDecoder().decode(stdout));
    assertEquals(code, "no-library");
    assertStringIncludes(message, join(dir, "libc.so.6"));
  }));
