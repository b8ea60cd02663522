import { assert, assertEquals } from "@std/assert";
import {
  checksumBlock,
  copyPagesBlock,
  invalidateBlock,
  materializeBlock,
  materializeListBlock,
  type PagedViewFields,
  protectBlock,
  readDirectBlock,
  readPagedBlock,
  runList,
  type Span,
  transferBlock,
} from "../lib/paging/argument_blocks.ts";
import { checksum } from "../lib/paging/checksum.ts";
import { encode, FORMATS, protectBits } from "../lib/paging/formats.ts";
import {
  copyGeometry,
  entriesGeometry,
  listGeometry,
  readGeometry,
} from "../lib/paging/launch_sizes.ts";
import { readReport, REPORT_NONE } from "../lib/paging/page_report.ts";
import { assertSameBytes, testBytes } from "./contract/harness.ts";
import { DEVICES, GEOMETRIES, KernelBench } from "./paging/kernel_bench.ts";

const MIB = 2 ** 20;

/** Neither zero nor a valid entry of any layout. */
const UNTOUCHED = 0xA4A4A4A4A4A4A4A4n;

/** A number generator whose runs repeat. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = Math.imul(state ^ state >>> 15, 0x2C1B3C6D) + 0x6D2B79F5 | 0;
    return ((state ^ state >>> 13) >>> 0) % below;
  };
}

/** Runs of frames that follow neither each other nor an order. */
function randomRuns(
  seed: number,
  runs: number,
  longest: number,
): Span[] {
  const random = randomFrom(seed);
  return Array.from({ length: runs }, () => ({
    first: random(2 ** 16),
    count: 1 + random(longest),
  }));
}

function expandFrames(runs: readonly Span[]): number[] {
  return runs.flatMap(({ first, count }) =>
    Array.from({ length: count }, (_, i) => first + i)
  );
}

function assertWords(actual: BigUint64Array, expected: readonly bigint[]) {
  const at = expected.findIndex((word, i) => word !== actual[i]);
  assert(
    at < 0 && actual.length === expected.length,
    `word ${at} is 0x${actual[at]?.toString(16)}, not 0x${
      expected[at]?.toString(16)
    }`,
  );
}

