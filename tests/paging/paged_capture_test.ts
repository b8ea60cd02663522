/** Paged ranges under capture: graphs write entries and copy pages, launch after launch. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { MoonBrightError } from "../../lib/errors.ts";
import { decode } from "../../lib/paging/formats.ts";
import type { PagedRange } from "../../lib/paging/paged_range.ts";
import { assertFailsWith } from "../contract/instance_harness.ts";
import { assertSameBytes, testBytes } from "../contract/harness.ts";
import { testOnAll } from "./paged_bench.ts";

const PAGE = 4096;

testOnAll(
  "a graph writes entries and copies pages with each launch",
  (bench) => {
    const { mb } = bench;
    using stream = mb.createStream();
    using space = bench.space({ pages: 64, maxFrames: 32 });
    const range = space.alloc(2, { stream, maxPages: 4 });
    const bytes = testBytes(2 * PAGE, 1);
    range.write(bytes);
    const fork = range.fork();
    const source = bench.linear(PAGE, stream);
    const found = bench.linear(2 * PAGE, stream);
    bench.kernel("paging_copy", "mb_scatter");
    const before = bench.entries(space);
    let inside: PagedRange | undefined;
    const graph = stream.capture(() => {
      range.grow();
      range.writable(0, 1);
      inside = space.alloc(4, { stream });
      const { view } = range;
      bench.launchTransfer("mb_gather", view, stream, found.address, 2 * PAGE);
      bench.launchTransfer("mb_scatter", view, stream, source.address, PAGE);
      bench.launchTransfer(
        "mb_scatter",
        inside.view,
        stream,
        source.address,
        PAGE,
      );
    });
    assert(inside);
    // Nothing is done before the graph is launched.
    assertEquals(bench.entries(space), before);
    assertEquals([range.pages, inside.pages], [3, 4]);
    const { launches } = space.stats();
    for (let round = 2; round < 6; round++) {
      const written = testBytes(PAGE, round);
      source.write(written);
      found.fill(0);
      graph.launch();
      // The page is copied anew each time, before it is written.
      assertSameBytes(found.read(), bytes);
      assertSameBytes(range.read(PAGE), written);
      assertSameBytes(inside.read(PAGE), written);
      assertSameBytes(fork.read(), bytes);
      const entries = bench.decoded(space, range);
      assertEquals(
        entries.map(({ valid, readOnly }) =>
          valid ? readOnly ? "r" : "w" : "-"
        ),
        ["w", "r", "w", "-"],
      );
      assert(bench.decoded(space, inside).every(({ valid }) => valid));
    }
    assertEquals(space.stats().launches, launches);
    graph.close();
    for (const one of [range, fork, inside]) one.free();
    space.forgetGraphs();
    assertEquals(space.stats().usedFrames, 0);
  },
);

testOnAll(
  "case 18: what a graph may write is not used again before it is forgotten",
  (bench) => {
    const { mb } = bench;
    using stream = mb.createStream();
    using space = bench.space({ pages: 32, maxFrames: 16 });
    const range = space.alloc(4, { stream, maxPages: 8 });
    range.write(testBytes(4 * PAGE, 1));
    const fork = range.fork();
    let inside: PagedRange | undefined;
    const graph = stream.capture(() => {
      range.writable(0, 2);
      range.grow(2);
      range.shrink(1);
      inside = space.alloc(1, { stream });
    });
    graph.launch();
    range.free();
    fork.free();
    inside!.free();
    const { usedFrames, retiredPages } = space.stats();
    // Four, two copies, two grown, one inside.
    assertEquals([usedFrames, retiredPages], [9, 0]);
    const others: PagedRange[] = [];
    const contents: Uint8Array[] = [];
    const fill = () => {
      for (;;) {
        try {
          others.push(space.alloc(1, { stream }));
        } catch (error) {
          assert(error instanceof MoonBrightError, String(error));
          assertEquals(error.code, "limit");
          return;
        }
        contents.push(testBytes(PAGE, others.length));
        others.at(-1)!.write(contents.at(-1)!);
      }
    };
    fill();
    assertEquals(others.length, 7);
    const entriesOf = () =>
      others.map((one) => bench.entries(space)[one.firstPage]);
    const entries = entriesOf();
    for (let round = 0; round < 3; round++) graph.launch();
    assertEquals(entriesOf(), entries);
    others.forEach((one, at) => assertSameBytes(one.read(), contents[at]!));
    graph.close();
    space.forgetGraphs();
    assertEquals(space.stats().usedFrames, 7);
    fill();
    assertEquals(others.length, 16);
    others.forEach((one, at) => assertSameBytes(one.read(), contents[at]!));
    for (const one of others) one.free();
    space.clear();
    const left = bench.entries(space).filter((entry) =>
      decode(space.format, entry).valid
    );
    assertEquals(left.length, 0);
  },
);

testOnAll(
  "frames reserved ahead serve a capture of a stream never used before",
  (bench) => {
    const { mb } = bench;
    const pageSize = 65536;
    const perGranule = mb.device.granularity / pageSize;
    using space = bench.space({
      pages: 4 * perGranule,
      pageSize,
      frames: 1,
    });
    using stream = mb.createStream();
    const first = stream.capture(() => {
      assertFailsWith(
        "limit",
        () => space.alloc(perGranule + 1, { stream }),
        "reserve()",
      );
    });
    first.launch();
    first.close();
    space.reserve(perGranule + 2);
    using other = mb.createStream();
    let range: PagedRange | undefined;
    using graph = other.capture(() => {
      range = space.alloc(perGranule + 1, { stream: other });
    });
    const bytes = testBytes(range!.size, 1);
    range!.write(bytes);
    graph.launch();
    const read = bench.gather(range!.view, other);
    assertEquals(read.badPage(), undefined);
    assertSameBytes(read.bytes(), bytes);
    graph.close();
  },
);

testOnAll(
  "a list of runs stays for as long as a graph may read it",
  (bench) => {
    const { mb } = bench;
    using stream = mb.createStream();
    using space = bench.space({ pages: 2048, maxFrames: 400 });
    const ranges = Array.from(
      { length: 400 },
      () => space.alloc(1, { stream }),
    );
    const even = ranges.filter((_, at) => at % 2 === 0);
    for (const range of even) range.free();
    let scattered: PagedRange | undefined;
    const graph = stream.capture(() => {
      scattered = space.alloc(150, { stream });
    });
    graph.launch();
    const entries = bench.entries(space);
    const held = bench.decoded(space, scattered!);
    assertEquals(new Set(held.map(({ address }) => address)).size, 150);
    // Other lists must not take its place, not even when the space runs through many.
    for (let round = 0; round < 30; round++) {
      const range = scattered!.fork();
      range.free();
    }
    scattered!.protect(false);
    graph.launch();
    const again = bench.entries(space);
    const { firstPage } = scattered!;
    assertEquals(
      again.subarray(firstPage, firstPage + 150),
      entries.subarray(firstPage, firstPage + 150),
    );
    graph.close();
  },
);

testOnAll(
  "what can't be captured is refused, and the capture goes on",
  (bench) => {
    const { mb } = bench;
    using stream = mb.createStream();
    using other = mb.createStream();
    using space = bench.space({ pages: 64, maxFrames: 8 });
    const range = space.alloc(2, { stream, maxPages: 4 });
    const bytes = testBytes(2 * PAGE, 1);
    range.write(bytes);
    const fork = range.fork();
    const used = space.alloc(2, { stream });
    used.useOn(other);
    const elsewhere = space.alloc(1, { stream: other });
    mb.synchronize();
    const graph = stream.capture(() => {
      const figures = space.stats();
      for (
        const call of [
          () => range.read(1),
          () => range.write(new Uint8Array(1)),
          () => range.read(1, { stream: other }),
          () => range.write(new Uint8Array(1), { stream: other }),
          () => elsewhere.read(1, { stream }),
          () => elsewhere.write(new Uint8Array(1), { stream }),
          () => elsewhere.useOn(stream),
          () => elsewhere.fork({ stream }),
          () => range.useOn(other),
          () => range.fork({ stream: other }),
          () => used.shrink(),
          () => used.protect(true),
          () => used.writable(),
          () => space.forgetGraphs(),
          () => space.close(),
        ]
      ) assertThrows(call, RangeError, "Cannot ");
      assertFailsWith("limit", () => space.alloc(4, { stream }), "reserve()");
      // Clearing is put off.
      space.clear();
      space.clear(stream);
      assertEquals(space.stats(), figures);
      range.writable(0, 1);
      // Ranges of other streams go on.
      elsewhere.write(testBytes(PAGE, 2));
      assertSameBytes(elsewhere.read(), testBytes(PAGE, 2));
      elsewhere.protect(true);
      elsewhere.free();
    });
    graph.launch();
    assertSameBytes(range.read(), bytes);
    assertSameBytes(fork.read(), bytes);
    range.write(testBytes(PAGE, 3));
    assertSameBytes(range.read(PAGE), testBytes(PAGE, 3));
    assertSameBytes(fork.read(), bytes);
    // The space stays open for as long as graphs hold its kernels.
    assertThrows(() => space.close(), RangeError, "Cannot ");
    assert(!space.closed && range.live);
    range.grow();
    graph.close();
    space.close();
  },
);

testOnAll(
  "a range with readers elsewhere that is freed under capture waits for them",
  (bench) => {
    const { mb } = bench;
    using stream = mb.createStream();
    using reader = mb.createStream();
    using space = bench.space({ pages: 64, maxFrames: 4 });
    const range = space.alloc(4, { stream });
    const bytes = testBytes(4 * PAGE, 1);
    range.write(bytes);
    range.useOn(reader);
    bench.spin(10, reader);
    const found = bench.gather(range.view, reader);
    stream.capture(() => range.free()).close();
    assertEquals(space.stats().usedFrames, 4);
    space.forgetGraphs();
    assertEquals(space.stats().usedFrames, 0);
    const next = space.alloc(4, { stream });
    const after = testBytes(4 * PAGE, 2);
    bench.scatter(next.view, stream, after);
    assertSameBytes(next.read(), after);
    assertSameBytes(found.bytes(), bytes);
  },
);

testOnAll("a capture that fails leaves ranges as they were", (bench) => {
  const { mb } = bench;
  using stream = mb.createStream();
  using space = bench.space({ pages: 64, maxFrames: 48 });
  const bytes = [1, 2, 3].map((seed) => testBytes(4 * PAGE, seed));
  const ranges = bytes.map((bytes) => {
    const range = space.alloc(4, { stream, maxPages: 8 });
    range.write(bytes);
    return range;
  });
  const [shared, plain, last] = ranges as [PagedRange, PagedRange, PagedRange];
  const fork = shared.fork();
  const all = [...ranges, fork];
  const stateOf = () => ({
    ...space.stats(),
    launches: 0,
    entries: bench.entries(space),
    ranges: all.map(({ live, firstPage, pages, version }) => [
      live,
      firstPage,
      pages,
      version,
    ]),
  });
  const before = stateOf();
  const made: PagedRange[] = [];
  const changes: Record<string, () => void> = {
    alloc: () => made.push(space.alloc(3, { stream })),
    grow: () => plain.grow(2),
    shrink: () => plain.shrink(3),
    fork: () => made.push(plain.fork()),
    writable: () => shared.writable(0, 2),
    protect: () => plain.protect(true),
    free: () => last.free(),
  };
  const names = Object.keys(changes);
  // Each alone, and all in both orders.
  const walks = [...names.map((name) => [name]), names, names.toReversed()];
  for (const walk of walks) {
    const error = assertThrows(() =>
      stream.capture(() => {
        for (const name of walk) changes[name]!();
        throw new Error("mine");
      })
    );
    assertEquals((error as Error).message, "mine", walk.join());
    assertEquals(stateOf(), before, walk.join());
    assert(made.splice(0).every(({ live }) => !live));
    bytes.forEach((bytes, at) => assertSameBytes(ranges[at]!.read(), bytes));
    assertSameBytes(fork.read(), bytes[0]!);
  }
  // Nothing of it is kept for a graph that there never was.
  fork.free();
  for (const range of ranges) range.free();
  assertEquals(space.stats().usedFrames, 0);
});
