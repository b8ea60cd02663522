import { assert, assertEquals } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import { Random } from "../model/random.ts";
import { assertSameBytes, testBytes } from "./harness.ts";
import { type Bench, type InstanceCase, preload } from "./instance_harness.ts";

/** Live blocks and, between them, holes of one to three granules. */
function scatter(bench: Bench, mb: MoonBright) {
  const patterns = bench.patterns(mb);
  const { granularity } = mb.device;
  const neighbours = [preload(mb, 12)];
  const holes: Block[] = [];
  for (let at = 0; at < 24; at++) {
    const block = mb.alloc((1 + at % 3) * granularity);
    (at % 2 === 0 ? neighbours : holes).push(block);
  }
  neighbours.forEach((block, seed) => patterns.fill(block, seed));
  let holeBytes = 0;
  for (const block of holes) {
    holeBytes += block.capacity;
    // What an earlier owner left must not shine through.
    patterns.fill(block, 99);
    block.free();
  }
  const assertNeighbours = () => {
    neighbours.forEach((block, seed) =>
      patterns.check(block, seed, `neighbour ${seed}`)
    );
    patterns.settle();
  };
  return { patterns, holeBytes, assertNeighbours };
}

/** A block that stitches all the holes, and where its extents meet. */
function stitchAll(mb: MoonBright, bytes: number) {
  const before = mb.stats();
  const block = mb.alloc(bytes);
  const { ways, mapped } = mb.stats();
  assertEquals(ways.stitch.count, before.ways.stitch.count + 1);
  assertEquals(mapped, before.mapped, "stitching grew the heap");
  const seams = mb.snapshot().extents
    .flatMap(({ address }) => address === null ? [] : [address - block.address])
    .filter((offset) => offset > 0 && offset < block.capacity)
    .sort((a, b) => a - b);
  assert(seams.length >= 11, `${seams.length} seams`);
  return { block, seams };
}

/** Blocks made of scattered extents. */
export const seamCases: InstanceCase[] = [
  {
    name: "a stitched block reads and writes across every seam",
    check(bench) {
      const mb = bench.openGranular();
      const { patterns, holeBytes, assertNeighbours } = scatter(bench, mb);
      const { block, seams } = stitchAll(mb, holeBytes);
      const { granularity } = mb.device;
      patterns.fill(block, 1000);
      for (const [index, seam] of seams.entries()) {
        const bytes = testBytes(77, index);
        block.write(bytes, { offset: seam - 38 });
        block.fill(0x1020304 + index, {
          offset: seam - 512,
          bytes: 400,
          width: 4,
        });
        block.fill(index, { offset: seam + 300, bytes: 17 });
      }
      seams.forEach((seam, index) => {
        assertSameBytes(
          block.read(77, { offset: seam - 38 }),
          testBytes(77, index),
        );
        assertSameBytes(
          block.read(17, { offset: seam + 300 }),
          new Uint8Array(17).fill(index),
        );
        const words = new Uint32Array(
          block.read(400, { offset: seam - 512 }).buffer,
        );
        assert(words.every((word) => word === 0x1020304 + index));
      });
      // Fills that cross seams, of every width.
      for (const width of [1, 2, 4] as const) {
        for (const seam of seams) {
          block.fill(3 + width, { offset: seam - 8, bytes: 20, width });
          const expected = new Uint8Array(20);
          for (let at = 0; at < 20; at += width) expected[at] = 3 + width;
          assertSameBytes(block.read(20, { offset: seam - 8 }), expected);
        }
      }
      // What lies between the seams is as it was.
      patterns.fill(block, 1001);
      for (const seam of seams) {
        patterns.check(block, 1001, `around the seam at ${seam}`, {
          from: seam - granularity / 2,
          to: seam + granularity / 2,
        });
      }
      patterns.check(block, 1001, "the whole block");
      assertNeighbours();
    },
  },
  {
    name: "copies on the device cross seams at both ends",
    check(bench) {
      const mb = bench.openGranular();
      const { patterns, holeBytes, assertNeighbours } = scatter(bench, mb);
      const { block, seams } = stitchAll(mb, holeBytes);
      const half = block.size / 2;
      patterns.fill(block, 7);
      const source = block.read(4096, { offset: seams[0]! - 2048 });
      // An odd distance: no seam of the source meets one of the destination.
      mb.driver.copy(block.address + half + 5, block.address, half - 512, 0);
      patterns.check(block, 7, "the source", { to: half });
      assertSameBytes(
        block.read(4096, { offset: half + 5 + seams[0]! - 2048 }),
        source,
      );
      for (const seam of seams.filter((seam) => seam < half - 1024)) {
        assertSameBytes(
          block.read(64, { offset: half + 5 + seam - 32 }),
          block.read(64, { offset: seam - 32 }),
        );
      }
      assertNeighbours();
    },
  },
  {
    name: "extents are stitched again and again, and neighbours never notice",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      preload(mb, 48);
      const random = new Random(5);
      let seeds = 0;
      const single = () => {
        const seed = seeds++;
        const block = mb.alloc(granularity);
        patterns.fill(block, seed);
        return { block, seed };
      };
      const singles = Array.from({ length: 48 }, single);
      const { mapped } = mb.stats();
      const rounds = 8;
      for (let round = 0; round < rounds; round++) {
        for (let freed = 0; freed < 24; freed++) {
          const [one] = singles.splice(random.below(singles.length), 1);
          patterns.check(one!.block, one!.seed, `freed in round ${round}`);
          one!.block.free();
        }
        const stitched = mb.alloc(24 * granularity - 7);
        const seed = seeds++;
        patterns.fill(stitched, seed);
        for (const one of singles) {
          patterns.check(one.block, one.seed, `neighbour in round ${round}`);
        }
        patterns.check(stitched, seed, `stitched in round ${round}`);
        stitched.free();
        while (singles.length < 48) singles.push(single());
        if (round % 3 === 2) mb.flush({ wait: true });
        mb.allocator.assertInvariants();
      }
      patterns.settle();
      const { ways, mapped: after } = mb.stats();
      assertEquals(after, mapped);
      assert(ways.stitch.count >= rounds - 1, `${ways.stitch.count} stitched`);
    },
  },
];
