import { assert, assertEquals, assertThrows } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import { Random } from "../model/random.ts";
import { assertSameBytes, testBytes } from "./harness.ts";
import { type InstanceCase, watchMappings } from "./instance_harness.ts";

/** A block with its own bytes at both ends. */
class Marked {
  readonly block: Block;
  readonly #marks: Uint8Array;

  constructor(block: Block, seed: number) {
    this.block = block;
    this.#marks = testBytes(Math.min(32, block.size), seed);
    block.write(this.#marks);
    // Where both overlap, the beginning counts.
    if (block.size >= 64) {
      block.write(this.#marks, { offset: block.size - 32 });
    }
  }

  check(): void {
    const { block } = this;
    const length = this.#marks.length;
    assertSameBytes(block.read(length), this.#marks);
    if (block.size >= 64) {
      assertSameBytes(
        block.read(length, { offset: block.size - 32 }),
        this.#marks,
      );
    }
  }
}

/** Memory and addresses that must come back, for as long as an instance runs. */
export const recyclingCases: InstanceCase[] = [
  {
    name: "case 8: after rounds of 64 blocks the device's free memory is back",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const mb = bench.open();
      const { driver } = mb;
      const { roundBlock } = bench.scale;
      mb.alloc(roundBlock).free();
      mb.trim();
      const baseline = driver.memoryInfo().free;
      for (let round = 0; round < 8; round++) {
        const stream = mb.createStream();
        const blocks = Array.from(
          { length: 64 },
          (_, at) =>
            mb.alloc(roundBlock, at % 4 === 0 ? { stream } : undefined),
        );
        blocks.forEach((block, at) =>
          block.fill((round + at) % 256, { bytes: 64 })
        );
        const growable = mb.alloc(roundBlock / 4, { maxSize: roundBlock });
        growable.useOn(stream);
        growable.resize(roundBlock / 2);
        assert(
          driver.memoryInfo().free <=
            baseline - 64 * roundBlock + bench.backend.memorySlack,
        );
        blocks.forEach((block, at) =>
          assertEquals(block.read(1)[0], (round + at) % 256)
        );
        for (const block of blocks) block.free();
        growable.free();
        const { mapped } = mb.stats();
        assertEquals(mb.trim(), mapped);
        stream.close();
        const { live, mapped: left, pending, retired } = mb.stats();
        assertEquals([live, left, pending, retired], [0, 0, 0, 0]);
        bench.assertFree(mb, baseline);
      }
    },
  },
  {
    name: "an extent that several streams shared comes back",
    check(bench) {
      const mb = bench.open();
      const { granularity } = mb.device;
      mb.allocator.growth.least = granularity;
      const streams = [mb.defaultStream, mb.createStream(), mb.createStream()];
      const parts: Block[] = [];
      for (const stream of streams) {
        // Only memory that is known to be idle is handed to another stream.
        mb.synchronize();
        parts.push(mb.alloc(granularity / 4, { stream }));
      }
      assertEquals(mb.stats().mapped, granularity);
      for (const part of parts) {
        part.fill(1);
        part.free();
      }
      assertEquals(mb.trim(), granularity);
      assertEquals(mb.stats().mapped, 0);
    },
  },
  {
    name: "a closed instance's memory is all there for the next",
    skipOn: ({ memoryComesBack, plain }) => plain || !memoryComesBack,
    check(bench) {
      const first = bench.open();
      const baseline = first.driver.memoryInfo().free;
      first.close();
      for (let round = 0; round < 4; round++) {
        const mb = bench.open();
        bench.assertFree(mb, baseline);
        const patterns = bench.patterns(mb);
        const block = mb.alloc(bench.scale.roundBlock);
        patterns.fill(block, round);
        patterns.spin(bench.scale.longKernelMs);
        mb.alloc(bench.scale.roundBlock, { maxSize: 1e9 });
        mb.alloc(1000).free();
        mb.close();
      }
      bench.assertFree(bench.open(), baseline);
    },
  },
  {
    name: "case 11: lengths that wander by one do not strand memory",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const mb = bench.open();
      const { granularity } = mb.device;
      // Keys, values and logits of a language model, in proportion to the granule.
      const unit = granularity / 512;
      const { growth } = mb.allocator;
      growth.least = granularity;
      growth.extentSize = 4 * granularity;
      const random = new Random(11);
      let length = 2000;
      for (let step = 0; step < 1000; step++) {
        length += random.below(3) - 1;
        const layers = Array.from({ length: 24 }, () => [
          mb.alloc(length * 2 * unit),
          mb.alloc(Math.ceil(length * unit / 2)),
        ]);
        const logits = mb.alloc(length * 8 * unit);
        const { mapped, live } = mb.stats();
        assert(mapped / live < 1.05, `step ${step}: ${mapped / live}`);
        logits.free();
        for (const blocks of layers) for (const block of blocks) block.free();
        if (step % 50 === 0) mb.allocator.assertInvariants();
      }
    },
  },
  {
    name: "case 12: odd sizes keep their own length beside the device's",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const mb = bench.open();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const g = granularity;
      const sizes = [1, 128, 6912, g - 1, g, g + 1];
      let seed = 0;
      for (const maxSize of [undefined, 4 * g]) {
        for (const size of sizes) {
          const block = mb.alloc(size, { maxSize });
          assertEquals(block.size, size);
          assertEquals(block.capacity % (maxSize ? g : 512), 0);
          assert(block.capacity >= size && block.capacity < size + g);
          patterns.fill(block, ++seed);
          patterns.check(block, seed, `${size} bytes`);
          block.fill(7, { offset: size - 1 });
          assertEquals(block.read(1, { offset: size - 1 })[0], 7);
          assertThrows(() => block.read(size + 1), RangeError);
          assertThrows(() => block.fill(0, { offset: size + 1 }), RangeError);
          patterns.settle();
        }
      }
      const { mapped, requested } = mb.stats();
      assertEquals(mapped % g, 0);
      assertEquals(requested, 2 * sizes.reduce((sum, size) => sum + size, 0));
    },
  },
  {
    name:
      "case 14: 10 000 rounds in a small arena recycle addresses after a flush",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const granules = 96;
      const probe = bench.open();
      const { granularity } = probe.device;
      probe.close();
      const mb = bench.openGranular({
        addressSpace: granules * granularity,
      });
      const mappedAgain = watchMappings(mb);
      mb.budget = 32 * granularity;
      const random = new Random(14);
      const blocks: Marked[] = [];
      for (let round = 0; round < 10_000; round++) {
        const size = 1 + random.below(8 * granularity);
        if (mb.stats().live + size > 16 * granularity) {
          const [one] = blocks.splice(random.below(blocks.length), 1);
          one!.check();
          one!.block.free();
        } else {
          blocks.push(new Marked(mb.alloc(size), round));
        }
        if (round % 8 === 0) mb.trim();
        if (round % 250 === 0) mb.allocator.assertInvariants();
      }
      for (const one of blocks) one.check();
      const { driver, flushes, reserved } = mb.stats();
      assert(reserved <= granules * granularity);
      assert(driver.map.bytes > 20 * reserved, "the arena was not worn out");
      assert(mappedAgain() > 1000 && flushes > 10);
    },
  },
];
