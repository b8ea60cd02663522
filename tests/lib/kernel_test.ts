import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { ClosedError, InvalidBlockError } from "../../lib/errors.ts";
import { type KernelArgument, packArguments } from "../../lib/kernel.ts";
import { modelImage } from "../model/kernels.ts";
import { assertCode, GRANULE, openModel } from "./support.ts";

const once = { grid: [1], block: [1] } as const;

function viewOf(args: readonly KernelArgument[]): DataView {
  const bytes = packArguments(args);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

Deno.test("no arguments make an empty block", () => {
  assertEquals(packArguments([]), new Uint8Array(0));
});

Deno.test("each argument lies at the next multiple of its own size", () => {
  const view = viewOf([
    { u8: 0xab },
    { u32: 0xdeadbeef },
    { u8: 1 },
    { u64: 2n ** 64n - 1n },
    { f32: 1.5 },
    { f64: -0.1 },
    { i32: -2 },
    { i64: -3 },
  ]);
  assertEquals(view.byteLength, 56);
  assertEquals(view.getUint8(0), 0xab);
  assertEquals(view.getUint32(4, true), 0xdeadbeef);
  assertEquals(view.getUint8(8), 1);
  assertEquals(view.getBigUint64(16, true), 2n ** 64n - 1n);
  assertEquals(view.getFloat32(24, true), 1.5);
  assertEquals(view.getFloat64(32, true), -0.1);
  assertEquals(view.getInt32(40, true), -2);
  assertEquals(view.getBigInt64(48, true), -3n);
});

Deno.test("whole numbers up to 2^53 do for 64-bit arguments", () => {
  fc.assert(fc.property(fc.maxSafeInteger(), (value) => {
    assertEquals(viewOf([{ i64: value }]).getBigInt64(0, true), BigInt(value));
    const positive = Math.abs(value);
    assertEquals(
      viewOf([{ u64: positive }]).getBigUint64(0, true),
      BigInt(positive),
    );
  }));
});

Deno.test("layouts agree with C's for any mix of types", () => {
  const bytesOf = { u8: 1, i32: 4, u32: 4, i64: 8, u64: 8, f32: 4, f64: 8 };
  const types = fc.array(
    fc.constantFrom(...Object.keys(bytesOf) as (keyof typeof bytesOf)[]),
    { maxLength: 40 },
  );
  fc.assert(fc.property(types, (chosen) => {
    let offset = 0;
    for (const type of chosen) {
      offset += (bytesOf[type] - offset % bytesOf[type]) % bytesOf[type];
      offset += bytesOf[type];
    }
    const args = chosen.map((type) => ({ [type]: 1 }) as never);
    assertEquals(packArguments(args).length, offset);
  }));
});

Deno.test("a block stands for its address", () => {
  const { mb } = openModel();
  const block = mb.alloc(100);
  assertEquals(
    viewOf([{ u8: 1 }, block]).getBigUint64(8, true),
    BigInt(block.address),
  );
  assertEquals(viewOf([mb.alloc(0)]).getBigUint64(0, true), 0n);
  block.free();
  assertThrows(() => packArguments([block]), InvalidBlockError);
});

Deno.test("arguments of no known type are refused by their place", () => {
  for (const argument of [{}, { f16: 1 }, null, undefined, 7, "u8"]) {
    assertThrows(
      () => packArguments([{ u8: 1 }, argument as never]),
      TypeError,
      "argument 1",
    );
  }
});

Deno.test("launches note the use of blocks on their stream", () => {
  const { mb } = openModel();
  const stream = mb.createStream();
  const kernel = mb.loadModule(modelImage).kernel("mb_pattern_fill");
  const block = mb.alloc(GRANULE);
  kernel.launch({ ...once, stream }, [
    block,
    { u64: GRANULE / 8 },
    { u64: 1 },
  ]);
  block.free();
  assertEquals(mb.stats().pending, GRANULE);
  mb.synchronize();
});

Deno.test("a kernel is looked up once, by a name that exists", () => {
  const { mb, model } = openModel();
  const module = mb.loadModule(modelImage);
  const kernel = module.kernel("mb_empty");
  assertEquals(module.kernel("mb_empty"), kernel);
  assertEquals([model.counts.getFunction, kernel.name], [1, "mb_empty"]);
  assertCode("not-found", () => module.kernel("nothing"));
  assertCode("driver", () => mb.loadModule("no image"));
});

Deno.test("nothing of a closed module can be used", () => {
  const { mb, model } = openModel();
  const module = mb.loadModule(modelImage);
  const kernel = module.kernel("mb_empty");
  kernel.launch(once);
  mb.synchronize();
  module.close();
  module.close();
  assertEquals(model.live().modules, 0);
  assertThrows(() => module.kernel("mb_empty"), ClosedError, "module");
  assertThrows(() => kernel.launch(once), ClosedError, "module");
});

Deno.test("a kernel does not run in another instance's stream", () => {
  const { mb } = openModel();
  const other = openModel().mb;
  const kernel = mb.loadModule(modelImage).kernel("mb_empty");
  assertThrows(
    () => kernel.launch({ ...once, stream: other.defaultStream }),
    TypeError,
    "another instance",
  );
});
