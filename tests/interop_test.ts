import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import fc from "fast-check";
import { kernelImage } from "../ffi/kernels.ts";
import { MoonBright } from "../ffi/moonbright.ts";
import { ClosedError, InvalidBlockError } from "../lib/errors.ts";
import { packArguments } from "../lib/kernel.ts";
import type { ElementType } from "../lib/typed_view.ts";
import { assertCode, openModel } from "./lib/support.ts";

const COSTS = openModel().mb.allocator.costs;

// Opened before any test: the library stays open for the life of the process.
MoonBright.open({ device: "host", costs: COSTS }).close();

function openHost(): MoonBright {
  return MoonBright.open({ device: "host", costs: COSTS });
}

/** The address of a buffer of the host. */
function addressOf(bytes: Uint8Array<ArrayBuffer>): bigint {
  return Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes));
}

Deno.test("a block's pointer reaches what other libraries see there", () => {
  using mb = openHost();
  using block = mb.alloc(4096);
  block.write(new Uint8Array([1, 2, 3]));
  mb.synchronize();
  const { pointer } = block;
  assertEquals(Deno.UnsafePointer.value(pointer), BigInt(block.address));
  const view = new Deno.UnsafePointerView(pointer!);
  assertEquals([...new Uint8Array(view.getArrayBuffer(3))], [1, 2, 3]);
  // A function of the C library, as any other library would be called.
  const libc = Deno.dlopen("libc.so.6", {
    memset: { parameters: ["pointer", "i32", "usize"], result: "pointer" },
  });
  libc.symbols.memset(pointer, 9, 2n);
  libc.close();
  assertEquals([...block.read(3)], [9, 9, 3]);
  assertEquals(mb.alloc(0).pointer, null);
  const freed = mb.alloc(1);
  freed.free();
  assertThrows(() => freed.pointer, InvalidBlockError);
});

Deno.test("memory of others is read, written and filled, and never freed", () => {
  const theirs = new Uint8Array(5000);
  {
    using mb = openHost();
    const before = mb.stats();
    const memory = mb.wrap(addressOf(theirs), theirs.byteLength);
    assertEquals(memory.size, 5000);
    assertEquals(BigInt(memory.address), addressOf(theirs));
    memory.write(new Uint8Array([1, 2, 3]), { offset: 10 });
    memory.fill(0x0201, { offset: 100, bytes: 4, width: 2 });
    mb.synchronize();
    assertEquals([...theirs.subarray(9, 14)], [0, 1, 2, 3, 0]);
    assertEquals([...theirs.subarray(99, 105)], [0, 1, 2, 1, 2, 0]);
    theirs[4999] = 77;
    assertEquals(memory.read(1, { offset: 4999 })[0], 77);
    assertEquals(
      memory.as("u16").read({ start: 50, count: 2 }),
      new Uint16Array([
        0x0201,
        0x0201,
      ]),
    );
    const { live, mapped } = mb.stats();
    assertEquals([live, mapped], [before.live, before.mapped]);
    memory.close();
    memory.close();
    assertThrows(() => memory.read(1), ClosedError);
    assertThrows(() => memory.address, ClosedError);
    // Again, and left for the instance to close.
    mb.wrap(addressOf(theirs), 5000).fill(5);
    mb.synchronize();
  }
  assert(theirs.every((byte) => byte === 5));
});

Deno.test("kernels take memory of others beside blocks", () => {
  using mb = openHost();
  using kernels = mb.loadModule(kernelImage("pattern", mb.device));
  const theirs = new Uint8Array(8 * 1024);
  using memory = mb.wrap(addressOf(theirs), theirs.byteLength);
  using block = mb.alloc(8 * 1024);
  for (const target of [memory, block]) {
    kernels.kernel("mb_pattern_fill").launch(
      { grid: [4], block: [256] },
      [target, { u64: 1024 }, { u64: 42 }],
    );
  }
  assertEquals(block.read(), theirs);
  assert(theirs.some((byte) => byte !== 0));
  assertEquals(
    new BigUint64Array(packArguments([memory, block]).slice().buffer),
    new BigUint64Array([BigInt(memory.address), BigInt(block.address)]),
  );
});

Deno.test("what can't be wrapped is refused and changes nothing", () => {
  using mb = openHost();
  using block = mb.alloc(4096);
  const theirs = new Uint8Array(100);
  const address = addressOf(theirs);
  using memory = mb.wrap(address, 100);
  for (
    const [where, bytes] of [
      [0, 10],
      [-1, 10],
      [1.5, 10],
      [address, 0],
      [address, 10],
      [address + 99n, 10],
      [block.address, 512],
      [2 ** 53, 10],
    ] as const
  ) assertThrows(() => mb.wrap(where, bytes), RangeError);
  assertThrows(() => mb.wrap("0x10" as never, 10), TypeError);
  assertThrows(() => memory.write(new Uint8Array(101)), RangeError);
  assertThrows(() => memory.read(1, { offset: 100 }), RangeError);
  assertThrows(() => memory.fill(1, { offset: 101 }), RangeError);
  assertThrows(() => memory.fill(256), RangeError);
  assertThrows(() => memory.fill(1, { bytes: 3, width: 2 }), RangeError);
  using other = openHost();
  assertThrows(
    () => memory.fill(1, { stream: other.defaultStream }),
    TypeError,
  );
  memory.fill(1);
  mb.synchronize();
  assertEquals(theirs[0], 1);
  assertCode("unsupported", () => openModel().mb.wrap(4096, 10));
});

