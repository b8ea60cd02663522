import { assert, assertEquals, assertThrows } from "@std/assert";
import { ClosedError, DriverError } from "../lib/errors.ts";
import { historyCases } from "./contract/history_cases.ts";
import { h200Costs } from "./model/costs.ts";
import { modelImage } from "./model/kernels.ts";
import { ModelDriver, type ModelOptions } from "./model/model_driver.ts";

const granule = 4096;

/** A device with one reservation of `granules` granules. */
function device(options: ModelOptions = {}, granules = 16) {
  const model = new ModelDriver(options);
  return { model, base: model.reserve(granules * granule) };
}

function readBytes(model: ModelDriver, address: number, bytes: number) {
  const target = new Uint8Array(bytes);
  model.copyOut(target, address, 0);
  return target;
}

function assertFails(code: string, body: () => unknown, includes = "") {
  const error = assertThrows(body, DriverError, includes);
  assertEquals(error.code, code);
}

Deno.test("a flush at unmap makes a recycled address mean the new extent", () => {
  const { model, base } = device();
  const [first, second] = model.createExtents([granule, granule]);
  model.map(base, [first!]);
  model.fill(base, 1, 1, granule, 0);
  model.synchronize();
  model.unmap([{ address: base, size: granule }]);
  model.map(base, [second!]);
  model.fill(base, 2, 1, granule, 0);
  assertEquals(readBytes(model, base, 1), Uint8Array.of(2));
  assertEquals(model.hazards, []);
});

Deno.test("without that flush the old extent answers, and a hazard is noted", () => {
  const { model, base } = device({ unmapFlushes: false });
  const [first, second] = model.createExtents([granule, granule]);
  model.map(base, [first!]);
  model.fill(base, 1, 1, granule, 0);
  model.synchronize();
  model.unmap([{ address: base, size: granule }]);
  model.map(base, [second!]);
  assertEquals(readBytes(model, base, 1), Uint8Array.of(1));
  assertEquals(model.hazards.length, 1);
  assert(model.hazards[0]!.includes("stale translation to extent 1"));
});

Deno.test("a stale translation to a released extent loses the context", () => {
  const { model, base } = device({ unmapFlushes: false });
  const [first, second] = model.createExtents([granule, granule]);
  model.map(base, [first!]);
  model.fill(base, 1, 1, granule, 0);
  model.synchronize();
  model.unmap([{ address: base, size: granule }]);
  model.releaseExtents([first!]);
  model.map(base, [second!]);
  model.fill(base, 2, 1, granule, 0);
  assertFails("lost", () => model.synchronize(), "extent 1 was released");
});

Deno.test("setAccess flushes what it changes", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule, granule]));
  readBytes(model, base, 2 * granule);
  assertEquals(model.cachedTranslations, 2);
  model.setAccess(base, granule, "read");
  assertEquals(model.cachedTranslations, 1);
});

for (
  const [tlb, survives] of [["keeps", true], ["keeps-invalid", false]] as const
) {
  Deno.test(`a walk that found nothing, ahead of a mapping: tlb "${tlb}"`, () => {
    const { model, base } = device({ tlb });
    model.prefetch(base);
    model.map(base, model.createExtents([granule]));
    model.fill(base, 7, 1, granule, 0);
    if (survives) {
      assertEquals(readBytes(model, base, 1), Uint8Array.of(7));
    } else {
      assertFails("lost", () => model.synchronize(), "stale invalid");
    }
  });
}

Deno.test("a flush clears a cached invalid translation", () => {
  const { model, base } = device({ tlb: "keeps-invalid" });
  model.prefetch(base);
  model.map(base, model.createExtents([granule]));
  model.setAccess(base, granule, "read-write");
  model.fill(base, 7, 1, granule, 0);
  assertEquals(readBytes(model, base, 1), Uint8Array.of(7));
});

Deno.test("unmapping under pending work loses the context for good", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule]));
  model.fill(base, 1, 1, granule, 0);
  model.unmap([{ address: base, size: granule }]);
  const at = `0x${base.toString(16)}: the address is unmapped`;
  assertFails("lost", () => model.synchronize(), at);
  assertFails("lost", () => model.reserve(granule), at);
  assertFails("lost", () => model.memoryInfo(), at);
  assertEquals(model.pendingOperations, 0);
  assert(model.lostReason!.includes(at));
  model.close();
  assertEquals(model.live().extents, 0);
});

Deno.test("remapping under pending work is noted though the data arrive", () => {
  const { model, base } = device();
  const extents = model.createExtents([granule, granule]);
  model.map(base, [extents[0]!]);
  model.fill(base, 1, 1, granule, 0);
  model.unmap([{ address: base, size: granule }]);
  model.map(base, [extents[1]!]);
  model.synchronize();
  assertEquals(model.hazards.length, 1);
  assert(model.hazards[0]!.includes("was unmapped from"));
});

