import { assertEquals, assertStringIncludes } from "@std/assert";
import fc from "fast-check";
import { Parser } from "pickleparser";
import { TraceAction } from "../../lib/replay/trace.ts";
import {
  pickled,
  type PickleValue,
  type Protocol,
  Str,
  Tuple,
} from "./pickle_writer.ts";
import {
  assertSameTraces,
  gzipped,
  read,
  refusal,
  reversed,
  rowsOf,
  type Snapshot,
  snapshots,
  snapshotsWith,
  tracesOfSnapshot,
} from "./trace_reader_test_data.ts";

const PROTOCOLS: readonly Protocol[] = [2, 3, 4, 5];
const protocols = fc.constantFrom(...PROTOCOLS);

const EVENT = { action: "alloc", addr: 4096, size: 512, stream: 0 };

function snapshotOf(
  events: PickleValue[],
  more: { [key: string]: PickleValue } = {},
): Uint8Array {
  return pickled({ segments: [], device_traces: [events], ...more }, 4);
}

Deno.test("any snapshot is read in any protocol, plain or packed", async () => {
  await fc.assert(fc.asyncProperty(
    snapshots,
    protocols,
    fc.boolean(),
    fc.nat(2),
    async (snapshot, protocol, backwards, layers) => {
      let bytes = pickled(backwards ? reversed(snapshot) : snapshot, protocol);
      for (let i = 0; i < layers; i++) bytes = await gzipped(bytes);
      assertSameTraces(await read(bytes), tracesOfSnapshot(snapshot));
    },
  ));
});

Deno.test("it does not matter where chunks end", async () => {
  await fc.assert(fc.asyncProperty(
    snapshots,
    protocols,
    fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1 }),
    async (snapshot, protocol, lengths) => {
      const bytes = pickled(snapshot, protocol);
      const traces = await read(bytes, [...lengths, 1]);
      assertSameTraces(traces, tracesOfSnapshot(snapshot));
    },
  ));
});

Deno.test("a general reader of pickles finds the same", async () => {
  // It reads no integer that a double does not hold.
  await fc.assert(fc.asyncProperty(
    snapshotsWith(fc.integer()),
    protocols,
    async (snapshot, protocol) => {
      const bytes = pickled(snapshot, protocol);
      const parsed = new Parser().parse<Snapshot>(bytes);
      assertSameTraces(await read(bytes), tracesOfSnapshot(parsed));
    },
  ));
});

Deno.test("thousands of events, in batches and frames, are all read", async () => {
  const frames = Array.from({ length: 50 }, (_, line) => ({
    filename: "/code/model.py",
    line,
    name: `f${line}`,
  }));
  const snapshot: Snapshot = {
    segments: [],
    device_traces: [
      [],
      Array.from({ length: 5001 }, (_, i) => ({
        action: new Str(i % 2 ? "free_completed" : "alloc"),
        addr: 2 ** 46 + i * 512,
        size: i,
        stream: i % 3,
        frames: frames.slice(i % 40, i % 40 + 10),
        time_us: 1.7e15 + i,
      })),
    ],
  };
  for (const protocol of PROTOCOLS) {
    assertSameTraces(
      await read(pickled(snapshot, protocol), [4096]),
      tracesOfSnapshot(snapshot),
    );
  }
});

Deno.test("a device without events has no trace, and the others keep their numbers", async () => {
  const bytes = pickled({
    segments: [],
    device_traces: [[], [EVENT], [{ action: "snapshot" }], [{ ...EVENT }, {
      ...EVENT,
    }]],
  }, 4);
  assertEquals(
    (await read(bytes)).map(({ device, events }) => [device, events.count]),
    [[1, 1], [3, 2]],
  );
});

Deno.test("an older release's spellings are understood", async () => {
  const [trace] = await read(pickled({
    segments: [{
      address: 8192,
      total_size: 4096,
      blocks: [
        { size: 1024, state: "inactive" },
        { size: 512, state: "active_awaiting_free" },
        { size: 2560, requested_size: 2500, state: "active_allocated" },
      ],
    }],
    device_traces: [[
      { action: "free", addr: 4096, size: 512 },
      { action: "oom", size: 100, stream: 0 },
    ]],
  }, 2));
  assertEquals(rowsOf(trace!), [
    [TraceAction.FREE, 4096, 512, 0, 0],
    [TraceAction.OOM, NaN, 100, 0, 0],
  ]);
  assertEquals(trace!.segments, [{
    address: 8192,
    bytes: 4096,
    stream: 0,
    live: [{ address: 9216, bytes: 512 }, { address: 9728, bytes: 2500 }],
  }]);
});

Deno.test("an out of memory event tells what was free", async () => {
  const [trace] = await read(snapshotOf([
    { action: "oom", device_free: 12345, size: 100, stream: 5, time_us: 9 },
  ]));
  assertEquals(rowsOf(trace!), [[TraceAction.OOM, 12345, 100, 0, 9]]);
  assertEquals(trace!.streams, ["5"]);
});

Deno.test("integers at the ends of the encodings are exact", async () => {
  for (let bit = 0; bit < 53; bit++) {
    for (const addr of [2 ** bit - 1, 2 ** bit, 2 ** bit + 1]) {
      if (!Number.isSafeInteger(addr)) continue;
      const [trace] = await read(snapshotOf([{ ...EVENT, addr }]));
      assertEquals(trace!.events.address[0], addr);
    }
  }
});

