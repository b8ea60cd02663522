/**
 * Paged ranges on several streams: whatever is still under way sees what it was promised.
 */

import { assert, assertEquals } from "@std/assert";
import type { PagedRange } from "../../lib/paging/paged_range.ts";
import type { PagedSpace } from "../../lib/paging/paged_space.ts";
import type { Stream } from "../../lib/stream.ts";
import { assertSameBytes, testBytes } from "../contract/harness.ts";
import { countHostWaits } from "../contract/instance_harness.ts";
import {
  type Gathered,
  type PagedBench,
  testInManyOrders,
  testOnAll,
} from "./paged_bench.ts";

const PAGE = 4096;
const SPIN_MS = 10;

/** Orders of work that each hazard is tried in. */
const ORDERS = 15;

interface Hazard {
  what: string;
  check(bench: PagedBench): void;
}

/** What kernels must find, checked once all are queued. */
class Promises {
  readonly #bench: PagedBench;
  readonly #all: { found: Gathered; expected: Uint8Array; what: string }[] = [];

  constructor(bench: PagedBench) {
    this.#bench = bench;
  }

  /** Puts a kernel into a stream that must find these bytes in a range. */
  reads(
    range: PagedRange,
    stream: Stream,
    expected: Uint8Array,
    what: string,
  ): void {
    const found = this.#bench.gather(range.view, stream);
    this.#all.push({ found, expected, what });
  }

  /** Puts a kernel into a stream that writes a range. */
  writes(range: PagedRange, stream: Stream, bytes: Uint8Array): void {
    range.writable();
    if (stream.number !== 0) range.useOn(stream);
    this.#bench.scatter(range.view, stream, bytes);
  }

  settle(): void {
    // The last first: a driver that does only what is waited for leaves the others behind.
    for (const { found, expected, what } of this.#all.toReversed()) {
      assertEquals(found.badPage(), undefined, what);
      try {
        assertSameBytes(found.bytes(), expected);
      } catch (cause) {
        throw new Error(`${what}: ${(cause as Error).message}`, { cause });
      }
    }
  }
}

/** A range with contents of its own. */
function filled(
  space: PagedSpace,
  stream: Stream,
  pages: number,
  seed: number,
): { range: PagedRange; bytes: Uint8Array } {
  const range = space.alloc(pages, { stream });
  const bytes = testBytes(pages * PAGE, seed);
  range.write(bytes);
  return { range, bytes };
}

