import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  ClosedError,
  InvalidBlockError,
  OutOfMemoryError,
} from "../../lib/errors.ts";
import { MoonBright } from "../../lib/moonbright.ts";
import type { Stream } from "../../lib/stream.ts";
import { modelImage } from "../model/kernels.ts";
import { ModelDriver } from "../model/model_driver.ts";
import { assertCode, GRANULE, memoryOf, openModel } from "./support.ts";

const notSizes = [
  -1,
  0.5,
  NaN,
  Infinity,
  2 ** 40 + 1,
  2 ** 53,
  2 ** 64,
  -1n,
  2n ** 64n - 1n,
  2n ** 64n + 512n,
];
const notNumbers = ["512", null, {}, [], true, Symbol("size")] as never[];

/** Asserts that calls are refused and leave memory as it was. */
function assertRefused(
  mb: MoonBright,
  kind: new (...args: never[]) => Error,
  ...bodies: (() => unknown)[]
) {
  const before = memoryOf(mb);
  for (const body of bodies) assertThrows(body, kind as ErrorConstructor);
  assertEquals(memoryOf(mb), before);
  mb.allocator.assertInvariants();
}

Deno.test("blocks are aligned, apart, and as large as asked", () => {
  const { mb } = openModel();
  const sizes = [1, 511, 512, 513, GRANULE - 1, GRANULE, GRANULE + 1, 100_000];
  const blocks = sizes.map((size) => mb.alloc(size));
  blocks.forEach((block, index) => {
    assertEquals(block.size, sizes[index]);
    assertEquals(block.address % 512, 0);
    assertEquals(block.capacity, Math.ceil(sizes[index]! / 512) * 512);
    for (const other of blocks.slice(0, index)) {
      assert(
        block.address >= other.address + other.capacity ||
          other.address >= block.address + block.capacity,
      );
    }
  });
  assertEquals(mb.alloc(512n).size, 512);
  mb.allocator.assertInvariants();
});

Deno.test("sizes that are none are refused by alloc", () => {
  const { mb } = openModel();
  mb.alloc(100);
  for (const size of notSizes) {
    assertRefused(mb, RangeError, () => mb.alloc(size));
    assertRefused(mb, RangeError, () => mb.alloc(1, { maxSize: size }));
  }
  for (const size of notNumbers) {
    assertRefused(mb, TypeError, () => mb.alloc(size));
    assertRefused(
      mb,
      TypeError,
      () => mb.alloc(1, { maxSize: size ?? "" as never }),
    );
  }
  assertRefused(
    mb,
    RangeError,
    () => mb.alloc(GRANULE, { maxSize: GRANULE - 1 }),
  );
});

Deno.test("budgets that are none are refused", () => {
  const { mb } = openModel({ budget: Infinity });
  for (const budget of [-1, NaN, 0.5, 2 ** 53]) {
    assertRefused(mb, RangeError, () => mb.budget = budget);
    assertThrows(
      () => new MoonBright(new ModelDriver(), { budget }),
      RangeError,
    );
  }
  assertEquals(mb.budget, Infinity);
  assertEquals(mb.stats().budget, null);
});

Deno.test("an empty block takes nothing and counts nowhere", () => {
  const { mb, model } = openModel();
  const before = memoryOf(mb);
  const stream = mb.createStream();
  const block = mb.alloc(0, { name: "nothing", stream, maxSize: 0 });
  assertEquals([block.address, block.size, block.capacity], [0, 0, 0]);
  assertEquals([block.live, block.name], [true, undefined]);
  block.write(new Uint8Array(0));
  block.fill(1);
  assertEquals(block.read(), new Uint8Array(0));
  assertThrows(() => block.read(1), RangeError);
  assertThrows(() => block.write(new Uint8Array(1)), RangeError);
  assertEquals(block.stream, mb.defaultStream);
  block.useOn(stream);
  block.free();
  assertEquals(block.live, false);
  assertThrows(() => block.free(), InvalidBlockError);
  assertThrows(() => block.size, InvalidBlockError);
  assertEquals(memoryOf(mb), before);
  assertEquals(model.live().extents, 0);
});