Deno.test("fresh extents hold garbage of their own", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule, granule]));
  const first = readBytes(model, base, granule);
  const second = readBytes(model, base + granule, granule);
  assert(first.every((byte) => byte !== 0));
  assert(first.some((byte, at) => byte !== second[at]));
  assertEquals(readBytes(model, base, granule), first);
});

Deno.test("a partial write keeps the bytes around it", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule, granule]));
  model.fill(base, 0xa1b2c3d4, 4, granule / 2, 0);
  model.copyIn(base + granule - 2, Uint8Array.of(1, 2, 3), 0);
  assertEquals(
    readBytes(model, base + granule - 4, 8),
    Uint8Array.of(0xd4, 0xc3, 1, 2, 3, 0xc3, 0xb2, 0xa1),
  );
});

/** Runs two independent streams that write one byte, and says who came last. */
function race(seed: number): number {
  const { model, base } = device({ seed });
  model.map(base, model.createExtents([granule]));
  const streams = [model.createStream(), model.createStream()];
  for (let round = 0; round < 4; round++) {
    streams.forEach((stream, at) => model.fill(base, at, 1, 1, stream));
  }
  model.synchronize();
  return readBytes(model, base, 1)[0]!;
}

Deno.test("streams interleave differently by seed, and alike for one seed", () => {
  const seeds = Array.from({ length: 32 }, (_, seed) => seed);
  const winners = seeds.map(race);
  assert(winners.includes(0) && winners.includes(1));
  assertEquals(seeds.map(race), winners);
});

Deno.test("a wait on an event orders two streams under every seed", () => {
  for (let seed = 0; seed < 64; seed++) {
    const { model, base } = device({ seed });
    model.map(base, model.createExtents([granule]));
    const [writer, reader] = [model.createStream(), model.createStream()];
    const written = model.createEvent();
    model.fill(base, 5, 1, granule, writer);
    model.recordEvent(written, writer);
    model.waitEvent(reader, written);
    model.copy(base + 2048, base, 1024, reader);
    model.fill(base, 6, 1, 16, reader);
    const target = new Uint8Array(1);
    model.copyOut(target, base + 2048, reader);
    assertEquals(target[0], 5);
  }
});

Deno.test("work that nobody waits for stays undone", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule]));
  for (let count = 0; count < 10; count++) model.fill(base, 1, 1, 8, 0);
  assertEquals(model.pendingOperations, 10);
  assertEquals(model.step(3), 3);
  assertEquals(model.pendingOperations, 7);
  model.synchronizeStream(0);
  assertEquals(model.pendingOperations, 0);
  assertEquals(model.step(1), 0);
});

Deno.test("a full queue makes the caller wait", () => {
  const { model, base } = device({ maxPending: 4 });
  model.map(base, model.createExtents([granule]));
  for (let count = 0; count < 10; count++) model.fill(base, 1, 1, 8, 0);
  assertEquals(model.pendingOperations, 4);
});

Deno.test("an event passes by polling alone", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule]));
  const stream = model.createStream();
  const event = model.createEvent();
  for (let count = 0; count < 5; count++) model.fill(base, 1, 1, 8, stream);
  model.recordEvent(event, stream);
  let polls = 1;
  while (!model.queryEvent(event)) polls++;
  assert(polls > 1 && polls < 100);
});

Deno.test("a destroyed stream still does its work", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule]));
  const stream = model.createStream();
  model.fill(base, 9, 1, granule, stream);
  model.destroyStream(stream);
  assertFails("invalid-handle", () => model.synchronizeStream(stream));
  model.synchronize();
  assertEquals(readBytes(model, base, 1), Uint8Array.of(9));
});

Deno.test("a failed batch leaves everything as it was", () => {
  const { model, base } = device({ totalMemory: 4 * granule });
  const extents = model.createExtents([granule, granule]);
  assertFails(
    "out-of-memory",
    () => model.createExtents([granule, 2 * granule]),
  );
  assertEquals(model.memoryInfo().free, 2 * granule);
  model.map(base, [extents[0]!]);
  assertThrows(
    () => model.releaseExtents([extents[1]!, extents[0]!]),
    RangeError,
  );
  assertFails(
    "invalid-handle",
    () => model.map(base + granule, [extents[1]!, 99]),
  );
  assertFails("not-mapped", () =>
    model.unmap([
      { address: base, size: granule },
      { address: base + granule, size: granule },
    ]));
  assertThrows(() =>
    model.unmap([
      { address: base, size: granule },
      { address: base, size: granule },
    ]), RangeError);
  assertEquals(model.live().extents, 2);
  assertEquals(model.live().mappings, 1);
});

