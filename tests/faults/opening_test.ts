/**
 * Opening and closing an instance while the driver's calls fail: nothing is left behind,
 * and closing is always quiet.
 */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { calibrate } from "../../lib/calibrate.ts";
import {
  ClosedError,
  type ErrorCode,
  MoonBrightError,
} from "../../lib/errors.ts";
import { MoonBright } from "../../lib/moonbright.ts";
import { GRANULE, openOver } from "../lib/support.ts";
import { modelImage } from "../model/kernels.ts";
import { ModelDriver } from "../model/model_driver.ts";
import { type FallibleMethod, Faults, faulty } from "./faulty_driver.ts";

const METHODS: readonly (FallibleMethod | "any")[] = [
  "any",
  "reserve",
  "createExtents",
  "map",
  "unmap",
  "releaseExtents",
  "createEvent",
  "recordEvent",
  "synchronizeEvent",
];

/** A device as CUDA's: with an anchor, and its calls measured. */
function openMeasured(faults: Faults): { mb: MoonBright; model: ModelDriver } {
  const model = new ModelDriver({ granularity: GRANULE });
  model.info.backend = "cuda";
  const driver = faulty(model, faults);
  const mb = new MoonBright(driver, { addressSpace: 2 ** 30 });
  calibrate(mb.allocator);
  return { mb, model };
}

for (const code of ["driver", "out-of-memory", "lost"] satisfies ErrorCode[]) {
  Deno.test(`opening: any call fails with "${code}", once or from then on`, () => {
    for (const lasting of [false, true]) {
      for (const method of METHODS) {
        for (let kth = 1, fired = true; fired; kth++) {
          const faults = new Faults();
          faults.fail(method, kth, code, lasting);
          let opened: ReturnType<typeof openMeasured> | undefined;
          try {
            opened = openMeasured(faults);
          } catch (error) {
            assert(error instanceof MoonBrightError, String(error));
            assert([code, "out-of-addresses"].includes(error.code));
          }
          fired = faults.clear();
          const { extents, mapped, reservations } = faults.holdings;
          if (!opened) {
            assert(fired);
            // A device that refuses everything takes nothing back; its closing does.
            if (code === "lost" || lasting && method === "any") continue;
            assertEquals([extents, mapped, reservations], [0, 0, 0]);
            continue;
          }
          const { mb, model } = opened;
          mb.allocator.assertInvariants();
          if (code !== "lost" || !fired) {
            mb.alloc(3 * GRANULE).free();
            mb.trim();
            const { anchor } = mb.stats();
            assertEquals(faults.holdings.mapped, anchor);
          }
          mb.close();
          assert(Object.values(model.live()).every((count) => count === 0));
        }
      }
    }
  });
}

Deno.test("closing is quiet whatever fails, and whatever is still there", () => {
  for (const code of ["driver", "lost"] satisfies ErrorCode[]) {
    for (const lasting of [false, true]) {
      const faults = new Faults();
      const model = new ModelDriver({ granularity: GRANULE });
      const mb = openOver(faulty(model, faults), {});
      const stream = mb.createStream();
      const block = mb.alloc(GRANULE, { stream, maxSize: 4 * GRANULE });
      const shared = mb.alloc(GRANULE);
      shared.useOn(stream);
      shared.free();
      const module = mb.loadModule(modelImage);
      const graph = stream.capture(() => block.fill(1));
      const event = stream.record();
      faults.fail("any", 1, code, lasting);
      mb.close();
      mb.close();
      assert(Object.values(model.live()).every((count) => count === 0));
      for (const one of [block, module, graph, event, stream, mb]) {
        one[Symbol.dispose]();
      }
      assertThrows(() => mb.alloc(1), ClosedError);
      assertThrows(() => block.free(), ClosedError);
      assertThrows(() => graph.launch(), ClosedError);
    }
  }
});

Deno.test("a device lost underneath says so at every later call", () => {
  const faults = new Faults();
  const model = new ModelDriver({ granularity: GRANULE });
  const mb = openOver(faulty(model, faults), {});
  const stream = mb.createStream();
  const [block, other] = [mb.alloc(GRANULE), mb.alloc(GRANULE)];
  const growable = mb.alloc(GRANULE, { maxSize: 4 * GRANULE });
  const module = mb.loadModule(modelImage);
  const kernel = module.kernel("mb_empty");
  const graph = stream.capture(() => {});
  const event = stream.record({ timing: true });
  other.useOn(stream);
  faults.fail("any", 1, "lost");
  const calls: Record<string, () => unknown> = {
    alloc: () => mb.alloc(64 * GRANULE),
    "alloc growable": () => mb.alloc(1, { maxSize: 64 * GRANULE }),
    synchronize: () => mb.synchronize(),
    createStream: () => mb.createStream(),
    createEvent: () => mb.createEvent(),
    loadModule: () => mb.loadModule(modelImage),
    "block.read": () => block.read(),
    "block.write": () => block.write(new Uint8Array(4)),
    "block.fill": () => block.fill(1),
    "block.useOn": () => block.useOn(stream),
    "other.free": () => other.free(),
    "growable.resize": () => growable.resize(4 * GRANULE),
    "stream.synchronize": () => stream.synchronize(),
    "stream.record": () => stream.record(),
    "stream.wait": () => stream.wait(event),
    "stream.capture": () => stream.capture(() => {}),
    "stream.capturing": () => stream.capturing,
    "stream.unsafeHandle": () => stream.unsafeHandle,
    "stream.close": () => stream.close(),
    "event.passed": () => event.passed,
    "event.record": () => event.record(stream),
    "event.synchronize": () => event.synchronize(),
    "event.close": () => event.close(),
    "graph.launch": () => graph.launch(),
    "graph.close": () => graph.close(),
    "module.kernel": () => module.kernel("mb_pattern_fill"),
    "module.close": () => module.close(),
    "kernel.launch": () => kernel.launch({ grid: [1], block: [1] }),
  };
  for (let round = 0; round < 2; round++) {
    for (const [name, call] of Object.entries(calls)) {
      const error = assertThrows(call, MoonBrightError, "Cannot ", name);
      assertEquals(error.code, "lost", name);
      mb.allocator.assertInvariants();
    }
  }
  // What needs no device goes on: programs tidy up after themselves.
  block.free();
  growable[Symbol.dispose]();
  assertEquals(mb.stats().liveBlocks, 1);
  mb.close();
  assert(Object.values(model.live()).every((count) => count === 0));
});
