import {
  assert,
  assertEquals,
  assertGreater,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { buildHostKernels } from "../ffi/build.ts";
import { openDriver } from "../ffi/devices.ts";
import type { NativeDriver } from "../ffi/native_driver.ts";
import { ClosedError, MoonBrightError } from "../lib/errors.ts";
import {
  argumentWords,
  assertRefused,
  assertSameBytes,
  mapNew,
  readBack,
  testBytes,
} from "./contract/harness.ts";
import { fakeVendors } from "./fake/vendors.ts";

const MIB = 2 ** 20;
const { vendors, skip } = await fakeVendors();
/** Where each device takes its kernels from. */
const images = new Map([
  ["host", Deno.readFileSync(buildHostKernels("busy"))],
  ...vendors.map(({ backend, kernelImage }) =>
    [backend, kernelImage("busy")] as const
  ),
]);
/** Kernels for a driver's device. */
const kernelsFor = (driver: NativeDriver) => images.get(driver.info.backend)!;
// The library stays open, which a test would be blamed for.
openDriver({ device: "host" }).close();

/** Registers a test for each backend that needs no GPU. */
function test(
  name: string,
  check: (driver: NativeDriver) => void | Promise<void>,
): void {
  const devices = [{ device: "host" }, ...vendors.map(({ device }) => device)];
  for (const options of devices) {
    Deno.test({
      name: `native driver, ${options.device}: ${name}`,
      ignore: skip !== undefined,
      async fn() {
        const driver = openDriver(options);
        try {
          await check(driver);
        } finally {
          driver.close();
        }
      },
    });
  }
}

/** Makes one of everything; gives arguments for every method that fit together. */
function goodArguments(driver: NativeDriver) {
  const { granularity } = driver.info;
  const { address, extents } = mapNew(driver, [granularity, granularity]);
  const reserved = driver.reserve(2 * granularity);
  const extra = driver.createExtents([granularity]);
  const stream = driver.createStream();
  const event = driver.createEvent(true);
  driver.recordEvent(event, stream);
  const module = driver.loadModule(kernelsFor(driver));
  const empty = driver.getFunction(module, "mb_empty");
  const args = argumentWords(0);
  const bytes = new Uint8Array(64);
  const grid = { grid: [1], block: [32] } as const;
  const plain = driver.plainAlloc(MIB);
  const pooled = driver.poolAlloc(MIB, stream);
  const pinned = driver.allocPinned(MIB);
  driver.beginCapture(stream);
  const graph = driver.endCapture(stream);
  const calls: {
    [Name in Exclude<keyof NativeDriver, "info" | "close">]: Parameters<
      NativeDriver[Name]
    >;
  } = {
    memoryInfo: [],
    synchronize: [],
    synchronizeAsync: [],
    reserve: [granularity],
    unreserve: [reserved],
    createExtents: [[granularity]],
    releaseExtents: [extra],
    map: [reserved, extents, "read-write"],
    setAccess: [address, granularity, "read-write"],
    unmap: [[{ address, size: granularity }]],
    createStream: [],
    destroyStream: [stream],
    synchronizeStream: [stream],
    synchronizeStreamAsync: [stream],
    streamHandle: [stream],
    waitEvent: [stream, event],
    createEvent: [false],
    destroyEvent: [event],
    recordEvent: [event, stream],
    queryEvent: [event],
    synchronizeEvent: [event],
    synchronizeEventAsync: [event],
    elapsedMs: [event, event],
    fill: [address, 7, 1, 64, stream],
    copyIn: [address, bytes, stream],
    copyInAsync: [address, bytes, stream],
    copyOut: [bytes, address, stream],
    copyOutAsync: [bytes, address, stream],
    copy: [address, address + 64, 64, stream],
    allocPinned: [MIB],
    freePinned: [pinned],
    writePinned: [pinned, bytes],
    wrapMemory: [address + 2 ** 46, 8],
    unwrapMemory: [address + 2 ** 46],
    readPinned: [bytes, pinned],
    beginCapture: [stream],
    endCapture: [stream],
    isCapturing: [stream],
    launchGraph: [graph, stream],
    destroyGraph: [graph],
    loadModule: [kernelsFor(driver)],
    unloadModule: [module],
    getFunction: [module, "mb_empty"],
    launch: [empty, grid, args, stream],
    plainAlloc: [MIB],
    plainFree: [plain],
    poolAlloc: [MIB, stream],
    poolFree: [pooled, stream],
    poolTrim: [],
    timePlain: [MIB, 2],
    timePool: [MIB, stream, true, 2],
    timeVmm: [granularity, granularity, 2],
    timeLaunch: [empty, stream, args, true, 2],
  };
  return calls;
}

/** Calls a method by name with any arguments; gives what it threw, awaited. */
async function thrownBy(
  driver: NativeDriver,
  name: string,
  args: readonly unknown[],
): Promise<unknown> {
  try {
    const method = driver[name as keyof NativeDriver];
    await (method as (...args: unknown[]) => unknown).apply(driver, [...args]);
    return undefined;
  } catch (error) {
    return error;
  }
}

test("junk in place of any argument gives a typed error", async (driver) => {
  const { address, size } = mapNew(driver, [driver.info.granularity]);
  const standing = testBytes(size, 5);
  driver.copyIn(address, standing, 0);
  const junk = [
    undefined,
    null,
    "1",
    {},
    [],
    () => 1,
    Symbol("1"),
    1n,
    NaN,
    -1,
    0.5,
    2 ** 53,
    Infinity,
    [{}],
    [null],
    [-1],
    [NaN],
  ];
  const good: [string, unknown[]][] = Object.entries(goodArguments(driver));
  for (const [name, args] of good) {
    for (let at = 0; at < args.length; at++) {
      // Any value is true or false, and a map's access may be left out.
      if (typeof args[at] === "boolean") continue;
      const values = name === "map" && at === 2 ? junk.slice(1) : junk;
      for (const value of values) {
        const error = await thrownBy(driver, name, args.with(at, value));
        assert(
          error instanceof MoonBrightError || error instanceof TypeError ||
            error instanceof RangeError,
          `${name} with ${String(value)} at ${at} threw ${error}`,
        );
      }
    }
  }
  assertSameBytes(readBack(driver, address, size), standing);
});

test("ids don't wrap into those of 32 bits, also in hot code", (driver) => {
  const stream = driver.createStream();
  const event = driver.createEvent();
  for (let round = 0; round < 20_000; round++) {
    driver.recordEvent(event, stream);
    if (round % 1000 !== 999) continue;
    for (const beyond of [2 ** 32, -(2 ** 32), 2 ** 40]) {
      assertThrows(
        () => driver.recordEvent(event + beyond, stream),
        RangeError,
      );
      assertThrows(
        () => driver.recordEvent(event, stream + beyond),
        RangeError,
      );
    }
  }
});

test("calls of a closed driver throw, those on other threads too", async (driver) => {
  const calls = Object.entries(goodArguments(driver));
  driver.close();
  driver.close();
  assertGreater(calls.length, 40);
  for (const [name, args] of calls) {
    const error = await thrownBy(driver, name, args);
    assert(error instanceof ClosedError, `${name} threw ${error}`);
  }
});

test("closing waits for calls on other threads", async (driver) => {
  const spin = driver.getFunction(
    driver.loadModule(kernelsFor(driver)),
    "mb_spin",
  );
  const args = argumentWords(30_000_000);
  const stream = driver.createStream();
  for (let round = 0; round < 3; round++) {
    driver.launch(spin, { grid: [1], block: [1] }, args, stream);
  }
  const waits = Array.from(
    { length: 8 },
    (_, at) =>
      at % 2
        ? driver.synchronizeAsync()
        : driver.synchronizeStreamAsync(stream),
  );
  driver.close();
  for (const outcome of await Promise.allSettled(waits)) {
    // One that had not begun by then finds the device gone.
    if (outcome.status === "fulfilled") continue;
    assert(outcome.reason instanceof MoonBrightError, `${outcome.reason}`);
    assertEquals(outcome.reason.code, "invalid-handle");
  }
});

test("waiting on another thread leaves this one free", async (driver) => {
  const spin = driver.getFunction(
    driver.loadModule(kernelsFor(driver)),
    "mb_spin",
  );
  const [stream, event] = [driver.createStream(), driver.createEvent()];
  const args = argumentWords(60_000_000);
  driver.launch(spin, { grid: [1], block: [1] }, args, stream);
  driver.recordEvent(event, stream);
  let passed = false;
  const wait = driver.synchronizeEventAsync(event).then(() => passed = true);
  let ticks = 0;
  while (!passed) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    ticks++;
  }
  await wait;
  assertGreater(ticks, 5);
  assert(driver.queryEvent(event));
});

