// Reading recorded workloads of a million events: memory snapshots of PyTorch against a
// general reader of pickles, which keeps every object, and the formats in lines.
import { Parser } from "pickleparser";
import { readTraces } from "../lib/replay/read/read_trace.ts";
import { TraceAction } from "../lib/replay/trace.ts";
import { eventLine, headerLine } from "../lib/replay/write_trace.ts";
import { pickled, Str } from "../tests/replay/pickle_writer.ts";

const EVENTS = 1_000_000;
/** Calls on each recorded stack. */
const STACK_DEPTH = 20;

/** Serves bytes as a file does. */
function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, at + 65536));
      at += 65536;
    },
  });
}

async function read(bytes: Uint8Array): Promise<void> {
  const [trace] = await readTraces("bench", streamOf(bytes));
  if (trace!.events.count !== EVENTS) throw new Error("Events were lost");
}

/** The i-th event: a ring of live blocks. */
function eventAt(i: number) {
  const block = i >> 1;
  return {
    free: i % 2 === 1,
    address: 139802527662080 + block % 5000 * 512 * 1024,
    bytes: 512 + block * 48271 % 524288,
    timeUs: 1796086884551388 + i * 7,
  };
}

/** A snapshot as Python 3 pickles it by default; stacks are lists of frames they share. */
function snapshot(stacks: boolean): Uint8Array {
  const frames = Array.from({ length: 2000 }, (_, line) => ({
    filename: `/usr/lib/python3/site-packages/torch/nn/module_${line % 50}.py`,
    line,
    name: `forward_${line}`,
  }));
  const events = Array.from({ length: EVENTS }, (_, i) => {
    const { free, address, bytes, timeUs } = eventAt(i);
    return {
      // Python has a string for each event here.
      action: new Str(free ? "free_completed" : "alloc"),
      addr: address,
      size: bytes,
      stream: 0,
      ...(stacks
        ? { frames: frames.slice(i % 1900, i % 1900 + STACK_DEPTH) }
        : {}),
      time_us: timeUs,
    };
  });
  return pickled({ segments: [], device_traces: [events] }, 4);
}

function lines(line: (i: number) => string, header: string): Uint8Array {
  const parts = [header];
  for (let i = 0; i < EVENTS; i++) parts.push(line(i));
  return new TextEncoder().encode(parts.join(""));
}

for (const stacks of [false, true]) {
  const bytes = snapshot(stacks);
  const group = `PyTorch snapshot, ${EVENTS} events, ${
    stacks ? "with" : "without"
  } stacks, ${Math.round(bytes.length / 1e6)} MB`;
  Deno.bench(`pickleparser, ${stacks ? "stacks" : "plain"}`, {
    group,
    baseline: true,
    n: 3,
    warmup: 1,
  }, () => {
    new Parser().parse(bytes);
  });
  Deno.bench(`MoonBright, ${stacks ? "stacks" : "plain"}`, {
    group,
    n: 3,
    warmup: 1,
  }, async () => {
    await read(bytes);
  });
}

const own = lines((i) => {
  const { free, address, bytes, timeUs } = eventAt(i);
  const action = free ? TraceAction.FREE : TraceAction.ALLOC;
  return eventLine(action, address, bytes, 0, timeUs);
}, headerLine({ device: 0, streams: ["0"] }));
const rmm = lines((i) => {
  const { free, address, bytes } = eventAt(i);
  return `77,15:47:02.841961,${free ? "free" : "allocate"},0x${
    address.toString(16)
  },${bytes},0\n`;
}, "Thread,Time,Action,Pointer,Size,Stream\n");
const group = `lines, ${EVENTS} events`;
const few = { group, n: 3, warmup: 1 };
Deno.bench("JSON.parse of each line", { ...few, baseline: true }, () => {
  for (const line of new TextDecoder().decode(own).trimEnd().split("\n")) {
    JSON.parse(line);
  }
});
Deno.bench("MoonBright's own", few, async () => {
  await read(own);
});
Deno.bench("RMM's log", few, async () => {
  await read(rmm);
});
