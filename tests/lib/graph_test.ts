import { assert, assertEquals, assertThrows } from "@std/assert";
import { ClosedError } from "../../lib/errors.ts";
import { Graph } from "../../lib/graph.ts";
import { modelImage } from "../model/kernels.ts";
import { assertCode, GRANULE, openModel } from "./support.ts";

/** An instance with a stream and a block of it. */
function setup() {
  const { mb, model } = openModel();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE, { stream });
  const first = () => block.read(1)[0];
  return { mb, model, stream, block, first };
}

Deno.test("a graph does what was captured, at every launch", () => {
  const { mb, stream, block, first } = setup();
  block.fill(1);
  assert(!stream.capturing);
  const graph = stream.capture(() => {
    assert(stream.capturing);
    block.fill(2);
  });
  assert(graph instanceof Graph);
  assertEquals(graph.owner, mb);
  assert(!stream.capturing);
  assertEquals(first(), 1);
  graph.launch();
  assertEquals(first(), 2);
  block.fill(3);
  const other = mb.createStream();
  other.wait(stream.record());
  graph.launch(other);
  other.synchronize();
  assertEquals(first(), 2);
  mb.close();
});

Deno.test("kernels are captured with their arguments", () => {
  const { mb, stream, block } = setup();
  const fill = mb.loadModule(modelImage).kernel("mb_pattern_fill");
  const launch = (seed: bigint) =>
    fill.launch({ stream, grid: [1], block: [32] }, [
      block,
      { u64: 8n },
      { u64: seed },
    ]);
  launch(5n);
  const expected = block.read(64);
  block.fill(0);
  const graph = stream.capture(() => launch(5n));
  launch(6n);
  graph.launch();
  assertEquals(block.read(64), expected);
  mb.close();
});

Deno.test("a capture ends when its function throws", () => {
  const { mb, model, stream, block, first } = setup();
  block.fill(1);
  const error = assertThrows(
    () =>
      stream.capture(() => {
        block.fill(2);
        throw new Error("mine");
      }),
    Error,
  );
  assertEquals(error.message, "mine");
  assert(!stream.capturing);
  stream.synchronize();
  assertEquals(first(), 1);
  assertEquals(model.live().graphs, 0);
  mb.close();
});

Deno.test("a function that returns a promise is refused", () => {
  const { mb, model, stream } = setup();
  assertThrows(
    () => stream.capture(() => Promise.resolve() as unknown as void),
    TypeError,
    "returned a promise",
  );
  assert(!stream.capturing);
  assertEquals(model.live().graphs, 0);
  mb.close();
});

Deno.test("what a graph can't hold throws out of the capture", () => {
  const { mb, stream, block } = setup();
  for (
    const use of [
      () => stream.synchronize(),
      () => stream.record(),
      () => block.read(1),
      () => block.write(new Uint8Array(1)),
      () => mb.synchronize(),
      () => stream.close(),
      () => stream.capture(() => {}),
      () => mb.alloc(64).useOn(stream),
    ]
  ) {
    assertThrows(() => stream.capture(use), RangeError, "Cannot ");
    assert(!stream.capturing);
    stream.synchronize();
  }
  assertThrows(() => mb.defaultStream.capture(() => {}), RangeError);
  mb.close();
});

Deno.test("a closed graph, stream or instance is refused", () => {
  const { mb, model, stream } = setup();
  const graph = stream.capture(() => {});
  const second = stream.capture(() => {});
  graph.close();
  graph.close();
  assertEquals(model.live().graphs, 1);
  assertThrows(() => graph.launch(), ClosedError, "the graph is closed");
  const other = openModel().mb;
  assertThrows(() => second.launch(other.defaultStream), TypeError);
  stream.close();
  assertThrows(() => second.launch(), ClosedError, "the stream is closed");
  assertThrows(() => stream.capture(() => {}), ClosedError);
  second.launch(mb.defaultStream);
  mb.close();
  second.close();
  assertThrows(() => second.launch(mb.defaultStream), ClosedError);
  assertEquals(model.live().graphs, 0);
  other.close();
});

Deno.test("closing the instance inside a capture ends it", () => {
  const { mb, stream } = setup();
  assertThrows(() => stream.capture(() => mb.close()), ClosedError);
});

Deno.test("a module can be closed once no graph holds kernels of it", () => {
  const { mb, model, stream } = setup();
  const module = mb.loadModule(modelImage);
  const empty = module.kernel("mb_empty");
  const graph = stream.capture(() =>
    empty.launch({ stream, grid: [1], block: [1] })
  );
  assertThrows(() => module.close(), RangeError, "destroy them first");
  graph.close();
  module.close();
  assertEquals(model.live().modules, 0);
  mb.close();
});

Deno.test("memory is allocated, freed and flushed while a stream captures", () => {
  const { mb, model, stream, block } = setup();
  const other = mb.createStream();
  const [mine, shared, theirs] = [
    mb.alloc(4 * GRANULE, { stream }),
    mb.alloc(4 * GRANULE, { stream: other }),
    mb.alloc(4 * GRANULE, { stream: other }),
  ] as const;
  shared.useOn(stream);
  const graph = stream.capture(() => {
    mine.free();
    shared.free();
    theirs.free();
    const fresh = [stream, other, mb.defaultStream].map((stream) =>
      mb.alloc(16 * GRANULE, { stream })
    );
    for (const one of fresh) one.free();
    mb.flush();
    mb.flush({ wait: true });
    mb.trim({ wait: false });
    mb.trim();
    block.fill(9);
    mb.allocator.assertInvariants();
  });
  assertEquals(mb.stats().live, GRANULE);
  // Now that events can be recorded, what the capture held back comes free.
  mb.trim();
  mb.allocator.assertInvariants();
  assertEquals(mb.stats().pending, 0);
  graph.launch();
  assertEquals(block.read(1)[0], 9);
  assertEquals(model.hazards, []);
  mb.close();
});

Deno.test("a budget that a capturing stream holds back gives out-of-memory", () => {
  const { mb, model } = openModel({ budget: 4 * GRANULE });
  const stream = mb.createStream();
  mb.alloc(4 * GRANULE, { stream }).free();
  stream.capture(() => {
    assertCode("out-of-memory", () => mb.alloc(4 * GRANULE));
    // In the stream's own order it is free.
    mb.alloc(4 * GRANULE, { stream }).free();
  });
  mb.alloc(4 * GRANULE).fill(1);
  mb.synchronize();
  assertEquals(model.hazards, []);
  mb.close();
});
