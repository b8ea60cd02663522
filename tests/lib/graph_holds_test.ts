import { assert, assertEquals, assertThrows } from "@std/assert";
import { assertCode, GRANULE, openGated, openModel } from "./support.ts";

Deno.test("a block is held by all graphs that use it, and by a capture under way", () => {
  const { mb } = openModel();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE, { stream });
  const { address } = block;
  const taken = () => {
    const one = mb.alloc(GRANULE, { stream });
    const same = one.address === address;
    one.free();
    return same;
  };
  const first = stream.capture(() => block.fill(1));
  const second = stream.capture(() => {
    block.fill(2);
    block.free();
    assertEquals(mb.stats().captured, GRANULE);
    assert(!taken());
  });
  assert(!taken());
  first.close();
  first.close();
  assert(!taken());
  assertEquals(mb.stats().captured, GRANULE);
  second.close();
  mb.trim();
  assertEquals([mb.stats().pending, mb.stats().mapped], [0, 0]);
  mb.allocator.assertInvariants();
});

Deno.test("a capture that fails holds nothing", () => {
  const { mb } = openModel();
  const stream = mb.createStream();
  const [block, freed] = [1, 2].map(() => mb.alloc(GRANULE, { stream }));
  assertThrows(() =>
    stream.capture(() => {
      block!.fill(1);
      freed!.fill(1);
      freed!.free();
      throw new Error("mine");
    })
  );
  assertEquals(mb.stats().captured, 0);
  block!.free();
  assertEquals(mb.alloc(GRANULE, { stream }).size, GRANULE);
  mb.allocator.assertInvariants();
});

Deno.test("snapshots say which blocks graphs use", () => {
  const { mb } = openModel();
  const stream = mb.createStream();
  const [used, freed] = [1, 2, 3].map(() => mb.alloc(GRANULE, { stream }));
  const graph = stream.capture(() => {
    used!.fill(1);
    freed!.fill(1);
  });
  freed!.free();
  const states = () =>
    mb.snapshot().blocks.map(({ state, captured }) => [state, captured]);
  assertEquals(states(), [
    ["live", true],
    ["pending", true],
    ["live", undefined],
  ]);
  graph.close();
  mb.trim();
  assertEquals(states(), [["live", undefined], ["live", undefined]]);
});

Deno.test("of a live block the launches of a closed graph are known uses", () => {
  const { mb, gated } = openGated();
  const [own, other] = [mb.createStream(), mb.createStream()];
  const block = mb.alloc(GRANULE, { stream: own });
  const { address } = block;
  const graph = own.capture(() => block.fill(1));
  graph.launch(other);
  graph.close();
  block.free();
  assertEquals(mb.stats().pending, GRANULE);
  assert(mb.alloc(GRANULE, { stream: own }).address !== address);
  gated.pass(1);
  assert(mb.alloc(GRANULE, { stream: own }).address !== address);
  gated.pass(2);
  assertEquals(mb.alloc(GRANULE, { stream: own }).address, address);
});

Deno.test("launches do not stand in for the wait that a first use makes", () => {
  const { mb, gated } = openGated();
  const [own, other] = [mb.createStream(), mb.createStream()];
  const block = mb.alloc(GRANULE, { stream: own });
  const graph = own.capture(() => block.fill(1));
  graph.launch(other);
  graph.close();
  block.useOn(other);
  assertEquals(gated.counts.waitEvent, 1);
  block.useOn(other);
  assertEquals(gated.counts.waitEvent, 1);
});

Deno.test("a freed block waits for the launches of every graph that used it", () => {
  const { mb, gated } = openGated();
  const streams = [1, 2, 3].map(() => mb.createStream());
  const [own, x, y] = streams as [typeof streams[0], ...typeof streams];
  const block = mb.alloc(GRANULE, { stream: own });
  const { address } = block;
  const graphs = [x, y].map((stream) => {
    const graph = own!.capture(() => block.fill(1));
    graph.launch(stream);
    return graph;
  });
  block.free();
  graphs[0]!.close();
  graphs[1]!.close();
  const sameAgain = () =>
    mb.alloc(GRANULE, { stream: own }).address === address;
  assert(!sameAgain());
  gated.pass(2);
  assert(!sameAgain());
  gated.pass(3);
  assert(sameAgain());
  mb.allocator.assertInvariants();
});

Deno.test("launches that are done, and streams that are closed, hold nothing up", () => {
  const { mb } = openModel();
  const [own, other] = [mb.createStream(), mb.createStream()];
  const block = mb.alloc(GRANULE, { stream: own });
  const { address } = block;
  const graph = own.capture(() => block.fill(1));
  graph.launch(other);
  other.close();
  block.free();
  graph.close();
  assertEquals(mb.alloc(GRANULE, { stream: own }).address, address);
});

Deno.test("memory that graphs hold is named when it is lacking", () => {
  const { mb } = openModel({ budget: 4 * GRANULE });
  const stream = mb.createStream();
  const block = mb.alloc(3 * GRANULE, { stream });
  const graph = stream.capture(() => block.fill(1));
  block.free();
  const error = assertCode(
    "out-of-memory",
    () => mb.alloc(2 * GRANULE),
    "pending 12 KiB (12 KiB used by open graphs)",
  );
  assert("details" in error);
  graph.close();
  assertEquals(mb.alloc(2 * GRANULE).size, 2 * GRANULE);
});