test("copies on other threads at once bring every byte", async (driver) => {
  const size = driver.info.granularity;
  const count = 8;
  const { address } = mapNew(driver, Array(count).fill(size));
  const streams = Array.from({ length: count }, () => driver.createStream());
  // Nobody here holds the sources, and garbage is made while they are read.
  const copies = streams.map((stream, at) =>
    driver.copyInAsync(address + at * size, testBytes(size, at), stream)
  );
  for (let at = 0; at < 64; at++) new Uint8Array(MIB).fill(0xff);
  await Promise.all(copies);
  await Promise.all(streams.map(async (stream, at) => {
    const bytes = new Uint8Array(size);
    await driver.copyOutAsync(bytes, address + at * size, stream);
    assertSameBytes(bytes, testBytes(size, at));
  }));
});

test("failures on other threads have a code and a reason", async (driver) => {
  const { granularity } = driver.info;
  const hole = driver.reserve(granularity);
  const bytes = new Uint8Array(8);
  const cases: [call: () => Promise<unknown>, code: string, why: string][] = [
    [() => driver.copyInAsync(hole, bytes, 0), "not-mapped", "not mapped"],
    [() => driver.copyOutAsync(bytes, hole, 0), "not-mapped", "not mapped"],
    [() => driver.synchronizeEventAsync(77), "invalid-handle", "stale"],
    [() => driver.synchronizeStreamAsync(77), "invalid-handle", "stale"],
    [() => driver.timeLaunch(77, 0, bytes, true, 1), "invalid-handle", "stale"],
  ];
  for (const [call, code, why] of cases) {
    // Leaves another error's text behind on this thread.
    assertThrows(() => driver.unreserve(1), RangeError);
    const error = await assertRejects(call, MoonBrightError, why);
    assertEquals(error.code, code);
  }
  await assertRejects(() => driver.copyInAsync(-1, bytes, 0), RangeError);
});

