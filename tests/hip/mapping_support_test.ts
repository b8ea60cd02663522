import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { openDriver, probeBackends } from "../../ffi/devices.ts";
import { MoonBright } from "../../ffi/moonbright.ts";
import type { DeviceInfo } from "../../lib/driver.ts";
import { DriverError } from "../../lib/errors.ts";
import { FakeHip } from "../fake/control.ts";
import {
  GRANULE,
  hipTest,
  INVALID_VALUE,
  OUT_OF_MEMORY,
  type Runtime,
  UNKNOWN,
} from "./fake_runtime.ts";

/** Opens the device and looks at it. */
function infoOf({ device }: Runtime): DeviceInfo {
  const driver = openDriver(device);
  driver.close();
  return driver.info;
}

/** Allocates, writes and reads, whatever the device can do. */
function exercise({ device }: Runtime): void {
  using mb = MoonBright.open(device);
  const blocks = [100, GRANULE, 5 * GRANULE].map((size) => mb.alloc(size));
  blocks.forEach((block, i) => block.fill(i + 1));
  blocks.forEach((block, i) => {
    assertEquals(block.read(100), new Uint8Array(100).fill(i + 1));
    block.free();
  });
  mb.allocator.assertInvariants();
  mb.trim();
  assertEquals(mb.stats().mapped, 0);
}

hipTest("a runtime that does as it says maps memory", {}, (runtime) => {
  const info = infoOf(runtime);
  assertEquals(info.granularity, GRANULE);
  assertEquals(info.plainReason, undefined);
  assertEquals(info.architecture, "gfx90a");
  assertEquals(info.name, "Fake AMD device");
  assertEquals(info.driverVersion, 71460850);
  exercise(runtime);
});

for (
  const [recommended, granularity] of [
    [4096, GRANULE],
    [GRANULE, GRANULE],
    [4 * GRANULE, 4 * GRANULE],
  ] as const
) {
  hipTest(
    `a recommended granularity of ${recommended} is taken for ${granularity}`,
    { recommended },
    (runtime) => {
      assertEquals(infoOf(runtime).granularity, granularity);
      exercise(runtime);
    },
  );
}

hipTest("a runtime of ROCm 5 gives plain extents", { rocm: 5 }, (runtime) => {
  const info = infoOf(runtime);
  assertMatch(info.plainReason!, /version is 5\.2.*ROCm 6\.1.*update ROCm/);
  assertEquals(info.granularity, GRANULE);
  // From the older of the two layouts of a device's properties.
  assertEquals(info.architecture, "gfx90a");
  exercise(runtime);
  assertEquals(runtime.fake.calls("hipMemAddressReserve"), 0);
});

hipTest(
  "a version before 6.1 is not asked to map, whatever it exports",
  { version: 60032830, nullReservation: 1 },
  (runtime) => {
    assertMatch(infoOf(runtime).plainReason!, /version is 6\.0/);
    exercise(runtime);
    assertEquals(runtime.fake.calls("hipMemAddressReserve"), 0);
  },
);

hipTest(
  "a device that can't map gives plain extents",
  { vmm: 0 },
  (runtime) => {
    assertMatch(
      infoOf(runtime).plainReason!,
      /has no virtual memory management: update the amdgpu/,
    );
    exercise(runtime);
    assertEquals(runtime.fake.calls("hipMemAddressReserve"), 0);
  },
);

hipTest(
  "reservations that succeed without an address give plain extents",
  { nullReservation: 1 },
  (runtime) => {
    assertMatch(
      infoOf(runtime).plainReason!,
      /hipMemAddressReserve.*no address/,
    );
    exercise(runtime);
  },
);

hipTest(
  "a runtime that refuses access to a second mapping gives plain extents",
  { refusesSecondAccess: 1, version: 70226015 },
  (runtime) => {
    assertMatch(infoOf(runtime).plainReason!, /hipMemSetAccess.*\(1\)/);
    exercise(runtime);
  },
);