Deno.test("a block is freed once, whoever asks", () => {
  const { mb } = openModel();
  const block = mb.alloc(GRANULE);
  const alias = mb.blockAt(block.address);
  alias.free();
  const uses: (() => unknown)[] = [
    () => block.free(),
    () => alias.free(),
    () => block.address,
    () => block.size,
    () => block.capacity,
    () => block.name,
    () => block.stream,
    () => block.resize(1),
    () => block.read(),
    () => block.write(new Uint8Array(1)),
    () => block.fill(0),
    () => block.useOn(mb.defaultStream),
  ];
  assertRefused(mb, InvalidBlockError, ...uses);
  // The record now belongs to another block, which the stale owner must not touch.
  const next = mb.alloc(GRANULE);
  assertRefused(mb, InvalidBlockError, ...uses);
  assertEquals([next.live, block.live, alias.live], [true, false, false]);
  block[Symbol.dispose]();
  assertEquals(next.live, true);
});

Deno.test("disposal frees a live block, and only that", () => {
  const { mb } = openModel();
  {
    using block = mb.alloc(GRANULE);
    assertEquals(block.live, true);
  }
  {
    using block = mb.alloc(GRANULE);
    block.free();
  }
  assertEquals(mb.stats().liveBlocks, 0);
  mb.allocator.assertInvariants();
});

Deno.test("a block is found and freed by its first address alone", () => {
  const { mb } = openModel();
  const early = mb.alloc(100);
  const block = mb.alloc(2 * GRANULE, { name: "found" });
  const earlyAddress = early.address;
  assertEquals(mb.blockAt(block.address).name, "found");
  assertEquals(mb.blockAt(BigInt(block.address)).size, 2 * GRANULE);
  assertEquals(mb.blockAt(early.address).size, 100);
  const laterAddress = mb.alloc(100).address;
  assertEquals(mb.blockAt(laterAddress).size, 100);
  mb.free(laterAddress);
  mb.free(BigInt(earlyAddress));
  assertEquals(early.live, false);
  assertRefused(
    mb,
    InvalidBlockError,
    () => mb.free(earlyAddress),
    () => mb.free(laterAddress),
    () => mb.free(block.address + 512),
    () => mb.free(block.address + 1),
    () => mb.free(block.address + block.capacity),
    () => mb.free(0),
    () => mb.free(-1),
    () => mb.free(NaN),
    () => mb.free(2n ** 64n - 1n),
    () => mb.blockAt(12345),
  );
  for (
    const [address, why] of [
      [block.address + 512, "inside the block at 0x"],
      [earlyAddress, "may have been freed"],
      [12345, "not MoonBright's"],
    ] as const
  ) assertThrows(() => mb.blockAt(address), InvalidBlockError, why);
});

Deno.test("an address is found again after resizing and reuse", () => {
  const { mb } = openModel();
  const block = mb.alloc(GRANULE);
  const { address } = block;
  assertEquals(mb.blockAt(address).size, GRANULE);
  block.resize(512);
  assertEquals(mb.blockAt(address).size, 512);
  block.free();
  assertThrows(() => mb.blockAt(address), InvalidBlockError);
  const next = mb.alloc(700);
  assertEquals(next.address, address);
  assertEquals(mb.blockAt(address).size, 700);
});

Deno.test("contents are written, filled and read in stream order", () => {
  const { mb } = openModel();
  const block = mb.alloc(3 * GRANULE);
  block.fill(0);
  block.write(Uint32Array.of(1, 2, 3));
  block.write(new Uint16Array([9, 8, 7]).subarray(1), { offset: GRANULE - 2 });
  block.write(Uint8Array.of(5).buffer, { offset: 3 * GRANULE - 1 });
  block.fill(0xabcd, { width: 2, offset: 100, bytes: 4 });
  block.fill(0xdeadbeef, { width: 4, offset: 200, bytes: 8 });
  const bytes = block.read();
  const view = new DataView(bytes.buffer);
  assertEquals([0, 4, 8].map((at) => view.getUint32(at, true)), [1, 2, 3]);
  assertEquals(view.getUint16(GRANULE - 2, true), 8);
  assertEquals(view.getUint16(GRANULE, true), 7);
  assertEquals(bytes[3 * GRANULE - 1], 5);
  assertEquals(view.getUint32(100, true), 0xabcdabcd);
  assertEquals([96, 104].map((at) => view.getUint32(at, true)), [0, 0]);
  assertEquals(view.getUint32(204, true), 0xdeadbeef);
  const part = new Uint16Array(2);
  block.read(part, { offset: GRANULE - 2 });
  assertEquals(part, Uint16Array.of(8, 7));
});

