import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import fc from "fast-check";
import { MoonBright } from "../../ffi/moonbright.ts";
import type { Block } from "../../lib/block.ts";
import {
  DriverError,
  MoonBrightError,
  OutOfMemoryError,
} from "../../lib/errors.ts";
import {
  GRANULE,
  hipTest,
  INVALID_VALUE,
  OUT_OF_MEMORY,
  UNKNOWN,
} from "./fake_runtime.ts";

const MIB = 2 ** 20;

/** One extent a granule at least, so that tests see every extent. */
const growth = { least: GRANULE };

/** Address and size of the extent that a block lies in. */
function extentOf(mb: MoonBright, block: Block): [number, number] {
  for (const { address, size } of mb.snapshot().extents) {
    if (address === null || block.address < address) continue;
    if (block.address < address + size) return [address, size];
  }
  throw new Error("the block lies in no extent");
}

hipTest("small requests share an extent, large ones have their own", {
  rocm: 5,
}, ({ device, fake }) => {
  using mb = MoonBright.open(device);
  const [first, second] = [mb.alloc(1000), mb.alloc(1 * MIB)];
  assertEquals(extentOf(mb, first), extentOf(mb, second));
  // As few extents as on devices that map memory.
  assertEquals(mb.stats().mapped, 32 * MIB);
  const large = mb.alloc(100 * MIB);
  assertEquals(extentOf(mb, large), [large.address, 100 * MIB]);
  assertEquals(fake.live("plain"), 2);
  assertEquals(mb.stats().ways.grow.count, 2);
});

hipTest("what needs mapping is refused with the reason", { rocm: 5 }, ({
  device,
}) => {
  using mb = MoonBright.open({ ...device, growth });
  const reason = /version is 5\.2, and mapping memory needs ROCm 6\.1/;
  const refuse = (call: () => unknown, code: string, why = reason) => {
    const { live } = mb.stats();
    const error = assertThrows(call, MoonBrightError);
    assertEquals(error.code, code);
    assertMatch(error.message, why);
    assertEquals(mb.stats().live, live);
    mb.allocator.assertInvariants();
  };
  refuse(() => mb.alloc(GRANULE, { maxSize: 4 * GRANULE }), "unsupported");
  refuse(
    () => mb.pagedSpace({ pages: 64 }),
    "unsupported",
  );
  const block = mb.alloc(GRANULE);
  refuse(() => block.resize(2 * GRANULE), "cannot-grow");
  // Within its extent a block still widens and shrinks.
  block.resize(GRANULE / 2);
  block.resize(GRANULE);
  mb.budget = mb.stats().mapped;
  refuse(() => mb.alloc(2 * GRANULE), "out-of-memory");
  using watched = MoonBright.open({ ...device, debug: "quarantine" });
  refuse(() => watched.alloc(1), "unsupported");
  // Two halves make no whole here.
  const halves = [mb, mb].map(() => {
    mb.budget += GRANULE;
    return mb.alloc(GRANULE);
  });
  for (const half of halves) half.free();
  assertEquals(mb.trim(), 2 * GRANULE);
  using _whole = mb.alloc(2 * GRANULE);
});

hipTest("an error of plain extents says why free pieces do not serve", {
  rocm: 5,
}, ({ device }) => {
  using mb = MoonBright.open({ ...device, growth, budget: 4 * GRANULE });
  const pins: Block[] = [];
  for (let i = 0; i < 4; i++) {
    const whole = mb.alloc(GRANULE);
    whole.resize(512);
    pins.push(whole);
  }
  const error = assertThrows(() => mb.alloc(GRANULE), OutOfMemoryError);
  assertEquals(error.details.largestFree, GRANULE - 512);
  assertEquals(error.details.stitchable, 0);
  assertMatch(error.message, /free pieces can't be put together: .*ROCm 6\.1/);
  pins[0]!.free();
  mb.alloc(GRANULE);
});

/** A step of a course over plain extents. */
const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant("alloc" as const),
        bytes: fc.oneof(
          fc.integer({ min: 1, max: 4096 }),
          fc.integer({ min: 1, max: 3 * GRANULE }),
        ),
        stream: fc.nat(2),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("free" as const),
        which: fc.nat(),
        stream: fc.option(fc.nat(2)),
      }),
    },
    fc.record({
      do: fc.constant("resize" as const),
      which: fc.nat(),
      bytes: fc.integer({ min: 1, max: GRANULE }),
    }),
    fc.record({ do: fc.constant("trim" as const), wait: fc.boolean() }),
    fc.record({ do: fc.constant("synchronize" as const) }),
    fc.record({
      do: fc.constant("fail" as const),
      call: fc.constantFrom("hipMalloc", "hipFree"),
      code: fc.constantFrom(OUT_OF_MEMORY, UNKNOWN),
    }),
  ),
  { minLength: 1, maxLength: 80 },
);

