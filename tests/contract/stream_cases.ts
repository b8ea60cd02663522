import { assert, assertEquals } from "@std/assert";
import {
  assertRefused,
  assertSameBytes,
  type ContractCase,
  extentSize,
  mapNew,
  readBack,
} from "./harness.ts";

const mib = 2 ** 20;

/** Streams and events. */
export const streamCases: ContractCase[] = [
  {
    name: "work of one stream runs in order",
    check(driver) {
      const size = extentSize(driver, mib);
      const { address } = mapNew(driver, [size, size]);
      for (const stream of [0, driver.createStream()]) {
        for (let round = 0; round < 50; round++) {
          driver.fill(address, round, 1, size, stream);
          driver.copy(address + size, address, size, stream);
          driver.fill(address, 0xff, 1, size, stream);
        }
        assertSameBytes(
          readBack(driver, address + size, size, stream),
          new Uint8Array(size).fill(49),
        );
      }
    },
  },
  {
    name: "a stream's synchronize waits for all of its work",
    check(driver) {
      const size = extentSize(driver, 4 * mib);
      const { address } = mapNew(driver, [size]);
      const [writer, reader] = [driver.createStream(), driver.createStream()];
      for (let round = 1; round <= 20; round++) {
        for (let step = 0; step < 8; step++) {
          driver.fill(address, step === 7 ? round : 0, 1, size, writer);
        }
        driver.synchronizeStream(writer);
        assertSameBytes(
          readBack(driver, address + size - 16, 16, reader),
          new Uint8Array(16).fill(round),
        );
      }
    },
  },
  {
    name: "an event that was never recorded has passed",
    check(driver) {
      const stream = driver.createStream();
      for (const timing of [false, true]) {
        const event = driver.createEvent(timing);
        assert(driver.queryEvent(event));
        driver.synchronizeEvent(event);
        driver.waitEvent(stream, event);
        driver.synchronizeStream(stream);
        driver.destroyEvent(event);
      }
    },
  },
  {
    name: "an event passes once the work before its record is done",
    check(driver) {
      const size = extentSize(driver, 4 * mib);
      const { address } = mapNew(driver, [size]);
      const [stream, other] = [driver.createStream(), driver.createStream()];
      const event = driver.createEvent();
      for (let round = 1; round <= 20; round++) {
        for (let step = 0; step < 4; step++) {
          driver.fill(address, step === 3 ? round : 0, 1, size, stream);
        }
        driver.recordEvent(event, stream);
        if (round % 2 === 0) {
          driver.synchronizeEvent(event);
        } else {
          while (!driver.queryEvent(event));
        }
        assert(driver.queryEvent(event));
        assertEquals(readBack(driver, address + size - 1, 1, other)[0], round);
      }
      driver.destroyEvent(event);
    },
  },
  {
    name: "waitEvent orders two streams, both ways, round after round",
    check(driver) {
      const size = extentSize(driver, mib);
      const { address } = mapNew(driver, [size, size]);
      const [first, second] = [driver.createStream(), driver.createStream()];
      const [filled, copied] = [driver.createEvent(), driver.createEvent()];
      const results = extentSize(driver, 4096);
      const log = mapNew(driver, [results]).address;
      for (let round = 0; round < 100; round++) {
        driver.fill(address, round, 1, size, first);
        driver.recordEvent(filled, first);
        driver.waitEvent(second, filled);
        driver.copy(address + size, address, size, second);
        driver.copy(log + round, address + 2 * size - 1, 1, second);
        driver.recordEvent(copied, second);
        driver.waitEvent(first, copied);
      }
      assertSameBytes(
        readBack(driver, log, 100, second),
        Uint8Array.from({ length: 100 }, (_, round) => round),
      );
    },
  },
  {
    name: "a wait means the record before it, not a later one",
    check(driver) {
      const { granularity } = driver.info;
      const { address } = mapNew(driver, [granularity]);
      const [first, second] = [driver.createStream(), driver.createStream()];
      const event = driver.createEvent();
      driver.fill(address, 1, 1, 16, first);
      driver.recordEvent(event, first);
      driver.waitEvent(second, event);
      driver.copy(address + 64, address, 16, second);
      const done = driver.createEvent();
      driver.recordEvent(done, second);
      driver.waitEvent(first, done);
      // Waiting for this record would wait for itself.
      driver.fill(address, 2, 1, 16, first);
      driver.recordEvent(event, first);
      driver.synchronize();
      assertEquals(readBack(driver, address + 64, 1)[0], 1);
      assertEquals(readBack(driver, address, 1)[0], 2);
    },
  },
  {
    name: "an event may be destroyed while a stream still waits for it",
    check(driver) {
      const size = extentSize(driver, mib);
      const { address } = mapNew(driver, [size, size]);
      const [first, second] = [driver.createStream(), driver.createStream()];
      const event = driver.createEvent();
      for (let value = 1; value <= 8; value++) {
        driver.fill(address, value, 1, size, first);
      }
      driver.recordEvent(event, first);
      driver.waitEvent(second, event);
      driver.destroyEvent(event);
      driver.copy(address + size, address, size, second);
      assertSameBytes(
        readBack(driver, address + size, size, second),
        new Uint8Array(size).fill(8),
      );
    },
  },
  {
    name: "a stream that is destroyed with work in it still does the work",
    check(driver) {
      const size = extentSize(driver, mib);
      const { address } = mapNew(driver, [size]);
      const stream = driver.createStream();
      for (let value = 1; value <= 8; value++) {
        driver.fill(address, value, 1, size, stream);
      }
      driver.destroyStream(stream);
      driver.synchronize();
      assertSameBytes(
        readBack(driver, address, size),
        new Uint8Array(size).fill(8),
      );
      assertRefused(
        "a destroyed stream",
        () => driver.synchronizeStream(stream),
        "invalid-handle",
      );
    },
  },
  {
    name: "timing events tell how long the work between them took",
    check(driver) {
      const size = extentSize(driver, 4 * mib);
      const { address } = mapNew(driver, [size]);
      const [start, end] = [driver.createEvent(true), driver.createEvent(true)];
      driver.recordEvent(start, 0);
      for (let step = 0; step < 8; step++) driver.fill(address, 1, 1, size, 0);
      driver.recordEvent(end, 0);
      driver.synchronizeEvent(end);
      const elapsedMs = driver.elapsedMs(start, end);
      assert(elapsedMs > 0 && elapsedMs < 10_000, `${elapsedMs} ms`);
      assertEquals(driver.elapsedMs(start, start), 0);
    },
  },
  {
    name: "elapsed time is refused without timing or a record",
    check(driver) {
      const [timed, plain] = [driver.createEvent(true), driver.createEvent()];
      assertRefused(
        "the time since an event never recorded",
        () => driver.elapsedMs(timed, timed),
        "argument",
      );
      driver.recordEvent(timed, 0);
      driver.recordEvent(plain, 0);
      driver.synchronize();
      assertRefused(
        "the time of an event without timing",
        () => driver.elapsedMs(timed, plain),
        "argument",
      );
      assertEquals(driver.elapsedMs(timed, timed), 0);
    },
  },
  {
    name: "many streams and events live at once",
    check(driver) {
      const size = extentSize(driver, 4096);
      const { address } = mapNew(driver, [size]);
      const streams = Array.from({ length: 32 }, () => driver.createStream());
      const events = streams.map(() => driver.createEvent());
      assertEquals(new Set([0, ...streams]).size, 33);
      streams.forEach((stream, at) => {
        driver.fill(address + at, at + 1, 1, 1, stream);
        driver.recordEvent(events[at]!, stream);
        driver.waitEvent(0, events[at]!);
      });
      assertSameBytes(
        readBack(driver, address, 32),
        Uint8Array.from({ length: 32 }, (_, at) => at + 1),
      );
      for (const stream of streams) driver.destroyStream(stream);
      for (const event of events) driver.destroyEvent(event);
    },
  },
  {
    name: "every stream has a handle for other libraries",
    check(driver) {
      assertEquals(typeof driver.streamHandle(0), "bigint");
      const [first, second] = [driver.createStream(), driver.createStream()];
      const handles = [first, second].map((one) => driver.streamHandle(one));
      if (handles[0] !== 0n) assert(handles[0] !== handles[1]);
    },
  },
];
