import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { FakeHost } from "./cli/fake_host.ts";
import { openModel } from "./lib/support.ts";
import { startProgram, withLiveFolder } from "./live/live_world.ts";
import { checkMarkup } from "./replay/markup_check.ts";

const HELD = `mb.alloc(3 * 1024 ** 2, { name: "weights" });`;

Deno.test("top and map need a program that publishes", () =>
  withLiveFolder(async () => {
    for (const command of ["top", "map"]) {
      const none = await new FakeHost().run(command);
      assertEquals([none.code, none.stdout], [7, ""]);
      assertStringIncludes(none.stderr, "publish: true");
      const wrong = await new FakeHost().run(command, "1");
      assertEquals(wrong.code, 7);
      assertStringIncludes(wrong.stderr, "process 1");
    }
  }));

Deno.test("arguments that make no sense are refused", async () => {
  const wrong = [
    ["top", "me"],
    ["top", "1", "2"],
    ["top", "--interval", "0"],
    ["top", "--interval", "fast"],
    ["map", "1", "2"],
    ["map", "/does/not/exist"],
    ["map", "1", "--scale", "100"],
    ["map", "1", "--instance", "0"],
  ];
  for (const args of wrong) {
    const { code, stdout } = await new FakeHost().run(...args);
    assertEquals([code, stdout], [2, ""], args.join(" "));
  }
});

Deno.test("top looks at another process once", () =>
  withLiveFolder(async () => {
    await using program = await startProgram(HELD);
    const text = await new FakeHost().run("top", String(program.pid), "--once");
    assertEquals([text.code, text.stderr], [0, ""]);
    assertStringIncludes(text.stdout, `process ${program.pid}, model:0`);
    assert(/^weights +3 MiB +1 +3 MiB$/m.test(text.stdout), text.stdout);
    assert(/^live +█+░* +3 MiB, /m.test(text.stdout), text.stdout);
    assert(!text.stdout.includes("\x1b"));
    const json = await new FakeHost().run("top", "--once", "--json");
    const { command, schemaVersion, instances } = JSON.parse(json.stdout);
    assertEquals([command, schemaVersion, instances.length], ["top", 1, 1]);
    assertEquals(instances[0].pid, program.pid);
    assertEquals([instances[0].stats.liveBlocks, instances[0].rates], [
      1,
      null,
    ]);
  }));

Deno.test("top writes a line an interval where there is no terminal, with rates", () =>
  withLiveFolder(async () => {
    await using _program = await startProgram(
      "setInterval(() => mb.alloc(512).free(), 1);",
    );
    const host = new FakeHost();
    const running = host.run("top", "--interval", "0.05");
    await until(() => host.stdout.text.split("\n").length > 4);
    host.interrupt?.();
    const { code, stdout, stderr } = await running;
    assertEquals([code, stderr], [0, ""]);
    const [head, first, ...more] = stdout.trim().split("\n");
    assertStringIncludes(head!, "requests/s");
    assert(/ - +- +-$/.test(first!), "no rates at first");
    assert(more.some((line) => /[1-9]\d* +[1-9]\d* +0$/.test(line)), stdout);
    const jsonHost = new FakeHost();
    const json = jsonHost.run("top", "--interval", "0.05", "--json");
    await until(() => jsonHost.stdout.text.split("\n").length > 2);
    jsonHost.interrupt?.();
    const lines = (await json).stdout.trim().split("\n").map((line) =>
      JSON.parse(line)
    );
    assertEquals(lines[0].instances[0].rates, null);
    assert(lines[1].instances[0].rates.ways.reuse.perSecond >= 0);
  }));

