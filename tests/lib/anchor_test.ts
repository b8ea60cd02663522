import { assert, assertEquals } from "@std/assert";
import { MoonBright } from "../../lib/moonbright.ts";
import { ModelDriver, type ModelOptions } from "../model/model_driver.ts";
import { assertCode, GRANULE } from "./support.ts";

/** A device whose profile has an anchor. */
function anchored(options: ModelOptions = {}): ModelDriver {
  const model = new ModelDriver({ granularity: GRANULE, ...options });
  model.info.backend = "cuda";
  return model;
}

const options = { addressSpace: 2 ** 30 };

Deno.test("the anchor is mapped at the arena's beginning and counts as no one's memory", () => {
  const model = anchored();
  const mb = new MoonBright(model, options);
  const { mapped, anchor, free, live } = mb.stats();
  assertEquals([mapped, anchor, free, live], [0, GRANULE, 0, 0]);
  assertEquals(model.live().mappings, 1);
  const { arena } = mb.snapshot();
  assertEquals(mb.alloc(GRANULE).address, arena.base + GRANULE);
  mb.allocator.assertInvariants();
  assertCode("invalid-block", () => mb.free(arena.base));
});

Deno.test("trimming leaves the anchor, closing does not", () => {
  const model = anchored();
  const mb = new MoonBright(model, options);
  mb.alloc(3 * GRANULE).free();
  assertEquals(mb.trim(), 3 * GRANULE);
  assertEquals([model.live().extents, model.live().mappings], [1, 1]);
  mb.close();
  assert(Object.values(model.live()).every((count) => count === 0));
});

Deno.test("a device without room does without an anchor", () => {
  const model = anchored({ totalMemory: GRANULE });
  model.createExtents([GRANULE]);
  const mb = new MoonBright(model, options);
  const { arena, stats } = mb.snapshot();
  assertEquals([stats.anchor, arena.frontier - arena.base], [0, 0]);
  assertEquals(model.live().mappings, 0);
});

Deno.test("an anchor that can't be mapped leaves no extent behind", () => {
  for (const method of ["createExtents", "map"] as const) {
    const model = anchored();
    model.failNext(method, 1, "driver");
    assertCode("driver", () => new MoonBright(model, options));
    assertEquals(model.live().extents, 0);
  }
});
