import { assertEquals, assertStringIncludes } from "@std/assert";
import fc from "fast-check";
import { TraceAction } from "../../lib/replay/trace.ts";
import {
  counts,
  gzipped,
  read,
  refusal,
  type Row,
  rowsOf,
  utf8,
} from "./trace_reader_test_data.ts";

const HEADER = "Thread,Time,Action,Pointer,Size,Stream";
const LINE = "77,15:47:02.841961,allocate,0x7f5c40000000,1048576,0";
const LINE_US = ((15 * 60 + 47) * 60 + 2) * 1e6 + 841961;

async function rowsFrom(...lines: string[]): Promise<Row[]> {
  const [trace] = await read(utf8(lines.map((line) => line + "\n").join("")));
  return rowsOf(trace!);
}

const ACTIONS = [
  ["allocate", TraceAction.ALLOC],
  ["free", TraceAction.FREE],
  ["allocate failure", TraceAction.OOM],
] as const;

const entries = fc.record({
  action: fc.constantFrom(...ACTIONS),
  pointer: counts,
  size: counts,
  stream: fc.constantFrom("0", "1", "2", "0x55d0c8a3f2b0"),
  us: fc.nat(3600e6 - 1),
});

function cellsOf(
  { action, pointer, size, stream, us }: typeof entries extends
    fc.Arbitrary<infer T> ? T : never,
): Record<string, string> {
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const seconds = us / 1e6;
  return {
    Thread: "140573312345856",
    Time: `${two(seconds / 3600)}:${two(seconds / 60 % 60)}:${
      two(seconds % 60)
    }.${String(us % 1e6).padStart(6, "0")}`,
    Action: action[0],
    Pointer: action[1] === TraceAction.OOM || pointer === 0
      ? "(nil)"
      : `0x${pointer.toString(16)}`,
    Size: String(size),
    Stream: stream,
  };
}

Deno.test("any log is read, whatever the order of its columns", async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(entries, { minLength: 1 }),
    fc.shuffledSubarray(HEADER.split(","), { minLength: 6 }),
    fc.constantFrom("\n", "\r\n"),
    fc.constantFrom("", "\ufeff"),
    fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
    fc.boolean(),
    async (log, columns, end, mark, lengths, packed) => {
      const lines = log.map(cellsOf).map((cells) =>
        columns.map((column) => cells[column]).join(",")
      );
      const text = utf8(mark + [columns.join(","), ...lines, ""].join(end));
      const [trace] = await read(
        packed ? await gzipped(text) : text,
        lengths,
        "rmm.dev3.csv",
      );
      const streams = [...new Set(log.map(({ stream }) => stream))];
      assertEquals(trace!.streams, streams);
      assertEquals(trace!.source, "rmm");
      assertEquals(trace!.device, 3);
      assertEquals(trace!.segments, []);
      assertEquals(
        rowsOf(trace!),
        log.map(({ action, pointer, size, stream, us }): Row => [
          action[1],
          action[1] === TraceAction.OOM ? NaN : pointer,
          size,
          streams.indexOf(stream),
          us,
        ]),
      );
    },
  ));
});

Deno.test("the spellings of time that releases have had are understood", async () => {
  const line = (time: string) => `1,${time},free,0x1000,1,0`;
  assertEquals(
    await rowsFrom(HEADER, LINE, LINE.replace("02.84", "02:84")),
    new Array(2).fill([
      TraceAction.ALLOC,
      0x7f5c40000000,
      1048576,
      0,
      LINE_US,
    ]),
  );
  assertEquals(
    (await rowsFrom(HEADER, line("1634567890.123456"), line("17")))
      .map((row) => row[4]),
    [1634567890123456, 17e6],
  );
});

Deno.test("time goes on over midnight, and may step back a little", async () => {
  const times = ["23:59:59.999999", "00:00:00.000001", "23:59:59.999998"];
  const day = 24 * 3600e6;
  const rows = await rowsFrom(
    HEADER,
    ...[...times, "00:00:01.000000", "13:00:00.000000", "00:30:00.000000"]
      .map((time) => `1,${time},free,0x1000,1,0`),
  );
  assertEquals(rows.map((row) => row[4]), [
    day - 1,
    day + 1,
    day - 2,
    day + 1e6,
    day + 13 * 3600e6,
    2 * day + 1800e6,
  ]);
});

Deno.test("thread and time may be missing, and columns may be added", async () => {
  assertEquals(
    await rowsFrom(
      "Stream,Size,Pointer,Action,Label",
      "0, 64, 0x40, allocate, weights",
      "",
    ),
    [[TraceAction.ALLOC, 64, 64, 0, 0]],
  );
});

Deno.test("the device is told by the names that Python gives, else it is 0", async () => {
  const names: [string, number][] = [
    ["log.dev0.csv", 0],
    ["log.dev12.csv", 12],
    ["log.dev7", 7],
    ["dev5.csv", 0],
    ["my.device1.csv", 0],
  ];
  for (const [name, device] of names) {
    const [trace] = await read(utf8(`${HEADER}\n${LINE}\n`), undefined, name);
    assertEquals(trace!.device, device, name);
  }
});

Deno.test("a line that can't be read is told by its number", async () => {
  const wrong: [string, string][] = [
    [LINE.replace("allocate", "alloc"), 'got "alloc"'],
    [LINE.replace("0x7f5c40000000", "140"), "pointer below 2^53, such as"],
    [LINE.replace("0x7f5c40000000", "0x20000000000000"), "pointer below 2^53"],
    [LINE.replace("0x7f5c40000000", ""), "pointer below 2^53"],
    [LINE.replace("1048576", "1e6"), 'size in bytes below 2^53, got "1e6"'],
    [LINE.replace("1048576", "9007199254740992"), "size in bytes below 2^53"],
    [LINE.replace("1048576", "-1"), "size in bytes"],
    [LINE.replace("15:47:02.841961", "noon"), 'got "noon"'],
    [LINE.replace(",0", ""), "expected 6 values, as in the first line, got 5"],
    [LINE + ",1", "got 7"],
    [LINE.slice(0, -1) + "x".repeat(2000), "stream's name is longer"],
  ];
  for (const [line, message] of wrong) {
    const error = await refusal([HEADER, LINE, line, LINE, ""].join("\n"));
    assertStringIncludes(error.message, message);
    assertStringIncludes(error.message, 'Cannot read "file" at line 3: ');
    assertEquals(error.line, 3);
  }
});

Deno.test("a log whose recorder was stopped says what to do", async () => {
  const error = await refusal(`${HEADER}\n${LINE}\n${LINE.slice(0, 30)}`);
  assertStringIncludes(error.message, "delete the line");
  assertEquals(error.line, 3);
  // The end of the last line alone may be missing.
  const [trace] = await read(utf8(`${HEADER}\n${LINE}\n${LINE}`));
  assertEquals(trace!.events.count, 2);
});

Deno.test("a log without events or without a column is refused", async () => {
  assertStringIncludes((await refusal(HEADER)).message, "no events");
  assertStringIncludes((await refusal(HEADER + "\n\n")).message, "no events");
  for (const missing of ["Size", "Stream"]) {
    const error = await refusal(HEADER.replace(missing, "Other") + "\n" + LINE);
    assertStringIncludes(error.message, `there is no ${missing.toLowerCase()}`);
    assertEquals(error.line, 1);
  }
});
