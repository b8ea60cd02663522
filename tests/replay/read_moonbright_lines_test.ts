import {
  assert,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import { type Trace, TraceAction } from "../../lib/replay/trace.ts";
import {
  eventLine,
  headerLine,
  segmentLines,
  streamLine,
  writeTrace,
} from "../../lib/replay/write_trace.ts";
import { readTraces } from "../../lib/replay/read/read_trace.ts";
import {
  assertSameTraces,
  eventsOf,
  gzipped,
  read,
  refusal,
  rowsOf,
  traces,
  utf8,
} from "./trace_reader_test_data.ts";

const HEADER =
  '{"format":"moonbright-trace","version":1,"device":0,"streams":["0"]}\n';
const EVENT = '["alloc",4096,512,0,1.5]\n';

Deno.test("any trace that is written is read as it was", async () => {
  await fc.assert(fc.asyncProperty(traces, async (trace) => {
    assertSameTraces(await readTraces("file", writeTrace(trace)), [trace]);
  }));
});

Deno.test("it is read from chunks of any length, plain or packed", async () => {
  await fc.assert(fc.asyncProperty(
    traces,
    fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
    fc.boolean(),
    async (trace, lengths, packed) => {
      const text = new Uint8Array(
        await new Response(writeTrace(trace)).arrayBuffer(),
      );
      const bytes = packed ? await gzipped(text) : text;
      assertSameTraces(await read(bytes, lengths), [trace]);
    },
  ));
});

Deno.test("a trace of many chunks is written whole", async () => {
  const trace: Trace = {
    source: "moonbright",
    device: 1,
    streams: ["0"],
    events: eventsOf(Array.from({ length: 5000 }, (_, i) => [
      TraceAction.ALLOC,
      i * 512,
      i,
      0,
      i / 8,
    ])),
    segments: [],
  };
  assertSameTraces(await readTraces("file", writeTrace(trace)), [trace]);
});

Deno.test("a recorder can write line by line, and name streams when they appear", async () => {
  const text = [
    headerLine({ device: 2, streams: [] }),
    streamLine("0"),
    eventLine(TraceAction.ALLOC, 2 ** 46, 512, 0, 0.25),
    streamLine('a "stream"\n'),
    eventLine(TraceAction.FREE, 2 ** 46, 512, 1, 1),
    eventLine(TraceAction.OOM, NaN, 2 ** 40, 1, 2),
    segmentLines({
      address: 2 ** 46,
      bytes: 2 ** 21,
      stream: 1,
      live: [{ address: 2 ** 46 + 512, bytes: 64 }],
    }),
  ].join("");
  assertEquals(
    text,
    '{"format":"moonbright-trace","version":1,"device":2,"streams":[]}\n' +
      '["stream","0"]\n' +
      '["alloc",70368744177664,512,0,0.25]\n' +
      '["stream","a \\"stream\\"\\n"]\n' +
      '["free",70368744177664,512,1,1]\n' +
      '["oom",null,1099511627776,1,2]\n' +
      '["segment",70368744177664,2097152,1]\n' +
      '["block",70368744178176,64]\n',
  );
  const [trace] = await read(utf8(text));
  assertEquals(trace!.device, 2);
  assertEquals(trace!.streams, ["0", 'a "stream"\n']);
  assertEquals(rowsOf(trace!), [
    [TraceAction.ALLOC, 2 ** 46, 512, 0, 0.25],
    [TraceAction.FREE, 2 ** 46, 512, 1, 1],
    [TraceAction.OOM, NaN, 2 ** 40, 1, 2],
  ]);
  assertEquals(trace!.segments[0]!.live, [{
    address: 2 ** 46 + 512,
    bytes: 64,
  }]);
});

Deno.test("a recorder's mistakes are refused when it writes them", () => {
  const { ALLOC, OOM } = TraceAction;
  for (const wrong of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(() => eventLine(ALLOC, wrong, 1, 0, 0), RangeError, "address");
    assertThrows(() => eventLine(ALLOC, 1, wrong, 0, 0), RangeError, "bytes");
    assertThrows(() => eventLine(ALLOC, 1, 1, wrong, 0), RangeError, "stream");
    assertThrows(
      () => headerLine({ device: wrong, streams: [] }),
      RangeError,
      "device",
    );
  }
  assertThrows(() => eventLine(ALLOC, 1, 1, 0, NaN), RangeError, "time");
  assertThrows(() => eventLine(OOM, -1, 1, 0, 0), RangeError, "address");
});

Deno.test("empty lines and a missing last newline are no matter", async () => {
  const [trace] = await read(utf8(`${HEADER}\n${EVENT}\n${EVENT.trimEnd()}`));
  assertEquals(trace!.events.count, 2);
});

Deno.test("a line that can't be read is told by its number", async () => {
  const wrong: [string, string][] = [
    ['["alloc",4096,512,0', "expected a line of JSON"],
    ["alloc", "expected a line of JSON"],
    ["{}", "expected a list such as"],
    ["null", "expected a list such as"],
    ['["allocate",4096,512,0,0]', 'got "allocate"'],
    ["[]", "expected a line of alloc, free_requested, free"],
    ['["alloc",-1,512,0,0]', "the address to be an integer"],
    ['["alloc",9007199254740992,512,0,0]', "the address to be an integer"],
    ['["alloc","4096",512,0,0]', 'got "4096"'],
    ['["alloc",null,512,0,0]', "the address to be an integer"],
    ['["alloc",4096,1.5,0,0]', "the number of bytes to be an integer"],
    ['["alloc",4096,512,1,0]', "there is no stream 1: a line such as"],
    ['["alloc",4096,512,-1,0]', "the stream to be an integer"],
    ['["alloc",4096,512,0]', "expected a time in microseconds"],
    ['["alloc",4096,512,0,"now"]', "expected a time in microseconds"],
    ['["stream",5]', "expected the name of a stream, got 5"],
    ['["stream"]', "expected the name of a stream"],
    [`["stream","${"x".repeat(2000)}"]`, "stream's name is longer"],
    ['["segment",0,4096]', "the stream to be an integer"],
    ['["segment",0,4096,7]', "there is no stream 7"],
    ['["block",0,512]', "expected a line of segment before it"],
  ];
  for (const [line, message] of wrong) {
    const error = await refusal(`${HEADER}${EVENT}${line}\n${EVENT}`);
    assertStringIncludes(error.message, message);
    assertEquals(error.line, 3);
  }
});

Deno.test("a trace whose recorder was stopped says what to do", async () => {
  const error = await refusal(`${HEADER}${EVENT}${EVENT.slice(0, 9)}`);
  assertStringIncludes(error.message, "delete the line");
  assertEquals(error.line, 3);
});

Deno.test("a first line of something else is refused", async () => {
  const wrong: [string, string][] = [
    ["{}", "not a MoonBright trace"],
    ['[{"ph":"X"}]', "not a MoonBright trace"],
    ['{"traceEvents":[', "expected a line of JSON"],
    ["{", "expected a line of JSON"],
    [HEADER.replace('"version":1', '"version":2'), "expected version 1"],
    [HEADER.replace('"version":1,', ""), "expected version 1"],
    [HEADER.replace('"device":0', '"device":-1'), "the device to be"],
    [HEADER.replace('"device":0,', ""), "the device to be"],
    [HEADER.replace('["0"]', "5"), '"streams" to be a list'],
    [HEADER.replace('["0"]', "[5]"), "expected the name of a stream"],
    [HEADER.replace("}", ',"source":"me"}'), '"source" to be one of'],
  ];
  for (const [line, message] of wrong) {
    for (const end of ["", "\n"]) {
      const error = await refusal(line.trimEnd() + end);
      assertStringIncludes(error.message, message);
      assertEquals(error.line, 1);
      assert(!error.message.includes("delete the line"));
    }
  }
  assertStringIncludes((await refusal(HEADER)).message, "no events");
});

Deno.test("what a newer recorder adds to the first line is skipped", async () => {
  const header = HEADER.replace("}", ',"program":"train.ts"}');
  assertEquals((await read(utf8(header + EVENT)))[0]!.events.count, 1);
});
