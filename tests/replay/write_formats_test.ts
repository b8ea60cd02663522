import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Parser } from "pickleparser";
import type { Block } from "../../lib/block.ts";
import { checkSnapshot } from "../../lib/live/read_snapshot.ts";
import { recordTrace } from "../../lib/replay/record_trace.ts";
import { readTraces } from "../../lib/replay/read/read_trace.ts";
import { TraceFormatError } from "../../lib/replay/read/trace_format_error.ts";
import { type Trace, TraceAction } from "../../lib/replay/trace.ts";
import { type Workload, workloadOf } from "../../lib/replay/workload.ts";
import {
  PickleTuple,
  type PickleValue,
  PickleWriter,
} from "../../lib/replay/write/pickle_writer.ts";
import { streamNumbers } from "../../lib/replay/write/stream_numbers.ts";
import {
  exportPyTorch,
  pyTorchChunks,
} from "../../lib/replay/write/write_pytorch.ts";
import { rmmChunks } from "../../lib/replay/write/write_rmm.ts";
import { openGated, openModel } from "../lib/support.ts";
import { makeTrace } from "./make_trace.ts";
import { rowsOf } from "./trace_reader_test_data.ts";

// deno-lint-ignore no-explicit-any
type Pickled = any;

function joined(chunks: Iterable<Uint8Array>): Uint8Array<ArrayBuffer> {
  const all = [...chunks];
  const length = all.reduce((sum, chunk) => sum + chunk.length, 0);
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of all) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function unpickle(bytes: Uint8Array): Pickled {
  return new Parser().parse(bytes);
}

async function readBack(
  chunks: Iterable<Uint8Array | string>,
  name = "file",
): Promise<Trace[]> {
  const encoder = new TextEncoder();
  return await readTraces(
    name,
    ReadableStream.from(
      [...chunks].map((one) =>
        typeof one === "string" ? encoder.encode(one) : one
      ),
    ),
  );
}

/** What happens in a workload, whatever the streams are called. */
function stepsOf({ steps, block, isAlloc, bytes, stream, streams }: Workload) {
  return Array.from(
    { length: steps },
    (_, i) => [isAlloc[i], bytes[block[i]!], streams[stream[i]!]],
  );
}

/** Uses an instance at random; returns what was recorded. */
function useAtRandom(seed: number): {
  lines: string[];
  mb: ReturnType<typeof openModel>["mb"];
} {
  const { mb } = openModel({ budget: 256 * 4096 });
  const streams = [mb.defaultStream, mb.createStream()];
  const lines: string[] = [];
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
  const live: Block[] = [mb.alloc(5000), mb.alloc(700)];
  using _recording = recordTrace(mb, (line) => lines.push(line));
  for (let step = 0; step < 150; step++) {
    if (live.length > 0 && (random(2) === 0 || live.length > 25)) {
      live.splice(random(live.length), 1)[0]!.free(streams[random(2)]);
    } else {
      try {
        live.push(mb.alloc(1 + random(8 * 4096), {
          stream: streams[random(2)]!,
          ...(random(2) === 0 ? { name: `n${random(3)}` } : {}),
        }));
      } catch {
        live.pop()?.free();
      }
    }
  }
  return { lines, mb };
}

/**
 * Checks what PyTorch's tools rely on: blocks cover their segments, and going back from
 * the end, every event finds its block, and every block a segment.
 */
function checkViewable(snapshot: Pickled): void {
  for (const segment of snapshot.segments) {
    let at = segment.address;
    for (const block of segment.blocks) {
      assertEquals(block.address, at);
      assert(block.requested_size <= block.size);
      at += block.size;
    }
    assertEquals(at, segment.address + segment.total_size);
  }
  snapshot.device_traces.forEach((events: Pickled[], device: number) => {
    const segments: { from: number; to: number }[] = snapshot.segments
      .filter((one: Pickled) => one.device === device)
      .map((one: Pickled) => ({
        from: one.address,
        to: one.address + one.total_size,
      }));
    const live = new Map<number, { pending: boolean }>();
    for (const { blocks } of snapshot.segments) {
      for (const { address, state } of blocks) {
        if (state === "inactive") continue;
        live.set(address, { pending: state === "active_pending_free" });
      }
    }
    for (const event of events.toReversed()) {
      const { action, addr, size } = event;
      assert(Array.isArray(event.frames));
      if (action === "segment_unmap") {
        segments.push({ from: addr, to: addr + size });
      } else if (action === "free_completed") live.set(addr, { pending: true });
      else if (action === "free_requested") live.get(addr)!.pending = false;
      else if (action === "alloc") assert(live.delete(addr), `${addr} is live`);
      for (const [address, { pending }] of live) {
        assert(
          segments.some(({ from, to }) => from <= address && address < to),
        );
        if (action === "alloc") assert(!pending, "what is not freed is live");
      }
    }
  });
}

