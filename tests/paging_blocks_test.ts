import { assert, assertEquals, assertThrows } from "@std/assert";
import { join } from "@std/path";
import fc from "fast-check";
import { BUILD_DIR } from "../kernels/build.ts";
import { packArguments } from "../lib/kernel.ts";
import {
  checksumBlock,
  copyPagesBlock,
  invalidateBlock,
  materializeBlock,
  materializeListBlock,
  MOST_RUNS,
  protectBlock,
  readDirectBlock,
  readPagedBlock,
  runList,
  type Span,
  transferBlock,
  viewArguments,
  viewBlock,
} from "../lib/paging/argument_blocks.ts";
import { checksum } from "../lib/paging/checksum.ts";
import { FORMATS, protectBits } from "../lib/paging/formats.ts";
import { readReport, REPORT_NONE } from "../lib/paging/page_report.ts";

const WORD_MASK = 2n ** 64n - 1n;
const format = FORMATS.moonbright;
const target = { entries: 4096, frames: 2 ** 40, pageSize: 65536, format };
const view = { table: 8, pages: 2, pageShift: 16, format };
const runs: Span[] = [{ first: 1, count: 2 }];

Deno.test("every argument block is as long as its kernel's parameter", async () => {
  const blocks: Record<string, Uint8Array> = {
    mb_materialize: materializeBlock(target, runs),
    mb_materialize_list: materializeListBlock(target, runList(runs), 8),
    mb_invalidate: invalidateBlock(8, format, runs),
    mb_protect: protectBlock(8, format, protectBits(format, true), runs),
    mb_checksum: checksumBlock(8, 1, 16),
    mb_gather: transferBlock({ view, offset: 0, bytes: 1, linear: 8 }),
    mb_scatter: transferBlock({ view, offset: 0, bytes: 1, linear: 8 }),
    mb_copy_pages: copyPagesBlock(0, 4096, [{ source: 0, destination: 1 }]),
    mb_read_direct: readDirectBlock(16, 16, 8),
    mb_read_paged: readPagedBlock(view, 16, 8),
    mb_translate_each: readPagedBlock(view, 16, 8),
  };
  const lengths: Record<string, number> = {};
  for (const set of ["paging_entries", "paging_copy", "paging_read"]) {
    const ptx = await Deno.readTextFile(join(BUILD_DIR, `${set}.ptx`));
    for (
      const [, name, bytes] of ptx.matchAll(/\.b8 (\w+)_param_0\[(\d+)\]/g)
    ) {
      lengths[name!] = Number(bytes);
    }
  }
  assertEquals(
    Object.fromEntries(
      Object.entries(blocks).map(([name, { length }]) => [name, length]),
    ),
    lengths,
  );
});

Deno.test("fields of blocks with runs are where the documentation says", () => {
  const block = materializeBlock({ ...target, version: 3 }, [
    { first: 7, count: 5 },
    { first: 2, count: 1 },
  ]);
  const fields = new DataView(block.buffer);
  assertEquals(fields.getBigUint64(0, true), 4096n);
  assertEquals(fields.getBigUint64(8, true), 2n ** 40n);
  assertEquals(fields.getBigUint64(16, true), format.addressMask);
  assertEquals(fields.getBigUint64(24, true), 3n << 52n | 1n);
  assertEquals(fields.getUint32(32, true), 65536);
  assertEquals(fields.getUint32(36, true), 0);
  assertEquals(fields.getUint32(40, true), 6);
  assertEquals(fields.getUint32(44, true), 2);
  const run = (i: number) => [
    fields.getUint32(48 + 8 * i, true),
    fields.getUint32(52 + 8 * i, true),
  ];
  assertEquals([run(0), run(1)], [[0, 7], [5, 2]]);
});

Deno.test("a view among a kernel's arguments is laid out as the struct is", () => {
  for (const layout of Object.values(FORMATS)) {
    const fields = { ...view, table: 2 ** 45 + 8, format: layout };
    assertEquals(packArguments(viewArguments(fields)), viewBlock(fields));
    const words = new BigUint64Array(viewBlock(fields).buffer);
    const shifts = BigInt(layout.addressShift) << 32n | 16n;
    assertEquals([words[0], words[1]], [2n ** 45n + 8n, 2n]);
    assertEquals(words[6], shifts);
  }
});

