import { assert, assertEquals, assertThrows } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import { OutOfMemoryError } from "../../lib/errors.ts";
import { Random } from "../model/random.ts";
import {
  assertFailsWith,
  type InstanceCase,
  preload,
} from "./instance_harness.ts";
import type { Patterns } from "./patterns.ts";

/** Resizes a block that holds a pattern, checks it before and fills what is new. */
function resizeFilled(
  patterns: Patterns,
  block: Block,
  seed: number,
  size: number,
): void {
  const before = block.size;
  const { address } = block;
  patterns.check(block, seed, `before resizing from ${before} to ${size}`);
  block.resize(size);
  assertEquals([block.address, block.size], [address, size]);
  assert(block.capacity >= size);
  if (size > before) {
    patterns.fill(block, seed, { from: Math.floor(before / 8) * 8, to: size });
  }
  patterns.check(block, seed, `after resizing from ${before} to ${size}`);
}

/** Changing sizes in place. */
export const resizeCases: InstanceCase[] = [
  {
    name:
      "growable blocks grow and shrink many times over each other's extents",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const random = new Random(21);
      const streams = [mb.defaultStream, mb.createStream()];
      mb.budget = 20 * granularity;
      const mostBytes = 8 * granularity;
      const growables = [0, 1, 2, 3].map((seed) => {
        const block = mb.alloc(1000, {
          maxSize: mostBytes,
          stream: streams[seed % 2]!,
        });
        patterns.fill(block, seed);
        return block;
      });
      let refused = 0;
      let plain: Block | undefined;
      for (let step = 0; step < 250; step++) {
        const seed = random.below(4);
        const block = growables[seed]!;
        const before = block.size;
        try {
          const size = 1 + random.below(mostBytes);
          resizeFilled(patterns, block, seed, size);
        } catch (error) {
          if (!(error instanceof OutOfMemoryError)) throw error;
          refused++;
          assertEquals(block.size, before);
          patterns.check(block, seed, `refused at step ${step}`);
        }
        assert(mb.stats().mapped <= mb.budget);
        // Now and then others take what a shrink gave up.
        if (step % 5 === 0) {
          plain?.free();
          plain = undefined;
          const { free, pending } = mb.stats();
          if (free > granularity && pending === 0) {
            plain = mb.alloc(free >= 2 * granularity ? granularity : 512);
            patterns.fill(plain, 100 + step);
          }
        }
        if (step % 25 === 0) {
          mb.allocator.assertInvariants();
          patterns.settle();
        }
      }
      patterns.settle();
      assert(refused > 0, "the budget never refused");
      const { ways } = mb.stats();
      assertEquals(mb.stats().liveBlocks, plain ? 5 : 4);
      assert(ways.grow.count + ways.stitch.count >= 4);
    },
  },
  {
    name: "a growable block ends at its maxSize, and keeps all when refused",
    check(bench) {
      const mb = bench.open();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const block = mb.alloc(granularity, { maxSize: 3 * granularity });
      patterns.fill(block, 1);
      resizeFilled(patterns, block, 1, 3 * granularity);
      const before = mb.stats();
      assertFailsWith(
        "cannot-grow",
        () => block.resize(3 * granularity + 1),
        "maxSize",
      );
      assertThrows(() => block.resize(0), RangeError);
      assertThrows(() => block.resize(-1), RangeError);
      const { live, mapped, liveBlocks } = mb.stats();
      assertEquals(
        [live, mapped, liveBlocks],
        [before.live, before.mapped, before.liveBlocks],
      );
      patterns.check(block, 1, "after refusals");
      resizeFilled(patterns, block, 1, 1);
      resizeFilled(patterns, block, 1, 2 * granularity + 3);
      patterns.settle();
      block.free();
      assertEquals(mb.trim(), 3 * granularity);
    },
  },
  {
    name:
      "an ordinary block widens into what is free behind it, and no further",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      // All from one extent, so that they lie side by side.
      preload(mb, 8).free();
      const [block, behind, wall] = [1, 1, 1].map(() => mb.alloc(granularity));
      patterns.fill(block!, 1);
      patterns.fill(wall!, 2);
      assertFailsWith("cannot-grow", () => block!.resize(granularity + 1));
      patterns.fill(behind!, 3);
      behind!.free();
      for (const size of [granularity + 1, granularity + 513, 600, 1]) {
        resizeFilled(patterns, block!, 1, size);
      }
      resizeFilled(patterns, block!, 1, 2 * granularity);
      assertFailsWith("cannot-grow", () => block!.resize(2 * granularity + 1));
      resizeFilled(patterns, block!, 1, granularity + 512);
      const tail = mb.alloc(granularity - 512);
      assertEquals(tail.address, block!.address + granularity + 512);
      patterns.fill(tail, 4);
      patterns.check(block!, 1, "beside who took its tail");
      patterns.check(tail, 4, "the tail's owner");
      patterns.check(wall!, 2, "the neighbour");
      assertFailsWith("cannot-grow", () => block!.resize(2 * granularity));
      patterns.settle();
    },
  },
  {
    name: "a block at the frontier grows by mapping more behind it",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      preload(mb, 8);
      const block = mb.alloc(3 * granularity);
      patterns.fill(block, 1);
      for (let granules = 4; granules < 12; granules++) {
        resizeFilled(patterns, block, 1, granules * granularity - granules);
      }
      resizeFilled(patterns, block, 1, 5);
      patterns.settle();
      block.free();
      assertEquals(mb.stats().liveBlocks, 1);
    },
  },
  {
    name: "what a shrink gives up serves another stream only when it is safe",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const [own, other] = [mb.createStream(), mb.createStream()];
      // An extent that reaches over the new end would stay with the block.
      const first = preload(mb, 8);
      for (let round = 0; round < 8; round++) {
        const options = round % 2 === 0 ? { maxSize: 6 * granularity } : {};
        const block = mb.alloc(6 * granularity, { stream: own, ...options });
        mb.budget = mb.stats().mapped;
        patterns.spin(bench.scale.longKernelMs, own);
        // Runs late, over all that the block has until now.
        patterns.fill(block, 1);
        block.resize(granularity);
        const taker = mb.alloc(5 * granularity, { stream: other });
        patterns.fill(taker, 2);
        patterns.check(block, 1, `the rest in round ${round}`);
        patterns.checkLate(taker, 2, `the taker in round ${round}`);
        block.free();
        taker.free();
      }
      patterns.settle();
      assert(first.live);
    },
  },
  {
    name: "what a shrink gives up waits for other streams that used it",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const other = mb.createStream();
      const first = preload(mb, 8);
      for (let round = 0; round < 8; round++) {
        const options = round % 2 === 0 ? { maxSize: 6 * granularity } : {};
        const block = mb.alloc(6 * granularity, options);
        mb.budget = mb.stats().mapped;
        patterns.fill(block, 1);
        block.useOn(other);
        patterns.spin(bench.scale.longKernelMs, other);
        // Reads late, all that the block has until now.
        patterns.check(block, 1, `the reader of round ${round}`, {
          stream: other,
        });
        block.resize(granularity);
        const taker = mb.alloc(5 * granularity);
        patterns.fill(taker, 2);
        patterns.checkLate(taker, 2, `the taker in round ${round}`);
        block.free();
        taker.free();
      }
      patterns.settle();
      assert(first.live);
    },
  },
  {
    name: "whoever uses a block waits for what it grew over, too",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const other = mb.createStream();
      const first = preload(mb, 8);
      for (let round = 0; round < 8; round++) {
        const block = mb.alloc(granularity, { maxSize: 4 * granularity });
        block.useOn(other);
        const before = mb.alloc(3 * granularity);
        mb.budget = mb.stats().mapped;
        patterns.spin(bench.scale.longKernelMs);
        // Runs late, over extents that are the block's by then.
        patterns.fill(before, 1);
        before.free();
        block.resize(4 * granularity);
        patterns.fill(block, 2, { stream: other });
        patterns.check(block, 2, `round ${round}`, { stream: other });
        mb.synchronize();
        patterns.check(block, 2, `round ${round}, later`);
        block.free();
      }
      patterns.settle();
      assert(first.live);
    },
  },
];