Deno.test("an address that a double does not hold is refused, with its place", async () => {
  for (const addr of [2n ** 53n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 2100n]) {
    const bytes = snapshotOf([EVENT, { ...EVENT, addr }]);
    const error = await refusal(bytes);
    assertStringIncludes(error.message, 'event 1 can\'t be read: its "addr"');
    assertStringIncludes(error.message, "not below 2^53");
    const offset = Number(/at byte (\d+) is not/.exec(error.message)![1]);
    assertEquals([0x8a, 0x8b].includes(bytes[offset]!), true);
  }
});

Deno.test("large integers that nobody asks for do no harm", async () => {
  const bytes = snapshotOf([{ ...EVENT, hash: 2n ** 63n, id: -(2n ** 3000n) }]);
  assertEquals((await read(bytes))[0]!.events.count, 1);
});

Deno.test("values of another type are refused, and told", async () => {
  const wrong: [PickleValue, string][] = [
    [{ ...EVENT, addr: "4096" }, '"addr" should be an integer'],
    [{ ...EVENT, addr: null }, '"addr" should be an integer'],
    [
      { ...EVENT, size: 0.5 },
      '"size" should be an integer from 0 on, but is 0.5',
    ],
    [
      { ...EVENT, size: -1 },
      '"size" should be an integer from 0 on, but is -1',
    ],
    [{ ...EVENT, stream: [] }, '"stream" should be an integer'],
    [{ ...EVENT, time_us: "now" }, '"time_us" should be an integer'],
    [
      { action: "alloc", addr: 0 },
      '"size" should be an integer from 0 on, but is missing',
    ],
    [{ action: "oom", device_free: -5, size: 1 }, '"device_free" should be'],
    [{ addr: 4096 }, "it is something else"],
    [17, "it is something else"],
    ["alloc", "it is something else"],
    [null, "it is something else"],
  ];
  for (const [event, message] of wrong) {
    const error = await refusal(snapshotOf([EVENT, event, EVENT]));
    assertStringIncludes(error.message, "event 1 can't be read");
    assertStringIncludes(error.message, message);
  }
});

Deno.test("an event that is mentioned twice is refused, not left out", async () => {
  const event = { ...EVENT };
  const error = await refusal(snapshotOf([event, event]));
  assertStringIncludes(
    error.message,
    "event 1 can't be read: it is a second mention",
  );
});

Deno.test("segments that can't be read are refused, and told", async () => {
  const segment = { address: 0, total_size: 4096, blocks: [] };
  const block = { size: 512, state: "active_allocated" };
  const wrong: [PickleValue, string][] = [
    [[{ ...segment, total_size: "4096" }], '"total_size" should be'],
    [[{ ...segment, address: -4096 }], '"address" should be'],
    [[{ ...segment, device: 1.5 }], '"device" should be'],
    [[{ ...segment, stream: "0" }], '"stream" should be'],
    [[{ ...segment, blocks: 5 }], '"blocks"'],
    [[{ ...segment, blocks: [5] }], "its block 0"],
    [[{ ...segment, blocks: [{ ...EVENT }] }], '"blocks" is no list of blocks'],
    [[{ ...segment, blocks: [block, { ...block, size: -1 }] }], "its block 1"],
    [
      [{ ...segment, blocks: [{ ...block, address: 2n ** 60n }] }],
      "its block 0",
    ],
    [
      [{ ...segment, blocks: [{ ...block, requested_size: "" }] }],
      "its block 0",
    ],
    [
      [{
        ...segment,
        address: 2 ** 53 - 4096,
        blocks: [{ ...block, size: 8192 }, { ...block }],
      }],
      "its blocks go beyond 2^53",
    ],
    [[segment, 5], 'item 1 of "segments"'],
    [[{ ...EVENT }], '"segments" to be a list of segments'],
    [new Tuple(), '"segments" to be a list'],
  ];
  for (const [segments, message] of wrong) {
    const error = await refusal(snapshotOf([EVENT], { segments }));
    assertStringIncludes(error.message, message);
  }
});

Deno.test("pickles of something else are refused, with what to do", async () => {
  const others: [PickleValue, string][] = [
    [[EVENT], "not of a memory snapshot"],
    [119547037146038801333356n, "not of a memory snapshot"],
    ["text", "not of a memory snapshot"],
    [{}, 'no "device_traces"'],
    [{ state_dict: {} }, 'no "device_traces"'],
    [{ device_traces: 5 }, '"device_traces" to be a list'],
    [{ device_traces: [EVENT] }, "list of lists of events"],
    [{ device_traces: [5] }, "item 0"],
    [{ device_traces: [[EVENT], 5] }, "item 1"],
    [{ device_traces: [[5]] }, "event 0 can't be read"],
    [{ device_traces: [[[EVENT]]] }, "no list of events"],
    [{ device_traces: [] }, "no events"],
    [{ device_traces: [[], [{ action: "snapshot" }]] }, "no events"],
  ];
  for (const [value, message] of others) {
    const error = await refusal(pickled(value, 4));
    assertStringIncludes(error.message, message);
    assertEquals(error.code, "bad-trace");
  }
});
