import type { Driver } from "../../lib/driver.ts";
import {
  assertFree,
  assertRefused,
  assertSameBytes,
  type ContractCase,
  extentSize,
  mapNew,
  readBack,
  testBytes,
} from "./harness.ts";

/** Methods that a driver may lack; what is built on them is tested where it is. */
type Optional =
  | "copyInAsync"
  | "copyOutAsync"
  | "wrapMemory"
  | "unwrapMemory";

/** One call of every method that a closed driver must refuse. */
function everyMethod(driver: Driver, address: number) {
  const bytes = new Uint8Array(8);
  const calls: Record<
    Exclude<keyof Driver, "info" | "close" | Optional>,
    () => unknown
  > = {
    memoryInfo: () => driver.memoryInfo(),
    synchronize: () => driver.synchronize(),
    reserve: () => driver.reserve(driver.info.granularity),
    unreserve: () => driver.unreserve(address),
    createExtents: () => driver.createExtents([driver.info.granularity]),
    releaseExtents: () => driver.releaseExtents([1]),
    map: () => driver.map(address, [1]),
    setAccess: () => driver.setAccess(address, driver.info.granularity, "read"),
    unmap: () => driver.unmap([{ address, size: driver.info.granularity }]),
    createStream: () => driver.createStream(),
    destroyStream: () => driver.destroyStream(1),
    synchronizeStream: () => driver.synchronizeStream(0),
    streamHandle: () => driver.streamHandle(0),
    waitEvent: () => driver.waitEvent(0, 1),
    createEvent: () => driver.createEvent(),
    destroyEvent: () => driver.destroyEvent(1),
    recordEvent: () => driver.recordEvent(1, 0),
    queryEvent: () => driver.queryEvent(1),
    synchronizeEvent: () => driver.synchronizeEvent(1),
    elapsedMs: () => driver.elapsedMs(1, 1),
    fill: () => driver.fill(address, 1, 1, 1, 0),
    copyIn: () => driver.copyIn(address, bytes, 0),
    copyOut: () => driver.copyOut(bytes, address, 0),
    copy: () => driver.copy(address, address + 8, 8, 0),
    allocPinned: () => driver.allocPinned(8),
    freePinned: () => driver.freePinned(address),
    writePinned: () => driver.writePinned(address, bytes),
    readPinned: () => driver.readPinned(bytes, address),
    beginCapture: () => driver.beginCapture(1),
    endCapture: () => driver.endCapture(1),
    isCapturing: () => driver.isCapturing(1),
    launchGraph: () => driver.launchGraph(1, 0),
    destroyGraph: () => driver.destroyGraph(1),
    loadModule: () => driver.loadModule(bytes),
    unloadModule: () => driver.unloadModule(1),
    getFunction: () => driver.getFunction(1, "mb_spin"),
    launch: () => driver.launch(1, { grid: [1], block: [1] }, bytes, 0),
  };
  return Object.entries(calls);
}

/** Opening and closing. */
export const lifecycleCases: ContractCase[] = [
  {
    name: "a closed driver refuses every call but another close",
    check(driver) {
      const { address } = mapNew(driver, [driver.info.granularity]);
      driver.close();
      for (const [method, call] of everyMethod(driver, address)) {
        assertRefused(`${method} after close`, call, "closed");
      }
      driver.close();
    },
  },
  {
    name: "close takes everything that is live, with work under way",
    check(driver, options, open) {
      const size = extentSize(driver, 2 ** 20);
      const before = driver.memoryInfo().free;
      const { address, extents } = mapNew(driver, Array(4).fill(size));
      driver.map(driver.reserve(size), [extents[0]!]);
      driver.createExtents([size]);
      driver.reserve(2 ** 30);
      const streams = [driver.createStream(), driver.createStream()];
      const event = driver.createEvent(true);
      for (const stream of streams) {
        for (let step = 0; step < 16; step++) {
          driver.fill(address, step, 1, 4 * size, stream);
        }
        driver.recordEvent(event, stream);
        driver.waitEvent(0, event);
      }
      driver.close();
      const next = open();
      try {
        if (options.memoryComesBack) assertFree(options, next, before);
        const fresh = mapNew(next, [size]);
        next.copyIn(fresh.address, testBytes(64, 1), 0);
        assertSameBytes(readBack(next, fresh.address, 64), testBytes(64, 1));
      } finally {
        next.close();
      }
    },
  },
  {
    name: "two drivers are open side by side and keep their ids apart",
    check(driver, _options, open) {
      const { granularity } = driver.info;
      const other = open();
      try {
        const mine = mapNew(driver, [granularity]);
        const theirs = mapNew(other, [granularity]);
        driver.copyIn(mine.address, testBytes(granularity, 1), 0);
        other.copyIn(theirs.address, testBytes(granularity, 2), 0);
        assertSameBytes(
          readBack(driver, mine.address, granularity),
          testBytes(granularity, 1),
        );
        other.close();
        assertSameBytes(
          readBack(driver, mine.address, granularity),
          testBytes(granularity, 1),
        );
        driver.fill(mine.address, 1, 1, 1, driver.createStream());
        driver.synchronize();
      } finally {
        other.close();
      }
    },
  },
];