Deno.test("plain values come back from a pickle as they were", () => {
  const leaf = fc.oneof(
    fc.maxSafeNat(),
    fc.nat(70_000),
    fc.boolean(),
    fc.constant(null),
    fc.string({ unit: "grapheme", maxLength: 300 }),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie("value"), { maxLength: 5 }),
      fc.dictionary(
        fc.string().filter((key) => key !== "__proto__"),
        tie("value"),
        { maxKeys: 5, noNullPrototype: true },
      ),
    ),
  }));
  fc.assert(fc.property(value, (value) => {
    const writer = new PickleWriter();
    writer.begin();
    writer.value(value as PickleValue);
    assertEquals(unpickle(joined(writer.end())), value);
  }));
});

Deno.test("a pickle holds tuples, long lists, and more strings than a byte counts", () => {
  const writer = new PickleWriter();
  writer.begin();
  const items = Array.from({ length: 2500 }, (_, i) => `s${i % 400}`);
  const chunks = [...writer.list([...items, new PickleTuple(1, "x")])];
  chunks.push(...writer.end());
  const read = unpickle(joined(chunks));
  assertEquals(read.slice(0, 2500), items);
  assertEquals([...read[2500]], [1, "x"]);
  for (const wrong of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(() => new PickleWriter().value(wrong), RangeError);
  }
});

Deno.test("what was recorded, written for PyTorch or RMM, is the same workload", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(2 ** 31), async (seed) => {
      const { lines, mb } = useAtRandom(seed);
      const [trace] = await readBack(lines);
      const expected = stepsOf(workloadOf("run", trace!));
      const pickle = joined(pyTorchChunks([trace!]));
      checkViewable(unpickle(pickle));
      const [pytorch] = await readBack([pickle]);
      assertEquals(stepsOf(workloadOf("run", pytorch!)), expected);
      const [rmm] = await readBack(rmmChunks(trace!));
      assertEquals(stepsOf(workloadOf("run", rmm!)), expected);
      // With what was held at the end, and the addresses that are mapped no more.
      const both = await exportPyTorch({
        snapshot: mb.snapshot(),
        recording: lines,
      });
      const whole = unpickle(
        new Uint8Array(await new Response(both).arrayBuffer()),
      );
      checkViewable(whole);
      const { stats } = mb.snapshot();
      const sum = (key: string) =>
        whole.segments.reduce((all: number, one: Pickled) => all + one[key], 0);
      assertEquals(sum("total_size"), stats.mapped);
      assertEquals(sum("allocated_size"), stats.live);
      assertEquals(sum("requested_size"), stats.requested);
      mb.close();
    }),
    { numRuns: 25 },
  );
});

Deno.test("a recording of PyTorch keeps its events, segments and live blocks", async () => {
  const trace = makeTrace(
    [
      ["SEGMENT_ALLOC", 0x7f0000000000, 8192, 0, 1],
      ["ALLOC", 0x7f0000000000, 512, 0, 2],
      ["ALLOC", 0x7f0000000400, 1000, 1, 3],
      ["FREE_REQUESTED", 0x7f0000000000, 512, 0, 4],
      ["FREE", 0x7f0000000000, 512, 0, 5],
      ["OOM", 12345, 2 ** 40, 1, 6],
      ["SEGMENT_MAP", 0x7f0000002000, 8192, 1, 7],
      ["SEGMENT_UNMAP", 0x7f0000002000, 8192, 1, 8],
      ["SEGMENT_FREE", 0x7e0000000000, 8192, 1, 9],
    ],
    [{
      address: 0x7f0000000000,
      bytes: 8192,
      stream: 0,
      live: [{ address: 0x7f0000000400, bytes: 1000 }],
    }],
    ["0", "94206810"],
  );
  const [read] = await readBack(pyTorchChunks([trace]));
  assertEquals(rowsOf(read!), rowsOf(trace));
  assertEquals([read!.segments, read!.streams, read!.device], [
    trace.segments,
    trace.streams,
    0,
  ]);
});

