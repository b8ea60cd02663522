import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { MoonBrightError } from "../../lib/errors.ts";
import { ask, listPublished } from "../../lib/live/ask.ts";
import type { Summary } from "../../lib/live/summary.ts";
import { assertCode, openModel } from "../lib/support.ts";
import { startProgram, withLiveFolder } from "./live_world.ts";

/** Sends bytes to a socket; returns what comes back. */
async function send(path: string, text: string): Promise<string> {
  using client = await Deno.connect({ transport: "unix", path });
  await client.write(new TextEncoder().encode(text));
  await client.closeWrite();
  const bytes = new Uint8Array(4096);
  const read = await client.read(bytes);
  return new TextDecoder().decode(bytes.subarray(0, read ?? 0));
}

Deno.test("nothing is published unless asked for", () =>
  withLiveFolder(async (runtime) => {
    const { mb } = openModel();
    assertEquals(await listPublished(), []);
    assertEquals([...Deno.readDirSync(runtime)], []);
    mb.close();
  }));

Deno.test("a published instance answers with what it would say itself", () =>
  withLiveFolder(async (runtime) => {
    const { mb } = openModel({ publish: true });
    mb.alloc(5000, { name: "five" });
    mb.alloc(100).free();
    const [one] = await listPublished();
    assertEquals(one, {
      pid: Deno.pid,
      device: "model:0",
      instance: 1,
      path: `${runtime}/moonbright/${Deno.pid}-model-0-1.sock`,
    });
    assertEquals(await ask(one!, "stats"), mb.stats());
    const { time: _, ...snapshot } = await ask(one!, "snapshot") as {
      time: string;
    };
    const { time: __, ...own } = mb.snapshot();
    assertEquals(snapshot, own as unknown);
    const { stats, names } = await ask(one!, "summary") as Summary;
    assertEquals(stats, mb.stats());
    assertEquals(names, [{
      name: "five",
      blocks: 1,
      bytes: 5120,
      largest: 5120,
    }]);
    mb.close();
  }));

Deno.test("closing the publication or the instance removes the socket", () =>
  withLiveFolder(async () => {
    const { mb } = openModel();
    const publication = mb.publish();
    assertEquals(mb.publish(), publication);
    assert(Deno.lstatSync(publication.path).isSocket);
    publication.close();
    publication.close();
    assertEquals(publication.open, false);
    assertThrows(() => Deno.lstatSync(publication.path), Deno.errors.NotFound);
    const again = mb.publish();
    mb.close();
    assertThrows(() => Deno.lstatSync(again.path), Deno.errors.NotFound);
    assertCode("closed", () => mb.publish());
    assertEquals(await listPublished(), []);
  }));

Deno.test("instances of one process have sockets of their own", () =>
  withLiveFolder(async () => {
    const { mb: first } = openModel({ publish: true });
    const { mb: second } = openModel({ publish: true, budget: 2 ** 20 });
    const found = await listPublished(Deno.pid);
    assertEquals(found.map(({ instance }) => instance), [1, 2]);
    const budgets = await Promise.all(
      found.map(async (one) =>
        (await ask(one, "summary") as Summary).stats.budget
      ),
    );
    assertEquals(budgets, [null, 2 ** 20]);
    assertEquals(await listPublished(Deno.pid + 1), []);
    first.close();
    assertEquals((await listPublished()).map(({ instance }) => instance), [2]);
    second.close();
  }));

Deno.test("only the owner can enter the folder, and no other folder is used", () =>
  withLiveFolder(async (runtime) => {
    const folder = `${runtime}/moonbright`;
    const { mb } = openModel({ publish: true });
    assertEquals(Deno.lstatSync(folder).mode! & 0o777, 0o700);
    mb.close();
    Deno.chmodSync(folder, 0o755);
    assertCode("permission", () => openModel({ publish: true }), "other users");
    Deno.removeSync(folder);
    Deno.writeTextFileSync(folder, "");
    assertCode("permission", () => openModel({ publish: true }), "no folder");
    Deno.removeSync(folder);
    const elsewhere = await Deno.makeTempDir();
    Deno.symlinkSync(elsewhere, folder);
    assertCode("permission", () => openModel({ publish: true }), "no folder");
    assertEquals([...Deno.readDirSync(elsewhere)], []);
    Deno.removeSync(elsewhere);
    Deno.removeSync(folder);
    if (Deno.uid() === 0) {
      Deno.mkdirSync(folder, { mode: 0o700 });
      Deno.chownSync(folder, 12345, 12345);
      assertCode("permission", () => openModel({ publish: true }), "12345");
    }
    assertEquals(await listPublished(), []);
  }));

