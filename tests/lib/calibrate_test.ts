import { assert, assertEquals } from "@std/assert";
import { calibrate } from "../../lib/calibrate.ts";
import { profileOf } from "../../lib/device_profile.ts";
import { openModel } from "./support.ts";

Deno.test("measured costs replace those of an extent and leave those of a byte", () => {
  const { mb } = openModel();
  const { allocator } = mb;
  const stored = allocator.costs;
  assertEquals(stored, profileOf("model").costs);
  calibrate(allocator);
  for (const kind of ["create", "map", "unmap", "release"] as const) {
    const { perExtentNs, perMiBNs } = allocator.costs[kind];
    assert(Number.isFinite(perExtentNs) && perExtentNs >= 0);
    assert(perExtentNs !== stored[kind].perExtentNs);
    assertEquals(perMiBNs, stored[kind].perMiBNs);
  }
});

Deno.test("measuring leaves nothing mapped and nothing counted", () => {
  const heard: string[] = [];
  const { mb, model } = openModel({
    onDriverCall: ({ kind }) => heard.push(kind),
  });
  calibrate(mb.allocator);
  mb.allocator.assertInvariants();
  const { mapped, frees, flushes, driver, peak, ways } = mb.stats();
  assertEquals([mapped, frees, flushes], [0, 0, 0]);
  assertEquals([driver.create.calls, ways.grow.count, peak.mapped], [0, 0, 0]);
  assertEquals([model.live().extents, heard], [0, []]);
  mb.alloc(512);
  assertEquals(heard, ["create", "map", "setAccess"]);
});

Deno.test("a device that refuses keeps the stored costs and works later", () => {
  for (let kth = 1; kth <= 12; kth++) {
    const { mb, model } = openModel();
    const stored = mb.allocator.costs;
    model.failNext("any", kth, "driver");
    calibrate(mb.allocator);
    assertEquals(model.failuresLeft, 0);
    assertEquals(mb.allocator.costs, stored);
    mb.allocator.assertInvariants();
    mb.alloc(512).free();
    mb.trim();
    assertEquals([mb.stats().mapped, model.live().extents], [0, 0]);
  }
});
