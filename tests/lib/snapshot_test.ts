import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { CoherenceWorld } from "./coherence_world.ts";
import { randomSteps } from "./random_walk.ts";
import { GRANULE, openGated, openModel, preloaded } from "./support.ts";

Deno.test("a fresh instance holds nothing", () => {
  const { mb } = openModel({ budget: 8 * GRANULE });
  const { stats, blocks, extents, retired, arena, device } = mb.snapshot();
  assertEquals([blocks, extents, retired], [[], [], []]);
  assertEquals([stats.live, stats.mapped, stats.frees], [0, 0, 0]);
  assertEquals(stats.budget, 8 * GRANULE);
  assertEquals(stats.reserved, arena.size);
  assertEquals(arena.frontier, arena.base);
  assertEquals(device.backend, "model");
});

Deno.test("blocks show their state, name, stream and room", () => {
  const { mb } = openGated();
  const stream = mb.createStream();
  const growable = mb.alloc(100, { maxSize: 3 * GRANULE, name: "grows" });
  const live = mb.alloc(700, { stream });
  const pending = mb.alloc(GRANULE);
  pending.useOn(stream);
  pending.free();
  const { blocks, stats } = mb.snapshot();
  assertEquals(blocks.find(({ address }) => address === growable.address), {
    address: growable.address,
    size: GRANULE,
    requested: 100,
    state: "live",
    stream: 0,
    name: "grows",
    maxSize: 3 * GRANULE,
  });
  assertEquals(blocks.find(({ address }) => address === live.address), {
    address: live.address,
    size: 1024,
    requested: 700,
    state: "live",
    stream: stream.number,
  });
  assertEquals(
    blocks.filter(({ state }) => state === "pending").map(({ size }) => size),
    [GRANULE],
  );
  assertEquals(stats.pending, GRANULE);
});

Deno.test("a name goes with its block", () => {
  const { mb } = openModel();
  const block = mb.alloc(100, { name: "short-lived" });
  assertEquals(block.name, "short-lived");
  block.free();
  assertEquals(mb.alloc(100).name, undefined);
});

Deno.test("retired mappings show until they are flushed", () => {
  const { mb } = preloaded();
  const blocks = [1, 2, 3].map(() => mb.alloc(GRANULE));
  const { address } = blocks[0]!;
  blocks[0]!.free();
  mb.alloc(2 * GRANULE);
  const before = mb.snapshot();
  assertEquals(before.retired, [{ address, size: GRANULE, stream: 0 }]);
  assertEquals(before.stats.retired, GRANULE);
  assertEquals(
    before.extents.filter(({ retiredMappings }) => retiredMappings === 1)
      .length,
    1,
  );
  mb.flush({ wait: true });
  const after = mb.snapshot();
  assertEquals([after.retired, after.stats.recyclable], [[], GRANULE]);
});

Deno.test("ways and driver calls are counted", () => {
  const { mb } = openModel();
  mb.alloc(GRANULE).free();
  mb.alloc(GRANULE - 1).free();
  const { ways, driver, frees, peak } = mb.stats();
  assertEquals([ways.grow.count, ways.reuse.count, frees], [1, 1, 2]);
  assertEquals([ways.grow.bytes, ways.reuse.bytes], [GRANULE, GRANULE - 1]);
  assertEquals([driver.create.calls, driver.create.bytes], [1, GRANULE]);
  assertEquals([driver.map.items, driver.setAccess.calls], [1, 1]);
  assertEquals(peak, { live: GRANULE, mapped: GRANULE });
});

Deno.test("a snapshot survives JSON and does not follow the instance", () => {
  const { mb } = openModel();
  const block = mb.alloc(GRANULE);
  const snapshot = mb.snapshot();
  block.free();
  assertEquals(JSON.parse(JSON.stringify(snapshot)), snapshot);
  assertEquals(snapshot.stats.live, GRANULE);
  assertEquals(snapshot.schemaVersion, 1);
});

Deno.test("the parts of any snapshot sum to the whole", () => {
  fc.assert(
    fc.property(fc.nat(2 ** 31), (seed) => {
      const world = new CoherenceWorld({
        name: "snapshot",
        allocator: { budget: 96 * GRANULE, addressSpace: 2 ** 40 },
        device: {},
        mostStreams: 3,
      }, seed);
      for (const step of randomSteps(seed, 150)) world.run(step);
      const { stats, blocks, extents, retired, arena } = world.mb.snapshot();
      const sum = (sizes: { size: number }[]) =>
        sizes.reduce((total, { size }) => total + size, 0);
      const of = (state: string) => blocks.filter((one) => one.state === state);
      assertEquals(sum(extents), stats.mapped);
      assertEquals(extents.length, stats.extents);
      assertEquals(sum(of("live")), stats.live);
      assertEquals(of("live").length, stats.liveBlocks);
      assertEquals(sum(of("pending")), stats.pending);
      const loose = sum(extents.filter(({ address }) => address === null));
      assertEquals(sum(of("free")) + loose, stats.free);
      assertEquals(stats.free + stats.live + stats.pending, stats.mapped);
      assertEquals(sum(retired), stats.retired);
      assert(stats.largestFree <= stats.free);
      const used = blocks.filter(({ state }) => state !== "free");
      const wholeExtents = extents.filter(({ address, size }) =>
        address === null ||
        !used.some((block) =>
          block.address < address + size &&
          address < block.address + block.size
        )
      );
      assertEquals(sum(wholeExtents), stats.stitchable);
      assertEquals(
        stats.largestFree,
        Math.max(0, ...of("free").map(({ size }) => size)),
      );
      blocks.forEach(({ address, size }, index) => {
        assert(address >= arena.base && address + size <= arena.frontier);
        const next = blocks[index + 1];
        assert(!next || address + size <= next.address);
      });
    }),
    { numRuns: 40 },
  );
});