Deno.test("blocks refuse what they can't hold", () => {
  const refused = (spans: Span[]) => {
    for (
      const make of [
        () => materializeBlock(target, spans),
        () => invalidateBlock(0, format, spans),
        () => protectBlock(0, format, protectBits(format, true), spans),
      ]
    ) assertThrows(make, RangeError, "Cannot make an argument block");
  };
  refused([]);
  refused(Array(MOST_RUNS + 1).fill({ first: 0, count: 1 }));
  refused([{ first: 0, count: 0 }]);
  refused([{ first: -1, count: 1 }]);
  refused([{ first: 0.5, count: 1 }]);
  refused([{ first: 2 ** 32 - 1, count: 2 }]);
  refused(Array(2).fill({ first: 0, count: 2 ** 31 }));
  assertThrows(() => runList([]), RangeError);
  assertThrows(() => runList([{ first: 3, count: 0 }]), RangeError);
  const copies = Array(MOST_RUNS + 1).fill({ source: 0, destination: 1 });
  assertThrows(() => copyPagesBlock(0, 4096, copies), RangeError);
});

Deno.test("a list has all frames in order, in pieces that suit a warp", () => {
  const span = fc.record({
    first: fc.nat(1000),
    count: fc.oneof(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 5000 }),
    ),
  });
  fc.assert(fc.property(fc.array(span, { minLength: 1 }), (spans) => {
    const { bytes, runCount, count } = runList(spans);
    const halves = new Uint32Array(bytes.buffer);
    assertEquals(bytes.length, 8 * runCount);
    const frames: number[] = [];
    for (let run = 0; run < runCount; run++) {
      const end = run + 1 < runCount ? halves[2 * run + 2]! : count;
      assertEquals(halves[2 * run], frames.length);
      assert(end - frames.length <= 128);
      for (let i = 0; frames.length < end; i++) {
        frames.push(halves[2 * run + 1]! + i);
      }
    }
    assertEquals(
      frames,
      spans.flatMap(({ first, count }) =>
        Array.from({ length: count }, (_, i) => first + i)
      ),
    );
  }));
  // Long ones are cut in few enough pieces to be written quickly.
  const { runCount } = runList([{ first: 0, count: 2 ** 26 }]);
  assert(runCount <= 16384, `${runCount} pieces`);
});

/** The checksum as its definition says, with big integers. */
function slowChecksum(entries: BigUint64Array, first: number): bigint {
  const mix = (x: bigint) => {
    x = (x ^ x >> 30n) * 0xBF58476D1CE4E5B9n & WORD_MASK;
    x = (x ^ x >> 27n) * 0x94D049BB133111EBn & WORD_MASK;
    return x ^ x >> 31n;
  };
  let sum = 0n;
  entries.forEach((entry, i) => {
    sum += mix(entry ^ mix(BigInt(first) + BigInt(i) + 1n));
  });
  return sum & WORD_MASK;
}

Deno.test("the checksum is what its definition says", () => {
  const word = fc.bigInt(0n, WORD_MASK);
  fc.assert(fc.property(
    fc.array(word),
    fc.oneof(fc.constant(0), fc.nat(2 ** 40)),
    (words, first) => {
      const entries = new BigUint64Array(words);
      assertEquals(checksum(entries, first), slowChecksum(entries, first));
    },
  ));
  const entries = new BigUint64Array([1n, 2n, 2n]);
  const swapped = new BigUint64Array([2n, 1n, 2n]);
  assert(checksum(entries) !== checksum(swapped));
});

Deno.test("a report names the page and what is wrong with it", () => {
  assertEquals(readReport(REPORT_NONE), undefined);
  assertEquals(readReport(5n << 8n | 1n), { page: 5, fault: "invalid" });
  assertEquals(readReport(0n << 8n | 2n), { page: 0, fault: "read-only" });
  const far = 2n ** 44n << 8n | 3n;
  assertEquals(readReport(far), { page: 2 ** 44, fault: "out-of-range" });
  assertThrows(() => readReport(0n), RangeError, "all ones");
});