Deno.test("devices have places of their own, each once", async () => {
  const trace = makeTrace([["ALLOC", 512, 512]]);
  const at = (device: number) => ({ ...trace, device });
  const read = await readBack(pyTorchChunks([at(3), at(1)]));
  assertEquals(read.map(({ device }) => device), [1, 3]);
  assertThrows(() => [...pyTorchChunks([at(1), at(1)])], RangeError);
  assertThrows(() => [...pyTorchChunks([at(2000)])], RangeError);
});

Deno.test("names, free and pending blocks of a snapshot are told", async () => {
  const { mb } = openGated();
  const stream = mb.createStream();
  mb.alloc(1000, { name: "weights" });
  const pending = mb.alloc(4096);
  pending.useOn(stream);
  pending.free();
  const pickle = await exportPyTorch({ snapshot: mb.snapshot() });
  const { segments, device_traces } = unpickle(
    new Uint8Array(await new Response(pickle).arrayBuffer()),
  );
  assertEquals(device_traces, [[]]);
  const blocks = segments.flatMap((one: Pickled) => one.blocks);
  assertEquals(
    blocks.map((one: Pickled) => [one.state, one.size, one.requested_size]),
    [
      ["active_allocated", 1024, 1000],
      ["active_pending_free", 4096, 4096],
      ["inactive", 3072, 0],
    ],
  );
  assertEquals(blocks[0].frames, [
    { filename: "moonbright", line: 0, name: "weights" },
  ]);
  assertEquals(checkSnapshot(mb.snapshot(), "it").blocks.length, 3);
});

Deno.test("a recording that is none is refused", async () => {
  await assertRejects(
    () => exportPyTorch({ recording: ["no recording\n"] }),
    TraceFormatError,
    "the recording",
  );
});

Deno.test("an RMM log begins with what was live before, and leaves out what nothing tells of", async () => {
  const trace = makeTrace([
    ["FREE", 0x1000, 256, 0, 3_600e6 * 25],
    ["FREE", 0x9000, 0, 0, 3_600e6 * 25],
    ["ALLOC", 0x2000, 512, 0, 3_600e6 * 25 + 1.4],
    ["OOM", NaN, 2 ** 40, 0, 3_600e6 * 26],
    ["SEGMENT_ALLOC", 0x2000, 4096, 0, 3_600e6 * 26],
  ]);
  assertEquals(
    [...rmmChunks(trace)].join(""),
    [
      "Thread,Time,Action,Pointer,Size,Stream",
      "1,01:00:00.000000,allocate,0x1000,256,0",
      "1,01:00:00.000000,free,0x1000,256,0",
      "1,01:00:00.000001,allocate,0x2000,512,0",
      "1,02:00:00.000000,allocate failure,(nil),1099511627776,0",
      "",
    ].join("\n"),
  );
  const [read] = await readBack(rmmChunks(trace));
  assertEquals(
    read!.events.action.subarray(0, 4),
    new Uint8Array([
      TraceAction.ALLOC,
      TraceAction.FREE,
      TraceAction.ALLOC,
      TraceAction.OOM,
    ]),
  );
});

Deno.test("streams keep their handles if they are numbers, else get their places", () => {
  assertEquals(streamNumbers(["0", "94206810"]), [0, 94206810]);
  assertEquals(streamNumbers(["0x0", "0x7f5c40000000"]), [0, 0x7f5c40000000]);
  assertEquals(streamNumbers(["0", "main"]), [0, 1]);
  assertEquals(streamNumbers(["16", "0x10"]), [0, 1], "the same number twice");
  assertEquals(streamNumbers(["9999999999999999"]), [0], "not below 2^53");
});
