import { assert, assertEquals } from "@std/assert";
import { describeEnvironment, readCommit } from "../lib/cli/environment.ts";
import { ModelDriver } from "./model/model_driver.ts";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";

/** Writes files into a folder and returns the commit that is read from it. */
async function commitOf(files: Record<string, string>): Promise<string | null> {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-cli-" });
  try {
    const git = new URL(`file://${dir}/`);
    for (const [path, text] of Object.entries(files)) {
      const file = new URL(path, git);
      await Deno.mkdir(new URL(".", file), { recursive: true });
      await Deno.writeTextFile(file, text);
    }
    return readCommit(git);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("the commit is read from a checkout's files", async () => {
  const head = { HEAD: "ref: refs/heads/main\n" };
  assertEquals(await commitOf({ HEAD: `${COMMIT}\n` }), COMMIT);
  assertEquals(
    await commitOf({ ...head, "refs/heads/main": `${COMMIT}\n` }),
    COMMIT,
  );
  assertEquals(
    await commitOf({
      ...head,
      "packed-refs":
        `# pack-refs\n${COMMIT.replace("0", "f")} refs/heads/not/main\n` +
        `${COMMIT} refs/heads/main\n`,
    }),
    COMMIT,
  );
  assertEquals(await commitOf(head), null);
  assertEquals(await commitOf({}), null);
});

Deno.test("the environment says where and on what", () => {
  const device = new ModelDriver().info;
  const found = describeEnvironment("1.2.3", device);
  assertEquals(found.version, "1.2.3");
  assertEquals(found.device, device);
  assertEquals(found.deno, Deno.version.deno);
  assert(found.platform.includes(Deno.build.os));
  assert(Math.abs(Date.parse(found.time) - Date.now()) < 60_000);
});