Deno.test("sockets in a folder that others can enter are not asked", () =>
  withLiveFolder(async (runtime) => {
    const { mb } = openModel({ publish: true });
    Deno.chmodSync(`${runtime}/moonbright`, 0o777);
    assertEquals(await listPublished(), []);
    mb.close();
  }));

Deno.test("a path too long for a socket is refused with what to do", () =>
  withLiveFolder((runtime) => {
    const long = `${runtime}/${"x".repeat(100)}`;
    Deno.mkdirSync(long);
    Deno.env.set("XDG_RUNTIME_DIR", long);
    assertCode("limit", () => openModel({ publish: true }), "XDG_RUNTIME_DIR");
    return Promise.resolve();
  }));

Deno.test("what is no request is answered with the requests there are", () =>
  withLiveFolder(async () => {
    const { mb } = openModel();
    const { path } = mb.publish();
    for (const request of ["\n", "toString\n", "Stats\n", "x".repeat(64)]) {
      const { error } = JSON.parse(await send(path, request));
      assertEquals(error, "ask for one of stats, snapshot, summary");
    }
    for (const request of ["", "stats"]) {
      assertEquals(await send(path, request), "", "no line, no answer");
    }
    assert((await send(path, "stats\n")).endsWith("}\n"));
    mb.close();
  }));

Deno.test("clients that stay silent are dropped when the instance closes", () =>
  withLiveFolder(async () => {
    const { mb } = openModel();
    const { path } = mb.publish();
    using client = await Deno.connect({ transport: "unix", path });
    assert((await send(path, "stats\n")).length > 0, "others are served");
    mb.close();
    const end = await client.read(new Uint8Array(1)).catch(() => null);
    assertEquals(end, null);
  }));

Deno.test("the socket of a process that died is ignored and removed", () =>
  withLiveFolder(async (runtime) => {
    const folder = `${runtime}/moonbright`;
    const program = await startProgram("");
    try {
      const [one] = await listPublished();
      assertEquals(one?.pid, program.pid);
      await program.kill();
      assert(Deno.lstatSync(one!.path).isSocket);
      const error = await assertRejects(
        () => ask(one!, "stats"),
        MoonBrightError,
      );
      assertEquals(error.code, "no-answer");
      // One that has just been made may be about to listen.
      const long = new Date(Date.now() - 60_000);
      Deno.utimeSync(one!.path, long, long);
      assertEquals(await listPublished(), []);
      assertEquals([...Deno.readDirSync(folder)], []);
    } finally {
      await program.kill();
    }
  }));

Deno.test("a process whose event loop is busy does not answer, and says so", () =>
  withLiveFolder(async () => {
    await using program = await startProgram(
      "setTimeout(() => { for (;;); }, 0);",
    );
    const [one] = await listPublished(program.pid);
    const error = await assertRejects(
      () => ask(one!, "stats", 300),
      MoonBrightError,
      "its event loop is busy",
    );
    assertEquals(error.code, "no-answer");
  }));

Deno.test("a published program needs no more permissions than documented, and ends by itself", () =>
  withLiveFolder(async (runtime) => {
    const permissions = [
      "--allow-net",
      `--allow-read=${runtime}`,
      `--allow-write=${runtime}`,
      "--allow-env=XDG_RUNTIME_DIR,TMPDIR",
      "--allow-sys=uid",
    ];
    {
      await using program = await startProgram("", permissions);
      assertEquals((await listPublished())[0]?.pid, program.pid);
    }
    // Without anything else to do, being published keeps no program alive.
    const at = (path: string) =>
      JSON.stringify(new URL(`../../${path}`, import.meta.url).href);
    const { success } = await new Deno.Command("timeout", {
      args: [
        "60",
        Deno.execPath(),
        "eval",
        "--no-check",
        `
        import { MoonBright } from ${at("lib/moonbright.ts")};
        import { ModelDriver } from ${at("tests/model/model_driver.ts")};
        new MoonBright(new ModelDriver(), { publish: true });
      `,
      ],
      stdout: "null",
      stderr: "inherit",
    }).output();
    assert(success);
  }));