Deno.test("the chosen call fails, once, and changes nothing", () => {
  const { model } = device();
  model.failNext("createExtents", 2, "out-of-memory");
  model.createExtents([granule]);
  assertFails("out-of-memory", () => model.createExtents([granule]));
  assertEquals(model.live().extents, 1);
  model.createExtents([granule]);
  assertEquals(model.failuresLeft, 0);
  assertEquals(model.counts.createExtents, 3);

  model.failNext("any", 3, "limit");
  model.memoryInfo();
  model.createStream();
  assertFails("limit", () => model.createEvent());
  model.failNext("map", 1, "driver");
  model.clearFailures();
  assertEquals(model.failuresLeft, 0);

  model.failNext("memoryInfo", 1, "lost");
  assertFails("lost", () => model.memoryInfo());
  assertFails("lost", () => model.createStream());
});

Deno.test("reservations have their limit, and addresses come back", () => {
  const model = new ModelDriver({ reservable: 9 * granule });
  assertFails("out-of-addresses", () => model.reserve(10 * granule));
  const first = model.reserve(8 * granule);
  const second = model.reserve(granule);
  assert(second >= first + 8 * granule);
  assertFails("out-of-addresses", () => model.reserve(granule));
  model.unreserve(first);
  assertEquals(model.reserve(4 * granule), first);
});

Deno.test("simulated time follows the cost table", () => {
  const mib = 2 ** 20;
  const model = new ModelDriver({
    totalMemory: 2 ** 32,
    granularity: 2 * mib,
    costs: { ...h200Costs, callNs: 0 },
  });
  const base = model.reserve(2 ** 31);
  const after = (body: () => unknown) => {
    const start = model.elapsedNs;
    body();
    return Math.round(model.elapsedNs - start);
  };
  let small: number[] = [];
  let big: number[] = [];
  assertEquals(
    after(() => small = model.createExtents([2 * mib, 2 * mib])),
    30_000,
  );
  assertEquals(after(() => big = model.createExtents([1024 * mib])), 21_000);
  assertEquals(model.map(base, small), { mapNs: 1_800, accessNs: 44_000 });
  assertEquals(after(() => model.map(base + 4 * mib, big)), 67_900);
  assertEquals(
    after(() => model.unmap([{ address: base, size: 1028 * mib }])),
    60_000,
  );
  assertEquals(after(() => model.releaseExtents(big)), 274_000);
});

Deno.test("kernels run in stream order through the MMU", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule]));
  model.registerKernel("double", {
    run: (args, memory) => {
      const address = Number(args.getBigUint64(0, true));
      const bytes = memory.read(address, args.getUint32(8, true));
      memory.write(address, bytes.map((byte) => byte * 2));
    },
    durationNs: () => 30_000,
  });
  const module = model.loadModule(modelImage);
  const double = model.getFunction(module, "double");
  const args = new Uint8Array(12);
  const view = new DataView(args.buffer);
  view.setBigUint64(0, BigInt(base), true);
  view.setUint32(8, 16, true);
  model.fill(base, 21, 1, 16, 0);
  model.launch(double, { grid: [1], block: [32] }, args, 0);
  args.fill(0);
  assertEquals(model.step(3), 3);
  assertEquals(model.pendingOperations, 1);
  assertEquals(readBytes(model, base, 1), Uint8Array.of(42));
  model.unloadModule(module);
  assertFails(
    "invalid-handle",
    () => model.launch(double, { grid: [1], block: [1] }, args, 0),
  );
});

Deno.test("a closed device holds nothing and refuses everything", () => {
  const { model, base } = device();
  model.map(base, model.createExtents([granule]));
  model.createStream();
  model.createEvent();
  model.loadModule(modelImage);
  model.close();
  model.close();
  assertEquals(model.live(), {
    extents: 0,
    mappings: 0,
    reservations: 0,
    streams: 0,
    events: 0,
    modules: 0,
    graphs: 0,
    pinned: 0,
  });
  assertThrows(() => model.reserve(granule), ClosedError);
});

class NeverWaits extends ModelDriver {
  override waitEvent(): void {}
}

Deno.test("the contract's histories notice a device that never flushes or waits", async () => {
  const [history] = historyCases;
  const outcome = async (model: ModelDriver) => {
    try {
      await history!.check(model, {}, () => model);
      return "passed";
    } catch {
      return "noticed";
    }
  };
  assertEquals(await outcome(new ModelDriver()), "passed");
  assertEquals(
    await outcome(new ModelDriver({ unmapFlushes: false })),
    "noticed",
  );
  assertEquals(await outcome(new NeverWaits()), "noticed");
});
