import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { openDriver, probeBackends } from "../../ffi/devices.ts";
import { MoonBright } from "../../ffi/moonbright.ts";
import { MoonBrightError } from "../../lib/errors.ts";
import { assertFailsWith } from "../contract/instance_harness.ts";
import { libraryWithout } from "../fake/without.ts";
import { hipTest } from "./fake_runtime.ts";

const HEADER = Deno.readTextFileSync(
  new URL("../../native/hip_api.h", import.meta.url),
);

/** Names of the functions in one of the header's lists. */
function symbolsOf(list: string): string[] {
  const body = new RegExp(`#define ${list}\\(X\\).*?(?<!\\\\)\\n\\n`, "s")
    .exec(HEADER);
  return [...body![0].matchAll(/\bX\([\w *]+, (hip\w+),/g)].map(([, name]) =>
    name!
  );
}

/** A runtime without some functions, opened and used by `use`. */
function withoutTest(
  name: string,
  groups: string[][],
  use: (vendorLibrary: string, names: string[]) => void,
): void {
  hipTest(name, {}, async ({ path }) => {
    const dir = await Deno.makeTempDir({ prefix: "moonbright-hip-" });
    try {
      assert(groups.length > 0);
      for (const names of groups) {
        use(libraryWithout(dir, path, ...names), names);
      }
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  });
}

const one = (list: string) => symbolsOf(list).map((name) => [name]);
const hip = (vendorLibrary: string) => ({ device: "hip:0", vendorLibrary });

withoutTest(
  "a runtime that lacks any function that is needed is refused, and which is said",
  [...one("HIP_SYMBOLS"), symbolsOf("HIP_PROPERTIES_SYMBOLS")],
  (library, names) => {
    const error = assertThrows(() => openDriver(hip(library)), MoonBrightError);
    assertEquals(error.code, "no-library");
    const last = names.at(-1)!;
    assertMatch(error.message, new RegExp(`lacks the symbol ${last}\\b`));
    assertMatch(error.message, /too old, install a newer one/);
    const found = probeBackends({ vendorLibrary: library }).backends
      .find(({ name }) => name === "hip");
    assertEquals(found?.devices, []);
    assert(found?.problem?.includes(last));
  },
);

withoutTest(
  "either of the functions for a device's properties is enough",
  one("HIP_PROPERTIES_SYMBOLS"),
  (library) => {
    const driver = openDriver(hip(library));
    driver.close();
    assertEquals(driver.info.architecture, "gfx90a");
  },
);

withoutTest(
  "a runtime that lacks a function for mapping gives plain extents",
  one("HIP_VMM_SYMBOLS"),
  (library) => {
    using mb = MoonBright.open(hip(library));
    assertMatch(mb.device.plainReason!, /needs ROCm 6\.1/);
    const block = mb.alloc(1000);
    block.fill(7);
    assert(block.read().every((byte) => byte === 7));
  },
);

withoutTest(
  "a runtime without pools serves everything else",
  one("HIP_POOL_SYMBOLS"),
  (library) => {
    using mb = MoonBright.open(hip(library));
    assertEquals(mb.device.pools, false);
    assertFailsWith("unsupported", () => mb.driver.poolAlloc(2 ** 20, 0));
    using block = mb.alloc(1000);
    block.fill(7);
    assert(block.read().every((byte) => byte === 7));
  },
);

withoutTest(
  "a runtime without graphs serves everything else",
  one("HIP_GRAPH_SYMBOLS"),
  (library) => {
    using mb = MoonBright.open(hip(library));
    using stream = mb.createStream();
    using block = mb.alloc(1000, { stream });
    assertFailsWith("unsupported", () => stream.capture(() => block.fill(1)));
    assert(!stream.capturing);
    block.fill(7);
    assert(block.read().every((byte) => byte === 7));
  },
);
