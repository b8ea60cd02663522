/** Every call of the driver fails once, at every place where an operation makes it. */

import { assert, assertEquals } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import { type ErrorCode, MoonBrightError } from "../../lib/errors.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import type { ModelDriver } from "../model/model_driver.ts";
import { GRANULE, liveOf, memoryOf, openModel } from "./support.ts";

interface Scenario {
  name: string;
  budget?: number;
  maxRetired?: number;
  /** Whether a failure leaves all as it was; else a flush or relief before it stays done. */
  unchanged: boolean;
  /** Prepares an instance; returns the operation under test. */
  prepare(mb: MoonBright): () => unknown;
}

const blocksOf = (mb: MoonBright, count: number, granules = 1) =>
  Array.from({ length: count }, () => mb.alloc(granules * GRANULE));

/** Frees every other block, so that only stitching can serve more than one granule. */
function makeHoles(blocks: Block[]): void {
  blocks.forEach((block, index) => index % 2 === 0 && block.free());
}

const scenarios: Scenario[] = [
  {
    name: "an allocation that grows",
    unchanged: true,
    prepare: (mb) => {
      blocksOf(mb, 1, 8);
      return () => mb.alloc(5 * GRANULE);
    },
  },
  {
    name: "an allocation that extends",
    unchanged: true,
    prepare: (mb) => {
      mb.alloc(512);
      return () => mb.alloc(3 * GRANULE);
    },
  },
  {
    name: "an allocation that stitches",
    unchanged: true,
    budget: 8 * GRANULE,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      return () => mb.alloc(4 * GRANULE);
    },
  },
  {
    name: "an allocation that stitches and grows",
    unchanged: true,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      return () => mb.alloc(7 * GRANULE, { name: "both" });
    },
  },
  {
    name: "an allocation with a flush due",
    unchanged: false,
    maxRetired: 0,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      mb.alloc(4 * GRANULE);
      return () => mb.alloc(6 * GRANULE);
    },
  },
  {
    name: "an allocation of a growable block",
    unchanged: true,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      return () => mb.alloc(6 * GRANULE, { maxSize: 9 * GRANULE });
    },
  },
  {
    name: "an allocation under pressure from another stream and a pending free",
    unchanged: false,
    budget: 8 * GRANULE,
    prepare: (mb) => {
      const stream = mb.createStream();
      mb.alloc(GRANULE);
      mb.alloc(3 * GRANULE, { stream }).free();
      const shared = mb.alloc(4 * GRANULE);
      shared.useOn(stream);
      shared.free();
      return () => mb.alloc(7 * GRANULE);
    },
  },
  {
    name: "growing at the frontier",
    unchanged: true,
    prepare: (mb) => {
      const blocks = blocksOf(mb, 8);
      makeHoles(blocks);
      return () => blocks.at(-1)!.resize(6 * GRANULE);
    },
  },
  {
    name: "growing a growable block over what it gave up",
    unchanged: false,
    prepare: (mb) => {
      blocksOf(mb, 1, 16);
      const block = mb.alloc(6 * GRANULE, { maxSize: 12 * GRANULE });
      block.resize(GRANULE);
      mb.alloc(2 * GRANULE);
      mb.synchronize();
      return () => block.resize(10 * GRANULE);
    },
  },
  {
    name: "shrinking a block in use on another stream",
    unchanged: true,
    prepare: (mb) => {
      const block = mb.alloc(4 * GRANULE);
      block.useOn(mb.createStream());
      return () => block.resize(512);
    },
  },
  {
    name: "noting a use on another stream",
    unchanged: true,
    prepare: (mb) => {
      const block = mb.alloc(GRANULE);
      const stream = mb.createStream();
      return () => block.useOn(stream);
    },
  },
  {
    name: "a flush",
    unchanged: true,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      mb.alloc(4 * GRANULE);
      return () => mb.flush({ wait: true });
    },
  },
  {
    name: "a trim",
    unchanged: false,
    prepare: (mb) => {
      const stream = mb.createStream();
      makeHoles(blocksOf(mb, 8));
      mb.alloc(2 * GRANULE, { stream }).free();
      return () => mb.trim();
    },
  },
  {
    name: "making a stream",
    unchanged: true,
    prepare: (mb) => () => mb.createStream(),
  },
  {
    name: "closing a stream",
    unchanged: false,
    prepare: (mb) => {
      const stream = mb.createStream();
      mb.alloc(GRANULE, { stream });
      mb.alloc(GRANULE, { stream }).free();
      return () => stream.close();
    },
  },
];

