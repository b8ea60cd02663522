/**
 * Every call of the driver fails, at every place where an operation makes it: the error is
 * typed, nothing has changed, nothing is lost, and the operation can be done again.
 */

import { assert, assertEquals } from "@std/assert";
import { type ErrorCode, MoonBrightError } from "../../lib/errors.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import { liveOf, memoryOf, openOver } from "../lib/support.ts";
import { GRANULE } from "../lib/support.ts";
import { ModelDriver } from "../model/model_driver.ts";
import { type FallibleMethod, Faults, faulty } from "./faulty_driver.ts";
import { type Operation, OPERATIONS, QUIET_OPERATIONS } from "./operations.ts";

interface Bench {
  mb: MoonBright;
  model: ModelDriver;
  faults: Faults;
  /** What the operation gave that has to be closed. */
  results: unknown[];
}

function open({ options }: Pick<Operation, "options">): Bench {
  const model = new ModelDriver({ granularity: GRANULE });
  const faults = new Faults();
  const mb = openOver(faulty(model, faults), options ?? {});
  return { mb, model, faults, results: [] };
}

/** What must be as before when an operation has failed. Spare events may have come. */
function stateOf({ mb, faults }: Bench): unknown {
  const { events: _spare, ...holdings } = faults.holdings;
  const { clocks } = mb.allocator.streams;
  return {
    memory: memoryOf(mb),
    holdings,
    streams: clocks.map(({ open, capturing }) => [open, capturing]),
  };
}

/** Does the operation; returns what it threw. */
function attempt(bench: Bench, operation: () => unknown): unknown {
  try {
    bench.results.push(operation());
    return undefined;
  } catch (error) {
    assert(error instanceof MoonBrightError, String(error));
    assert(error.message.startsWith("Cannot "), error.message);
    return error;
  } finally {
    bench.mb.allocator.assertInvariants();
  }
}

/** Frees and closes whatever there is: then the driver must have everything back. */
function assertNothingLeaks({ mb, model, faults, results }: Bench): void {
  for (const result of results.flat()) {
    const closable = result as Partial<Disposable> | null | undefined;
    closable?.[Symbol.dispose]?.();
  }
  for (const { address, state } of mb.snapshot().blocks) {
    if (state === "live") mb.free(address);
  }
  const { allocator } = mb;
  for (let stream = 1; stream < allocator.streams.count; stream++) {
    if (allocator.streams.clocks[stream]!.open) allocator.destroyStream(stream);
  }
  mb.trim();
  allocator.assertInvariants();
  const { live, mapped, pending, retired } = mb.stats();
  assertEquals([live, mapped, pending, retired], [0, 0, 0, 0]);
  const { extents, mapped: installed, streams, captures, graphs, pinned } =
    faults.holdings;
  assertEquals(
    { extents, installed, streams, captures, graphs, pinned },
    { extents: 0, installed: 0, streams: 0, captures: 0, graphs: 0, pinned: 0 },
  );
  assertEquals([model.hazards, model.lostReason], [[], undefined]);
  mb.close();
  assert(Object.values(model.live()).every((count) => count === 0));
}

/** Does an operation whose calls fail as chosen; returns whether any has. */
function failAndRetry(
  operation: Operation,
  method: FallibleMethod | "any",
  kth: number,
  code: ErrorCode,
  lasting: boolean,
): boolean {
  const bench = open(operation);
  const body = operation.prepare(bench.mb);
  bench.mb.allocator.assertInvariants();
  const before = stateOf(bench);
  const liveBefore = liveOf(bench.mb);
  bench.faults.fail(method, kth, code, lasting);
  const failure = attempt(bench, body);
  const fired = bench.faults.clear();
  if (failure instanceof MoonBrightError) {
    assert(fired, failure.message);
    assertEquals(failure.code, code);
    // A capture that could not be ended goes on until the stream is used for another.
    const strict = operation.unchanged && code === "driver" &&
      !(lasting && method === "endCapture");
    if (strict) {
      assertEquals(stateOf(bench), before);
    } else assertEquals(liveOf(bench.mb), liveBefore);
    assertEquals(attempt(bench, body), undefined);
  }
  assertNothingLeaks(bench);
  return fired;
}

/** Methods that an operation calls when nothing fails. */
function methodsOf(operation: Operation): FallibleMethod[] {
  const bench = open(operation);
  const body = operation.prepare(bench.mb);
  bench.faults.calls.clear();
  body();
  const methods = [...bench.faults.calls.keys()];
  bench.mb.close();
  return methods;
}

for (const operation of OPERATIONS) {
  for (const code of ["driver", "out-of-memory"] satisfies ErrorCode[]) {
    Deno.test(`${operation.name}: any call fails with "${code}"`, () => {
      let kth = 1;
      while (failAndRetry(operation, "any", kth, code, false)) kth++;
      assert(kth > 1, "the operation makes no call");
    });

    Deno.test(`${operation.name}: a kind of call fails with "${code}" from then on`, () => {
      for (const method of methodsOf(operation)) {
        let kth = 1;
        while (failAndRetry(operation, method, kth, code, true)) kth++;
        assert(kth > 1, `${method} is not called`);
      }
    });
  }

  Deno.test(`${operation.name}: the device is lost at any call`, () => {
    for (let kth = 1, fired = true; fired; kth++) {
      const bench = open(operation);
      const body = operation.prepare(bench.mb);
      const liveBefore = liveOf(bench.mb);
      bench.faults.fail("any", kth, "lost");
      const failure = attempt(bench, body);
      fired = bench.faults.clear();
      if (failure instanceof MoonBrightError) {
        assertEquals(failure.code, "lost");
        assertEquals(liveOf(bench.mb), liveBefore);
      }
      bench.mb.close();
      assert(Object.values(bench.model.live()).every((count) => count === 0));
    }
  });
}

for (const operation of QUIET_OPERATIONS) {
  Deno.test(`${operation.name}: no call that could fail`, () => {
    const bench = open(operation);
    const body = operation.prepare(bench.mb);
    bench.faults.calls.clear();
    bench.faults.fail("any", 1, "lost");
    assertEquals(attempt(bench, body), undefined);
    assertEquals([...bench.faults.calls], []);
    bench.faults.clear();
    assertNothingLeaks(bench);
  });
}
