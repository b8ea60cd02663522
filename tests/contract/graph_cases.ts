import { assert, assertEquals } from "@std/assert";
import type { Driver } from "../../lib/driver.ts";
import {
  argumentWords,
  assertRefused,
  assertSameBytes,
  type ContractCase,
  extentSize,
  mapNew,
  readBack,
  testBytes,
} from "./harness.ts";
import { clean, clearResult, Kernels, readResult } from "./kernels.ts";

const unknown = 0x7ffff;
const size = 4096;

/** The graph of what a function puts into the stream. */
function capture(driver: Driver, stream: number, work: () => void): number {
  driver.beginCapture(stream);
  work();
  return driver.endCapture(stream);
}

/** Memory for a few ranges of `size` bytes. */
function newRanges(driver: Driver, count: number): number[] {
  const { address } = mapNew(driver, [extentSize(driver, count * size)]);
  return Array.from({ length: count }, (_, at) => address + at * size);
}

/** Captures and graphs. */
export const graphCases: ContractCase[] = [
  {
    name: "captured work is done when the graph is launched, and not before",
    check(driver) {
      const [range] = newRanges(driver, 1) as [number];
      const stream = driver.createStream();
      driver.fill(range, 1, 1, size, stream);
      assert(!driver.isCapturing(stream));
      const graph = capture(driver, stream, () => {
        assert(driver.isCapturing(stream));
        assert(!driver.isCapturing(0));
        driver.fill(range, 2, 1, size, stream);
      });
      assert(!driver.isCapturing(stream));
      assertEquals(readBack(driver, range, 1, stream)[0], 1);
      for (let launch = 0; launch < 3; launch++) {
        driver.fill(range, 3, 1, size, stream);
        driver.launchGraph(graph, stream);
        assertSameBytes(
          readBack(driver, range, size, stream),
          new Uint8Array(size).fill(2),
        );
      }
      // Also in the default stream, and in one made later.
      for (const other of [0, driver.createStream()]) {
        driver.fill(range, 3, 1, size, other);
        driver.launchGraph(graph, other);
        assertEquals(readBack(driver, range, 1, other)[0], 2);
      }
      driver.destroyGraph(graph);
      assertRefused(
        "a destroyed graph",
        () => driver.launchGraph(graph, stream),
        "invalid-handle",
      );
    },
  },
  {
    name: "a graph works in order on the data of each launch",
    check(driver) {
      const [input, middle, output] = newRanges(driver, 3) as [
        number,
        number,
        number,
      ];
      const stream = driver.createStream();
      const graph = capture(driver, stream, () => {
        for (let step = 0; step < 20; step++) {
          driver.fill(middle, step, 2, size / 2, stream);
        }
        driver.copy(middle, input, size / 2, stream);
        driver.copy(output, middle, size, stream);
        driver.fill(output, 7, 4, 1, stream);
        driver.fill(input, 0xff, 1, size, stream);
      });
      for (let round = 0; round < 10; round++) {
        const bytes = testBytes(size, round);
        driver.copyIn(input, bytes, stream);
        driver.launchGraph(graph, stream);
        const expected = new Uint8Array(size);
        expected.fill(19);
        for (let at = 1; at < size; at += 2) expected[at] = 0;
        expected.set(bytes.subarray(0, size / 2));
        expected.set([7, 0, 0, 0]);
        assertSameBytes(readBack(driver, output, size, stream), expected);
        assertEquals(readBack(driver, input, 1, stream)[0], 0xff);
      }
    },
  },
  {
    name: "captured kernels keep their arguments, and see memory as it is",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const words = size / 8;
      const [range, result] = newRanges(driver, 2) as [number, number];
      const pinned = driver.allocPinned(size);
      const stream = driver.createStream();
      // The argument blocks are overwritten behind each launch.
      const fill = capture(
        driver,
        stream,
        () => kernels.fill(range, words, 5, stream),
      );
      const verify = capture(driver, stream, () => {
        driver.copy(range, pinned, size, stream);
        kernels.verify(range, words, 5, result, stream);
        kernels.verify(pinned, words, 5, result, stream);
      });
      clearResult(driver, result, stream);
      driver.launchGraph(fill, stream);
      driver.copy(pinned, range, size, stream);
      driver.launchGraph(verify, stream);
      assertEquals(readResult(driver, result, stream), clean);
      for (let round = 1; round <= 3; round++) {
        driver.writePinned(pinned + 8 * round, new Uint8Array(8));
        clearResult(driver, result, stream);
        driver.launchGraph(verify, stream);
        assertEquals(readResult(driver, result, stream), {
          mismatches: BigInt(2 * round),
          firstBad: 1n,
        });
      }
    },
  },
  {
    name: "memory is mapped, filled and unmapped while a stream captures",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const { granularity } = driver.info;
      const [range, result] = newRanges(driver, 2) as [number, number];
      const [stream, other] = [driver.createStream(), driver.createStream()];
      driver.fill(range, 1, 1, size, stream);
      driver.beginCapture(stream);
      const base = driver.reserve(3 * granularity);
      const extents = driver.createExtents([granularity, granularity]);
      driver.map(base, extents);
      kernels.fill(base, 2 * granularity / 8, 3, stream);
      const passing = driver.createExtents([granularity]);
      driver.map(base + 2 * granularity, passing);
      driver.fill(base, 4, 1, 2 * granularity, other);
      driver.fill(base + 2 * granularity, 4, 1, granularity, other);
      const last = base + 3 * granularity - 1;
      assertEquals(readBack(driver, last, 1, other)[0], 4);
      driver.setAccess(base + 2 * granularity, granularity, "none");
      driver.unmap([{ address: base + 2 * granularity, size: granularity }]);
      driver.releaseExtents(passing);
      const pinned = driver.allocPinned(64);
      driver.writePinned(pinned, testBytes(64, 1));
      driver.copy(range, pinned, 64, stream);
      const event = driver.createEvent();
      driver.recordEvent(event, other);
      driver.synchronizeEvent(event);
      driver.destroyEvent(event);
      driver.destroyStream(driver.createStream());
      driver.memoryInfo();
      const pattern = await options.kernelImage!("pattern", driver);
      const late = driver.getFunction(
        driver.loadModule(pattern),
        "mb_pattern_verify",
      );
      driver.launch(
        late,
        { grid: [2], block: [64] },
        argumentWords(base, 2 * granularity / 8, 3, result),
        stream,
      );
      const graph = driver.endCapture(stream);
      assertEquals(readBack(driver, base, 1, stream)[0], 4);
      assertEquals(readBack(driver, range, 1, stream)[0], 1);
      clearResult(driver, result, stream);
      driver.launchGraph(graph, stream);
      assertEquals(readResult(driver, result, stream), clean);
      assertSameBytes(readBack(driver, range, 64, stream), testBytes(64, 1));
    },
  },
  {
    name: "what a graph can't hold is refused, and the capture goes on",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const spare = driver.loadModule(
        await options.kernelImage!("busy", driver),
      );
      const [range] = newRanges(driver, 1) as [number];
      const pinned = driver.allocPinned(64);
      const [stream, other] = [driver.createStream(), driver.createStream()];
      const event = driver.createEvent();
      driver.recordEvent(event, other);
      const empty = capture(driver, other, () => {});
      const bytes = new Uint8Array(16);
      const refused = {
        "a second begin": () => driver.beginCapture(stream),
        "a record": () => driver.recordEvent(event, stream),
        "a wait": () => driver.waitEvent(stream, event),
        "a copy from the host": () => driver.copyIn(range, bytes, stream),
        "a copy to the host": () => driver.copyOut(bytes, range, stream),
        "a wait of the host's": () => driver.synchronizeStream(stream),
        "a wait for the device": () => driver.synchronize(),
        "a free of page-locked memory": () => driver.freePinned(pinned),
        "unloading a module": () => driver.unloadModule(spare),
        "another graph": () => driver.launchGraph(empty, stream),
      };
      driver.fill(range, 1, 1, size, stream);
      driver.beginCapture(stream);
      driver.fill(range, 2, 1, 1, stream);
      for (const [what, call] of Object.entries(refused)) {
        assertRefused(what, call, "argument");
        assert(driver.isCapturing(stream), `${what} ended the capture`);
      }
      driver.synchronizeEvent(event);
      assert(driver.queryEvent(event));
      driver.synchronizeStream(other);
      kernels.fill(range + 8, 4, 9, stream);
      const graph = driver.endCapture(stream);
      assertEquals(readBack(driver, range, 1, stream)[0], 1);
      driver.launchGraph(graph, stream);
      assertEquals(readBack(driver, range, 1, stream)[0], 2);
      assertEquals(readBack(driver, range + size - 1, 1, stream)[0], 1);
      driver.synchronize();
      driver.freePinned(pinned);
      driver.unloadModule(spare);
    },
  },
  {
    name: "captures and graphs that make no sense are refused",
    check(driver) {
      const stream = driver.createStream();
      const graph = capture(driver, stream, () => {});
      const refused = {
        "a capture of the default stream": () => driver.beginCapture(0),
        "an end without a begin": () => driver.endCapture(stream),
        "an end on the default stream": () => driver.endCapture(0),
      };
      for (const [what, call] of Object.entries(refused)) {
        assertRefused(what, call, "argument");
      }
      for (const bad of [-1, 0.5, NaN, 2 ** 32, unknown]) {
        for (
          const call of [
            () => driver.beginCapture(bad),
            () => driver.endCapture(bad),
            () => driver.isCapturing(bad),
            () => driver.launchGraph(bad, stream),
            () => driver.launchGraph(graph, bad),
            () => driver.destroyGraph(bad),
          ]
        ) assertRefused(`id ${bad}`, call, "argument", "invalid-handle");
      }
      assertRefused(
        "graph 0",
        () => driver.launchGraph(0, stream),
        "invalid-handle",
      );
      driver.destroyGraph(graph);
      assertRefused(
        "a second destroy",
        () => driver.destroyGraph(graph),
        "invalid-handle",
      );
    },
  },
  {
    name: "a capture of nothing gives a graph that does nothing",
    check(driver) {
      const [range] = newRanges(driver, 1) as [number];
      const stream = driver.createStream();
      driver.fill(range, 1, 1, size, stream);
      const graph = capture(driver, stream, () => {});
      driver.launchGraph(graph, stream);
      driver.launchGraph(graph, 0);
      driver.synchronize();
      assertEquals(readBack(driver, range, 1, stream)[0], 1);
      driver.destroyGraph(graph);
    },
  },
  {
    name: "a capture ends with its stream, and its work is never done",
    check(driver, _options, open) {
      const [range] = newRanges(driver, 1) as [number];
      const [stream, kept] = [driver.createStream(), driver.createStream()];
      driver.fill(range, 1, 1, size, stream);
      driver.beginCapture(stream);
      driver.fill(range, 2, 1, size, stream);
      driver.destroyStream(stream);
      assertRefused(
        "the end of that capture",
        () => driver.endCapture(stream),
        "invalid-handle",
      );
      driver.synchronize();
      assertEquals(readBack(driver, range, 1)[0], 1);
      driver.beginCapture(kept);
      driver.fill(range, 2, 1, size, kept);
      driver.close();
      const next = open();
      try {
        next.synchronize();
        newRanges(next, 1);
      } finally {
        next.close();
      }
    },
  },
  {
    name: "two streams capture side by side, and others work on meanwhile",
    check(driver) {
      const ranges = newRanges(driver, 3) as [number, number, number];
      const streams = [
        driver.createStream(),
        driver.createStream(),
        driver.createStream(),
      ] as const;
      for (const range of ranges) driver.fill(range, 1, 1, size, 0);
      driver.synchronize();
      driver.beginCapture(streams[0]);
      driver.beginCapture(streams[1]);
      ranges.forEach((range, at) =>
        driver.fill(range, 2 + at, 1, size, streams[at]!)
      );
      driver.synchronizeStream(streams[2]);
      const graphs = [
        driver.endCapture(streams[0]),
        driver.endCapture(streams[1]),
      ] as const;
      const firstBytes = () =>
        ranges.map((range) => readBack(driver, range, 1)[0]);
      assertEquals(firstBytes(), [1, 1, 4]);
      driver.launchGraph(graphs[1], 0);
      assertEquals(firstBytes(), [1, 3, 4]);
      driver.launchGraph(graphs[0], 0);
      assertEquals(firstBytes(), [2, 3, 4]);
    },
  },
  {
    name: "launches of one graph come one after the other on all streams",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const [input, output] = newRanges(driver, 2) as [number, number];
      const [first, second] = [driver.createStream(), driver.createStream()];
      const graph = capture(
        driver,
        first,
        () => driver.copy(output, input, size, first),
      );
      kernels.spin(0.01, first);
      driver.synchronize();
      for (let round = 1; round <= 5; round++) {
        kernels.spin(5, first);
        driver.fill(input, round, 1, size, first);
        driver.launchGraph(graph, first);
        driver.launchGraph(graph, second);
        assertSameBytes(
          readBack(driver, output, size, second),
          new Uint8Array(size).fill(round),
        );
        driver.synchronize();
      }
    },
  },
  {
    name: "a graph that is destroyed while it runs still does its work",
    needsKernels: true,
    async check(driver, options) {
      const kernels = await Kernels.load(driver, options);
      const [range, result] = newRanges(driver, 2) as [number, number];
      const [stream, other] = [driver.createStream(), driver.createStream()];
      for (let round = 1; round <= 5; round++) {
        const graph = capture(driver, stream, () => {
          kernels.spin(5, stream);
          kernels.fill(range, size / 8, round, stream);
        });
        clearResult(driver, result, other);
        driver.launchGraph(graph, stream);
        driver.launchGraph(graph, other);
        driver.destroyGraph(graph);
        kernels.verify(range, size / 8, round, result, other);
        assertEquals(readResult(driver, result, other), clean);
        driver.synchronizeStream(stream);
      }
    },
  },
  {
    name: "a module stays as long as a graph holds kernels of it",
    needsKernels: true,
    async check(driver, options) {
      const image = await options.kernelImage!("pattern", driver);
      const module = driver.loadModule(image);
      const fill = driver.getFunction(module, "mb_pattern_fill");
      const [range] = newRanges(driver, 1) as [number];
      const stream = driver.createStream();
      const launch = () =>
        driver.launch(
          fill,
          { grid: [2], block: [64] },
          argumentWords(range, size / 8, 1),
          stream,
        );
      const graphs = [
        capture(driver, stream, launch),
        capture(driver, stream, () => [launch(), launch()]),
      ] as const;
      for (const graph of graphs) {
        assertRefused(
          "unloading",
          () => driver.unloadModule(module),
          "argument",
        );
        driver.launchGraph(graph, stream);
        driver.destroyGraph(graph);
      }
      driver.beginCapture(stream);
      launch();
      driver.destroyStream(stream);
      driver.unloadModule(module);
    },
  },
  {
    name: "a graph of many operations keeps their order",
    check(driver) {
      const [range, log] = newRanges(driver, 2) as [number, number];
      const stream = driver.createStream();
      const graph = capture(driver, stream, () => {
        for (let step = 0; step < 250; step++) {
          driver.fill(range, step, 1, 64, stream);
          driver.copy(log + step, range + 63, 1, stream);
        }
      });
      for (let round = 0; round < 4; round++) {
        driver.fill(log, 0xff, 1, size, stream);
        driver.launchGraph(graph, stream);
        assertSameBytes(
          readBack(driver, log, 250, stream),
          Uint8Array.from({ length: 250 }, (_, step) => step),
        );
      }
    },
  },
];
