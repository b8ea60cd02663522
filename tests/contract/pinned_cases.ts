import { assertEquals } from "@std/assert";
import type { Driver } from "../../lib/driver.ts";
import { patternWord } from "../model/kernels.ts";
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
import { clean, clearResult, Kernels, readResult } from "./kernels.ts";

const kib = 1024;

function readPinned(driver: Driver, address: number, length: number) {
  const bytes = new Uint8Array(length);
  driver.readPinned(bytes, address);
  return bytes;
}

/** What a fill by the pattern kernel leaves. */
function patternBytes(words: number, seed: number): Uint8Array {
  const pattern = BigUint64Array.from(
    { length: words },
    (_, index) => patternWord(BigInt(seed), BigInt(index)),
  );
  return new Uint8Array(pattern.buffer);
}

/** Page-locked memory of the host. */
export const pinnedCases: ContractCase[] = [
  {
    name: "page-locked memory keeps what the host writes, at any place",
    check(driver) {
      const [first, second] = [
        driver.allocPinned(64 * kib + 3),
        driver.allocPinned(1),
      ];
      const bytes = testBytes(64 * kib + 3, 1);
      driver.writePinned(first, bytes);
      driver.writePinned(second, bytes.subarray(7, 8));
      assertSameBytes(readPinned(driver, first, bytes.length), bytes);
      assertSameBytes(readPinned(driver, second, 1), bytes.subarray(7, 8));
      driver.writePinned(first + 100, bytes.subarray(500, 600));
      bytes.copyWithin(100, 500, 600);
      const target = new Uint8Array(1000).fill(0x55);
      driver.readPinned(target.subarray(10, 510), first + 50);
      const expected = new Uint8Array(1000).fill(0x55);
      expected.set(bytes.subarray(50, 550), 10);
      assertSameBytes(target, expected);
      assertSameBytes(readPinned(driver, first, bytes.length), bytes);
    },
  },
  {
    name: "kernels read and write page-locked memory at its own address",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const words = 5000;
      const pinned = driver.allocPinned(words * 8);
      const result = mapNew(driver, [extentSize(driver, 64)]).address;
      const stream = driver.createStream();
      for (let seed = 1; seed <= 4; seed++) {
        driver.writePinned(pinned, patternBytes(words, seed));
        clearResult(driver, result, stream);
        kernels.verify(pinned, words, seed, result, stream);
        assertEquals(readResult(driver, result, stream), clean);
        driver.writePinned(pinned + 8 * (1000 + seed), new Uint8Array(8));
        kernels.verify(pinned, words, seed, result, stream);
        assertEquals(readResult(driver, result, stream), {
          mismatches: 1n,
          firstBad: BigInt(1000 + seed),
        });
        kernels.fill(pinned, words, 100 + seed, stream);
        driver.synchronizeStream(stream);
        assertSameBytes(
          readPinned(driver, pinned, words * 8),
          patternBytes(words, 100 + seed),
        );
      }
    },
  },
  {
    name: "fills and copies use page-locked memory like the device's own",
    check(driver) {
      const size = extentSize(driver, 64 * kib);
      const { address } = mapNew(driver, [size]);
      const [pinned, other] = [
        driver.allocPinned(size),
        driver.allocPinned(size),
      ];
      const stream = driver.createStream();
      const bytes = testBytes(size, 1);
      driver.writePinned(pinned, bytes);
      driver.copy(address, pinned, size, stream);
      driver.copy(other + 8, address, size - 8, stream);
      driver.copy(other, pinned + 16, 8, stream);
      driver.fill(other + 64, 0xb6c5, 2, 100, stream);
      driver.fill(other + 512, 0xd4e3f201, 4, 3, stream);
      driver.fill(other + size - 1, 9, 1, 1, stream);
      driver.copyIn(other + 1001, bytes.subarray(0, 77), stream);
      const expected = new Uint8Array(size);
      expected.set(bytes.subarray(0, size - 8), 8);
      expected.set(bytes.subarray(16, 24));
      const view = new DataView(expected.buffer);
      for (let at = 0; at < 100; at++) {
        view.setUint16(64 + 2 * at, 0xb6c5, true);
      }
      for (let at = 0; at < 3; at++) {
        view.setUint32(512 + 4 * at, 0xd4e3f201, true);
      }
      expected[size - 1] = 9;
      expected.set(bytes.subarray(0, 77), 1001);
      assertSameBytes(readBack(driver, other, size, stream), expected);
      assertSameBytes(readPinned(driver, other, size), expected);
      assertSameBytes(readBack(driver, address, size), bytes);
    },
  },
  {
    name: "work reads page-locked memory when its turn comes",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const { address } = mapNew(driver, [extentSize(driver, 64)]);
      const pinned = driver.allocPinned(64);
      const stream = driver.createStream();
      kernels.spin(0.01, stream);
      driver.synchronizeStream(stream);
      driver.writePinned(pinned, testBytes(64, 1));
      kernels.spin(100, stream);
      driver.copy(address, pinned, 64, stream);
      driver.writePinned(pinned, testBytes(64, 2));
      assertSameBytes(
        readBack(driver, address, 64, stream),
        testBytes(64, 2),
      );
    },
  },
  {
    name: "freeing page-locked memory waits for the work that uses it",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const words = 1000;
      const result = mapNew(driver, [extentSize(driver, 64)]).address;
      const stream = driver.createStream();
      for (let seed = 1; seed <= 3; seed++) {
        const pinned = driver.allocPinned(words * 8);
        driver.writePinned(pinned, patternBytes(words, seed));
        clearResult(driver, result, stream);
        kernels.spin(20, stream);
        kernels.verify(pinned, words, seed, result, stream);
        driver.freePinned(pinned);
        assertEquals(readResult(driver, result, stream), clean);
      }
    },
  },
  {
    name: "page-locked memory comes back when it is freed",
    check(driver, options) {
      const { free } = driver.memoryInfo();
      for (let round = 0; round < 3; round++) {
        const all = Array.from(
          { length: 20 },
          (_, at) => driver.allocPinned(1000 * at + 1),
        );
        assertEquals(new Set(all).size, 20);
        all.forEach((address, at) =>
          driver.writePinned(address, testBytes(1000 * at + 1, at))
        );
        all.forEach((address, at) =>
          assertSameBytes(
            readPinned(driver, address, 1000 * at + 1),
            testBytes(1000 * at + 1, at),
          )
        );
        for (const address of all) driver.freePinned(address);
      }
      assertFree(options, driver, free);
    },
  },
  {
    name: "page-locked memory is refused what lies outside of it",
    check(driver) {
      const { granularity } = driver.info;
      const pinned = driver.allocPinned(100);
      const gone = driver.allocPinned(100);
      const { address } = mapNew(driver, [granularity]);
      driver.writePinned(pinned, testBytes(100, 1));
      driver.freePinned(gone);
      for (const size of [0, -1, 1.5, NaN, Infinity, 2 ** 53]) {
        assertRefused(
          `${size} bytes`,
          () => driver.allocPinned(size),
          "argument",
        );
      }
      assertRefused(
        "more than there is",
        () => driver.allocPinned(2 ** 50),
        "out-of-memory",
      );
      for (const bad of [0, -1, 0.5, NaN, pinned + 1, gone, address]) {
        assertRefused(
          `a free at ${bad}`,
          () => driver.freePinned(bad),
          "argument",
        );
      }
      const byte = new Uint8Array(1);
      for (const at of [pinned + 100, pinned - 1, gone, address, 0]) {
        assertRefused(
          `a write at ${at}`,
          () => driver.writePinned(at, byte),
          "not-mapped",
        );
        assertRefused(
          `a read at ${at}`,
          () => driver.readPinned(byte, at),
          "not-mapped",
        );
      }
      const refused = {
        "a write past the end": () =>
          driver.writePinned(pinned + 90, new Uint8Array(11)),
        "a read past the end": () =>
          driver.readPinned(new Uint8Array(101), pinned),
        "a fill past the end": () => driver.fill(pinned, 1, 1, 101, 0),
        "a fill of freed memory": () => driver.fill(gone, 1, 1, 1, 0),
        "a copy past the end": () => driver.copy(address, pinned + 1, 100, 0),
      };
      for (const [what, call] of Object.entries(refused)) {
        assertRefused(what, call, "not-mapped");
      }
      for (const bad of [NaN, -1, 0.5]) {
        assertRefused(
          `a write at ${bad}`,
          () => driver.writePinned(bad, byte),
          "argument",
        );
      }
      const nothing = new Uint8Array(0);
      assertRefused(
        "a write of nothing",
        () => driver.writePinned(pinned, nothing),
        "argument",
      );
      assertSameBytes(readPinned(driver, pinned, 100), testBytes(100, 1));
    },
  },
];