hipTest(
  "blocks of any course lie apart, within one extent, and keep their bytes",
  {
    rocm: 5,
  },
  ({ device, fake }) => {
    fc.assert(
      fc.property(steps, (course) => {
        using mb = MoonBright.open({ ...device, growth, budget: 24 * GRANULE });
        const streams = [
          mb.defaultStream,
          mb.createStream(),
          mb.createStream(),
        ];
        const live: { block: Block; mark: number }[] = [];
        let marks = 0;
        const attempt = (call: () => void) => {
          try {
            call();
            return true;
          } catch (error) {
            // Refusals are fine, as long as all holds afterwards.
            if (error instanceof MoonBrightError) return false;
            throw error;
          }
        };
        const check = ({ block, mark }: { block: Block; mark: number }) => {
          const ends = [0, block.size - 1].map((offset) =>
            block.read(1, { offset })[0]
          );
          assertEquals(ends, [mark, mark]);
        };
        for (const step of course) {
          const chosen = "which" in step
            ? live[step.which % Math.max(live.length, 1)]
            : undefined;
          switch (step.do) {
            case "alloc": {
              let block: Block | undefined;
              attempt(() =>
                block = mb.alloc(step.bytes, { stream: streams[step.stream]! })
              );
              if (!block) break;
              const mark = ++marks % 256;
              block.fill(mark);
              live.push({ block, mark });
              break;
            }
            case "free": {
              if (!chosen) break;
              check(chosen);
              const { block } = chosen;
              const on = step.stream === null
                ? undefined
                : streams[step.stream]!;
              if (attempt(() => block.free(on))) {
                live.splice(live.indexOf(chosen), 1);
              }
              break;
            }
            case "resize": {
              if (!chosen) break;
              const { size } = chosen.block;
              attempt(() => chosen.block.resize(step.bytes));
              if (chosen.block.size > size) chosen.block.fill(chosen.mark);
              break;
            }
            case "trim":
              attempt(() => mb.trim({ wait: step.wait }));
              break;
            case "synchronize":
              attempt(() => mb.synchronize());
              break;
            case "fail":
              fake.fail(step.call, 1, step.code);
          }
          mb.allocator.assertInvariants();
        }
        for (const name of ["hipMalloc", "hipFree"]) {
          fake.fail(name, 0, 0);
        }
        const sorted = live.toSorted((a, b) =>
          a.block.address - b.block.address
        );
        sorted.forEach((one, index) => {
          check(one);
          const { address, capacity } = one.block;
          const next = sorted[index + 1]?.block;
          if (next) assert(address + capacity <= next.address);
          const [start, size] = extentOf(mb, one.block);
          assert(address >= start && address + capacity <= start + size);
        });
        for (const { block } of live) block.free();
        mb.trim();
        assertEquals([mb.stats().mapped, fake.live("plain")], [0, 0]);
      }),
      { numRuns: 60 },
    );
  },
);

hipTest("an extent that could not be freed serves again", { rocm: 5 }, ({
  device,
  fake,
}) => {
  using mb = MoonBright.open({ ...device, growth });
  const block = mb.alloc(3 * GRANULE);
  block.free();
  fake.fail("hipFree", 1, UNKNOWN);
  assertThrows(() => mb.trim(), DriverError);
  mb.allocator.assertInvariants();
  const before = fake.calls("hipMalloc");
  using again = mb.alloc(3 * GRANULE);
  again.fill(1);
  assertEquals(fake.calls("hipMalloc"), before);
});

hipTest("a full device gives exactly what was asked for, then an error", {
  rocm: 5,
}, ({ device, fake }) => {
  using mb = MoonBright.open(device);
  // The generous extent is refused, the exact one is not.
  fake.fail("hipMalloc", 1, OUT_OF_MEMORY);
  using _exact = mb.alloc(GRANULE);
  assertEquals(mb.stats().mapped, GRANULE);
  const { free } = mb.driver.memoryInfo();
  const error = assertThrows(() => mb.alloc(free + GRANULE), OutOfMemoryError);
  assertEquals(error.details.mapped, GRANULE);
  // What is cached goes back for what does not fit beside it.
  const half = Math.floor(free * 0.6 / GRANULE) * GRANULE;
  mb.alloc(half).free();
  using _larger = mb.alloc(half + GRANULE);
});

hipTest("another failure of hipMalloc is the driver's error", { rocm: 5 }, ({
  device,
  fake,
}) => {
  using mb = MoonBright.open(device);
  fake.fail("hipMalloc", 1, INVALID_VALUE);
  const error = assertThrows(() => mb.alloc(1), DriverError);
  assertEquals([error.code, error.driverCode], ["driver", INVALID_VALUE]);
  mb.allocator.assertInvariants();
  assertEquals(mb.stats().mapped, 0);
  mb.alloc(1);
});

hipTest("closing gives everything back, whatever is live", { rocm: 5 }, ({
  device,
  fake,
}) => {
  const mb = MoonBright.open(device);
  const stream = mb.createStream();
  const blocks = [1, 100 * MIB, GRANULE].map((size) =>
    mb.alloc(size, { stream })
  );
  for (const block of blocks) block.fill(7);
  blocks[0]!.free();
  mb.close();
  assertEquals(fake.leftovers(), {});
});
