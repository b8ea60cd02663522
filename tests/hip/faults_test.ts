import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { openDriver } from "../../ffi/devices.ts";
import type { NativeDriver } from "../../ffi/native_driver.ts";
import { MoonBright } from "../../ffi/moonbright.ts";
import type { Block } from "../../lib/block.ts";
import { DriverError, OutOfMemoryError } from "../../lib/errors.ts";
import { GRANULE, hipTest, INVALID_VALUE } from "./fake_runtime.ts";

/** A range with extents mapped one behind another. */
interface Mapped {
  driver: NativeDriver;
  address: number;
  extents: number[];
}

function mapped(driver: NativeDriver, sizes: number[]): Mapped {
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const address = driver.reserve(bytes);
  const extents = driver.createExtents(sizes);
  driver.map(address, extents);
  return { driver, address, extents };
}

hipTest("read-only access that is refused leaves the memory writable", {
  refusesReadOnly: 1,
}, ({ device, fake }) => {
  const driver = openDriver(device);
  const { address } = mapped(driver, [GRANULE, 2 * GRANULE]);
  const error = assertThrows(
    () => driver.setAccess(address, 3 * GRANULE, "read"),
    DriverError,
  );
  assertEquals([error.code, error.driverCode], ["driver", INVALID_VALUE]);
  driver.fill(address, 7, 1, 3 * GRANULE, 0);
  const bytes = new Uint8Array(1);
  driver.copyOut(bytes, address + 3 * GRANULE - 1, 0);
  assertEquals(bytes, new Uint8Array([7]));
  driver.close();
  assertEquals(fake.live("operations"), 0);
});

hipTest(
  "read-only access is given extent by extent, and all of it or none",
  {},
  ({
    device,
    fake,
  }) => {
    const driver = openDriver(device);
    const { address } = mapped(driver, [GRANULE, GRANULE, GRANULE]);
    const before = fake.calls("hipMemSetAccess");
    driver.setAccess(address, 3 * GRANULE, "read");
    assertEquals(fake.calls("hipMemSetAccess") - before, 3);
    driver.setAccess(address, 3 * GRANULE, "read-write");
    fake.fail("hipMemSetAccess", 3, INVALID_VALUE);
    assertThrows(
      () => driver.setAccess(address, 3 * GRANULE, "read"),
      DriverError,
    );
    // The two that had become read-only are writable again.
    driver.fill(address, 7, 1, 3 * GRANULE, 0);
    driver.synchronize();
    driver.close();
  },
);

hipTest(
  "a limit on handles is a full device, which freeing and trimming empties",
  {
    mostHandles: 6,
  },
  ({ device, fake }) => {
    using mb = MoonBright.open({
      ...device,
      growth: { least: GRANULE, extentSize: GRANULE },
    });
    const blocks: Block[] = [];
    const error = assertThrows(() => {
      for (;;) blocks.push(mb.alloc(GRANULE));
    }, OutOfMemoryError);
    assertEquals(error.details.live, blocks.length * GRANULE);
    assert(blocks.length >= 6);
    mb.allocator.assertInvariants();
    // Others' handles count too: they are given back for a larger one.
    for (const block of blocks) block.free();
    using large = mb.alloc(20 * GRANULE);
    large.fill(1);
    mb.synchronize();
    mb.allocator.assertInvariants();
    large.free();
    mb.trim();
    assertEquals(fake.live("handles"), 0);
  },
);

hipTest("a new mapping that gfx12 sees late is waited for", {
  architecture: "gfx1201",
  lateUs: 1500,
}, ({ device }) => {
  using mb = MoonBright.open(device);
  for (let round = 1; round <= 3; round++) {
    const block = mb.alloc(round * 20 * GRANULE);
    block.fill(round);
    assertEquals(block.read(1), new Uint8Array([round]));
  }
});

hipTest("what is not waited for elsewhere would be noticed", {
  architecture: "gfx90a",
  lateUs: 1e6,
  violates: true,
}, ({ device }) => {
  const mb = MoonBright.open(device);
  const block = mb.alloc(GRANULE);
  const error = assertThrows(() => {
    block.fill(1);
    mb.synchronize();
  }, DriverError);
  assertEquals(error.code, "lost");
  mb.close();
});

hipTest("a mapping that failed in silence is noticed and undone", {
  version: 60443483,
}, ({ device, fake }) => {
  const driver = openDriver(device);
  const address = driver.reserve(4 * GRANULE);
  for (const nth of [1, 2, 3]) {
    const extents = driver.createExtents([GRANULE, 2 * GRANULE, GRANULE]);
    fake.set({ silentMapFailure: nth });
    const error = assertThrows(() => driver.map(address, extents), DriverError);
    assertMatch(error.message, /hipMemSetAccess/);
    assertEquals(fake.live("mappings"), 0);
    // All is as it was before: the same can be mapped now.
    driver.map(address, extents);
    driver.fill(address, nth, 1, 4 * GRANULE, 0);
    driver.synchronize();
    driver.unmap([{ address, size: 4 * GRANULE }]);
    driver.releaseExtents(extents);
  }
  driver.close();
});

hipTest("an instance survives a mapping that failed in silence", {
  version: 60443483,
}, ({ device, fake }) => {
  using mb = MoonBright.open(device);
  const kept = mb.alloc(GRANULE);
  kept.fill(3);
  fake.set({ silentMapFailure: 1 });
  assertThrows(() => mb.alloc(64 * GRANULE), DriverError);
  mb.allocator.assertInvariants();
  const block = mb.alloc(64 * GRANULE);
  block.fill(4);
  assertEquals(kept.read(1), new Uint8Array([3]));
  assertEquals(block.read(1), new Uint8Array([4]));
});

// However little the system lets a process reserve, an arena of half of it can be renewed.
for (const reservable of [0, 2 ** 30, 3 * 2 ** 40, 2 ** 43, 1.5 * 2 ** 43]) {
  hipTest(
    `memory that stays used until its addresses are freed comes back with a trim (${reservable} bytes reservable)`,
    { memoryStays: 1, reservable },
    ({ device, fake }) => {
      using mb = MoonBright.open(device);
      for (let round = 1; round <= 3; round++) {
        const block = mb.alloc(round * 8 * GRANULE);
        block.fill(round);
        assertEquals(block.read(1), new Uint8Array([round]));
        block.free();
        assert(fake.used() > 0);
        mb.trim();
        assertEquals([fake.used(), fake.live("handles")], [0, 0]);
        mb.allocator.assertInvariants();
      }
    },
  );
}

hipTest("addresses that are in use stay, whatever is trimmed", {
  memoryStays: 1,
}, ({ device, fake }) => {
  using mb = MoonBright.open({ ...device, growth: { extentSize: GRANULE } });
  using kept = mb.alloc(GRANULE);
  kept.fill(5);
  const other = mb.alloc(200 * GRANULE);
  other.free();
  const freed = fake.calls("hipMemAddressFree");
  mb.trim();
  assertEquals(fake.calls("hipMemAddressFree"), freed);
  assertEquals(kept.read(1), new Uint8Array([5]));
  mb.allocator.assertInvariants();
});
