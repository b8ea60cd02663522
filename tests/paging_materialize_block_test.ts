import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { materializeBlock, MOST_RUNS } from "../lib/paging/argument_blocks.ts";
import { FORMATS } from "../lib/paging/formats.ts";
import { FrameRun, type Piece } from "../lib/paging/frame_run.ts";
import { MaterializeBlock } from "../lib/paging/materialize_block.ts";

const PAGE = 65536;

function piece(first: number, offset: number, count: number): Piece {
  return { run: new FrameRun(first, offset + count), offset, count };
}

Deno.test("the block filled in place is the one that is made anew", () => {
  const lists = fc.array(
    fc.record({
      gap: fc.integer({ min: 1, max: 1000 }),
      offset: fc.integer({ min: 0, max: 9 }),
      count: fc.integer({ min: 1, max: 5000 }),
    }),
    { minLength: 1, maxLength: MOST_RUNS },
  );
  const blocks = new Map(
    Object.values(FORMATS).map((format) => [
      format,
      new MaterializeBlock({ frames: 3 * 2 ** 40, pageSize: PAGE, format }),
    ]),
  );
  fc.assert(fc.property(
    lists,
    fc.constantFrom(...Object.values(FORMATS)),
    fc.boolean(),
    fc.nat(10_000),
    fc.nat(2 ** 30),
    (list, format, readOnly, version, page) => {
      let next = 0;
      const pieces = list.map(({ gap, offset, count }) => {
        const first = next + gap;
        next = first + offset + count;
        return piece(first, offset, count);
      });
      const entries = 2 ** 45 + 8 * page;
      const filled = blocks.get(format)!;
      const count = filled.fill(entries, pieces, readOnly, version);
      const runs = pieces.map(({ run, offset, count }) => ({
        first: run.first + offset,
        count,
      }));
      const made = materializeBlock({
        entries,
        frames: 3 * 2 ** 40,
        format,
        pageSize: PAGE,
        readOnly,
        version,
        inLeafTable: true,
      }, runs);
      assertEquals(count, runs.reduce((sum, run) => sum + run.count, 0));
      // Runs behind the last are left over from before; nothing reads them.
      const used = 48 + 8 * runs.length;
      assertEquals(filled.bytes.slice(0, used), made.slice(0, used));
    },
  ));
});

Deno.test("frames that continue each other are one run, and too many runs are refused", () => {
  const block = new MaterializeBlock({
    frames: 0,
    pageSize: PAGE,
    format: FORMATS.moonbright,
  });
  const runsOf = () => new DataView(block.bytes.buffer).getUint32(44, true);
  assertEquals(block.fill(8, [piece(0, 0, 4), piece(2, 2, 6)], false, 0), 10);
  assertEquals(runsOf(), 1);
  const scattered = Array.from(
    { length: MOST_RUNS },
    (_, i) => piece(2 * i, 0, 1),
  );
  assertEquals(block.fill(8, scattered, false, 0), MOST_RUNS);
  assertEquals(
    block.fill(8, [...scattered, piece(2 * MOST_RUNS, 0, 1)], false, 0),
    0,
  );
});
