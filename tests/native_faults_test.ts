/**
 * Every call of the vendor's driver fails once, whichever it is: through the shim, where
 * what a failed call had done has to be undone in C.
 */

import { assert, assertEquals } from "@std/assert";
import { MoonBright } from "../ffi/moonbright.ts";
import { MoonBrightError } from "../lib/errors.ts";
import { PagedSpace } from "../lib/paging/paged_space.ts";
import { assertSameBytes, testBytes } from "./contract/harness.ts";
import { type FakeVendor, fakeVendors } from "./fake/vendors.ts";
import { UNMEASURED } from "./paging/paged_bench.ts";

/** The same of CUDA and HIP. */
const OUT_OF_MEMORY = 2;
const UNKNOWN = 999;
const PAGE = 4096;

const { vendors, skip } = await fakeVendors();

/** Parts of a program's work; each gives back what it made, whatever happens in it. */
const WORK: Record<string, (mb: MoonBright, vendor: FakeVendor) => void> = {
  "memory of every way": (mb) => {
    const { granularity } = mb.device;
    using _first = mb.alloc(4 * granularity);
    using row = new DisposableStack();
    const blocks = [1, 2, 3, 4, 5, 6].map(() => row.use(mb.alloc(granularity)));
    blocks.forEach((block, at) => at % 2 === 0 && block.free());
    mb.budget = mb.stats().mapped;
    using _stitched = mb.alloc(3 * granularity);
    mb.budget = Infinity;
    using growable = mb.alloc(granularity, { maxSize: 8 * granularity });
    for (const granules of [5, 1, 7]) growable.resize(granules * granularity);
    mb.flush({ wait: true });
    mb.trim();
  },
  "streams and events": (mb) => {
    using stream = mb.createStream();
    using shared = mb.alloc(1000);
    shared.useOn(stream);
    using start = stream.record({ timing: true });
    shared.fill(1, { stream });
    using end = stream.record({ timing: true });
    mb.defaultStream.wait(end);
    void end.passed;
    end.synchronize();
    end.elapsedMsSince(start);
    stream.synchronize();
    mb.synchronize();
  },
  "data to and from the host": (mb) => {
    using block = mb.alloc(3_000_000);
    const bytes = testBytes(3_000_000, 4);
    block.write(bytes);
    assertSameBytes(block.read(), bytes);
    block.fill(0x01020304, { width: 4 });
    block.fill(0x0102, { width: 2, bytes: 64 });
    mb.driver.copy(block.address + 4096, block.address, 4096, 0);
    assertEquals(block.read(1)[0], 2);
  },
  "kernels and graphs": (mb, vendor) => {
    using module = mb.loadModule(vendor.kernelImage("busy"));
    const spin = module.kernel("mb_spin");
    using stream = mb.createStream();
    using block = mb.alloc(1000, { stream });
    const launch = () =>
      spin.launch({ grid: [1], block: [1], stream }, [{ u64: 1 }]);
    launch();
    using graph = stream.capture(() => {
      block.fill(7);
      launch();
    });
    graph.launch();
    graph.launch();
    assert(block.read().every((byte) => byte === 7));
  },
  "paged ranges": (mb, vendor) => {
    const paging = {
      entries: vendor.kernelImage("paging_entries"),
      copy: vendor.kernelImage("paging_copy"),
    };
    using space = new PagedSpace(mb, paging, {
      pages: 64,
      maxFrames: 32,
      pageSize: PAGE,
    });
    using stream = mb.createStream();
    using range = space.alloc(3, { maxPages: 5 });
    range.write(testBytes(3 * PAGE, 9));
    using fork = range.fork({ stream });
    range.writable(0, 1);
    fork.protect(true);
    range.grow(2);
    range.shrink(1);
    assertSameBytes(fork.read(), testBytes(3 * PAGE, 9));
  },
  "page-locked memory": ({ driver }) => {
    const address = driver.allocPinned(4096);
    try {
      driver.writePinned(address, testBytes(100, 3));
    } finally {
      driver.freePinned(address);
    }
  },
};

/** What went wrong first, where giving back failed for it too: a module outlives its graphs. */
function firstOf(error: unknown): unknown {
  return error instanceof SuppressedError ? firstOf(error.suppressed) : error;
}

function open(vendor: FakeVendor): MoonBright {
  const extentSize = 2 * 2 ** 20;
  return MoonBright.open({
    ...vendor.device,
    costs: UNMEASURED,
    growth: { least: extentSize, extentSize, growthPriceNs: 1e12 },
  });
}

function failEveryCall(
  vendor: FakeVendor,
  work: (mb: MoonBright, vendor: FakeVendor) => void,
  code: number,
): void {
  using fake = vendor.control();
  fake.reset();
  let calls = 0;
  for (let fired = true; fired; calls++) {
    fake.seed(calls);
    using mb = open(vendor);
    // Of a whole granule, so that what comes behind starts with an extent.
    const kept = mb.alloc(mb.device.granularity);
    kept.write(testBytes(100_000, 5));
    fake.fail("*", calls + 1, code);
    let failure: unknown;
    try {
      work(mb, vendor);
    } catch (error) {
      failure = firstOf(error);
    }
    fired = fake.armed() === 0;
    fake.fail("*", 0, 0);
    if (failure !== undefined) {
      assert(fired, String(failure));
      assert(failure instanceof MoonBrightError, String(failure));
      assert(failure.message.startsWith("Cannot "), failure.message);
      assertEquals(
        failure.code,
        code === OUT_OF_MEMORY ? "out-of-memory" : "driver",
      );
    }
    mb.budget = Infinity;
    mb.allocator.assertInvariants();
    work(mb, vendor);
    mb.allocator.assertInvariants();
    assertSameBytes(kept.read(100_000), testBytes(100_000, 5));
    mb.close();
    assertEquals(fake.leftovers(), {}, `call ${calls + 1}`);
  }
  assert(calls > 5, "hardly any call was made");
}

for (const vendor of vendors) {
  for (const [name, work] of Object.entries(WORK)) {
    for (const code of [OUT_OF_MEMORY, UNKNOWN]) {
      Deno.test({
        name:
          `fake ${vendor.backend}: ${name}: any call of the driver fails with ${code}`,
        ignore: skip !== undefined,
        fn: () => failEveryCall(vendor, work, code),
      });
    }
  }
}
