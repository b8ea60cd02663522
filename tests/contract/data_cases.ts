import { assert } from "@std/assert";
import {
  assertSameBytes,
  type ContractCase,
  extentSize,
  mapNew,
  readBack,
  testBytes,
} from "./harness.ts";

/** Fills and copies. */
export const dataCases: ContractCase[] = [
  {
    name: "fills of every width set their elements and nothing else",
    check(driver) {
      const { granularity } = driver.info;
      const { address } = mapNew(driver, [granularity, granularity]);
      for (const width of [1, 2, 4] as const) {
        const value = [0, 0xa7, 0xb6c5, 0, 0xd4e3f201][width]!;
        for (const [start, count] of [[0, 1], [60, 3], [100, 4096 / width]]) {
          const expected = testBytes(2 * granularity, width);
          driver.copyIn(address, expected, 0);
          // Half of it lies in the second extent.
          const offset = start === 100 ? granularity - 2048 : start! * width;
          driver.fill(address + offset, value, width, count!, 0);
          for (let at = 0; at < count! * width; at++) {
            expected[offset + at] = value >>> (8 * (at % width));
          }
          assertSameBytes(
            readBack(driver, address, 2 * granularity),
            expected,
          );
        }
      }
    },
  },
  {
    name: "a copy within the device carries any range, across extents",
    check(driver) {
      const size = extentSize(driver, 2 ** 16);
      const { address } = mapNew(driver, Array(4).fill(size));
      const bytes = testBytes(4 * size, 1);
      driver.copyIn(address, bytes, 0);
      for (
        const [to, from, length] of [
          [2 * size, 0, 2 * size],
          [7, size + 3, 1],
          [3 * size - 5, size - 100, 300],
          [size, 0, size],
        ] as const
      ) {
        driver.copy(address + to, address + from, length, 0);
        bytes.copyWithin(to, from, from + length);
        assertSameBytes(readBack(driver, address, 4 * size), bytes);
      }
    },
  },
  {
    name: "the source of a copyIn may be reused at once",
    check(driver) {
      const size = extentSize(driver, 2 ** 20);
      const { address } = mapNew(driver, Array(4).fill(size));
      const source = new Uint8Array(size);
      for (let part = 0; part < 4; part++) {
        source.fill(part + 1);
        driver.copyIn(address + part * size, source, 0);
        source.fill(0xee);
      }
      const bytes = readBack(driver, address, 4 * size);
      for (let part = 0; part < 4; part++) {
        assert(
          bytes.subarray(part * size, (part + 1) * size)
            .every((byte) => byte === part + 1),
        );
      }
    },
  },
  {
    name: "views into larger buffers are copied by their own bounds",
    check(driver) {
      const { granularity } = driver.info;
      const { address } = mapNew(driver, [granularity]);
      const whole = testBytes(1024, 2);
      driver.copyIn(address, whole.subarray(100, 300), 0);
      const target = new Uint8Array(1024).fill(0x55);
      driver.copyOut(target.subarray(500, 700), address, 0);
      const expected = new Uint8Array(1024).fill(0x55);
      expected.set(whole.subarray(100, 300), 500);
      assertSameBytes(target, expected);
    },
  },
];
