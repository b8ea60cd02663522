import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { Block } from "../../lib/block.ts";
import { MoonBright, type MoonBrightOptions } from "../../lib/moonbright.ts";
import { ModelDriver } from "../model/model_driver.ts";
import { assertCode, GRANULE, openModel } from "./support.ts";

/** A device whose memory is never clear: extents hold what an earlier owner left. */
class DirtyDevice extends ModelDriver {
  override map(
    address: number,
    extents: readonly number[],
    access?: "none" | "read" | "read-write",
  ) {
    const times = super.map(address, extents, access);
    if (access === undefined || access === "read-write") {
      this.fill(address, 0xaa, 1, extents.length * GRANULE, 0);
      this.synchronize();
    }
    return times;
  }
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

Deno.test("zeroed blocks never show what others left", () => {
  const size = fc.integer({ min: 1, max: 4 * GRANULE });
  const step = fc.oneof(
    fc.record({ alloc: size, maxSize: fc.option(size), stream: fc.nat(2) }),
    fc.record({ free: fc.nat() }),
    fc.record({ resize: fc.nat(), size }),
    fc.record({ trim: fc.boolean() }),
  );
  fc.assert(fc.property(
    fc.array(step, { maxLength: 60 }),
    fc.boolean(),
    (steps, byInstance) => {
      const options: MoonBrightOptions = {
        addressSpace: 2 ** 30,
        growth: { extentSize: GRANULE, mostExtents: 1024 },
        zero: byInstance,
      };
      const device = new DirtyDevice({ granularity: GRANULE });
      using mb = new MoonBright(device, options);
      const streams = [mb.defaultStream, mb.createStream(), mb.createStream()];
      const blocks: Block[] = [];
      for (const one of steps) {
        if ("alloc" in one) {
          const block = mb.alloc(one.alloc, {
            ...(byInstance ? {} : { zero: true }),
            ...(one.maxSize === null
              ? {}
              : { maxSize: one.alloc + one.maxSize }),
            stream: streams[one.stream]!,
          });
          assert(isZero(block.read()), "a new block is not zero");
          block.fill(0xff);
          blocks.push(block);
        } else if ("free" in one) {
          const [block] = blocks.splice(one.free % (blocks.length || 1), 1);
          block?.free();
        } else if ("resize" in one) {
          const block = blocks[one.resize % (blocks.length || 1)];
          const before = block?.size ?? 0;
          try {
            block?.resize(one.size);
          } catch {
            continue;
          }
          const bytes = block?.read() ?? new Uint8Array();
          const kept = bytes.subarray(0, before);
          assert(kept.every((byte) => byte === 0xff), "a resize lost bytes");
          assert(isZero(bytes.subarray(before)), "a resize added old bytes");
          block?.fill(0xff);
        } else mb.trim({ wait: one.trim });
        mb.allocator.assertInvariants();
      }
    },
  ));
});

Deno.test("a block's own choice goes before the instance's", () => {
  const { mb } = openModel({ zero: true });
  mb.alloc(512).fill(7);
  const [first] = [mb.alloc(512)];
  first.fill(7);
  first.free();
  const dirty = mb.alloc(512, { zero: false });
  assertEquals(dirty.read(1)[0], 7);
  dirty.free();
  assert(isZero(mb.alloc(512).read()));
});

Deno.test("a resize that another stream must follow is ordered by useOn", () => {
  const { mb } = openModel({ zero: true });
  const other = mb.createStream();
  const block = mb.alloc(100);
  block.fill(1, { stream: other });
  block.resize(512);
  block.fill(2, { stream: other });
  mb.synchronize();
  assert(block.read().every((byte) => byte === 2));
});

Deno.test("a block that can't be zeroed is not handed out", () => {
  const { mb, model } = openModel({ zero: true });
  model.failNext("fill", 1, "driver");
  assertCode("driver", () => mb.alloc(100));
  assertEquals(mb.stats().live, 0);
  const block = mb.alloc(100);
  block.fill(1);
  model.failNext("fill", 1, "driver");
  assertCode("driver", () => block.resize(400));
  assertEquals(block.size, 100);
  block.resize(400);
  assert(isZero(block.read().subarray(100)));
  mb.allocator.assertInvariants();
});

Deno.test("in a stream that captures, zeroing is captured", () => {
  const { mb } = openModel();
  const stream = mb.createStream();
  mb.alloc(512, { stream }).free();
  let block: Block | undefined;
  using graph = stream.capture(() => {
    block = mb.alloc(512, { stream, zero: true });
  });
  for (let launch = 0; launch < 2; launch++) {
    block!.fill(3);
    graph.launch();
    assert(isZero(block!.read()));
  }
});
