import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { modelImage } from "../model/kernels.ts";
import {
  assertCode,
  GRANULE,
  openGated,
  openModel,
  preloaded,
} from "../lib/support.ts";

Deno.test("addresses are explained without any debug option", () => {
  const { mb, gated } = openGated();
  const stream = mb.createStream();
  const kept = mb.alloc(700, { name: "kept" });
  const { address } = kept;
  assertEquals(mb.explain(address + 699), {
    address: address + 699,
    state: "live",
    block: { address, size: 700, capacity: 1024, name: "kept", stream: 0 },
    offset: 699,
    text: `0x${
      (address + 699).toString(16)
    }: live; byte 699 of the block "kept" of 700 B at 0x${
      address.toString(16)
    } on stream 0`,
  });
  assertEquals(mb.explain(address + 700).state, "slack");
  const freed = mb.alloc(512);
  const other = freed.address;
  freed.useOn(stream);
  freed.free();
  assertEquals(mb.explain(other).state, "pending");
  gated.pass(stream.number);
  mb.synchronize();
  mb.trim();
  assertEquals(mb.explain(other).state, "free");
  assertEquals(mb.explain(other).block, undefined);
  kept.free();
  // Given back last, and not merged yet.
  assertEquals(mb.explain(address).state, "free");
});

Deno.test("holes, retired mappings and rooms to grow are told apart", () => {
  const { mb } = preloaded();
  const growable = mb.alloc(1, { maxSize: 4 * GRANULE });
  const { address } = growable;
  assertEquals(mb.explain(address + 2 * GRANULE).state, "guard");
  growable.resize(3 * GRANULE);
  growable.resize(1);
  assertEquals(mb.explain(address + 2 * GRANULE).state, "retired");
  mb.flush({ wait: true });
  assertEquals(mb.explain(address + 2 * GRANULE).state, "guard");
  growable.free();
  assertEquals(mb.explain(address + 2 * GRANULE).state, "hole");
});

Deno.test("with stacks, free memory remembers the block that was there last", () => {
  const { mb } = openModel({ stacks: true });
  const { address } = mb.alloc(600, { name: "one" });
  mb.free(address);
  assertEquals(mb.explain(address).block!.name, "one");
  mb.alloc(600, { name: "two" }).free();
  const { state, text, offset } = mb.explain(address + 3);
  assertEquals([state, offset], ["free", 3]);
  assertStringIncludes(text, 'last it was byte 3 of the block "two"');
  assertStringIncludes(text, "explain_test.ts");
  const live = mb.alloc(600, { name: "three" });
  assertEquals(mb.explain(address).block!.name, "three");
  assertEquals(mb.explain(address).block!.freed, undefined);
  live.free();
});

Deno.test("the oldest freed blocks are forgotten, their addresses are not used", () => {
  const { mb } = openModel({ debug: "quarantine" });
  const block = mb.alloc(1, { name: "oldest" });
  const { address } = block;
  block.free();
  mb.synchronize();
  assertEquals(mb.explain(address).block!.name, "oldest");
  for (let count = 0; count < 65_536; count++) mb.alloc(1).free();
  mb.synchronize();
  assertEquals(mb.snapshot().quarantined!.length, 65_536);
  assertEquals(mb.explain(address).state, "hole");
});

Deno.test("what is no address is refused", () => {
  const { mb } = openModel();
  for (const address of [-1, 0.5, NaN, 2 ** 53, 2n ** 64n]) {
    assertThrows(() => mb.explain(address), RangeError);
  }
  for (const address of ["1", null, undefined, {}]) {
    assertThrows(() => mb.explain(address as never), TypeError);
  }
  assertEquals(mb.explain(0).state, "foreign");
  assertEquals(mb.explain(2n ** 40n).state, "foreign");
});

Deno.test("addresses are explained on a lost device and after closing", () => {
  const { mb } = openModel({ debug: "quarantine", guard: true });
  const fill = mb.loadModule(modelImage).kernel("mb_pattern_fill");
  const block = mb.alloc(100, { name: "last" });
  const { address } = block;
  fill.launch({ grid: [1], block: [1] }, [
    { u64: address + GRANULE },
    { u64: 1 },
    { u64: 1 },
  ]);
  assertCode("lost", () => mb.synchronize());
  assertEquals(mb.explain(address + GRANULE).state, "guard");
  assertEquals(mb.explain(address).block!.name, "last");
  mb.close();
  assertEquals(mb.explain(address).block!.name, "last");
});
