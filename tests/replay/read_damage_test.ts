// Whatever happens to a file, reading it ends with traces or a TraceFormatError.
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { TraceAction } from "../../lib/replay/trace.ts";
import { TraceFormatError } from "../../lib/replay/read/trace_format_error.ts";
import { writeTrace } from "../../lib/replay/write_trace.ts";
import { pickled, type Protocol, Tuple } from "./pickle_writer.ts";
import {
  eventsOf,
  gzipped,
  read,
  readOrRefuse,
  rowsOf,
  utf8,
} from "./trace_reader_test_data.ts";

const FRAMES = [{ filename: "model.py", line: 3, name: "forward" }];

function snapshot(protocol: Protocol): Uint8Array {
  return pickled({
    segments: [{
      device: 0,
      address: 2 ** 46,
      total_size: 2 ** 21,
      stream: 0,
      segment_pool_id: new Tuple(0, 0),
      blocks: [{ address: 2 ** 46, size: 512, state: "active_allocated" }],
    }],
    device_traces: [[
      {
        action: "alloc",
        addr: 2 ** 46,
        size: 512,
        stream: 0,
        time_us: 1.7e15,
        frames: FRAMES,
      },
      { action: "oom", device_free: 70000, size: 512, stream: 9 },
      { action: "free_completed", addr: 2 ** 46, size: 512, frames: FRAMES },
    ], []],
    settings: { ratio: 0.5, on: true, limit: null, large: 2n ** 70n },
  }, protocol);
}

const RMM = utf8(
  "Thread,Time,Action,Pointer,Size,Stream\n" +
    "1,15:47:02.841961,allocate,0x7f5c40000000,1048576,0\n" +
    "1,15:47:02.841999,allocate failure,(nil),1048576,0x55d0c8a3f2b0\n" +
    "1,15:47:02.842961,free,0x7f5c40000000,1048576,0\n",
);

async function moonbright(): Promise<Uint8Array> {
  const text = writeTrace({
    source: "moonbright",
    device: 0,
    streams: ["0", "ü"],
    events: eventsOf([
      [TraceAction.ALLOC, 2 ** 46, 512, 0, 0.5],
      [TraceAction.OOM, NaN, 512, 1, 1],
      [TraceAction.FREE, 2 ** 46, 512, 1, 2],
    ]),
    segments: [{
      address: 2 ** 46,
      bytes: 4096,
      stream: 0,
      live: [{ address: 2 ** 46, bytes: 512 }],
    }],
  });
  return new Uint8Array(await new Response(text).arrayBuffer());
}

async function samples(): Promise<[string, Uint8Array][]> {
  return [
    ["protocol 2", snapshot(2)],
    ["protocol 3", snapshot(3)],
    ["protocol 4", snapshot(4)],
    ["protocol 5", snapshot(5)],
    ["RMM's log", RMM],
    ["MoonBright's trace", await moonbright()],
    ["packed", await gzipped(snapshot(4))],
    ["packed log", await gzipped(RMM)],
  ];
}

Deno.test("a binary file that is cut short is refused, wherever it is cut", async () => {
  for (const [name, bytes] of await samples()) {
    if (bytes[0] !== 0x80 && bytes[0] !== 0x1f) continue;
    await read(bytes);
    for (let length = 0; length < bytes.length; length++) {
      const error = await readOrRefuse(bytes.slice(0, length));
      assert(error instanceof TraceFormatError, `${name}, ${length} bytes`);
      if (bytes[0] === 0x80) assertEquals(error.offset ?? 0, length, name);
    }
  }
});

Deno.test("a text file that is cut short gives the lines that are left, or is refused", async () => {
  for (const text of [RMM, await moonbright()]) {
    const [whole] = await read(text);
    const rows = rowsOf(whole!);
    let refused = 0;
    for (let length = 0; length < text.length; length++) {
      const result = await readOrRefuse(text.slice(0, length));
      if (result instanceof TraceFormatError) {
        refused++;
        continue;
      }
      // Where the last line was cut within a value at its end, nobody can tell.
      const left = rowsOf(result[0]!).slice(0, -1);
      assertEquals(left, rows.slice(0, left.length));
    }
    assert(refused > text.length / 2);
  }
});

Deno.test("a file with a damaged bit gives traces or is refused", async () => {
  for (const [, bytes] of await samples()) {
    for (let at = 0; at < bytes.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const damaged = bytes.slice();
        damaged[at]! ^= 1 << bit;
        await readOrRefuse(damaged);
      }
    }
  }
});

Deno.test("a file with bytes changed, lost and added gives traces or is refused", async () => {
  const originals = (await samples()).map(([, bytes]) => bytes);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...originals),
      fc.array(
        fc.record({
          at: fc.nat(),
          lost: fc.nat(20),
          added: fc.uint8Array({ maxLength: 20 }),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      async (original, edits) => {
        const bytes = [...original];
        for (const { at, lost, added } of edits) {
          bytes.splice(at % bytes.length, lost, ...added);
        }
        await readOrRefuse(Uint8Array.from(bytes));
      },
    ),
    { numRuns: 2000 },
  );
});

Deno.test("any bytes give traces or are refused", async () => {
  const beginnings = ["", "\x80\x04", "{", "Thread,Time,Action,Pointer\n"];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...beginnings.map(utf8)),
      fc.uint8Array({ maxLength: 200 }),
      async (beginning, rest) => {
        await readOrRefuse(Uint8Array.from([...beginning, ...rest]));
      },
    ),
    { numRuns: 1000 },
  );
});
