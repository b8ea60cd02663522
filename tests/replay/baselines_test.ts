import { assert, assertEquals, assertThrows } from "@std/assert";
import { assertRejects } from "@std/assert";
import fc from "fast-check";
import type { TimedDriver } from "../../lib/bench/timed_driver.ts";
import { DriverError } from "../../lib/errors.ts";
import {
  plainAllocator,
  poolAllocator,
  replayOnVendor,
} from "../../lib/replay/driver_run.ts";
import { replaySegments } from "../../lib/replay/segments_run.ts";
import { workloadOf } from "../../lib/replay/workload.ts";
import { ModelDriver } from "../model/model_driver.ts";
import { makeTrace, type ShortEvent } from "./make_trace.ts";

const GRANULE = 4096;
const breathe = () => Promise.resolve();

/** A model with the vendor's allocators, which only keep account. */
class AccountingDriver extends ModelDriver {
  readonly held = new Map<number, { bytes: number; stream: number | null }>();
  limit = Infinity;
  peak = 0;
  #next = 1;

  plainAlloc(size: number): number {
    return this.#take(size, null);
  }
  plainFree(address: number): void {
    this.#give(address, null);
  }
  poolAlloc(size: number, stream: number): number {
    return this.#take(size, stream);
  }
  poolFree(address: number, stream: number): void {
    this.#give(address, stream);
  }
  poolTrim(): void {}

  get heldBytes(): number {
    let bytes = 0;
    for (const one of this.held.values()) bytes += one.bytes;
    return bytes;
  }

  #take(bytes: number, stream: number | null): number {
    if (this.heldBytes + bytes > this.limit) {
      throw new DriverError("out-of-memory", "alloc", "full");
    }
    const address = this.#next++;
    this.held.set(address, { bytes, stream });
    this.peak = Math.max(this.peak, this.heldBytes);
    return address;
  }

  #give(address: number, stream: number | null): void {
    const one = this.held.get(address);
    assert(one && (one.stream === null) === (stream === null));
    this.held.delete(address);
  }
}

function openAccounting(): { driver: AccountingDriver; timed: TimedDriver } {
  const driver = new AccountingDriver({ granularity: GRANULE });
  // It lacks the timed loops, which no replay uses.
  return { driver, timed: driver as unknown as TimedDriver };
}

const events = fc.array(
  fc.tuple(fc.boolean(), fc.nat(9), fc.integer({ min: 1, max: 9999 })),
  { maxLength: 60 },
).map((drawn) =>
  drawn.map(([alloc, address, bytes]): ShortEvent => [
    alloc ? "ALLOC" : "FREE",
    address,
    bytes,
    address % 2,
  ])
);

Deno.test("the vendor's allocators are given the workload's requests, and get all back", async () => {
  await fc.assert(fc.asyncProperty(
    events,
    fc.constantFrom("plain", "pool"),
    async (events, kind) => {
      const { driver, timed } = openAccounting();
      const workload = workloadOf("", makeTrace(events, [], ["0", "1"]));
      const allocator = kind === "plain"
        ? plainAllocator(timed)
        : poolAllocator(timed, workload);
      const { run } = await replayOnVendor(allocator, workload, "m", breathe);
      assertEquals(run.allocator, kind);
      assertEquals(run.livePeak, workload.figures.livePeak);
      assertEquals(driver.peak, run.livePeak);
      assertEquals(driver.held.size, 0);
      assertEquals(run.alloc.count, workload.blocks);
      assertEquals(run.free.count, workload.steps - workload.blocks);
      assertEquals(run.driverNs, run.totalNs);
      driver.close();
    },
  ));
});

Deno.test("what the vendor can't serve is told, and its free left out", async () => {
  const { driver, timed } = openAccounting();
  driver.limit = 100;
  const workload = workloadOf(
    "",
    makeTrace([
      ["ALLOC", 1, 80],
      ["ALLOC", 2, 30],
      ["FREE", 2, 30],
      ["FREE", 1, 80],
    ]),
  );
  const { run } = await replayOnVendor(
    plainAllocator(timed),
    workload,
    "m",
    breathe,
  );
  assertEquals(run.unserved, [{ step: 1, bytes: 30, reason: "full" }]);
  assertEquals([run.completed, run.free.count], [false, 1]);
});

Deno.test("all is given back when a replay is ended", async () => {
  const { driver, timed } = openAccounting();
  const workload = workloadOf(
    "",
    makeTrace(
      Array.from({ length: 2000 }, (_, i): ShortEvent => ["ALLOC", i + 1, 5]),
    ),
  );
  let breaths = 0;
  await assertRejects(
    () =>
      replayOnVendor(
        plainAllocator(timed),
        workload,
        "m",
        () => breaths++ > 0 ? Promise.reject(new Error("end")) : breathe(),
      ),
    Error,
    "end",
  );
  assertEquals(driver.held.size, 0);
});

Deno.test("segments are taken and given back as recorded, mapped ones as extents", async () => {
  const { driver, timed } = openAccounting();
  const workload = workloadOf(
    "",
    makeTrace([
      ["SEGMENT_ALLOC", 0x10000, 3 * GRANULE],
      ["ALLOC", 0x10000, 100],
      ["SEGMENT_MAP", 0x90000, 2 * GRANULE],
      ["ALLOC", 0x90000, 200],
      ["SEGMENT_FREE", 0x10000, 3 * GRANULE],
      ["FREE", 0x90000, 200],
      ["SEGMENT_UNMAP", 0x90000, 2 * GRANULE],
      ["ALLOC", 0x90000, 300],
    ], [{ address: 0x50000, bytes: GRANULE, stream: 0, live: [] }]),
  );
  const { run } = await replaySegments(timed, workload, "m", breathe);
  assertEquals(run.mappedPeak, 6 * GRANULE);
  assertEquals([run.alloc.count, run.free.count], [3, 2]);
  assertEquals(run.timeline.mapped, [
    4 * GRANULE,
    6 * GRANULE,
    3 * GRANULE,
    GRANULE,
  ]);
  assertEquals(run.timeline.live, [100, 300, 100, 400]);
  assertEquals(driver.held.size, 0);
  assertEquals(driver.live().extents, 0);
  driver.close();
});

Deno.test("segments that the device has no room for are told", async () => {
  const { driver, timed } = openAccounting();
  driver.limit = GRANULE;
  const workload = workloadOf(
    "",
    makeTrace([
      ["SEGMENT_ALLOC", 1, 2 * GRANULE],
      ["ALLOC", 1, 100],
      ["SEGMENT_FREE", 1, 2 * GRANULE],
      ["FREE", 1, 100],
    ]),
  );
  const { run } = await replaySegments(timed, workload, "m", breathe);
  assertEquals([run.completed, run.unservedCount, run.free.count], [
    false,
    1,
    0,
  ]);
  assertThrows(() => driver.plainFree(1));
});