for (const device of DEVICES) {
  const test = (name: string, fn: (bench: KernelBench) => void) =>
    Deno.test(`${device}: ${name}`, () => {
      using bench = new KernelBench(device, 16 * MIB);
      fn(bench);
    });

  test("materialize writes what the encoder says, in every layout", (bench) => {
    for (const format of Object.values(FORMATS)) {
      for (const pageSize of format.flags.keys()) {
        for (const readOnly of [false, true]) {
          const kind = { pageSize, readOnly, version: 0xABC };
          const frames = 2 ** 34;
          const runs = [{ first: 3, count: 5 }, { first: 1, count: 2 }];
          bench.launch(
            "mb_materialize",
            materializeBlock(
              { entries: bench.memory, frames, format, ...kind },
              runs,
            ),
            { grid: [1], block: [64] },
          );
          assertWords(
            bench.words(0, 7),
            expandFrames(runs).map((frame) =>
              encode(format, { ...kind, address: frames + frame * pageSize })
            ),
          );
        }
      }
    }
  });

  const target = (bench: KernelBench, first: number) => ({
    entries: bench.memory + 8 * first,
    frames: 2 ** 30,
    pageSize: 65536,
    format: FORMATS.moonbright,
  });
  const entryOf = (frame: number) =>
    encode(FORMATS.moonbright, {
      pageSize: 65536,
      address: 2 ** 30 + frame * 65536,
    });

  /** Checks entries written from `first` on, and that none beside them were. */
  const assertEntries = (
    bench: KernelBench,
    first: number,
    runs: readonly Span[],
  ) => {
    const entries = expandFrames(runs).map(entryOf);
    assertWords(bench.words(0, first + entries.length + 3), [
      ...Array(first).fill(UNTOUCHED),
      ...entries,
      ...Array(3).fill(UNTOUCHED),
    ]);
  };

  const RUN_LISTS: Span[][] = [
    ...[1, 2, 3, 4, 255, 4096, 20001].map((count) => [{ first: 7, count }]),
    ...[2, 3, 63, 64].flatMap((runs) => [
      randomRuns(runs, runs, 1),
      randomRuns(runs, runs, 3),
      randomRuns(runs, runs, 900),
    ]),
    [{ first: 9, count: 8191 }, { first: 5, count: 8193 }],
  ];

  for (const first of [2, 3]) {
    test(`materialize writes runs from entry ${first} on and nothing else`, (bench) => {
      for (const runs of RUN_LISTS) {
        const count = expandFrames(runs).length;
        const chosen = entriesGeometry(
          count,
          bench.driver.info.backend,
          bench.driver.info.processors,
        );
        for (const geometry of [chosen, ...GEOMETRIES]) {
          bench.wipe(0xA4);
          const block = materializeBlock(target(bench, first), runs);
          bench.launch("mb_materialize", block, geometry);
          assertEntries(bench, first, runs);
        }
      }
    });

    test(`materialize from a list writes runs from entry ${first} on and nothing else`, (bench) => {
      const long = [
        randomRuns(1, 65, 5),
        randomRuns(2, 1000, 1),
        randomRuns(3, 500, 300),
        [{ first: 1, count: 100_000 }, { first: 9, count: 1 }],
      ];
      const listAt = 8 * MIB;
      for (const runs of [...RUN_LISTS, ...long]) {
        const list = runList(runs);
        const chosen = listGeometry(list.runCount, bench.driver.info.backend);
        for (const geometry of [chosen, ...GEOMETRIES]) {
          bench.wipe(0xA4);
          bench.put(listAt, list.bytes);
          bench.launch(
            "mb_materialize_list",
            materializeListBlock(
              target(bench, first),
              list,
              bench.memory + listAt,
            ),
            geometry,
          );
          assertEntries(bench, first, runs);
        }
      }
    });
  }

  /** Ranges of a table that don't overlap, with the holes between them. */
  const randomRanges = (seed: number, count: number, longest: number) => {
    const random = randomFrom(seed);
    let next = random(4);
    return Array.from({ length: count }, () => {
      const range = { first: next, count: 1 + random(longest) };
      next += range.count + 1 + random(3);
      return range;
    });
  };
  const RANGE_LISTS = [
    [{ first: 0, count: 1 }],
    [{ first: 1, count: 1 }],
    [{ first: 3, count: 20_000 }],
    [{ first: 4, count: 19_999 }],
    randomRanges(1, 2, 10_000),
    randomRanges(2, 63, 4),
    randomRanges(3, 64, 500),
  ];

  test("invalidate clears its ranges and nothing else", (bench) => {
    for (const ranges of RANGE_LISTS) {
      for (const geometry of GEOMETRIES) {
        bench.wipe(0xA4);
        const format = { ...FORMATS.moonbright, invalid: 0x1234567890n };
        const block = invalidateBlock(bench.memory, format, ranges);
        bench.launch("mb_invalidate", block, geometry);
        const expected = Array<bigint>(33_000).fill(UNTOUCHED);
        for (const index of expandFrames(ranges)) {
          expected[index] = format.invalid;
        }
        assertWords(bench.words(0, 33_000), expected);
      }
    }
  });

  test("protect changes the valid entries of its ranges and nothing else", (bench) => {
    const random = randomFrom(5);
    for (const format of Object.values(FORMATS)) {
      for (const ranges of RANGE_LISTS) {
        const before = Array.from(
          { length: 33_000 },
          (_, i) =>
            random(3) === 0
              ? UNTOUCHED
              : encode(format, { pageSize: 65536, address: i * 65536 }),
        );
        bench.put(0, new BigUint64Array(before));
        const expected = before.slice();
        const set = new Set(expandFrames(ranges));
        const changes = [protectBits(format, true), protectBits(format, false)];
        const geometry = GEOMETRIES[ranges.length % GEOMETRIES.length]!;
        const [forbid, allow] = changes.map((change) =>
          protectBlock(bench.memory, format, change, ranges)
        );
        bench.launch("mb_protect", forbid!, geometry);
        for (const index of set) {
          if (before[index] === UNTOUCHED) continue;
          expected[index] = encode(format, {
            pageSize: 65536,
            address: index * 65536,
            readOnly: true,
          });
        }
        assertWords(bench.words(0, 33_000), expected);
        bench.launch("mb_protect", allow!, geometry);
        assertWords(bench.words(0, 33_000), before);
      }
    }
  });

  test("the checksum is the host's, and parts add up", (bench) => {
    const sumAt = 8 * MIB;
    const bytes = testBytes(8 * 10_001, 3);
    const words = new BigUint64Array(bytes.buffer);
    bench.put(0, bytes);
    const { backend, processors } = bench.driver.info;
    for (
      const [from, to] of [
        [0, 0],
        [0, 1],
        [1, 2],
        [1, 3],
        [2, 5],
        [3, 10_001],
        [0, 10_001],
      ]
    ) {
      for (const split of [from!, from! + (to! - from! >> 1)]) {
        bench.put(sumAt, new BigUint64Array([5n]));
        for (const [first, end] of [[from!, split], [split, to!]]) {
          bench.launch(
            "mb_checksum",
            checksumBlock(
              bench.memory + 8 * first!,
              end! - first!,
              bench.memory + sumAt,
              first,
            ),
            readGeometry(8 * (end! - first!), backend, processors),
          );
        }
        assertEquals(
          bench.words(sumAt, 1)[0],
          BigInt.asUintN(64, 5n + checksum(words.subarray(from!, to!), from!)),
        );
      }
    }
  });

  /** Pages in shuffled frames behind a table at the beginning of the memory. */
  const scattered = (
    bench: KernelBench,
    pageSize: number,
    pages: number,
    seed: number,
  ) => {
    const random = randomFrom(seed);
    const frames = Array.from({ length: pages }, (_, i) => i);
    for (let i = pages - 1; i > 0; i--) {
      const other = random(i + 1);
      [frames[i], frames[other]] = [frames[other]!, frames[i]!];
    }
    const store = 2 * MIB;
    const format = FORMATS.moonbright;
    const entries = new BigUint64Array(frames.map((frame) =>
      encode(format, {
        pageSize,
        address: bench.memory + store + frame * pageSize,
      })
    ));
    bench.put(0, entries);
    const view: PagedViewFields = {
      table: bench.memory,
      pages,
      pageShift: Math.log2(pageSize),
      format,
    };
    const bytes = testBytes(pages * pageSize, seed);
    frames.forEach((frame, page) =>
      bench.put(
        store + frame * pageSize,
        bytes.subarray(page * pageSize, (page + 1) * pageSize),
      )
    );
    return { view, bytes, entries, frames, store };
  };

  const TRANSFERS = [
    [0, 0],
    [0, 1],
    [0, 300_000],
    [5, 100_001],
    [4090, 12],
    [4096, 65536],
    [65_535, 2],
    [70_000, 16],
    [123_456, 98_765],
  ] as const;

  for (const pageSize of [4096, 65536]) {
    const pages = pageSize === 4096 ? 100 : 7;

    test(`gather and scatter move bytes through pages of ${pageSize} bytes`, (bench) => {
      const { view, bytes } = scattered(bench, pageSize, pages, pageSize);
      const linear = 8 * MIB;
      const back = 10 * MIB;
      for (const [offset, length] of TRANSFERS) {
        for (const shift of [0, 1, 16 + (offset % 16)]) {
          const chosen = copyGeometry(length, bench.driver.info.backend);
          for (const geometry of [chosen, GEOMETRIES[1]!]) {
            bench.driver.fill(bench.memory + linear, 0xEE, 1, MIB, 0);
            const address = bench.memory + linear + 16 + shift;
            const transfer = { view, offset, bytes: length };
            bench.launch(
              "mb_gather",
              transferBlock({ ...transfer, linear: address }),
              geometry,
            );
            const expected = new Uint8Array(length + 64).fill(0xEE);
            expected.set(bytes.subarray(offset, offset + length), 16 + shift);
            assertSameBytes(bench.bytes(linear, length + 64), expected);

            const written = testBytes(length, offset + shift);
            const after = bytes.slice();
            after.set(written, offset);
            bench.put(linear + 16 + shift, written);
            bench.launch(
              "mb_scatter",
              transferBlock({ ...transfer, linear: address }),
              geometry,
            );
            const all = { view, offset: 0, bytes: bytes.length };
            const gather = (to: number) =>
              bench.launch(
                "mb_gather",
                transferBlock({ ...all, linear: bench.memory + to }),
                geometry,
              );
            gather(back);
            assertSameBytes(bench.bytes(back, bytes.length), after);
            bench.put(back, bytes);
            bench.launch(
              "mb_scatter",
              transferBlock({ ...all, linear: bench.memory + back }),
              geometry,
            );
          }
        }
      }
    });

    test(`gather and scatter leave out and report bad pages of ${pageSize} bytes`, (bench) => {
      const world = scattered(bench, pageSize, pages, 11);
      const { entries, bytes } = world;
      const reportAt = 14 * MIB;
      const view = { ...world.view, pages: pages - 1 };
      entries[3] = 0n;
      entries[2]! |= FORMATS.moonbright.readOnlySet;
      bench.put(0, entries);
      const run = (kernel: string, first: number) => {
        bench.put(reportAt, new BigUint64Array([REPORT_NONE]));
        bench.launch(
          kernel,
          transferBlock({
            view,
            offset: first * pageSize,
            bytes: (pages - first) * pageSize,
            linear: bench.memory + 8 * MIB,
            report: bench.memory + reportAt,
          }),
          { grid: [5], block: [64] },
        );
        return readReport(bench.words(reportAt, 1)[0]!);
      };
      bench.driver.fill(bench.memory + 8 * MIB, 0xEE, 1, MIB, 0);
      assertEquals(run("mb_gather", 0), { page: 3, fault: "invalid" });
      const expected = bytes.slice();
      expected.fill(0xEE, 3 * pageSize, 4 * pageSize);
      expected.fill(0xEE, (pages - 1) * pageSize);
      assertSameBytes(bench.bytes(8 * MIB, bytes.length), expected);
      assertEquals(run("mb_gather", 4), {
        page: pages - 1,
        fault: "out-of-range",
      });

      bench.driver.fill(bench.memory + 8 * MIB, 0x77, 1, MIB, 0);
      assertEquals(run("mb_scatter", 0), { page: 2, fault: "read-only" });
      world.frames.forEach((frame, page) => {
        const now = bench.bytes(world.store + frame * pageSize, pageSize);
        const kept = page === 2 || page === 3 || page === pages - 1;
        assertSameBytes(
          now,
          kept
            ? bytes.subarray(page * pageSize, (page + 1) * pageSize)
            : new Uint8Array(pageSize).fill(0x77),
        );
      });
    });

    test(`frames of ${pageSize} bytes are copied, and only to where they should`, (bench) => {
      const count = pageSize === 4096 ? 64 : 3;
      const bytes = testBytes(2 * count * pageSize, 8);
      bench.put(0, bytes);
      const copies = Array.from({ length: count }, (_, i) => ({
        source: 2 * i,
        destination: 2 * (count - 1 - i) + 1,
      }));
      const chosen = copyGeometry(count * pageSize, bench.driver.info.backend);
      for (const geometry of [chosen, ...GEOMETRIES]) {
        bench.put(0, bytes);
        bench.launch(
          "mb_copy_pages",
          copyPagesBlock(bench.memory, pageSize, copies),
          geometry,
        );
        const expected = bytes.slice();
        for (const { source, destination } of copies) {
          expected.set(
            bytes.subarray(source * pageSize, (source + 1) * pageSize),
            destination * pageSize,
          );
        }
        assertSameBytes(bench.bytes(0, bytes.length), expected);
      }
    });

    test(`both ways of reading pages of ${pageSize} bytes sum up what direct reading does`, (bench) => {
      const { view, bytes, store } = scattered(bench, pageSize, pages, 4);
      const sumAt = 14 * MIB;
      const run = (kernel: string, block: Uint8Array) => {
        bench.put(sumAt, new BigUint64Array([1n]));
        const { backend, processors } = bench.driver.info;
        const geometry = readGeometry(bytes.length, backend, processors);
        bench.launch(kernel, block, geometry);
        return bench.words(sumAt, 1)[0];
      };
      const sum = bench.memory + sumAt;
      const expected = BigInt.asUintN(
        64,
        new BigUint64Array(bytes.buffer).reduce((a, b) => a + b, 1n),
      );
      assertEquals(
        run(
          "mb_read_direct",
          readDirectBlock(bench.memory + store, bytes.length, sum),
        ),
        expected,
      );
      const paged = readPagedBlock(view, bytes.length, sum);
      assertEquals(run("mb_read_paged", paged), expected);
      assertEquals(run("mb_translate_each", paged), expected);
    });
  }
}