Deno.test("accesses outside of the size are refused, even inside the capacity", () => {
  const { mb, model } = openModel();
  const block = mb.alloc(100);
  const before = { ...model.counts };
  const one = new Uint8Array(1);
  assertRefused(
    mb,
    RangeError,
    () => block.read(101),
    () => block.read(1, { offset: 100 }),
    () => block.read(new Uint8Array(101)),
    () => block.write(new Uint8Array(101)),
    () => block.write(one, { offset: 100 }),
    () => block.write(one, { offset: -1 }),
    () => block.write(one, { offset: 0.5 }),
    () => block.write(one, { offset: NaN }),
    () => block.write(one, { offset: 2 ** 53 }),
    () => block.read(1, { offset: Infinity }),
    () => block.read(-1),
    () => block.read(0.5),
    () => block.read(NaN),
    () => block.fill(0, { bytes: 101 }),
    () => block.fill(0, { bytes: -1 }),
    () => block.fill(0, { bytes: 0.5 }),
    () => block.fill(0, { bytes: NaN }),
    () => block.fill(0, { offset: 101 }),
    () => block.fill(0, { offset: 50, bytes: 51 }),
    () => block.fill(256),
    () => block.fill(-1),
    () => block.fill(0.5),
    () => block.fill(NaN),
    () => block.fill(65536, { width: 2 }),
    () => block.fill(2 ** 32, { width: 4 }),
    () => block.fill(0, { width: 3 as never }),
    () => block.fill(0, { width: 8 as never }),
    () => block.fill(0, { width: 4, bytes: 6 }),
    () => block.fill(0, { width: 4, offset: 2, bytes: 4 }),
  );
  assertRefused(
    mb,
    TypeError,
    () => block.write("text" as never),
    () => block.write([1] as never),
    () => block.read({} as never),
    () => block.read(null as never),
    () => block.read(1, { offset: "0" as never }),
  );
  assertEquals(model.counts, before);
});

Deno.test("another instance's streams and events are refused", () => {
  const { mb } = openModel();
  const other = openModel().mb;
  const stream = other.createStream();
  const event = stream.record();
  const block = mb.alloc(GRANULE);
  const foreign = { stream };
  assertRefused(
    mb,
    TypeError,
    () => mb.alloc(1, foreign),
    () => mb.alloc(0, foreign),
    () => block.free(stream),
    () => block.useOn(stream),
    () => block.write(new Uint8Array(1), foreign),
    () => block.read(1, foreign),
    () => block.fill(0, foreign),
    () => mb.defaultStream.wait(event),
    () => mb.createEvent().record(stream),
    () => mb.createEvent().elapsedMsSince(event),
    () => block.free({} as Stream),
  );
  assertEquals(block.live, true);
});

Deno.test("closed streams and events are refused", () => {
  const { mb, model } = openModel();
  const stream = mb.createStream();
  const event = stream.record();
  const block = mb.alloc(GRANULE, { stream });
  stream.close();
  stream.close();
  event.close();
  event.close();
  assertRefused(
    mb,
    ClosedError,
    () => mb.alloc(1, { stream }),
    () => block.free(stream),
    () => block.useOn(stream),
    () => block.read(1, { stream }),
    () => stream.synchronize(),
    () => stream.record(),
    () => stream.unsafeHandle,
    () => mb.defaultStream.wait(event),
    () => event.record(mb.defaultStream),
    () => event.passed,
    () => event.synchronize(),
  );
  assertEquals(block.stream, mb.defaultStream);
  assertEquals(model.live().streams, 0);
  mb.defaultStream.close();
  mb.defaultStream.synchronize();
  block.free();
  mb.allocator.assertInvariants();
});

