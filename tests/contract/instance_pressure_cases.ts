import { assert, assertEquals, assertThrows } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import { OutOfMemoryError } from "../../lib/errors.ts";
import { Random } from "../model/random.ts";
import { type InstanceCase, preload, randomSize } from "./instance_harness.ts";

/** Little memory. */
export const pressureCases: InstanceCase[] = [
  {
    name: "a budget holds, and its error says what there was",
    check(bench) {
      const mb = bench.open();
      const { granularity, backend, ordinal } = mb.device;
      mb.budget = 8 * granularity;
      const large = mb.alloc(5 * granularity);
      // The rest of its extent is free and can neither be stitched nor given back.
      const pin = mb.alloc(3 * granularity);
      pin.resize(granularity + 512);
      const rest = 2 * granularity - 512;
      const before = mb.stats();
      const requested = 2 * granularity;
      const { details, operation, message } = assertThrows(
        () => mb.alloc(requested),
        OutOfMemoryError,
      );
      const { deviceFree, ...figures } = details;
      assertEquals(figures, {
        requested,
        live: 6 * granularity + 512,
        free: rest,
        largestFree: rest,
        stitchable: 0,
        pending: 0,
        captured: 0,
        mapped: 8 * granularity,
        budget: 8 * granularity,
        device: `${backend}:${ordinal}`,
      });
      assert(deviceFree > 0 && deviceFree <= mb.device.totalMemory);
      assertEquals(operation, "alloc");
      for (const word of ["live", "free", "largest", "budget", "snapshot()"]) {
        assert(message.includes(word), message);
      }
      assertEquals(mb.stats().live, before.live);
      mb.alloc(rest).free();
      assertThrows(() => mb.alloc(requested), OutOfMemoryError);
      mb.budget = 16 * granularity;
      mb.alloc(requested).free();
      // Below what is mapped: nothing comes back by itself, nothing more is taken.
      mb.budget = granularity;
      const { mapped } = mb.stats();
      large.free();
      mb.alloc(5 * granularity).free();
      assertEquals(mb.stats().mapped, mapped);
      assertThrows(() => mb.alloc(mapped + 1), OutOfMemoryError);
      assert(pin.live);
    },
  },
  {
    name:
      "random requests never exceed the budget, and refusals change nothing",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const random = new Random(31);
      const streams = [mb.defaultStream, mb.createStream()];
      mb.budget = Math.floor(bench.scale.live / 2);
      const lives: { block: Block; seed: number }[] = [];
      let refused = 0;
      for (let step = 0; step < 400; step++) {
        const size = randomSize(random, bench.scale.largest);
        const before = mb.stats();
        try {
          const stream = streams[random.below(2)]!;
          const block = mb.alloc(size, { stream });
          patterns.fill(block, step);
          lives.push({ block, seed: step });
        } catch (error) {
          assert(error instanceof OutOfMemoryError, String(error));
          refused++;
          const { live, requested, liveBlocks } = mb.stats();
          assertEquals(
            [live, requested, liveBlocks],
            [before.live, before.requested, before.liveBlocks],
          );
        }
        const { mapped, live } = mb.stats();
        assert(mapped <= mb.budget, `${mapped} bytes mapped`);
        while (mb.stats().live > mb.budget - bench.scale.largest / 2) {
          const [one] = lives.splice(random.below(lives.length), 1);
          patterns.check(one!.block, one!.seed, `freed at step ${step}`);
          one!.block.free();
        }
        assert(live <= mapped);
        if (step % 50 === 0) mb.allocator.assertInvariants();
      }
      for (const { block, seed } of lives) {
        patterns.check(block, seed, "at the end");
      }
      patterns.settle();
      assert(refused < 100, `${refused} of 400 refused`);
    },
  },
  {
    name:
      "the device itself runs out: the error is the same, the next request works",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const mb = bench.open();
      const { totalMemory, granularity } = mb.device;
      const kept = mb.alloc(granularity);
      kept.fill(0x5a);
      const { details } = assertThrows(
        () => mb.alloc(totalMemory + granularity),
        OutOfMemoryError,
      );
      assertEquals(details.requested, totalMemory + granularity);
      assertEquals(details.budget, Infinity);
      assert(details.deviceFree > 0);
      mb.allocator.assertInvariants();
      assertThrows(
        () => mb.alloc(1, { maxSize: granularity }).resize(2 * granularity),
        Error,
        "maxSize",
      );
      const growable = mb.alloc(1, { maxSize: totalMemory + 2 * granularity });
      assertThrows(
        () => growable.resize(totalMemory + granularity),
        OutOfMemoryError,
      );
      assertEquals(growable.size, 1);
      const next = mb.alloc(4 * granularity);
      next.fill(1);
      assertEquals(next.read(16), new Uint8Array(16).fill(1));
      assertEquals(kept.read(16), new Uint8Array(16).fill(0x5a));
    },
  },
  {
    name:
      "case 9: what a wait or a release would free is not reported as lacking",
    check(bench) {
      const mb = bench.open();
      const patterns = bench.patterns(mb);
      const size = 8 * mb.device.granularity;
      mb.budget = 2 * size;
      const stream = mb.createStream();
      for (let round = 0; round < 4; round++) {
        const onOther = mb.alloc(size, { stream });
        const shared = mb.alloc(size);
        patterns.spin(bench.scale.longKernelMs, stream);
        patterns.fill(onOther, 1);
        patterns.fill(shared, 2);
        patterns.check(shared, 2, `shared in round ${round}`, { stream });
        onOther.free();
        shared.free();
        const all = mb.alloc(2 * size);
        patterns.fill(all, 3);
        patterns.checkLate(all, 3, `all in round ${round}`);
        assertThrows(() => mb.alloc(1), OutOfMemoryError);
        all.free();
      }
      patterns.settle();
    },
  },
  {
    name:
      "case 10: large, then pinned by small ones, then large again is served",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      mb.budget = 64 * granularity;
      preload(mb, 4);
      const medium = Array.from({ length: 30 }, () => mb.alloc(granularity));
      medium.forEach((block, seed) => patterns.fill(block, seed));
      const large = mb.alloc(30 * granularity);
      large.free();
      medium.forEach((block, at) => at % 2 === 0 && block.free());
      const pins = [1, 2, 3].map(() => mb.alloc(512));
      assert(mb.stats().largestFree < 40 * granularity);
      const again = mb.alloc(40 * granularity);
      patterns.fill(again, 99);
      medium.forEach((block, seed) => {
        if (block.live) patterns.check(block, seed, `medium ${seed}`);
      });
      patterns.check(again, 99, "the large one");
      patterns.settle();
      assert(mb.stats().mapped <= mb.budget);
      assert(pins.every((pin) => pin.live));
      assertThrows(() => mb.alloc(40 * granularity), OutOfMemoryError);
    },
  },
];
