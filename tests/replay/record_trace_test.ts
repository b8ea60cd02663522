import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import type { Block } from "../../lib/block.ts";
import { OutOfMemoryError } from "../../lib/errors.ts";
import { recordTrace } from "../../lib/replay/record_trace.ts";
import { readTraces } from "../../lib/replay/read/read_trace.ts";
import { TraceAction } from "../../lib/replay/trace.ts";
import { workloadOf } from "../../lib/replay/workload.ts";
import { assertCode, GRANULE, openModel } from "../lib/support.ts";

async function read(lines: readonly string[]) {
  const [trace] = await readTraces(
    "recorded",
    ReadableStream.from(lines).pipeThrough(new TextEncoderStream()),
  );
  return trace!;
}

Deno.test("what is recorded reads back as what was done", async () => {
  const steps = fc.array(
    fc.record({
      what: fc.constantFrom("alloc", "free", "resize"),
      which: fc.nat(20),
      bytes: fc.integer({ min: 1, max: 6 * GRANULE }),
      stream: fc.nat(2),
    }),
    { maxLength: 60 },
  );
  await fc.assert(fc.asyncProperty(steps, fc.nat(60), async (steps, from) => {
    const { mb } = openModel();
    const streams = [mb.defaultStream, mb.createStream(), mb.createStream()];
    const live: Block[] = [];
    const lines: string[] = [];
    let recording: Disposable | undefined;
    let peak = 0;
    const total = () => live.reduce((sum, block) => sum + block.size, 0);
    steps.forEach(({ what, which, bytes, stream }, step) => {
      if (step === Math.min(from, steps.length - 1)) {
        recording = recordTrace(mb, (line) => lines.push(line));
        peak = total();
      }
      const block = live[which % live.length];
      if (what === "alloc" || !block) {
        live.push(mb.alloc(bytes, { stream: streams[stream]! }));
      } else if (what === "free") {
        block.free();
        live.splice(live.indexOf(block), 1);
      } else block.resize(Math.min(bytes, block.size));
      peak = Math.max(peak, total());
    });
    recording?.[Symbol.dispose]();
    if (lines.length > 0) {
      const workload = workloadOf("recorded", await read(lines));
      assertEquals(workload.figures.livePeak, peak);
      const allocs = workload.blocks;
      assertEquals(allocs - (workload.steps - allocs), live.length);
      assertEquals(lines.every((line) => line.endsWith("\n")), true);
      // Nothing more is written once it has ended.
      const before = lines.length;
      mb.alloc(1);
      assertEquals(lines.length, before);
    }
    mb.close();
  }));
});

Deno.test("requests that could not be served are recorded", async () => {
  const { mb } = openModel({ budget: GRANULE });
  const lines: string[] = [];
  using _recording = recordTrace(mb, (line) => lines.push(line));
  mb.alloc(512);
  assertThrows(() => mb.alloc(2 * GRANULE), OutOfMemoryError);
  const { events } = await read(lines);
  assertEquals([...events.action.subarray(0, events.count)], [
    TraceAction.ALLOC,
    TraceAction.OOM,
  ]);
  assertEquals(events.bytes[1], 2 * GRANULE);
  assert(events.address[1]! > 0);
});

Deno.test("a line that can't be written ends the recording, not the allocation", () => {
  const { mb } = openModel();
  let room = 3;
  const recording = recordTrace(mb, () => {
    if (room-- === 0) throw new Error("disk full");
  });
  const blocks = [1, 2, 3].map(() => mb.alloc(100));
  for (const block of blocks) block.free();
  mb.allocator.assertInvariants();
  assertEquals([mb.stats().live, recording.lines, room], [0, 3, -1]);
  assertThrows(() => recording.stop(), Error, "disk full");
  recording.stop();
});

Deno.test("an instance is recorded once at a time", () => {
  const { mb } = openModel();
  const first = recordTrace(mb, () => {});
  assertCode("limit", () => recordTrace(mb, () => {}));
  first.stop();
  recordTrace(mb, () => {}).stop();
});
