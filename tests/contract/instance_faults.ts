import { assert, assertEquals } from "@std/assert";
import { MoonBright, type OpenOptions } from "../../ffi/moonbright.ts";
import type { Block } from "../../lib/block.ts";
import { MoonBrightError } from "../../lib/errors.ts";
import type { FakeGpu } from "../fake/control.ts";
import type { FakeVendor, VendorCalls } from "../fake/vendors.ts";
import { assertSameBytes, testBytes } from "./harness.ts";

/** The vendors' numbers for these failures are the same. */
const OUT_OF_MEMORY = 2;
const UNKNOWN = 999;

type Call = keyof VendorCalls;

/** Functions of the driver that an instance calls after it was opened. */
const CALLED_IN_USE: readonly Call[] = [
  "create",
  "map",
  "setAccess",
  "getAccess",
  "unmap",
  "release",
  "eventCreate",
  "eventRecord",
  "eventQuery",
  "eventSynchronize",
  "streamCreate",
  "streamWait",
];

/** Functions that opening calls: it reserves addresses and measures the rest. */
const CALLED_AT_OPENING: readonly Call[] = [
  "reserve",
  "create",
  "map",
  "setAccess",
  "unmap",
  "release",
  "eventCreate",
  "eventRecord",
];

/** Functions that give back what is left at the end. */
const CALLED_AT_CLOSING: readonly Call[] = [
  "streamSynchronize",
  "getAccess",
  "unmap",
  "release",
  "unreserve",
  "eventDestroy",
  "streamDestroy",
];

/** The costs with which free extents are stitched before new ones are made. */
const COSTS = (() => {
  const cost = { perExtentNs: 10_000, perMiBNs: 0 };
  return { create: cost, map: cost, unmap: cost, release: cost };
})();

/** Everything that an instance does with memory, once; whatever it allocates goes into `mine`. */
function useAll(mb: MoonBright, mine: Block[]): void {
  const { granularity } = mb.device;
  const alloc = (...args: Parameters<MoonBright["alloc"]>) => {
    const block = mb.alloc(...args);
    mine.push(block);
    return block;
  };
  // Grow, extend, reuse.
  alloc(4 * granularity).resize(3 * granularity);
  alloc(2 * granularity);
  alloc(granularity).free();
  alloc(granularity);
  // Stitch: holes of one granule each, under a budget that allows nothing else.
  const holes = [1, 2, 3, 4, 5, 6].map(() => alloc(granularity));
  holes.forEach((block, at) => at % 2 === 0 && block.free());
  mb.budget = mb.stats().mapped;
  alloc(3 * granularity);
  mb.budget = Infinity;
  // Resize in place, over what a shrink gave up.
  const growable = alloc(granularity, { maxSize: 8 * granularity });
  for (const granules of [5, 1, 7]) growable.resize(granules * granularity);
  // Streams: a pending free, and memory that another stream has to wait for.
  const stream = mb.createStream();
  mine.push(alloc(512, { stream }));
  const shared = alloc(2 * granularity);
  shared.useOn(stream);
  shared.fill(1, { stream, bytes: 64 });
  shared.free();
  alloc(2 * granularity).free();
  mb.budget = mb.stats().mapped;
  alloc(2 * granularity, { stream });
  mb.budget = Infinity;
  mb.flush();
  growable.free();
  mb.flush({ wait: true });
  mb.trim({ wait: false });
  mb.trim();
  stream.close();
}

type Open = (options?: OpenOptions) => MoonBright;

/** Frees what is still live. */
function freeAll(blocks: Block[]): void {
  for (const block of blocks.splice(0)) {
    if (block.live) block.free();
  }
}

/** `reserving`: addresses may be lacking instead, whatever code the driver gives. */
function assertTyped(
  failure: unknown,
  driverCode: number,
  reserving = false,
): void {
  assert(failure instanceof MoonBrightError, String(failure));
  assert(failure.message.startsWith("Cannot "), failure.message);
  assert(failure.operation.length > 0);
  const code = reserving
    ? "out-of-addresses"
    : driverCode === OUT_OF_MEMORY
    ? "out-of-memory"
    : "driver";
  assertEquals(failure.code, code, failure.message);
}

/** A call that is to fail. */
interface Fault {
  /** Makes it fail from now on. */
  arm(code: number): void;
  /** Lets it pass again; returns whether it has failed. */
  disarm(): boolean;
}

/**
 * Does `body` again and again: the first time the function's first call fails, then its
 * second, until `body` makes no more calls of it.
 */
function failEachCall(
  fake: FakeGpu,
  name: string,
  body: (fault: Fault) => void,
): void {
  let fired = true;
  for (let kth = 1; fired; kth++) {
    fake.seed(kth);
    body({
      arm: (code) => fake.fail(name, kth, code),
      disarm() {
        fired = fake.armed() === 0;
        fake.fail(name, 0, 0);
        return fired;
      },
    });
    assert(fired || kth > 1, `${name} was never called`);
  }
}

