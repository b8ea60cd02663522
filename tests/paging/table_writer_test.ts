import { assert, assertEquals, assertThrows } from "@std/assert";
import { decode, encode, FORMATS } from "../../lib/paging/formats.ts";
import { FrameRun, type Piece } from "../../lib/paging/frame_run.ts";
import { TableWriter } from "../../lib/paging/table_writer.ts";
import { assertSameBytes, testBytes } from "../contract/harness.ts";
import { type PagedBench, testOnAll } from "./paged_bench.ts";

const PAGE = 4096;
const ENTRIES = 1024;
const FRAMES = 300;
const format = FORMATS.moonbright;

/** A writer over a table and frames in memory of the test's. */
function setUp(bench: PagedBench) {
  const { mb } = bench;
  const table = bench.linear(8 * ENTRIES);
  table.fill(0);
  const store = mb.alloc(FRAMES * PAGE, { maxSize: FRAMES * PAGE });
  const writer = new TableWriter(mb, bench.images(), {
    table: table.address,
    frames: store.address,
    entryBase: store.address,
    pageSize: PAGE,
    format,
  });
  return {
    writer,
    store,
    entries: () => new BigUint64Array(table.read().buffer as ArrayBuffer),
    entryOf: (frame: number, kind: { readOnly?: boolean; version?: number }) =>
      encode(format, {
        ...kind,
        pageSize: PAGE,
        address: store.address + frame * PAGE,
      }),
  };
}

/** Pieces whose frames go down by two: each is a run by itself. */
function descending(count: number): Piece[] {
  return Array.from({ length: count }, (_, i) => {
    const first = 2 * (count - 1 - i);
    return { run: new FrameRun(first, 1), offset: 0, count: 1 };
  });
}

testOnAll(
  "entries are written from the launch or from a list, all the same",
  (bench) => {
    const { writer, entries, entryOf, store } = setUp(bench);
    for (const runs of [1, 63, 64, 65, 150]) {
      const pieces = descending(runs);
      const { launches } = writer;
      writer.materialize(0, 7, pieces, true, 4099);
      assertEquals(writer.launches, launches + 1);
      const written = entries();
      pieces.forEach(({ run }, page) =>
        assertEquals(
          written[7 + page],
          entryOf(run.first, { readOnly: true, version: 3 }),
          `entry ${page} of ${runs}`,
        )
      );
      assertEquals([written[6], written[7 + runs]], [0n, 0n]);
      writer.clear(0, [{ first: 7, count: runs }]);
    }
    assertEquals([...writer.streams], [0]);
    writer.close();
    store.free();
  },
);

testOnAll("pieces that continue each other count as one run", (bench) => {
  const { writer, entries, entryOf, store } = setUp(bench);
  const run = new FrameRun(10, 200);
  const pieces = Array.from(
    { length: 200 },
    (_, offset): Piece => ({ run, offset, count: 1 }),
  );
  writer.materialize(0, 0, pieces, false, 1);
  const written = entries();
  for (let page = 0; page < 200; page++) {
    assertEquals(written[page], entryOf(10 + page, { version: 1 }));
  }
  assertEquals(written[200], 0n);
  writer.close();
  store.free();
});

testOnAll("more spans than a launch holds are changed in several", (bench) => {
  const { writer, entries, entryOf, store } = setUp(bench);
  const run = new FrameRun(0, FRAMES);
  writer.materialize(0, 0, [run], false, 1);
  const spans = Array.from({ length: 100 }, (_, i) => ({
    first: 3 * i,
    count: 2,
  }));
  const { launches } = writer;
  writer.protect(0, spans, true, 2);
  assertEquals(writer.launches, launches + 2);
  const isOdd = (page: number) => page % 3 === 2;
  entries().subarray(0, FRAMES).forEach((entry, page) =>
    assertEquals(
      entry,
      isOdd(page)
        ? entryOf(page, { version: 1 })
        : entryOf(page, { readOnly: true, version: 2 }),
    )
  );
  writer.protect(0, spans, false, 3);
  assert(
    entries().subarray(0, FRAMES).every((entry) =>
      !decode(format, entry).readOnly
    ),
  );
  writer.clear(0, spans);
  entries().subarray(0, FRAMES).forEach((entry, page) =>
    assertEquals(entry, isOdd(page) ? entryOf(page, { version: 1 }) : 0n)
  );
  // Nothing to change is nothing to launch.
  const before = writer.launches;
  writer.clear(0, []);
  writer.protect(0, [], true, 1);
  writer.copyPages(0, []);
  assertEquals(writer.launches, before);
  writer.close();
  store.free();
});

testOnAll("more frames than a launch holds are copied in several", (bench) => {
  const { writer, store } = setUp(bench);
  const half = FRAMES / 2;
  const bytes = testBytes(half * PAGE, 1);
  store.write(bytes);
  const copies = Array.from({ length: half }, (_, source) => ({
    source,
    destination: FRAMES - 1 - source,
  }));
  writer.copyPages(0, copies);
  assertEquals(writer.launches, 3);
  const held = store.read();
  assertSameBytes(held.subarray(0, bytes.length), bytes);
  for (const { source, destination } of copies) {
    assertSameBytes(
      held.subarray(destination * PAGE, (destination + 1) * PAGE),
      bytes.subarray(source * PAGE, (source + 1) * PAGE),
    );
  }
  writer.close();
  store.free();
});

testOnAll("a writer is not closed while a graph holds its kernels", (bench) => {
  const { mb } = bench;
  const { writer, entries, entryOf, store } = setUp(bench);
  const stream = mb.createStream();
  mb.synchronize();
  const pieces = descending(80);
  const graph = stream.capture(() => {
    writer.materialize(stream.number, 0, pieces, false, 1);
    writer.copyPages(stream.number, [{ source: 0, destination: 1 }]);
  });
  assertThrows(() => writer.close(), RangeError, "Cannot ");
  writer.clear(0, [{ first: 0, count: ENTRIES }]);
  mb.synchronize();
  graph.launch();
  stream.synchronize();
  assertEquals(entries()[79], entryOf(0, { version: 1 }));
  assertEquals([...writer.streams].sort(), [0, stream.number]);
  graph.close();
  writer.close();
  store.free();
});
