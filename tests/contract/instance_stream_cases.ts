import { assert, assertEquals } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import { Random } from "../model/random.ts";
import { countHostWaits, type InstanceCase } from "./instance_harness.ts";

/** Blocks that several streams use, with kernels that run long after they were queued. */
export const streamOrderCases: InstanceCase[] = [
  {
    name: "freed on one stream, a block serves another only when it is safe",
    check(bench) {
      const mb = bench.open();
      const patterns = bench.patterns(mb);
      const size = 3 * mb.device.granularity;
      const [a, b] = [mb.createStream(), mb.createStream()];
      for (let round = 0; round < 8; round++) {
        // Every other round leaves no other memory to take.
        const scarce = round % 2 === 0;
        mb.budget = scarce ? Math.max(mb.stats().mapped, size) : Infinity;
        const first = mb.alloc(size, { stream: a });
        patterns.spin(bench.scale.longKernelMs, a);
        patterns.fill(first, 2 * round);
        patterns.check(first, 2 * round, `first of round ${round}`);
        const { address } = first;
        first.free();
        using done = a.record();
        const second = mb.alloc(size, { stream: b });
        if (!scarce && second.address === address) {
          assert(done.passed, "handed out under a running kernel");
        }
        patterns.fill(second, 2 * round + 1);
        patterns.checkLate(second, 2 * round + 1, `second of round ${round}`);
        second.free();
      }
      patterns.settle();
    },
  },
  {
    name:
      "case 4: freed on one stream while another still reads, a block waits",
    check(bench) {
      const mb = bench.open();
      const patterns = bench.patterns(mb);
      const size = 2 * mb.device.granularity;
      const second = mb.createStream();
      mb.budget = 2 * size;
      for (let round = 0; round < 12; round++) {
        const block = mb.alloc(size);
        patterns.fill(block, 2 * round);
        block.useOn(second);
        patterns.spin(bench.scale.longKernelMs, second);
        patterns.check(block, 2 * round, `the reader of round ${round}`, {
          stream: second,
        });
        block.free();
        const next = mb.alloc(size);
        patterns.fill(next, 2 * round + 1);
        patterns.checkLate(next, 2 * round + 1, `the next of round ${round}`);
        next.free();
      }
      patterns.settle();
      mb.synchronize();
      mb.alloc(2 * size).free();
      assertEquals(mb.stats().pending, 0);
    },
  },
  {
    name: "case 5: freed on one stream, reused on a second, then on a third",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const streams = [0, 1, 2].map(() => mb.createStream());
      // Neighbours of several streams, so that merging them could lose a wait.
      mb.budget = 6 * granularity;
      for (let round = 0; round < 30; round++) {
        const stream = streams[round % 3]!;
        const blocks = [1, 2, 3].map((size) =>
          mb.alloc(size * granularity - 512, { stream })
        );
        if (round % 4 === 0) patterns.spin(bench.scale.longKernelMs, stream);
        blocks.forEach((block, at) => patterns.fill(block, 3 * round + at));
        blocks.forEach((block, at) =>
          patterns.check(block, 3 * round + at, `round ${round}`)
        );
        for (const block of blocks) block.free();
      }
      patterns.settle();
      assert(mb.stats().mapped <= mb.budget);
    },
  },
  {
    name: "free(stream) hands the block to that stream at once",
    check(bench) {
      const mb = bench.open();
      const patterns = bench.patterns(mb);
      const size = mb.device.granularity;
      const [a, b] = [mb.createStream(), mb.createStream()];
      const hostWaits = countHostWaits(mb);
      const block = mb.alloc(size, { stream: a });
      const { address } = block;
      patterns.spin(bench.scale.longKernelMs, a);
      patterns.fill(block, 1);
      using point = a.record();
      b.wait(point);
      block.free(b);
      const { calls } = mb.stats().driver.map;
      const next = mb.alloc(size, { stream: b });
      assertEquals(next.address, address);
      assertEquals([mb.stats().driver.map.calls, hostWaits()], [calls, 0]);
      patterns.fill(next, 2);
      patterns.checkLate(next, 2, "the next block");
      patterns.settle();
    },
  },
  {
    name: "useOn makes the other stream wait for what the block's own did",
    check(bench) {
      const mb = bench.open();
      const patterns = bench.patterns(mb);
      const [a, b] = [mb.createStream(), mb.createStream()];
      for (let round = 0; round < 6; round++) {
        const block = mb.alloc(mb.device.granularity, { stream: a });
        patterns.spin(bench.scale.longKernelMs, a);
        patterns.fill(block, round);
        patterns.check(block, round, `round ${round} on b`, { stream: b });
        block.free();
      }
      patterns.settle();
    },
  },
  {
    name: "a closed stream's blocks live on, and its memory is used again",
    check(bench) {
      const mb = bench.open();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const stream = mb.createStream();
      const kept = mb.alloc(granularity, { stream });
      const freed = mb.alloc(granularity, { stream });
      patterns.spin(bench.scale.longKernelMs, stream);
      patterns.fill(kept, 1);
      patterns.fill(freed, 2);
      freed.free();
      stream.close();
      assertEquals(kept.stream, mb.defaultStream);
      mb.budget = mb.stats().mapped;
      const next = mb.alloc(granularity);
      patterns.fill(next, 3);
      patterns.check(kept, 1, "kept");
      patterns.check(next, 3, "in the closed stream's memory");
      patterns.settle();
    },
  },
  {
    name: "case 6: 200 rounds of allocate, long kernel, free without a wait",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const mb = bench.openGranular({ maxRetired: 3 });
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const random = new Random(6);
      const pins: { block: Block; seed: number }[] = [];
      mb.budget = 24 * granularity;
      // The ring of results must hold all checks: a full one would wait.
      const checks = Math.min(200, granularity / 32 - 8);
      const hostWaits = countHostWaits(mb);
      for (let round = 0; round < 200; round++) {
        const block = mb.alloc((1 + random.below(5)) * granularity);
        patterns.spin(bench.scale.longKernelMs / 4);
        patterns.fill(block, round);
        if (round % Math.ceil(200 / checks * 2) === 0) {
          patterns.check(block, round, `round ${round}`);
        }
        // Small blocks that stay a while leave holes, so that extents are stitched.
        const pin = mb.alloc(granularity);
        patterns.fill(pin, 1000 + round);
        pins.push({ block: pin, seed: 1000 + round });
        block.free();
        if (pins.length > 4) {
          pins.splice(random.below(4), 1)[0]!.block.free();
        }
      }
      assertEquals(hostWaits(), 0, "a call waited for the device");
      const { ways } = mb.stats();
      assert(ways.stitch.count > 0);
      mb.synchronize();
      for (const { block, seed } of pins) patterns.check(block, seed, "a pin");
      const later = mb.alloc(8 * granularity);
      patterns.fill(later, 9999);
      patterns.check(later, 9999, "a later block");
      patterns.settle();
    },
  },
];