Deno.test("copies on another thread bring what they should, and the event loop goes on", async () => {
  using mb = openHost();
  using stream = mb.createStream();
  const bytes = 32 * 1024 ** 2;
  using block = mb.alloc(bytes);
  const source = new Uint8Array(bytes);
  for (let i = 0; i < bytes; i += 4096) source[i] = i / 4096;
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  await block.writeAsync(source);
  const whole = await block.readAsync();
  const part = await block.readAsync(new Uint8Array(8), { offset: 4096 * 5 });
  clearInterval(timer);
  assertEquals(whole, source);
  assertEquals([...part], [5, 0, 0, 0, 0, 0, 0, 0]);
  assert(turns > 0, "nothing else had a turn");
  assertEquals((await block.readAsync(1, { stream, offset: 4096 }))[0], 1);
  const theirs = new Uint8Array(100);
  using memory = mb.wrap(addressOf(theirs), 100);
  await memory.writeAsync(new Uint8Array([4, 5]), { offset: 1 });
  assertEquals([...await memory.readAsync(3)], [0, 4, 5]);
  assertEquals((await mb.alloc(0).readAsync()).length, 0);
  await mb.alloc(0).writeAsync(new Uint8Array(0));
});

Deno.test("a block is neither freed nor resized while it is copied", async () => {
  using mb = openHost();
  const block = mb.alloc(4 * 1024 ** 2, { maxSize: 16 * 1024 ** 2, name: "b" });
  const source = new Uint8Array(block.size).fill(1);
  const copies = [block.writeAsync(source), block.readAsync()];
  for (
    const change of [
      () => block.free(),
      () => mb.free(block.address),
      () => block.resize(1),
      () => block[Symbol.dispose](),
    ]
  ) assertCode("busy", change, "await");
  mb.allocator.assertInvariants();
  await copies[0];
  await copies[1];
  assertEquals(block.live, true);
  block.resize(2 * 1024 ** 2);
  assertEquals(await block.readAsync(1), new Uint8Array([1]));
  block.free();
  assertEquals(mb.stats().live, 0);
});

Deno.test("a copy that fails leaves the block free to be freed", async () => {
  const { mb, model } = openModel();
  const block = mb.alloc(100);
  model.failNext("copyIn", 1, "driver");
  await assertRejects(() => block.writeAsync(new Uint8Array(10)));
  await block.writeAsync(new Uint8Array([8]));
  assertEquals((await block.readAsync(1))[0], 8);
  await assertRejects(() => block.writeAsync(new Uint8Array(101)), RangeError);
  await assertRejects(() => block.readAsync(101), RangeError);
  block.free();
  await assertRejects(() => block.readAsync(), InvalidBlockError);
  assertEquals(mb.stats().live, 0);
});

Deno.test("an instance closed during a copy waits for it", async () => {
  const mb = openHost();
  const block = mb.alloc(8 * 1024 ** 2);
  const copy = block.readAsync().then(
    (bytes) => bytes.length,
    (error) => error instanceof Error,
  );
  mb.close();
  assert(await copy);
});

Deno.test("elements of any type come back as they were written", async () => {
  const types: [ElementType, fc.Arbitrary<number | bigint>][] = [
    ["u8", fc.nat(255)],
    ["i8", fc.integer({ min: -128, max: 127 })],
    ["u16", fc.nat(65_535)],
    ["i16", fc.integer({ min: -32_768, max: 32_767 })],
    ["f16", fc.integer({ min: -2048, max: 2048 })],
    ["u32", fc.integer({ min: 0, max: 2 ** 32 - 1 })],
    ["i32", fc.integer()],
    ["f32", fc.float()],
    ["f64", fc.double()],
    ["u64", fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })],
    ["i64", fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
  ];
  const { mb } = openModel();
  const block = mb.alloc(1001);
  for (const [type, value] of types) {
    const view = block.as(type);
    const room = Math.floor(1001 / view.bytesPerElement);
    assertEquals(view.length, room);
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { maxLength: 20 }),
        fc.nat(room - 20),
        async (values, start) => {
          view.write(values as never[], { start });
          const read = view.read({ start, count: values.length });
          assertEquals([...read] as unknown[], values);
          assertEquals(
            block.read(read.byteLength, {
              offset: start * view.bytesPerElement,
            }),
            new Uint8Array(read.buffer),
          );
          await view.writeAsync(read as never, { start: 0 });
          assertEquals(
            await view.readAsync({ count: values.length }),
            read,
          );
        },
      ),
      { numRuns: 20 },
    );
  }
});

Deno.test("views refuse what is no element", () => {
  const { mb } = openModel();
  const block = mb.alloc(10);
  assertThrows(() => block.as("f8" as never), TypeError, "f16");
  assertThrows(() => block.as("toString" as never), TypeError);
  const view = block.as("f32");
  assertEquals(view.read().length, 2);
  assertEquals(view.read({ start: 2 }).length, 0);
  for (
    const options of [
      { count: 3 },
      { start: 1, count: 2 },
      { count: 0.5 },
      {
        count: -1,
      },
      { start: 3 },
      { start: -1 },
      { start: 0.5 },
    ]
  ) assertThrows(() => view.read(options), RangeError);
  assertThrows(() => view.write([1, 2, 3]), RangeError);
  assertThrows(() => view.write(new Float64Array(1) as never), TypeError);
  block.free();
  assertThrows(() => view.read(), InvalidBlockError);
});