for (
  const name of [
    "hipMemAddressReserve",
    "hipMemCreate",
    "hipMemMap",
    "hipMemSetAccess",
  ]
) {
  hipTest(`a refusal of ${name} gives plain extents`, {}, (runtime) => {
    runtime.fake.fail(name, 1, INVALID_VALUE);
    const reason = infoOf(runtime).plainReason ?? "";
    assert(reason.includes(name), reason);
    // The next time all is well.
    assertEquals(infoOf(runtime).plainReason, undefined);
  });

  hipTest(
    `another failure of ${name} keeps the device from opening`,
    {},
    (runtime) => {
      runtime.fake.fail(name, 1, UNKNOWN);
      const error = assertThrows(() => openDriver(runtime.device), DriverError);
      const reserving = name === "hipMemAddressReserve";
      assertEquals(error.code, reserving ? "out-of-addresses" : "driver");
      assertEquals(error.driverCode, UNKNOWN);
      assertMatch(error.message, new RegExp(`${name}.*hipErrorUnknown`));
      assertEquals(infoOf(runtime).plainReason, undefined);
    },
  );
}

hipTest("a full device still maps, once there is room", {}, (runtime) => {
  runtime.fake.fail("hipMemCreate", 1, OUT_OF_MEMORY);
  assertEquals(infoOf(runtime).plainReason, undefined);
});

hipTest("a failed clean-up of the trial is made up for", {}, (runtime) => {
  for (const name of ["hipMemUnmap", "hipMemRelease", "hipMemAddressFree"]) {
    runtime.fake.fail(name, 1, UNKNOWN);
    assertEquals(infoOf(runtime).plainReason, undefined);
    assertEquals(runtime.fake.armed(), 0);
    assertEquals(runtime.fake.leftovers(), {});
  }
});

hipTest(
  "reservations that miss their alignment are aligned, and given back whole",
  { misaligned: 4096 },
  (runtime) => {
    const driver = openDriver(runtime.device);
    const addresses = [1, 3, 8].map((n) => driver.reserve(n * GRANULE));
    for (const address of addresses) assertEquals(address % GRANULE, 0);
    const [extent] = driver.createExtents([GRANULE]);
    driver.map(addresses[1]! + GRANULE, [extent!]);
    driver.unmap([{ address: addresses[1]! + GRANULE, size: GRANULE }]);
    driver.releaseExtents([extent!]);
    for (const address of addresses) driver.unreserve(address);
    driver.close();
    assertEquals(runtime.fake.live("reservations"), 0);
    exercise(runtime);
  },
);

hipTest("features are cut off the architecture's name", {
  architecture: "gfx942:sramecc+:xnack-",
}, (runtime) => {
  assertEquals(infoOf(runtime).architecture, "gfx942");
  runtime.fake.setArchitecture("gfx1100");
  assertEquals(infoOf(runtime).architecture, "gfx1100");
});

hipTest("each of several devices is found", { devices: 2 }, (runtime) => {
  const found = probeBackends(runtime.device).backends
    .find(({ name }) => name === "hip");
  assertEquals(found?.problem, null);
  assertEquals(found?.devices.map(({ id }) => id), ["hip:0", "hip:1"]);
});

hipTest(
  "a runtime without a device says so and what to do",
  {},
  async ({ path }) => {
    const dir = await Deno.makeTempDir({ prefix: "moonbright-hip-" });
    try {
      // A library that nobody has started: one that is keeps running.
      const vendorLibrary = `${dir}/libamdhip64.so`;
      await Deno.copyFile(path, vendorLibrary);
      using fake = new FakeHip(vendorLibrary);
      fake.set({ devices: 0 });
      const error = assertThrows(
        () => openDriver({ device: "hip:0", vendorLibrary }),
        DriverError,
      );
      assertEquals(error.code, "no-device");
      assertMatch(
        error.message,
        /no AMD device: .*(\/dev\/kfd|_VISIBLE_DEVICES)/,
      );
      const driver = openDriver({ vendorLibrary });
      assertEquals(driver.info.backend, "host");
      driver.close();
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  },
);
