import { assert, assertEquals } from "@std/assert";
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

const mib = 2 ** 20;

/** Addresses, extents and mappings. */
export const memoryCases: ContractCase[] = [
  {
    name: "info describes a usable device",
    check(driver) {
      const { granularity, totalMemory, name, architecture } = driver.info;
      assert(Number.isSafeInteger(Math.log2(granularity)));
      assert(granularity >= 4096);
      assert(totalMemory > granularity);
      assert(name.length > 0 && architecture.length > 0);
      const { free, total } = driver.memoryInfo();
      assert(free > 0 && free <= total);
    },
  },
  {
    name: "reservations are aligned, apart from each other, and come back",
    check(driver) {
      const { granularity } = driver.info;
      const sizes = [granularity, 3 * granularity, 2 ** 30, granularity];
      const ranges = sizes.map((size) => ({
        start: driver.reserve(size),
        size,
      }));
      for (const { start } of ranges) assertEquals(start % granularity, 0);
      ranges.sort((a, b) => a.start - b.start);
      ranges.reduce((before, range) => {
        assert(before.start + before.size <= range.start);
        return range;
      });
      for (const { start } of ranges) {
        driver.unreserve(start);
        assertRefused(
          "a second unreserve",
          () => driver.unreserve(start),
          "argument",
        );
      }
      for (let round = 0; round < 100; round++) {
        driver.unreserve(driver.reserve(2 ** 36));
      }
    },
  },
  {
    name: "extents are created in batches and released in any order",
    check(driver, options) {
      const { granularity } = driver.info;
      const before = driver.memoryInfo().free;
      const sizes = [1, 4, 2, 8].map((count) => count * granularity);
      const extents = driver.createExtents(sizes);
      assertEquals(new Set(extents).size, 4);
      assertFree(options, driver, before - 15 * granularity);
      driver.releaseExtents([extents[2]!, extents[0]!]);
      driver.releaseExtents([extents[1]!, extents[3]!]);
      assertFree(options, driver, before);
    },
  },
  {
    name: "many rounds of a whole life leak no memory",
    check(driver, options) {
      const size = extentSize(driver, mib);
      const address = driver.reserve(4 * size);
      const round = () => {
        const extents = driver.createExtents([size, size, size, size]);
        driver.map(address, extents);
        driver.fill(address, 1, 1, 4 * size, 0);
        driver.synchronize();
        driver.unmap([{ address, size: 4 * size }]);
        driver.releaseExtents(extents);
      };
      round();
      const before = driver.memoryInfo().free;
      for (let count = 0; count < 32; count++) round();
      assertFree(options, driver, before);
      driver.unreserve(address);
    },
  },
  {
    name: "a map call tells how long its halves took",
    check(driver) {
      const { granularity } = driver.info;
      const address = driver.reserve(2 * granularity);
      const extents = driver.createExtents([granularity, granularity]);
      const { mapNs, accessNs } = driver.map(address, extents);
      assert(mapNs >= 0 && mapNs < 1e9);
      assert(accessNs >= 0 && accessNs < 1e9);
      assert(mapNs + accessNs > 0);
    },
  },
  {
    name: "bytes of every size cross extents unharmed",
    check(driver) {
      const size = extentSize(driver, mib);
      const { address } = mapNew(driver, Array(8).fill(size));
      for (const length of [1, 511, 512, 513, 65_537, 4 * mib + 3]) {
        if (length > 6 * size) continue;
        for (const shift of [0, 1, size - 256]) {
          const bytes = testBytes(length, length + shift);
          driver.copyIn(address + shift, bytes, 0);
          assertSameBytes(
            readBack(driver, address + shift, length),
            bytes,
          );
        }
      }
    },
  },
  {
    name: "extents of mixed sizes lie side by side in the order given",
    check(driver) {
      const { granularity } = driver.info;
      const counts = [1, 3, 2];
      const { address, extents, size } = mapNew(
        driver,
        counts.map((count) => count * granularity),
      );
      const bytes = testBytes(size, 1);
      driver.copyIn(address, bytes, 0);
      driver.synchronize();
      driver.unmap([{ address, size }]);
      driver.map(address, [extents[2]!, extents[0]!, extents[1]!]);
      const moved = readBack(driver, address, size);
      assertSameBytes(
        moved.subarray(0, 2 * granularity),
        bytes.subarray(4 * granularity),
      );
      assertSameBytes(
        moved.subarray(2 * granularity),
        bytes.subarray(0, 4 * granularity),
      );
    },
  },
  {
    name: "the middle of a mapped range can be unmapped and mapped anew",
    check(driver) {
      const { granularity } = driver.info;
      const { address, size } = mapNew(driver, Array(5).fill(granularity));
      const bytes = testBytes(size, 2);
      driver.copyIn(address, bytes, 0);
      driver.synchronize();
      const middle = address + granularity;
      driver.unmap([{ address: middle, size: 3 * granularity }]);
      assertSameBytes(
        readBack(driver, address, granularity),
        bytes.subarray(0, granularity),
      );
      assertSameBytes(
        readBack(driver, address + 4 * granularity, granularity),
        bytes.subarray(4 * granularity),
      );
      const wide = driver.createExtents([3 * granularity]);
      driver.map(middle, wide);
      const others = testBytes(3 * granularity, 3);
      driver.copyIn(middle, others, 0);
      bytes.set(others, granularity);
      assertSameBytes(readBack(driver, address, size), bytes);
    },
  },
  {
    name: "one unmap call takes several ranges, adjacent and apart",
    check(driver) {
      const { granularity } = driver.info;
      const { address, extents } = mapNew(driver, Array(6).fill(granularity));
      const kept = testBytes(granularity, 4);
      driver.copyIn(address + 2 * granularity, kept, 0);
      driver.synchronize();
      driver.unmap([
        { address: address + 3 * granularity, size: 3 * granularity },
        { address, size: granularity },
        { address: address + granularity, size: granularity },
      ]);
      driver.releaseExtents(extents.filter((_, index) => index !== 2));
      assertSameBytes(
        readBack(driver, address + 2 * granularity, granularity),
        kept,
      );
      assertRefused(
        "releasing the mapped extent",
        () => driver.releaseExtents([extents[2]!]),
        "argument",
      );
    },
  },
  {
    name: "an extent at two addresses is one memory",
    check(driver) {
      const { granularity } = driver.info;
      const address = driver.reserve(4 * granularity);
      const extents = driver.createExtents([granularity, granularity]);
      driver.map(address, extents);
      const alias = address + 2 * granularity;
      driver.map(alias, [...extents].reverse());
      const bytes = testBytes(granularity, 5);
      driver.copyIn(address, bytes, 0);
      driver.synchronize();
      assertSameBytes(
        readBack(driver, alias + granularity, granularity),
        bytes,
      );
      driver.fill(alias + granularity, 9, 1, 16, 0);
      driver.synchronize();
      bytes.fill(9, 0, 16);
      assertSameBytes(readBack(driver, address, granularity), bytes);
      driver.unmap([{ address, size: 2 * granularity }]);
      assertRefused(
        "releasing an extent with one mapping left",
        () => driver.releaseExtents([extents[0]!]),
        "argument",
      );
      assertSameBytes(
        readBack(driver, alias + granularity, granularity),
        bytes,
      );
    },
  },
  {
    name: "data stay with their extent when it moves to another address",
    check(driver) {
      const { granularity } = driver.info;
      const { address, extents, size } = mapNew(driver, [2 * granularity]);
      const bytes = testBytes(size, 6);
      driver.copyIn(address, bytes, 0);
      driver.synchronize();
      driver.unmap([{ address, size }]);
      driver.unreserve(address);
      const next = driver.reserve(size);
      driver.map(next, extents);
      assertSameBytes(readBack(driver, next, size), bytes);
    },
  },
  {
    name: "an address that is recycled after an unmap means its new extent",
    check(driver) {
      const size = extentSize(driver, 1);
      const address = driver.reserve(size);
      const extents = driver.createExtents(Array(4).fill(size));
      for (let round = 0; round < 12; round++) {
        const extent = extents[round % 4]!;
        driver.map(address, [extent]);
        if (round >= 4) {
          assertSameBytes(
            readBack(driver, address, size),
            testBytes(size, round - 4),
          );
        }
        driver.copyIn(address, testBytes(size, round), 0);
        driver.synchronize();
        driver.unmap([{ address, size }]);
      }
    },
  },
  {
    name: "access can be taken away and given back",
    check(driver) {
      const { granularity } = driver.info;
      const { address, size } = mapNew(driver, [granularity, granularity]);
      const bytes = testBytes(size, 7);
      driver.copyIn(address, bytes, 0);
      driver.synchronize();
      driver.setAccess(address, size, "read");
      assertSameBytes(readBack(driver, address, size), bytes);
      driver.setAccess(address, granularity, "none");
      assertSameBytes(
        readBack(driver, address + granularity, granularity),
        bytes.subarray(granularity),
      );
      driver.setAccess(address, size, "read-write");
      assertSameBytes(readBack(driver, address, size), bytes);
      driver.copyIn(address, bytes.reverse(), 0);
      assertSameBytes(readBack(driver, address, size), bytes);
    },
  },
  {
    name: "a mapping can be read-only from the start",
    check(driver) {
      const { granularity } = driver.info;
      const address = driver.reserve(2 * granularity);
      const extents = driver.createExtents([granularity]);
      driver.map(address, extents);
      driver.map(address + granularity, extents, "read");
      const bytes = testBytes(granularity, 8);
      driver.copyIn(address, bytes, 0);
      driver.synchronize();
      assertSameBytes(
        readBack(driver, address + granularity, granularity),
        bytes,
      );
    },
  },
  {
    name: "running out of memory gives a typed error and undoes the batch",
    check(driver, options) {
      const { granularity, totalMemory } = driver.info;
      const standing = mapNew(driver, [granularity]);
      const bytes = testBytes(granularity, 9);
      driver.copyIn(standing.address, bytes, 0);
      driver.synchronize();
      const before = driver.memoryInfo().free;
      const tooMuch = Math.ceil(totalMemory / granularity + 1) * granularity;
      assertRefused(
        "an extent larger than the device",
        () => driver.createExtents([tooMuch]),
        "out-of-memory",
      );
      assertRefused(
        "a batch whose last extent is too large",
        () => driver.createExtents([granularity, granularity, tooMuch]),
        "out-of-memory",
      );
      assertFree(options, driver, before);
      assertSameBytes(
        readBack(driver, standing.address, granularity),
        bytes,
      );
      driver.releaseExtents(driver.createExtents([granularity]));
    },
  },
  {
    name: "a reservation beyond the address space gives a typed error",
    check(driver) {
      assertRefused(
        "a reservation of 4 PiB",
        () => driver.reserve(2 ** 52),
        "out-of-addresses",
      );
      driver.unreserve(driver.reserve(2 ** 40));
    },
  },
];
