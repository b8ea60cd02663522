import { assert, assertEquals } from "@std/assert";
import {
  argumentWords,
  assertRefused,
  assertSameBytes,
  type ContractCase,
  extentSize,
  mapNew,
  readBack,
} from "./harness.ts";
import { clean, clearResult, Kernels, readResult } from "./kernels.ts";

/** Modules and launches. */
export const kernelCases: ContractCase[] = [
  {
    name: "kernels on several streams fill and verify their own extents",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const size = extentSize(driver, 2 ** 14);
      const { address } = mapNew(driver, Array(4).fill(size));
      const results = mapNew(driver, [extentSize(driver, 64)]).address;
      const streams = Array.from({ length: 4 }, () => driver.createStream());
      for (let round = 0; round < 3; round++) {
        streams.forEach((stream, at) => {
          const [from, words] = [address + at * size, size / 8];
          const seed = 1000 * round + at;
          clearResult(driver, results + 16 * at, stream);
          kernels.fill(from, words, seed, stream);
          kernels.verify(from, words, seed, results + 16 * at, stream);
        });
        streams.forEach((stream, at) =>
          assertEquals(readResult(driver, results + 16 * at, stream), clean)
        );
      }
    },
  },
  {
    name: "a pattern crosses extents, and a changed word is found",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const size = extentSize(driver, 1);
      const { address } = mapNew(driver, Array(3).fill(size));
      const result = mapNew(driver, [size]).address;
      const words = 3 * size / 8 - 1;
      kernels.fill(address + 8, words, 77, 0);
      const bad = size / 8 + 5;
      driver.fill(address + 8 + bad * 8, 0, 4, 2, 0);
      driver.fill(address + 8 + (bad + 40) * 8, 0, 4, 2, 0);
      clearResult(driver, result, 0);
      kernels.verify(address + 8, words, 77, result, 0);
      assertEquals(readResult(driver, result, 0), {
        mismatches: 2n,
        firstBad: BigInt(bad),
      });
      clearResult(driver, result, 0);
      kernels.verify(address + 8, bad, 77, result, 0);
      assertEquals(readResult(driver, result, 0), clean);
    },
  },
  {
    name: "a kernel sees data written through an extent's other address",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const size = extentSize(driver, 1);
      const address = driver.reserve(2 * size);
      const extents = driver.createExtents([size]);
      driver.map(address, extents);
      driver.map(address + size, extents);
      const result = mapNew(driver, [size]).address;
      for (let seed = 0; seed < 8; seed++) {
        clearResult(driver, result, 0);
        kernels.fill(address, size / 8, seed, 0);
        kernels.verify(address + size, size / 8, seed, result, 0);
        assertEquals(readResult(driver, result, 0), clean);
      }
    },
  },
  {
    name: "an event behind a long kernel passes late, and timing shows it",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const stream = driver.createStream();
      const [start, end] = [driver.createEvent(true), driver.createEvent(true)];
      kernels.spin(0.01, stream);
      driver.synchronizeStream(stream);
      driver.recordEvent(start, stream);
      kernels.spin(100, stream);
      driver.recordEvent(end, stream);
      assert(!driver.queryEvent(end), "the event passed at once");
      assertRefused(
        "elapsed time before the end",
        () => driver.elapsedMs(start, end),
        "driver",
      );
      driver.synchronizeEvent(end);
      assert(driver.queryEvent(end));
      const elapsedMs = driver.elapsedMs(start, end);
      assert(elapsedMs > 95 && elapsedMs < 5_000, `${elapsedMs} ms`);
    },
  },
  {
    name: "only unmapping may wait for a running kernel, where a driver does",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const size = extentSize(driver, 1);
      const stream = driver.createStream();
      const event = driver.createEvent();
      const address = driver.reserve(size);
      kernels.spin(300, stream);
      driver.recordEvent(event, stream);
      const extents = driver.createExtents([size]);
      driver.map(address, extents);
      driver.setAccess(address, size, "read");
      if (options.unmapWaits) {
        assert(!driver.queryEvent(event), "a call waited for the kernel");
        driver.unmap([{ address, size }]);
        assert(driver.queryEvent(event), "unmapping did not wait");
      } else driver.unmap([{ address, size }]);
      driver.releaseExtents(extents);
      if (!options.unmapWaits) {
        assert(!driver.queryEvent(event), "a call waited for the kernel");
      }
      driver.synchronizeStream(stream);
      assert(driver.queryEvent(event));
    },
  },
  {
    name: "work on one stream goes on behind a long kernel on another",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const [busy, other] = [driver.createStream(), driver.createStream()];
      const { address } = mapNew(driver, [extentSize(driver, 1)]);
      const event = driver.createEvent();
      // Modules may load at their first launch; that must not be measured here.
      kernels.spin(0.01, other);
      driver.synchronizeStream(other);
      kernels.spin(300, busy);
      driver.recordEvent(event, busy);
      driver.fill(address, 4, 1, 64, other);
      assertSameBytes(
        readBack(driver, address, 64, other),
        new Uint8Array(64).fill(4),
      );
      driver.synchronizeEvent(event);
    },
  },
  {
    name: "waitEvent holds a stream back behind a long kernel",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const [slow, waiting] = [driver.createStream(), driver.createStream()];
      const { address } = mapNew(driver, [extentSize(driver, 1)]);
      const event = driver.createEvent();
      driver.fill(address, 1, 1, 64, slow);
      driver.synchronizeStream(slow);
      kernels.spin(50, slow);
      driver.fill(address, 2, 1, 64, slow);
      driver.recordEvent(event, slow);
      driver.waitEvent(waiting, event);
      assertSameBytes(
        readBack(driver, address, 64, waiting),
        new Uint8Array(64).fill(2),
      );
    },
  },
  {
    name: "a module's kernels go with it, and names must exist",
    needsKernels: true,
    async check(driver, options) {
      const image = await options.kernelImage!("busy", driver);
      const [first, second] = [
        driver.loadModule(image),
        driver.loadModule(image),
      ];
      assertRefused(
        "an unknown kernel",
        () => driver.getFunction(first, "no_such_kernel"),
        "not-found",
      );
      assertRefused(
        "an empty name",
        () => driver.getFunction(first, ""),
        "argument",
        "not-found",
      );
      const gone = driver.getFunction(first, "mb_spin");
      const kept = driver.getFunction(second, "mb_spin");
      driver.unloadModule(first);
      assertRefused(
        "a second unload",
        () => driver.unloadModule(first),
        "invalid-handle",
      );
      assertRefused(
        "a function of an unloaded module",
        () => driver.getFunction(first, "mb_spin"),
        "invalid-handle",
      );
      const one = { grid: [1], block: [1] } as const;
      assertRefused(
        "a launch of an unloaded kernel",
        () => driver.launch(gone, one, argumentWords(1000), 0),
        "invalid-handle",
      );
      driver.launch(kept, one, argumentWords(1000), 0);
      driver.synchronize();
      driver.unloadModule(second);
    },
  },
  {
    name: "bad launches are refused",
    needsKernels: true,
    async check(driver, options) {
      const image = await options.kernelImage!("busy", driver);
      const spin = driver.getFunction(driver.loadModule(image), "mb_spin");
      const args = argumentWords(1000);
      for (const bad of [0, -1, 0.5, NaN, 2 ** 33]) {
        assertRefused(
          `a grid of ${bad}`,
          () => driver.launch(spin, { grid: [bad], block: [1] }, args, 0),
          "argument",
        );
        assertRefused(
          `a block of ${bad}`,
          () => driver.launch(spin, { grid: [1], block: [1, bad] }, args, 0),
          "argument",
        );
        if (bad === 0) continue;
        assertRefused(
          `shared memory of ${bad}`,
          () =>
            driver.launch(
              spin,
              { grid: [1], block: [1], sharedBytes: bad },
              args,
              0,
            ),
          "argument",
        );
      }
      assertRefused(
        "a block of too many threads",
        () => driver.launch(spin, { grid: [1], block: [64, 32] }, args, 0),
        "argument",
      );
      assertRefused(
        "an argument block of 8 KiB",
        () =>
          driver.launch(
            spin,
            { grid: [1], block: [1] },
            new Uint8Array(8192),
            0,
          ),
        "argument",
      );
      assertRefused(
        "an unknown stream",
        () => driver.launch(spin, { grid: [1], block: [1] }, args, 0x7ffff),
        "invalid-handle",
      );
      driver.launch(spin, { grid: [2, 2, 2], block: [4, 2, 1] }, args, 0);
      driver.synchronize();
    },
  },
];