const HAZARDS: Hazard[] = [
  {
    what: "frames freed on a busy stream serve another one only after it",
    check(bench) {
      const { mb } = bench;
      const [a, b] = [mb.createStream(), mb.createStream()];
      using space = bench.space({ pages: 64, maxFrames: 4 });
      const promises = new Promises(bench);
      const { range, bytes } = filled(space, a, 4, 1);
      mb.synchronize();
      bench.spin(SPIN_MS, a);
      promises.reads(range, a, bytes, "the first owner");
      range.free();
      const next = space.alloc(4, { stream: b });
      const later = testBytes(4 * PAGE, 2);
      bench.scatter(next.view, b, later);
      promises.reads(next, b, later, "the second owner");
      promises.settle();
      next.free();
    },
  },
  {
    what: "frames freed on a stream serve itself at once, in its order",
    check(bench) {
      const { mb } = bench;
      const a = mb.createStream();
      using space = bench.space({ pages: 256, maxFrames: 4 });
      const promises = new Promises(bench);
      const waits = countHostWaits(mb);
      for (let round = 0; round < 20; round++) {
        const range = space.alloc(4, { stream: a });
        const bytes = testBytes(4 * PAGE, round);
        bench.scatter(range.view, a, bytes);
        promises.reads(range, a, bytes, `round ${round}`);
        range.free();
      }
      assertEquals(waits(), 0);
      promises.settle();
    },
  },
  {
    what: "a reader on another stream keeps frames and entries",
    check(bench) {
      const { mb } = bench;
      const [a, b] = [mb.createStream(), mb.createStream()];
      for (const change of ["free", "shrink", "write", "protect"] as const) {
        using space = bench.space({ pages: 32, maxFrames: 4 });
        const promises = new Promises(bench);
        const { range, bytes } = filled(space, a, 4, 1);
        range.useOn(b);
        bench.spin(SPIN_MS, b);
        promises.reads(range, b, bytes, `reader before ${change}`);
        if (change === "write") promises.writes(range, a, testBytes(4, 5));
        else if (change === "protect") range.protect(true);
        else {
          if (change === "shrink") range.shrink(4);
          else range.free();
          const next = space.alloc(4, { stream: a });
          bench.scatter(next.view, a, testBytes(4 * PAGE, 6));
        }
        promises.settle();
        space.close();
      }
    },
  },
  {
    what: "bytes written on another stream arrive before the frames go on",
    check(bench) {
      const { mb } = bench;
      const [a, b] = [mb.createStream(), mb.createStream()];
      using space = bench.space({ pages: 64, maxFrames: 8 });
      const { range } = filled(space, a, 2, 1);
      const fork = range.fork();
      bench.spin(SPIN_MS, b);
      // Copies the shared page first.
      range.write(testBytes(PAGE, 2), { stream: b });
      range.free();
      const next = space.alloc(6, { stream: a });
      const bytes = testBytes(6 * PAGE, 3);
      bench.scatter(next.view, a, bytes);
      mb.synchronize();
      assertSameBytes(next.read(), bytes);
      assertSameBytes(fork.read(), testBytes(2 * PAGE, 1));
    },
  },
  {
    what: "what forks on other streams read is not written before",
    check(bench) {
      const { mb } = bench;
      const [a, b, c] = [1, 2, 3].map(() => mb.createStream()) as [
        Stream,
        Stream,
        Stream,
      ];
      for (const order of ["abc", "acb", "bac", "bca", "cab", "cba"]) {
        using space = bench.space({ pages: 64, maxFrames: 8 });
        const promises = new Promises(bench);
        const { range, bytes } = filled(space, a, 4, 1);
        const forks = {
          a: range,
          b: range.fork({ stream: b }),
          c: range.fork({ stream: c }),
        };
        const streams = { a, b, c };
        const [first, second, last] = [...order] as ("a" | "b" | "c")[];
        for (const one of [first!, second!]) {
          bench.spin(SPIN_MS / 4, streams[one]);
          promises.reads(forks[one], streams[one], bytes, `${order}: ${one}`);
          forks[one].free();
        }
        // The last one owns the frames alone now, and writes in place.
        const after = testBytes(4 * PAGE, 2);
        promises.writes(forks[last!], streams[last!], after);
        promises.reads(forks[last!], streams[last!], after, `${order}: last`);
        assertEquals(space.stats().usedFrames, 4);
        forks[last!].free();
        const next = space.alloc(8, { stream: streams[first!] });
        bench.scatter(
          next.view,
          streams[first!],
          testBytes(8 * PAGE, 3),
        );
        promises.settle();
      }
    },
  },
  {
    what: "parts of a run that different streams have come to own wait for all",
    check(bench) {
      const { mb } = bench;
      const [a, b, d] = [1, 2, 3].map(() => mb.createStream()) as [
        Stream,
        Stream,
        Stream,
      ];
      using space = bench.space({ pages: 64, maxFrames: 16 });
      const promises = new Promises(bench);
      const { range, bytes } = filled(space, a, 2, 1);
      const onB = range.fork({ stream: b });
      const onD = range.fork({ stream: d });
      bench.spin(SPIN_MS, a);
      promises.reads(range, a, bytes, "a");
      range.free();
      // B alone has page 0 then, D alone page 1.
      onB.shrink();
      onD.writable(0, 1);
      const first = testBytes(PAGE, 2);
      promises.writes(onB, b, first);
      const both = testBytes(2 * PAGE, 3);
      promises.writes(onD, d, both);
      promises.reads(onB, b, first, "b");
      promises.reads(onD, d, both, "d");
      promises.settle();
    },
  },
  {
    what: "a new stream uses cleared pages only after the clearing",
    check(bench) {
      const { mb } = bench;
      const a = mb.createStream();
      using space = bench.space({ pages: 8, maxFrames: 64 });
      const promises = new Promises(bench);
      const { range } = filled(space, a, 6, 1);
      mb.synchronize();
      bench.spin(SPIN_MS, a);
      range.free();
      space.clear(a);
      // What it takes was never on stream A: frames alone make it wait for nothing.
      const b = mb.createStream();
      const next = space.alloc(8, { stream: b });
      const bytes = testBytes(8 * PAGE, 2);
      bench.scatter(next.view, b, bytes);
      mb.synchronize();
      promises.reads(next, b, bytes, "new stream");
      promises.settle();
    },
  },
  {
    what: "pages cleared on one stream serve others behind all readers",
    check(bench) {
      const { mb } = bench;
      const streams = [1, 2, 3, 4].map(() => mb.createStream());
      using space = bench.space({ pages: 16, maxFrames: 64 });
      const promises = new Promises(bench);
      for (let round = 0; round < 12; round++) {
        const stream = streams[round % 4]!;
        const reader = streams[(round + 1) % 4]!;
        const range = space.alloc(8, { stream });
        const bytes = testBytes(8 * PAGE, round);
        bench.scatter(range.view, stream, bytes);
        range.useOn(reader);
        bench.spin(1, reader);
        promises.reads(range, reader, bytes, `round ${round}`);
        range.free();
      }
      promises.settle();
    },
  },
  {
    what: "ranges of a closed stream follow the default stream",
    check(bench) {
      const { mb } = bench;
      using space = bench.space({ pages: 64, maxFrames: 16 });
      const promises = new Promises(bench);
      const a = mb.createStream();
      const b = mb.createStream();
      const { range, bytes } = filled(space, a, 2, 1);
      const dropped = space.alloc(1, { stream: a });
      const onB = range.fork({ stream: b, maxPages: 4 });
      range.useOn(b);
      bench.spin(SPIN_MS, b);
      promises.reads(range, b, bytes, "reader of the range");
      a.close();
      // Gets the closed stream's number: its order is none of the ranges' business.
      const other = mb.createStream();
      assertEquals(other.number, 1);
      bench.spin(SPIN_MS, other);
      dropped.free();
      const fork = range.fork();
      range.write(testBytes(PAGE, 2));
      promises.reads(fork, mb.defaultStream, bytes, "fork");
      const after = bytes.slice();
      after.set(testBytes(PAGE, 2));
      promises.reads(range, mb.defaultStream, after, "range");
      b.close();
      onB.grow(2);
      onB.write(bytes, { offset: 2 * PAGE });
      onB.protect(true);
      onB.shrink();
      range.free();
      fork.free();
      space.clear();
      const whole = space.alloc(12, { maxPages: 50, stream: other });
      bench.scatter(whole.view, other, testBytes(12 * PAGE, 3));
      promises.reads(whole, other, testBytes(12 * PAGE, 3), "whole");
      promises.reads(
        onB,
        mb.defaultStream,
        Uint8Array.from([...bytes, ...bytes.subarray(0, PAGE)]),
        "fork of a closed stream",
      );
      promises.settle();
      space.clear(other);
      other.close();
      space.clear();
    },
  },
  {
    what: "a space can be closed after its streams",
    check(bench) {
      const { mb } = bench;
      const space = bench.space({ pages: 64, maxFrames: 16 });
      const { live } = mb.stats();
      for (let round = 0; round < 3; round++) {
        const stream = mb.createStream();
        filled(space, stream, 2, round);
        stream.close();
      }
      space.close();
      assert(mb.stats().live < live);
    },
  },
  {
    what: "closing a space waits for its kernels",
    check(bench) {
      const { mb } = bench;
      const space = bench.space({ pages: 64, maxFrames: 16 });
      const a = mb.createStream();
      bench.spin(SPIN_MS, a);
      const range = space.alloc(4, { stream: a });
      range.fork().writable();
      space.close();
      const block = mb.alloc(64 * 1024);
      block.fill(7);
      mb.synchronize();
      assert(block.read().every((byte) => byte === 7));
    },
  },
];

for (const { what, check } of HAZARDS) {
  testOnAll(what, check);
  testInManyOrders(`${what}, in ${ORDERS} orders of work`, ORDERS, check);
}
