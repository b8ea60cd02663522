import { assertEquals } from "@std/assert";
import {
  assertCode,
  GRANULE,
  openGated,
  openModel,
  preloaded,
} from "./support.ts";

Deno.test("wholly free extents go back to the device", () => {
  const { mb, model } = openModel();
  const blocks = [1, 2, 3].map(() => mb.alloc(GRANULE));
  blocks[1]!.free();
  assertEquals(mb.trim(), GRANULE);
  mb.allocator.assertInvariants();
  assertEquals(model.live().extents, 2);
  assertEquals([mb.stats().mapped, mb.stats().free], [2 * GRANULE, 0]);
  assertEquals(mb.trim(), 0);
});

Deno.test("extents in use in part stay", () => {
  const { mb } = openModel();
  const small = mb.alloc(512);
  mb.alloc(GRANULE).free();
  assertEquals(mb.trim(), GRANULE);
  mb.allocator.assertInvariants();
  assertEquals(mb.stats().free, GRANULE - 512);
  small.free();
  assertEquals(mb.trim(), GRANULE);
  assertEquals(mb.stats().mapped, 0);
});

Deno.test("without waiting only what is known to be done goes", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  mb.alloc(GRANULE).free();
  mb.alloc(2 * GRANULE, { stream }).free();
  assertEquals(mb.trim({ wait: false }), 0);
  mb.allocator.assertInvariants();
  gated.pass(1);
  assertEquals(mb.trim({ wait: false }), 2 * GRANULE);
  mb.allocator.assertInvariants();
  assertEquals(mb.trim(), GRANULE);
  assertEquals(gated.live().extents, 0);
});

Deno.test("without waiting, too, an extent that several streams share goes", () => {
  for (const last of [0, 1, 2]) {
    const { mb, gated } = openGated();
    const streams = [mb.defaultStream, mb.createStream(), mb.createStream()];
    const whole = mb.alloc(GRANULE);
    whole.free();
    // One extent, a part for each stream.
    const parts = streams.map(() => mb.alloc(GRANULE / 4));
    const rest = mb.alloc(GRANULE / 4);
    parts.forEach((part, at) => part.free(streams[at]));
    assertEquals(mb.stats().stitchable, 0);
    rest.free();
    assertEquals(mb.stats().stitchable, GRANULE);
    assertEquals(mb.trim({ wait: false }), 0);
    for (const stream of [0, 1, 2]) if (stream !== last) gated.pass(stream);
    assertEquals(mb.trim({ wait: false }), 0);
    mb.allocator.assertInvariants();
    gated.pass(last);
    assertEquals(mb.trim({ wait: false }), GRANULE);
    mb.allocator.assertInvariants();
    assertEquals([mb.stats().mapped, gated.live().extents], [0, 0]);
  }
});

Deno.test("without waiting, pending frees that have passed go", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(2 * GRANULE);
  block.useOn(stream);
  block.free();
  assertEquals(mb.trim({ wait: false }), 0);
  gated.pass(1);
  assertEquals(mb.trim({ wait: false }), 0);
  assertEquals(mb.stats().pending, 0);
  // Free on its own stream only now.
  gated.pass(0);
  assertEquals(mb.trim({ wait: false }), 2 * GRANULE);
  mb.allocator.assertInvariants();
});

Deno.test("loose extents of a closed stream go too", () => {
  const { mb, model } = preloaded();
  const stream = mb.createStream();
  const block = mb.alloc(4 * GRANULE, { stream, maxSize: 4 * GRANULE });
  block.resize(GRANULE);
  stream.close();
  assertEquals(mb.trim(), 3 * GRANULE);
  mb.allocator.assertInvariants();
  block.free();
  assertEquals(mb.trim(), GRANULE);
  assertEquals(model.live().extents, 1);
});

Deno.test("waiting includes pending frees", () => {
  const { mb } = openGated();
  const stream = mb.createStream();
  const block = mb.alloc(GRANULE);
  block.useOn(stream);
  block.free();
  assertEquals(mb.trim({ wait: false }), 0);
  assertEquals(mb.trim(), GRANULE);
  mb.allocator.assertInvariants();
});

Deno.test("a refused release keeps the extents usable", () => {
  const { mb, model } = openModel();
  mb.alloc(3 * GRANULE).free();
  model.failNext("releaseExtents", 1, "driver");
  assertCode("driver", () => mb.trim());
  mb.allocator.assertInvariants();
  assertEquals([mb.stats().mapped, mb.stats().free], [
    3 * GRANULE,
    3 * GRANULE,
  ]);
  const created = model.counts.createExtents;
  mb.alloc(3 * GRANULE).free();
  assertEquals(model.counts.createExtents, created);
  assertEquals(mb.trim(), 3 * GRANULE);
  mb.allocator.assertInvariants();
});

Deno.test("a refused unmap keeps the extents usable", () => {
  const { mb, model } = openModel();
  mb.alloc(3 * GRANULE).free();
  model.failNext("unmap", 1, "driver");
  assertCode("driver", () => mb.trim());
  mb.allocator.assertInvariants();
  mb.alloc(3 * GRANULE).free();
  mb.allocator.assertInvariants();
  assertEquals(mb.trim(), 3 * GRANULE);
  assertEquals(model.live().mappings, 0);
});