Deno.test("on a terminal top draws in place, no more than fits, and gives the cursor back", () =>
  withLiveFolder(async () => {
    const { mb } = openModel({ publish: true, budget: 2 ** 20 });
    const host = new FakeHost();
    host.stdout.isTerminal = true;
    host.stdout.width = 60;
    host.stdout.height = 8;
    const running = host.run("top", "--interval", "0.05");
    await until(() => host.stdout.text.split("\x1b[H").length > 3);
    host.interrupt?.();
    const { code, stdout } = await running;
    assertEquals(code, 0);
    assert(stdout.startsWith("\x1b[?25l"), "hides the cursor");
    assert(stdout.endsWith("\x1b[?25h"), "shows it again");
    const [, ...screens] = stdout.split("\x1b[H");
    for (const screen of screens) {
      const lines = screen.replace("\r\n\x1b[?25h", "").split("\r\n");
      assert(lines.length < 8, String(lines.length));
      for (const line of lines) {
        // deno-lint-ignore no-control-regex
        assert(line.replace(/\x1b\[[0-9;]*[mKJ]/g, "").length <= 60);
      }
    }
    mb.close();
  }));

Deno.test("top ends when the last program does", () =>
  withLiveFolder(async () => {
    const { mb } = openModel({ publish: true });
    const host = new FakeHost();
    const running = host.run("top", "--interval", "0.05");
    await until(() => host.stdout.text.includes("\n"));
    mb.close();
    const { code, stderr } = await running;
    assertEquals(code, 0);
    assertStringIncludes(stderr, "no program is left");
  }));

Deno.test("map draws another process, and a snapshot that was kept", () =>
  withLiveFolder(async (runtime) => {
    await using program = await startProgram(HELD);
    const live = await new FakeHost().run("map", String(program.pid));
    assertEquals([live.code, live.stderr], [0, ""]);
    assert(/^0x[0-9a-f]{12} A+░*$/m.test(live.stdout), live.stdout);
    const json = await new FakeHost().run("map", "--json");
    const file = `${runtime}/snapshot.json`;
    await Deno.writeTextFile(file, json.stdout);
    const kept = await new FakeHost().run("map", file);
    const withoutTime = (text: string) => text.split("\n").slice(1);
    assertEquals(withoutTime(kept.stdout), withoutTime(live.stdout));
    const ascii = await new FakeHost().run("map", file, "--ascii");
    assert(/^[\n -~]+$/.test(ascii.stdout), ascii.stdout);
    const host = new FakeHost();
    host.unicode = false;
    assertEquals((await host.run("map", file)).stdout, ascii.stdout);
    const list = await new FakeHost().run("map", file, "--list");
    assert(/extent +\d+/.test(list.stdout), list.stdout);
    assert(/ {2}live +3145728 +3 MiB +0 +weights\n/.test(list.stdout));
    const again = await new FakeHost().run("map", file, "--json");
    assertEquals(JSON.parse(again.stdout), JSON.parse(json.stdout));
  }));

Deno.test("map writes a picture and a page that needs nothing else", () =>
  withLiveFolder(async (runtime) => {
    const { mb } = openModel();
    mb.alloc(5000, { name: "<script>alert(1)</script>" });
    const file = `${runtime}/snapshot.json`;
    await Deno.writeTextFile(file, JSON.stringify(mb.snapshot()));
    const [svg, html] = [`${runtime}/map.svg`, `${runtime}/map.html`];
    const { code, stdout, stderr } = await new FakeHost().run(
      ...["map", file, "--svg", svg, "--html", html],
    );
    assertEquals([code, stdout, stderr], [0, "", ""]);
    const picture = await Deno.readTextFile(svg);
    checkMarkup(picture, "xml");
    const page = await Deno.readTextFile(html);
    checkMarkup(page, "html");
    for (const text of [picture, page]) {
      assertStringIncludes(text, "&lt;script&gt;alert(1)&lt;/script&gt;");
      assert(!text.includes("<script"));
      assert(!/(src|href)=|url\((?!#)|@import/.test(text));
    }
    assertStringIncludes(page, "default-src 'none'");
  }));

Deno.test("a damaged snapshot ends with 6, a process with several instances needs one", () =>
  withLiveFolder(async (runtime) => {
    const file = `${runtime}/snapshot.json`;
    await Deno.writeTextFile(file, `{"schemaVersion":1}`);
    const damaged = await new FakeHost().run("map", file);
    assertEquals([damaged.code, damaged.stdout], [6, ""]);
    assertStringIncludes(damaged.stderr, file);
    const { mb: first } = openModel({ publish: true });
    const { mb: second } = openModel({ publish: true });
    second.alloc(512, { name: "of the second" });
    const unclear = await new FakeHost().run("map");
    assertEquals(unclear.code, 2);
    assertStringIncludes(unclear.stderr, "--instance");
    const chosen = await new FakeHost().run("map", "--instance", "2");
    assertStringIncludes(chosen.stdout, "of the second");
    assertEquals((await new FakeHost().run("map", "--instance", "3")).code, 2);
    first.close();
    second.close();
  }));

Deno.test("as a process, top and map watch another process", () =>
  withLiveFolder(async () => {
    await using program = await startProgram(HELD);
    const cli = fromFileUrl(new URL("../cli.ts", import.meta.url));
    for (const args of [["top", "--once"], ["map", "--list"]]) {
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "--no-prompt", "-A", cli, ...args, String(program.pid)],
        env: { NO_COLOR: "1" },
      }).output();
      const text = new TextDecoder();
      assertEquals([code, text.decode(stderr)], [0, ""]);
      assertStringIncludes(text.decode(stdout), "weights");
    }
  }));

/** Waits until something is so; the test's own limit ends a wait in vain. */
async function until(done: () => boolean): Promise<void> {
  for (let round = 0; !done(); round++) {
    if (round > 1000) throw new Error("It never came");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
