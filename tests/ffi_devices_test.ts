import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import {
  type DeviceOptions,
  openDriver,
  parseDevice,
  probeBackends,
} from "../ffi/devices.ts";
import { SYMBOLS } from "../ffi/symbols.ts";
import { DriverError, MoonBrightError } from "../lib/errors.ts";
import { buildFakeCuda, buildFakeHip } from "./fake/build.ts";

const vendorLibrary = await buildFakeCuda();
const hipLibrary = await buildFakeHip();
const absent = "/absent/libcuda.so";
// The library stays open, which a test would be blamed for.
probeBackends({ vendorLibrary: absent });

/** A shim of two CUDA devices, of which only the second can map memory. */
const HALF_USABLE = `
#include <string.h>
#include "moonbright.h"
int32_t mb_abi_version(void) { return MB_ABI_VERSION; }
int32_t mb_device_count(int32_t backend, const uint8_t *library, uint32_t library_length,
                        uint32_t *count) {
  *count = backend == MB_BACKEND_CUDA ? 2 : 0;
  return MB_OK;
}
int32_t mb_device_properties(int32_t backend, const uint8_t *library, uint32_t library_length,
                             uint32_t ordinal, double *properties, uint8_t *name,
                             uint32_t name_capacity) {
  properties[MB_PROP_VMM] = ordinal;
  properties[MB_PROP_GRANULARITY] = 4096;
  strcpy((char *)name, ordinal ? "new\\nsm_90" : "old\\nsm_30");
  return MB_OK;
}
int32_t mb_open(int32_t backend, const uint8_t *library, uint32_t library_length,
                uint32_t ordinal, uint32_t *device) {
  *device = 1;
  return ordinal == 1 ? MB_OK : MB_UNSUPPORTED;
}
int32_t mb_close(uint32_t device) { return MB_OK; }
`;

/** Compiles a shim whose other functions do nothing. */
async function buildShimFrom(source: string, dir: string): Promise<string> {
  const others = Object.keys(SYMBOLS).filter((name) =>
    !name.endsWith("_async") && !source.includes(`${name}(`)
  );
  const unit = join(dir, "shim.c");
  const rest = join(dir, "rest.c");
  await Deno.writeTextFile(unit, source);
  await Deno.writeTextFile(
    rest,
    others.map((name) => `int ${name}() { return 8; }\n`).join(""),
  );
  const path = join(dir, "shim.so");
  const native = fromFileUrl(new URL("../native", import.meta.url));
  const { success, stderr } = await new Deno.Command("cc", {
    args: ["-shared", "-fPIC", `-I${native}`, "-o", path, unit, rest],
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return path;
}

Deno.test("devices are named by backend and number", () => {
  assertEquals(parseDevice("host"), { backend: "host", ordinal: 0 });
  assertEquals(parseDevice("cuda"), { backend: "cuda", ordinal: 0 });
  assertEquals(parseDevice("cuda:12"), { backend: "cuda", ordinal: 12 });
  assertEquals(parseDevice("hip:1"), { backend: "hip", ordinal: 1 });
  for (
    const name of [
      "",
      "gpu",
      "CUDA:0",
      "cuda:",
      "cuda:-1",
      "cuda:1.5",
      "cuda:x",
    ]
      .concat("cuda:99999", " host", "host\n", "auto:0")
  ) {
    assertThrows(() => parseDevice(name), RangeError, `"${name}"`);
    assertThrows(() => openDriver({ device: name }), RangeError);
  }
});

Deno.test("a device that can't be had gives an error that says why", () => {
  const cases: [options: DeviceOptions, code: string, why: RegExp][] = [
    [{ device: "hip", vendorLibrary: absent }, "no-library", /\/absent\//],
    [{ device: "hip:3", vendorLibrary: hipLibrary }, "no-device", /hip:3/],
    [{ device: "host:1" }, "no-device", /host:1/],
    [{ device: "cuda:0", vendorLibrary: absent }, "no-library", /\/absent\//],
    [{ device: "cuda:7", vendorLibrary }, "no-device", /cuda:7/],
  ];
  for (const [options, code, why] of cases) {
    const error = assertThrows(() => openDriver(options), DriverError);
    assertEquals(error.code, code, error.message);
    assertMatch(error.message, why);
    assertMatch(error.message, /^Cannot open the device "/);
  }
});

Deno.test("auto takes the first GPU, and the host where there is none", () => {
  for (
    const [library, backend] of [
      [vendorLibrary, "cuda"],
      [hipLibrary, "hip"],
      [absent, "host"],
    ]
  ) {
    const driver = openDriver({ vendorLibrary: library });
    assertEquals(driver.info.backend, backend);
    assertEquals(driver.info.ordinal, 0);
    driver.close();
  }
});

for (
  const [gpu, other, vendorLibrary] of [
    ["cuda", "hip", await buildFakeCuda()],
    ["hip", "cuda", hipLibrary],
  ] as const
) {
  Deno.test(`every backend shows its devices, or why it has none: ${gpu}`, () => {
    const { backends, library } = probeBackends({ vendorLibrary });
    assert(library.path.endsWith(".so"));
    assertEquals(backends.map(({ name }) => name), ["cuda", "hip", "host"]);
    const named = new Map(backends.map((backend) => [backend.name, backend]));
    for (const backend of [named.get(gpu)!, named.get("host")!]) {
      assertEquals(backend.problem, null);
      assertEquals(backend.devices.length, 1);
      for (const { id, info } of backend.devices) {
        assertEquals(id, `${backend.name}:${info.ordinal}`);
        assert(info.name.length > 0 && info.architecture.length > 0);
        assert(info.totalMemory > 0 && info.processors > 0);
        assertEquals(info.granularity % 4096, 0);
        const driver = openDriver({ device: id, vendorLibrary });
        assertEquals(driver.info, info);
        driver.close();
      }
    }
    // The one vendor's library is not the other's.
    assertEquals(named.get(other)?.devices, []);
    assertMatch(named.get(other)?.problem ?? "", /lacks the symbol .*Init:/);
  });
}

Deno.test("a missing library is every vendor's problem", () => {
  for (
    const { name, devices, problem } of probeBackends({
      vendorLibrary: absent,
    }).backends
  ) {
    if (name === "host") continue;
    assertEquals(devices, []);
    assertMatch(problem ?? "", /\/absent\//);
  }
});

Deno.test({
  name: "a device that can't map memory is passed over, and refused by name",
  // The made-up shim stays open like any other.
  sanitizeResources: false,
  async fn() {
    const dir = await Deno.makeTempDir({ prefix: "moonbright-devices-" });
    try {
      const library = await buildShimFrom(HALF_USABLE, dir);
      const driver = openDriver({ library });
      assertEquals(driver.info.ordinal, 1);
      assertEquals(driver.info.name, "new");
      driver.close();
      const error = assertThrows(
        () => openDriver({ library, device: "cuda:0" }),
        MoonBrightError,
      );
      assertEquals(error.code, "unsupported");
      assertMatch(error.message, /"cuda:0" \(old\)/);
      const [cuda] = probeBackends({ library }).backends;
      assertEquals(cuda?.devices.map(({ id }) => id), ["cuda:1"]);
      assertMatch(cuda?.problem ?? "", /"cuda:0"/);
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  },
});
