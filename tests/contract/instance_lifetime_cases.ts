import { assert, assertEquals, assertThrows } from "@std/assert";
import { ClosedError } from "../../lib/errors.ts";
import { Random } from "../model/random.ts";
import {
  assertFailsWith,
  type InstanceCase,
  randomSize,
} from "./instance_harness.ts";

/** Opening, closing, and instances side by side. */
export const lifetimeCases: InstanceCase[] = [
  {
    name: "measuring at opening leaves figures at zero and sets every cost",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const mb = bench.open();
      const { driver, ways, anchor, reserved, budget, device: _, ...rest } = {
        ...mb.stats(),
        device: 0,
      };
      for (const { calls, items, bytes, ns } of Object.values(driver)) {
        assertEquals([calls, items, bytes, ns], [0, 0, 0, 0]);
      }
      for (const { count, bytes, ns } of Object.values(ways)) {
        assertEquals([count, bytes, ns], [0, 0, 0]);
      }
      assertEquals(
        anchor,
        bench.backend.anchored ? mb.device.granularity : 0,
      );
      assert(reserved > 0);
      assertEquals(budget, null);
      const { recyclable: _recyclable, ...zeros } = rest;
      assertEquals(zeros, {
        schemaVersion: 1,
        live: 0,
        requested: 0,
        liveBlocks: 0,
        free: 0,
        largestFree: 0,
        stitchable: 0,
        pending: 0,
        captured: 0,
        mapped: 0,
        extents: 0,
        retired: 0,
        retiredMappings: 0,
        peak: { live: 0, mapped: 0 },
        planning: { count: 0, ns: 0 },
        frees: 0,
        flushes: 0,
      });
      for (const [kind, cost] of Object.entries(mb.allocator.costs)) {
        for (const [name, ns] of Object.entries(cost)) {
          assert(Number.isFinite(ns) && (ns as number) >= 0, `${kind} ${name}`);
        }
        assert(cost.perExtentNs > 0, `${kind}: ${cost.perExtentNs} ns`);
      }
    },
  },
  {
    name: "costs that were given are kept",
    check(bench) {
      const cost = { perExtentNs: 123, perMiBNs: 4 };
      const costs = { create: cost, map: cost, unmap: cost, release: cost };
      assertEquals(bench.open({ costs }).allocator.costs, costs);
    },
  },
  {
    name: "after close every use is refused, and closing again does nothing",
    check(bench) {
      const mb = bench.open();
      const block = mb.alloc(1000, { name: "left" });
      const freed = mb.alloc(1000);
      freed.free();
      const stream = mb.createStream();
      const event = stream.record({ timing: true });
      const image = bench.backend.kernelImage("busy", mb.device);
      const module = mb.loadModule(image);
      const kernel = module.kernel("mb_empty");
      const { address } = block;
      mb.close();
      assertEquals([mb.closed, block.live], [true, false]);
      const uses: Record<string, () => unknown> = {
        alloc: () => mb.alloc(1),
        "alloc 0": () => mb.alloc(0),
        blockAt: () => mb.blockAt(address),
        free: () => mb.free(address),
        createStream: () => mb.createStream(),
        createEvent: () => mb.createEvent(),
        loadModule: () => mb.loadModule(image),
        synchronize: () => mb.synchronize(),
        stats: () => mb.stats(),
        snapshot: () => mb.snapshot(),
        flush: () => mb.flush(),
        trim: () => mb.trim(),
        "block.free": () => block.free(),
        "block.address": () => block.address,
        "block.size": () => block.size,
        "block.resize": () => block.resize(2),
        "block.read": () => block.read(),
        "block.write": () => block.write(new Uint8Array(1)),
        "block.fill": () => block.fill(1),
        "block.useOn": () => block.useOn(stream),
        "freed.free": () => freed.free(),
        "stream.synchronize": () => stream.synchronize(),
        "stream.record": () => stream.record(),
        "stream.wait": () => stream.wait(event),
        "stream.unsafeHandle": () => stream.unsafeHandle,
        "event.passed": () => event.passed,
        "event.synchronize": () => event.synchronize(),
        "event.record": () => event.record(stream),
        "module.kernel": () => module.kernel("mb_empty"),
        "kernel.launch": () =>
          kernel.launch({ grid: [1], block: [1] }, [{ u64: 0 }]),
      };
      for (const [name, use] of Object.entries(uses)) {
        const error = assertThrows(use, ClosedError, "", name);
        assertEquals(error.code, "closed");
      }
      for (const one of [block, freed, stream, event, module, mb]) {
        one[Symbol.dispose]();
      }
      stream.close();
      event.close();
      module.close();
      mb.close();
    },
  },
  {
    name: "close with live blocks, pending frees and running kernels is quiet",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      for (let round = 0; round < 4; round++) {
        const mb = bench.open();
        const patterns = bench.patterns(mb);
        const { granularity } = mb.device;
        const streams = [mb.createStream(), mb.createStream()];
        const blocks = streams.map((stream) =>
          mb.alloc(2 * granularity, { stream, name: "live at the end" })
        );
        const growable = mb.alloc(1, { maxSize: 4 * granularity });
        const shared = mb.alloc(granularity);
        streams.forEach((stream, at) => {
          patterns.spin(bench.scale.longKernelMs, stream);
          patterns.fill(blocks[at]!, at);
          patterns.check(blocks[at]!, at, "never read");
          shared.useOn(stream);
        });
        patterns.spin(bench.scale.longKernelMs);
        growable.resize(3 * granularity);
        shared.free();
        streams[0]!.record();
        mb.close();
        assert(mb.closed);
      }
    },
  },
  {
    name: "an anchor stays mapped when all else is trimmed, and counts nowhere",
    skipOn: ({ anchored }) => !anchored,
    check(bench) {
      const mb = bench.open();
      const { granularity } = mb.device;
      const { arena } = mb.snapshot();
      const block = mb.alloc(3 * granularity);
      assert(block.address > arena.base);
      block.free();
      assertEquals(mb.trim(), 3 * granularity);
      const { anchor, mapped, extents, free } = mb.stats();
      assertEquals([anchor, mapped, extents, free], [granularity, 0, 0, 0]);
      assertEquals(mb.snapshot().extents, []);
      // What keeps the page tables is no one's to free.
      for (let at = arena.base; at < arena.frontier; at += granularity) {
        assertFailsWith("invalid-block", () => mb.free(at));
      }
    },
  },
  {
    name: "two instances share a device and nothing else",
    check(bench) {
      const pair = [bench.open(), bench.open()] as const;
      const random = new Random(41);
      const patterns = pair.map((mb) => bench.patterns(mb));
      const kept = pair.map((mb, at) => {
        const block = mb.alloc(1 + bench.scale.largest);
        patterns[at]!.fill(block, 900 + at);
        return block;
      });
      if (bench.backend.sharesDevice) {
        const [low, high] = kept.toSorted((a, b) => a.address - b.address);
        assert(low!.address + low!.capacity <= high!.address);
      }
      for (let step = 0; step < 60; step++) {
        const at = random.below(2);
        using block = pair[at]!.alloc(randomSize(random, bench.scale.largest));
        patterns[at]!.fill(block, step);
        patterns[at]!.check(block, step, `step ${step} of instance ${at}`);
        if (step % 10 === 0) pair[1 - at]!.trim();
      }
      const [first, second] = pair;
      const [mine, theirs] = kept;
      const stream = second.createStream();
      assertThrows(() => first.alloc(1, { stream }), TypeError, "another");
      assertThrows(() => mine!.useOn(stream), TypeError, "another");
      assertThrows(() => mine!.free(stream), TypeError, "another");
      assertThrows(() => first.defaultStream.wait(stream.record()), TypeError);
      if (bench.backend.sharesDevice) {
        assertFailsWith("invalid-block", () => first.free(theirs!.address));
      }
      kept.forEach((block, at) =>
        patterns[at]!.check(block, 900 + at, "kept by both")
      );
      patterns[0]!.settle();
      first.close();
      patterns[1]!.check(theirs!, 901, "after the other was closed");
      const more = second.alloc(bench.scale.largest);
      patterns[1]!.fill(more, 1);
      patterns[1]!.check(more, 1, "after the other was closed");
      patterns[1]!.settle();
    },
  },
];