/** Frees a block that two other streams used, which must then still be possible. */
const freeing: Scenario = {
  name: "freeing a block in use on other streams",
  unchanged: true,
  prepare: (mb) => {
    const block = mb.alloc(GRANULE, { name: "shared", maxSize: 2 * GRANULE });
    block.useOn(mb.createStream());
    block.useOn(mb.createStream());
    return () => block.free();
  },
};

function open(scenario: Scenario): { mb: MoonBright; model: ModelDriver } {
  const { budget, maxRetired } = scenario;
  return openModel({ budget, maxRetired });
}

/** Frees all blocks, gives everything back and closes; nothing may be left. */
function assertNothingLeaks(mb: MoonBright, model: ModelDriver): void {
  for (const { address, state } of mb.snapshot().blocks) {
    if (state === "live") mb.free(address);
  }
  mb.trim();
  mb.allocator.assertInvariants();
  const { live, mapped, pending, retired } = mb.stats();
  assertEquals([live, mapped, pending, retired], [0, 0, 0, 0]);
  const { extents, mappings } = model.live();
  assertEquals([extents, mappings], [0, 0]);
  mb.close();
  assert(Object.values(model.live()).every((count) => count === 0));
}

for (const scenario of [...scenarios, freeing]) {
  for (const code of ["driver", "out-of-memory"] satisfies ErrorCode[]) {
    Deno.test(`${scenario.name}: any call fails with "${code}"`, () => {
      for (let kth = 1;; kth++) {
        const { mb, model } = open(scenario);
        const operation = scenario.prepare(mb);
        mb.allocator.assertInvariants();
        const before = memoryOf(mb);
        const liveBefore = liveOf(mb);
        model.failNext("any", kth, code);
        let failure: unknown;
        try {
          operation();
        } catch (error) {
          failure = error;
        }
        const left = model.failuresLeft;
        model.clearFailures();
        mb.allocator.assertInvariants();
        if (failure !== undefined) {
          assert(failure instanceof MoonBrightError, String(failure));
          assertEquals(failure.code, code);
          if (scenario.unchanged && code === "driver") {
            assertEquals(memoryOf(mb), before);
          } else assertEquals(liveOf(mb), liveBefore);
          operation();
          mb.allocator.assertInvariants();
        }
        assertNothingLeaks(mb, model);
        if (left > 0) {
          assert(kth > 1, "the operation makes no call");
          assertEquals(failure, undefined);
          break;
        }
      }
    });
  }

  Deno.test(`${scenario.name}: the device is lost at any call`, () => {
    for (let kth = 1;; kth++) {
      const { mb, model } = open(scenario);
      const operation = scenario.prepare(mb);
      const liveBefore = liveOf(mb);
      model.failNext("any", kth, "lost");
      let failure: unknown;
      try {
        operation();
      } catch (error) {
        failure = error;
      }
      mb.allocator.assertInvariants();
      const left = model.failuresLeft;
      if (failure !== undefined) {
        assert(failure instanceof MoonBrightError, String(failure));
        assertEquals(failure.code, "lost");
        assertEquals(liveOf(mb), liveBefore);
      }
      mb.close();
      assert(Object.values(model.live()).every((count) => count === 0));
      if (left > 0) break;
    }
  });
}