Deno.test("a stream whose slot is used again is not the closed one", () => {
  const { mb } = openModel();
  const first = mb.createStream();
  first.close();
  const second = mb.createStream();
  assertEquals(second.number, first.number);
  assertThrows(() => mb.alloc(1, { stream: first }), ClosedError);
  assertEquals(mb.alloc(1, { stream: second }).stream, second);
});

Deno.test("events tell when work has passed and how long it took", () => {
  const { mb } = openModel();
  const kernel = mb.loadModule(modelImage).kernel("mb_spin");
  const stream = mb.createStream();
  const start = stream.record({ timing: true });
  kernel.launch({ grid: [1], block: [1], stream }, [{ u64: 2_000_000 }]);
  const end = stream.record({ timing: true });
  const before = mb.createEvent();
  assertEquals(before.passed, true);
  assertEquals(end.passed, false);
  assertCode("driver", () => end.elapsedMsSince(start));
  end.synchronize();
  assertEquals([start.passed, end.passed], [true, true]);
  assert(end.elapsedMsSince(start) >= 2);
  mb.defaultStream.wait(end);
});

Deno.test("an event that can't be recorded is not left behind", () => {
  const { mb, model } = openModel();
  model.failNext("recordEvent", 1, "driver");
  assertCode("driver", () => mb.defaultStream.record());
  assertEquals(model.live().events, 0);
});

Deno.test("nothing works on a closed instance, and closing again is harmless", () => {
  const { mb, model } = openModel();
  const stream = mb.createStream();
  const event = stream.record();
  const block = mb.alloc(GRANULE);
  const empty = mb.alloc(0);
  const module = mb.loadModule(modelImage);
  const kernel = module.kernel("mb_empty");
  mb.close();
  mb.close();
  mb[Symbol.dispose]();
  assertEquals(mb.closed, true);
  assert(Object.values(model.live()).every((count) => count === 0));
  const uses: (() => unknown)[] = [
    () => mb.alloc(1),
    () => mb.alloc(0),
    () => mb.alloc(1, { stream }),
    () => mb.free(block.address),
    () => mb.blockAt(1),
    () => mb.createStream(),
    () => mb.createEvent(),
    () => mb.loadModule(modelImage),
    () => mb.synchronize(),
    () => mb.stats(),
    () => mb.snapshot(),
    () => mb.flush(),
    () => mb.trim(),
    () => block.free(),
    () => empty.free(),
    () => block.address,
    () => block.resize(1),
    () => block.read(),
    () => block.fill(1),
    () => stream.synchronize(),
    () => event.passed,
    () => module.kernel("mb_empty"),
    () => kernel.launch({ grid: [1], block: [1] }),
  ];
  for (const use of uses) assertThrows(use, ClosedError);
  assertEquals([block.live, empty.live], [false, false]);
  block[Symbol.dispose]();
  stream.close();
  event.close();
  module.close();
});

Deno.test("closing a lost device is quiet", () => {
  const { mb, model } = openModel();
  mb.alloc(GRANULE);
  model.failNext("synchronize", 1, "lost");
  mb.close();
  assertEquals(mb.closed, true);
});

Deno.test("the observer hears of every driver call for memory", () => {
  const kinds: string[] = [];
  const { mb } = openModel({ onDriverCall: ({ kind }) => kinds.push(kind) });
  mb.alloc(GRANULE).free();
  mb.trim();
  assertEquals(kinds, ["create", "map", "setAccess", "unmap", "release"]);
});

Deno.test("an allocation that fails leaves the owner's name and index alone", () => {
  const { mb } = openModel({ budget: GRANULE });
  const block = mb.alloc(GRANULE, { name: "first" });
  mb.blockAt(block.address);
  assertThrows(() => mb.alloc(1, { name: "second" }), OutOfMemoryError);
  assertEquals(mb.snapshot().blocks.map(({ name }) => name), ["first"]);
  assertEquals(mb.blockAt(block.address).name, "first");
});
