import { assert, assertEquals } from "@std/assert";
import { assertCode, GRANULE, memoryOf, openGated } from "./support.ts";

Deno.test("a block used on another stream waits for it, in no index", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE);
  const { address } = block;
  block.useOn(stream);
  block.free();
  mb.allocator.assertInvariants();
  assertEquals(mb.stats().pending, GRANULE);
  assertEquals([mb.stats().live, mb.stats().free], [0, 0]);
  const other = mb.alloc(GRANULE);
  assert(other.address !== address);
  gated.pass(1);
  const again = mb.alloc(GRANULE);
  assertEquals(again.address, address);
  assertEquals(mb.stats().pending, 0);
  mb.allocator.assertInvariants();
});

Deno.test("a free on a user's stream still waits for the block's own", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE);
  const { address } = block;
  block.useOn(stream);
  gated.pass(0);
  block.free(stream);
  assertEquals(mb.stats().pending, GRANULE);
  assert(mb.alloc(GRANULE, { stream }).address !== address);
  gated.pass(0);
  assertEquals(mb.alloc(GRANULE, { stream }).address, address);
});

Deno.test("using a block makes the stream wait for the block's own, once", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE);
  block.useOn(mb.defaultStream);
  assertEquals(gated.counts.waitEvent, undefined);
  block.useOn(stream);
  block.useOn(stream);
  assertEquals(gated.counts.waitEvent, 1);
});

Deno.test("a block that has grown is waited for anew", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE, { maxSize: 4 * GRANULE });
  block.useOn(stream);
  block.resize(2 * GRANULE);
  block.useOn(stream);
  assertEquals(gated.counts.waitEvent, 2);
  block.useOn(stream);
  assertEquals(gated.counts.waitEvent, 2);
});

Deno.test("all users must pass", () => {
  const { mb, gated } = openGated();
  const streams = [mb.createStream(), mb.createStream()];
  const block = mb.alloc(GRANULE);
  const { address } = block;
  for (const stream of streams) block.useOn(stream);
  block.free();
  gated.pass(1);
  assert(mb.alloc(GRANULE).address !== address);
  gated.pass(2);
  assertEquals(mb.alloc(GRANULE).address, address);
});

Deno.test("a user that is closed is not waited for", () => {
  const { mb } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE);
  const { address } = block;
  block.useOn(stream);
  stream.close();
  block.free();
  assertEquals(mb.alloc(GRANULE).address, address);
  mb.allocator.assertInvariants();
});

Deno.test("a pending block outlives the stream that freed it and the one it waits for", () => {
  const { mb } = openGated();
  const [own, user] = [mb.createStream(), mb.createStream()];
  const block = mb.alloc(GRANULE, { stream: own });
  block.useOn(user);
  block.free();
  own.close();
  user.close();
  mb.allocator.assertInvariants();
  mb.alloc(GRANULE);
  assertEquals([mb.stats().pending, mb.stats().mapped], [0, GRANULE]);
  mb.allocator.assertInvariants();
});

Deno.test("a free whose event can't be recorded changes nothing and can be repeated", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE, { name: "shared", maxSize: 2 * GRANULE });
  block.useOn(stream);
  const before = memoryOf(mb);
  gated.failNext("recordEvent", 1, "driver");
  assertCode("driver", () => block.free());
  assertEquals(memoryOf(mb), before);
  assertEquals([block.live, block.name], [true, "shared"]);
  mb.allocator.assertInvariants();
  block.free();
  mb.allocator.assertInvariants();
  assertEquals(mb.stats().pending, GRANULE);
});

Deno.test("under pressure the host waits for pending frees rather than give up", () => {
  const { mb } = openGated({ budget: GRANULE });
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE);
  block.useOn(stream);
  block.free();
  const again = mb.alloc(GRANULE);
  assertEquals([again.size, mb.stats().pending], [GRANULE, 0]);
  mb.allocator.assertInvariants();
});
