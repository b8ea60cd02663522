import { assert, assertEquals } from "@std/assert";
import { formatDuration } from "../lib/cli/duration.ts";
import { Progress } from "../lib/cli/progress.ts";
import { styleFor } from "../lib/cli/style.ts";
import { renderPairs, renderTable } from "../lib/cli/table.ts";
import { KeptStream } from "./cli/fake_host.ts";

Deno.test("formatDuration writes three significant digits", () => {
  const cases: [number, string][] = [
    [0, "0 ns"],
    [0.25, "0.25 ns"],
    [9.994, "9.99 ns"],
    [9.996, "10.0 ns"],
    [70.04, "70.0 ns"],
    [99.96, "100 ns"],
    [999.4, "999 ns"],
    [999.6, "1.00 µs"],
    [22_345, "22.3 µs"],
    [1_234_567, "1.23 ms"],
    [999_999_999, "1.00 s"],
    [12_345e9, "12345 s"],
  ];
  for (const [ns, text] of cases) assertEquals(formatDuration(ns), text);
});

Deno.test("renderTable aligns columns and leaves no blanks at the ends", () => {
  const columns = [
    { title: "what" },
    { title: "bytes", align: "right" as const },
    { title: "note" },
  ];
  const rows = [["a", "1", "x"], ["longer", "1000000", ""]];
  assertEquals(
    renderTable(columns, rows),
    "what      bytes  note\n" +
      "a             1  x\n" +
      "longer  1000000\n",
  );
  assert(
    renderTable(columns, rows, styleFor(true)).startsWith(
      "\x1b[1mwhat      bytes  note\x1b[22m\n",
    ),
  );
  assertEquals(renderTable(columns, []), "what  bytes  note\n");
});

Deno.test("renderPairs aligns the meanings", () => {
  assertEquals(renderPairs([["a", "one"], ["bcd", ""]]), "  a    one\n  bcd\n");
  assertEquals(renderPairs([]), "");
});

Deno.test("progress redraws one line and removes it, with no escapes", () => {
  const stream = new KeptStream();
  stream.isTerminal = true;
  stream.width = 10;
  const progress = new Progress(stream);
  progress.update("longer than the line");
  assertEquals(stream.text, "\rlonger th");
  progress.update("too soon");
  assertEquals(stream.text, "\rlonger th");
  progress.clear();
  assertEquals(stream.text, "\rlonger th\r         \r");
  progress.update("ab");
  assert(stream.text.endsWith("\rab"));
});

Deno.test("progress writes nothing where there is no terminal", () => {
  const stream = new KeptStream();
  const progress = new Progress(stream);
  progress.update("unseen");
  progress.clear();
  assertEquals(stream.text, "");
});