test("plain and pooled memory holds data until it is freed", (driver) => {
  const stream = driver.createStream();
  const [plain, pooled] = [
    driver.plainAlloc(MIB + 1),
    driver.poolAlloc(MIB, stream),
  ];
  const bytes = testBytes(MIB, 3);
  driver.copyIn(plain + 1, bytes, stream);
  driver.copy(pooled, plain + 1, MIB, stream);
  assertSameBytes(readBack(driver, pooled, MIB, stream), bytes);
  const refused = {
    "a plain free from inside": () => driver.plainFree(plain + 1),
    "a plain free of pooled memory": () => driver.plainFree(pooled),
    "a pool free of plain memory": () => driver.poolFree(plain, stream),
    "a pool free on no stream": () => driver.poolFree(pooled, 0x7ffff),
    "a copy past the end": () => driver.copyIn(plain + 2, bytes, stream),
  };
  for (const [what, call] of Object.entries(refused)) {
    assertRefused(what, call, "argument", "invalid-handle", "not-mapped");
  }
  assertSameBytes(readBack(driver, plain + 1, MIB, stream), bytes);
  driver.plainFree(plain);
  driver.poolFree(pooled, stream);
  driver.poolTrim();
  assertRefused(
    "a second plain free",
    () => driver.plainFree(plain),
    "argument",
  );
  assertRefused(
    "a second pool free",
    () => driver.poolFree(pooled, stream),
    "argument",
  );
});

test("more plain memory than there is gives out-of-memory", (driver) => {
  const beyond = 2 * driver.memoryInfo().total;
  assertRefused("plain", () => driver.plainAlloc(beyond), "out-of-memory");
  assertRefused("pooled", () => driver.poolAlloc(beyond, 0), "out-of-memory");
  driver.plainFree(driver.plainAlloc(MIB));
});

test("timed loops give a sample for every round, and leave nothing", async (driver) => {
  const { granularity } = driver.info;
  const free = driver.memoryInfo().free;
  const empty = driver.getFunction(
    driver.loadModule(kernelsFor(driver)),
    "mb_empty",
  );
  const samples = [
    ...Object.values(driver.timePlain(MIB, 5)),
    ...Object.values(driver.timePool(MIB, 0, true, 5)),
    ...Object.values(driver.timePool(MIB, 0, false, 5)),
    ...Object.values(driver.timeVmm(4 * granularity, granularity, 5)),
    await driver.timeLaunch(empty, 0, argumentWords(0), true, 5),
    await driver.timeLaunch(empty, 0, argumentWords(0), false, 5),
  ] as Float64Array[];
  assertEquals(samples.length, 13);
  for (const series of samples) {
    assertEquals(series.length, 5);
    assert(series.every((ns) => ns >= 0 && ns < 10e9), `${series}`);
    assert(series.some((ns) => ns > 0), `${series}`);
  }
  driver.poolTrim();
  assertEquals(driver.memoryInfo().free, free);
  for (const rounds of [0, -1, 0.5, NaN, 2 ** 32]) {
    assertRefused("plain", () => driver.timePlain(MIB, rounds), "argument");
    assertRefused(
      "vmm",
      () => driver.timeVmm(granularity, granularity, rounds),
      "argument",
    );
    await assertRejects(
      () => driver.timeLaunch(empty, 0, argumentWords(0), true, rounds),
      RangeError,
    );
  }
});