/** Whatever fails in use: the error says so, nothing else suffers, and all can be done again. */
function useWithFault(
  fake: FakeGpu,
  open: Open,
  code: number,
  fault: Fault,
): void {
  const mb = open({ costs: COSTS });
  const { granularity } = mb.device;
  const { growth } = mb.allocator;
  growth.least = growth.extentSize = granularity;
  // Of a whole granule, so that what comes behind starts with an extent.
  const kept = mb.alloc(granularity);
  kept.write(testBytes(1000, 5));
  const mine: Block[] = [];
  let failure: unknown;
  fault.arm(code);
  try {
    useAll(mb, mine);
  } catch (error) {
    failure = error;
  }
  const fired = fault.disarm();
  mb.budget = Infinity;
  mb.allocator.assertInvariants();
  if (failure !== undefined) {
    assert(fired, String(failure));
    assertTyped(failure, code);
  }
  freeAll(mine);
  mb.allocator.assertInvariants();
  assertEquals(mb.stats().liveBlocks, 1);
  mb.trim();
  useAll(mb, mine);
  for (const [way, { count }] of Object.entries(mb.stats().ways)) {
    assert(count > 0, `nothing was served by ${way}`);
  }
  freeAll(mine);
  mb.trim();
  mb.allocator.assertInvariants();
  assertSameBytes(kept.read(1000), testBytes(1000, 5));
  assertEquals(mb.stats().mapped, granularity);
  // The kept block's, and the anchor.
  const extents = mb.stats().anchor > 0 ? 2 : 1;
  assertEquals(
    [fake.live("handles"), fake.live("mappings")],
    [extents, extents],
  );
  assertEquals(fake.used(), extents * granularity);
  mb.close();
}

/** Opening may fail or do without; then nothing is left, or all works. */
function openWithFault(
  fake: FakeGpu,
  open: Open,
  code: number,
  fault: Fault,
  reserving: boolean,
): void {
  let mb: MoonBright | undefined;
  fault.arm(code);
  try {
    mb = open();
  } catch (error) {
    assertTyped(error, code, reserving);
  }
  fault.disarm();
  if (!mb) return;
  mb.allocator.assertInvariants();
  // Measuring that was cut short may leave its extent cached.
  mb.trim();
  const { anchor, mapped } = mb.stats();
  assertEquals([mapped, fake.live("handles")], [0, anchor > 0 ? 1 : 0]);
  useAll(mb, []);
  mb.allocator.assertInvariants();
  mb.close();
}

/**
 * Registers tests in which the fake driver refuses one call, at every place where an
 * instance makes it.
 */
export function instanceFaults(vendor: FakeVendor, skip?: string): void {
  const test = (name: string, body: (fake: FakeGpu, open: Open) => void) =>
    Deno.test({
      name: `fake ${vendor.backend}: ${name}`,
      ignore: skip !== undefined,
      fn() {
        using fake = vendor.control();
        using opened = new DisposableStack();
        fake.reset();
        // Failures that never came must not meet the next test.
        opened.defer(() => fake.reset());
        body(fake, (options) =>
          opened.use(
            MoonBright.open({ ...options, ...vendor.device }),
          ));
        assertEquals(fake.leftovers(), {});
      },
    });

  /** The vendor's functions for calls, without those that it has no need of. */
  const named = (calls: readonly Call[]) =>
    calls.flatMap((call) => vendor.calls[call] ?? []);

  for (const code of [OUT_OF_MEMORY, UNKNOWN]) {
    for (const name of named(CALLED_IN_USE)) {
      test(
        `${name} fails with ${code} at any place of use`,
        (fake, open) =>
          failEachCall(fake, name, (fault) => {
            useWithFault(fake, open, code, fault);
            assertEquals(fake.leftovers(), {});
          }),
      );
    }
    for (const name of named(CALLED_AT_OPENING)) {
      test(
        `${name} fails with ${code} at any place of opening`,
        (fake, open) =>
          failEachCall(fake, name, (fault) => {
            openWithFault(
              fake,
              open,
              code,
              fault,
              name === vendor.calls.reserve,
            );
            assertEquals(fake.leftovers(), {});
          }),
      );
    }
  }

  test("the anchor is all that is mapped after trimming", (fake, open) => {
    const mb = open();
    const anchors = vendor.anchored ? 1 : 0;
    const anchorBytes = anchors * mb.device.granularity;
    const assertAnchorAlone = () => {
      assertEquals(mb.stats().anchor, anchorBytes);
      assertEquals(
        (["handles", "mappings", "reservations", "plain", "pooled"] as const)
          .map((what) => fake.live(what)),
        [anchors, anchors, 1, 0, 0],
      );
      assertEquals(fake.used(), anchorBytes);
    };
    assertAnchorAlone();
    const mine: Block[] = [];
    useAll(mb, mine);
    freeAll(mine);
    mb.trim();
    assertAnchorAlone();
    mb.close();
    assertEquals(fake.leftovers(), {});
  });

  test(
    "a lost device is reported as lost, and closing it is quiet",
    (fake, open) => {
      const mb = open();
      const block = mb.alloc(1000);
      const stream = mb.createStream();
      block.useOn(stream);
      fake.lose();
      for (
        const use of [
          () => mb.alloc(100 * mb.device.granularity),
          () => block.read(),
          () => mb.synchronize(),
          () => stream.synchronize(),
        ]
      ) {
        let code: string | undefined;
        try {
          use();
        } catch (error) {
          assert(error instanceof MoonBrightError, String(error));
          code = error.code;
        }
        assertEquals(code, "lost");
      }
      mb.allocator.assertInvariants();
      mb.close();
      assertEquals(fake.leftovers(), {});
    },
  );

  for (const name of named(CALLED_AT_CLOSING)) {
    test(
      `closing is quiet when ${name} fails at any place`,
      (fake, open) =>
        failEachCall(fake, name, (fault) => {
          const mb = open({ costs: COSTS });
          const mine: Block[] = [];
          useAll(mb, mine);
          mb.alloc(1000).useOn(mb.createStream());
          fault.arm(UNKNOWN);
          mb.close();
          mb.close();
          // What the failing call should have given back is left behind.
          if (fault.disarm()) fake.reset();
          assertEquals(fake.leftovers(), {});
        }),
    );
  }
}
