import { assertEquals, assertStringIncludes } from "@std/assert";
import { recordTrace } from "../lib/replay/record_trace.ts";
import { FakeHost } from "./cli/fake_host.ts";
import { openModel } from "./lib/support.ts";

/** A recording and a snapshot of one program, as files. */
async function withFiles(
  body: (at: (name: string) => string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const at = (name: string) => `${folder}/${name}`;
  try {
    const { mb } = openModel();
    const lines: string[] = [];
    {
      using _recording = recordTrace(mb, (line) => lines.push(line));
      mb.alloc(700, { name: "kept" });
      mb.alloc(5000).free();
    }
    await Deno.writeTextFile(at("run.trace"), lines.join(""));
    await Deno.writeTextFile(
      at("held.json"),
      JSON.stringify(mb.snapshot(), null, 2),
    );
    await body(at);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function workloadIn(file: string): Promise<unknown> {
  const { code, stdout, stderr } = await new FakeHost().run(
    ...["replay", "--model", "--json", file],
  );
  assertEquals(code, 0, stderr);
  const { allocations, frees, livePeak } = JSON.parse(stdout).workload;
  return { allocations, frees, livePeak };
}

Deno.test("any format becomes any other and stays the same workload", () =>
  withFiles(async (at) => {
    const expected = await workloadIn(at("run.trace"));
    assertEquals(expected, { allocations: 2, frees: 1, livePeak: 5700 });
    const formats = ["pytorch", "rmm", "moonbright"];
    for (const first of formats) {
      const { code, stdout, stderr } = await new FakeHost().run(
        ...["export", "--to", first, at("run.trace"), at(first)],
      );
      assertEquals([code, stderr], [0, ""]);
      assertStringIncludes(stdout, "3 events");
      assertEquals(await workloadIn(at(first)), expected, first);
      for (const second of formats) {
        const json = await new FakeHost().run(
          ...["export", "--json", "--to", second, at(first), at("again")],
        );
        assertEquals(JSON.parse(json.stdout).format, second);
        assertEquals(await workloadIn(at("again")), expected, first + second);
      }
    }
  }));

Deno.test("a snapshot as JSON becomes PyTorch's, alone or with a recording", () =>
  withFiles(async (at) => {
    const alone = await new FakeHost().run(
      ...["export", "--to", "pytorch", at("held.json"), at("alone")],
    );
    assertEquals([alone.code, alone.stderr], [0, ""]);
    const pickle = await Deno.readTextFile(at("alone"));
    assertStringIncludes(pickle, "kept");
    const both = await new FakeHost().run(
      ...["export", "--to", "pytorch", at("run.trace"), at("both")],
      ...["--snapshot", at("held.json")],
    );
    assertEquals([both.code, both.stderr], [0, ""]);
    assertStringIncludes(both.stdout, "3 events and a snapshot");
    assertEquals(
      await workloadIn(at("both")),
      await workloadIn(at("run.trace")),
    );
  }));

Deno.test("what can't be exported is refused", () =>
  withFiles(async (at) => {
    const wrong: [number, string[]][] = [
      [2, ["export", at("run.trace"), at("out")]],
      [2, ["export", "--to", "pytorch", at("run.trace")]],
      [2, ["export", "--to", "pickle", at("run.trace"), at("out")]],
      [2, ["export", "--to", "rmm", at("held.json"), at("out")]],
      [2, ["export", "--to", "rmm", at("none"), at("out")]],
      [2, ["export", "--to", "rmm", at("run.trace"), at("no/folder")]],
      [2, [
        "export",
        "--to",
        "rmm",
        "--trace-device",
        "4",
        at("run.trace"),
        "x",
      ]],
      [
        2,
        [
          "export",
          "--to",
          "rmm",
          "--snapshot",
          at("held.json"),
          at("run.trace"),
          "x",
        ],
      ],
    ];
    for (const [expected, args] of wrong) {
      const { code, stdout } = await new FakeHost().run(...args);
      assertEquals([code, stdout], [expected, ""], args.join(" "));
    }
    await Deno.writeTextFile(at("bad"), "{}");
    const bad = await new FakeHost().run(
      ...["export", "--to", "rmm", at("bad"), at("out")],
    );
    assertEquals(bad.code, 6);
    // Nothing of what was refused has been written.
    assertEquals(
      [...Deno.readDirSync(at(""))].map(({ name }) => name).sort(),
      ["bad", "held.json", "run.trace"],
    );
  }));
