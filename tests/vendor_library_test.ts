/** Drivers that lack functions or refuse to start: what opening and probing say. */

import {
  assert,
  assertEquals,
  assertGreater,
  assertMatch,
  assertThrows,
} from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import { openDriver, probeBackends } from "../ffi/devices.ts";
import { MoonBright } from "../ffi/moonbright.ts";
import { MoonBrightError } from "../lib/errors.ts";
import { assertFailsWith } from "./contract/instance_harness.ts";
import { buildFakeCuda } from "./fake/build.ts";
import { libraryWithout } from "./fake/without.ts";

const api = Deno.readTextFileSync(
  fromFileUrl(new URL("../native/cuda_api.h", import.meta.url)),
);
const fakeCuda = await buildFakeCuda();
// The shim stays open, which a test would be blamed for.
openDriver({ device: "host" }).close();

/** Names of the functions in one of the header's lists. */
function symbolsOf(list: string): string[] {
  const body = new RegExp(`#define ${list}\\(X\\).*?(?<!\\\\)\\n\\n`, "s").exec(
    `${api}\n\n`,
  );
  return [...body![0].matchAll(/X\(\w+, "(\w+)"/g)].map(([, name]) => name!);
}

const needed = symbolsOf("CUDA_SYMBOLS");
const pools = symbolsOf("CUDA_POOL_SYMBOLS");
const graphs = symbolsOf("CUDA_GRAPH_SYMBOLS");
const instantiate = symbolsOf("CUDA_INSTANTIATE_SYMBOLS");

async function inTempDir(body: (dir: string) => void | Promise<void>) {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-vendor-" });
  try {
    await body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

let copies = 0;

/** A copy of the fake driver in which the functions named go by other names. */
const driverWithout = (dir: string, ...names: string[]) =>
  libraryWithout(dir, fakeCuda, ...names);

/** The fake driver with some functions replaced. */
async function driverWith(dir: string, source: string): Promise<string> {
  const path = join(dir, `with-${copies++}.so`);
  const unit = `${path}.c`;
  await Deno.writeTextFile(unit, source);
  const { success, stderr } = await new Deno.Command("cc", {
    // Found before those of the library that it depends on.
    args: [
      ...["-shared", "-fPIC", "-o", path, unit],
      ...["-Wl,--no-as-needed", fakeCuda, "-ldl"],
    ],
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return path;
}

/** What opening a device of such a driver throws; probing must say the same. */
function refusal(vendorLibrary: string): MoonBrightError {
  const error = assertThrows(
    () => openDriver({ device: "cuda:0", vendorLibrary }),
    MoonBrightError,
    "Cannot ",
  );
  const [cuda] = probeBackends({ vendorLibrary }).backends;
  assertEquals(cuda!.devices, []);
  assert(cuda!.problem && cuda!.problem.length > 10, `${cuda!.problem}`);
  const fallback = openDriver({ vendorLibrary });
  assertEquals(fallback.info.backend, "host");
  fallback.close();
  return error;
}

Deno.test("the lists of functions are read whole", () => {
  assertGreater(needed.length, 40);
  assertEquals([pools.length, graphs.length, instantiate.length], [6, 6, 2]);
});

Deno.test("a driver that lacks any function that is needed is refused, and which is said", () =>
  inTempDir((dir) => {
    for (const name of needed) {
      const error = refusal(driverWithout(dir, name));
      assertEquals(error.code, "no-library", name);
      assertMatch(error.message, new RegExp(`lacks the symbol ${name}\\b`));
      assertMatch(error.message, /too old.*install a newer one/);
    }
  }));

Deno.test("a driver without pools serves everything else", () =>
  inTempDir((dir) => {
    for (const name of pools) {
      using mb = MoonBright.open({
        device: "cuda:0",
        vendorLibrary: driverWithout(dir, name),
      });
      assertEquals(mb.device.pools, false);
      assertFailsWith("unsupported", () => mb.driver.poolAlloc(2 ** 20, 0));
      const block = mb.alloc(1000);
      block.fill(7);
      assert(block.read().every((byte) => byte === 7));
    }
  }));

Deno.test("a driver without graphs serves everything else", () =>
  inTempDir((dir) => {
    for (const names of [...graphs.map((name) => [name]), instantiate]) {
      using mb = MoonBright.open({
        device: "cuda:0",
        vendorLibrary: driverWithout(dir, ...names),
      });
      using stream = mb.createStream();
      using block = mb.alloc(1000, { stream });
      assertFailsWith(
        "unsupported",
        () => stream.capture(() => block.fill(1)),
      );
      assert(!stream.capturing, names.join());
      block.fill(7);
      assert(block.read().every((byte) => byte === 7));
    }
    for (const name of instantiate) {
      using mb = MoonBright.open({
        device: "cuda:0",
        vendorLibrary: driverWithout(dir, name),
      });
      using stream = mb.createStream();
      using block = mb.alloc(1000, { stream });
      using graph = stream.capture(() => block.fill(3));
      graph.launch();
      assert(block.read().every((byte) => byte === 3));
    }
  }));

Deno.test("what is no driver at all is refused", () =>
  inTempDir(async (dir) => {
    const text = join(dir, "text.so");
    await Deno.writeTextFile(text, "no library");
    const other = join(dir, "other.so");
    const unit = join(dir, "other.c");
    await Deno.writeTextFile(unit, "int other(void) { return 1; }\n");
    await new Deno.Command("cc", {
      args: ["-shared", "-fPIC", "-o", other, unit],
    }).output();
    for (const path of [text, other, dir, join(dir, "absent.so"), "\0"]) {
      const error = assertThrows(
        () => openDriver({ device: "cuda:0", vendorLibrary: path }),
        Error,
        "Cannot open the device",
      );
      const typed = error instanceof RangeError ||
        error instanceof MoonBrightError && error.code === "no-library";
      assert(typed, `${path}: ${error}`);
    }
  }));

Deno.test("a driver that can't map memory is refused, and what to do is said", () =>
  inTempDir(async (dir) => {
    const path = await driverWith(
      dir,
      `int cuDeviceGetAttribute(int *value, int attribute, int device) {
         (void)device;
         *value = attribute == 102 ? 0 : 1;
         return 0;
       }`,
    );
    const error = refusal(path);
    assertEquals(error.code, "unsupported");
    assertMatch(error.message, /can't map memory.*update the driver/);
  }));

Deno.test("a driver that does not start says why", () =>
  inTempDir(async (dir) => {
    for (
      const [result, code, why] of [
        [100, "no-device", /CUDA_ERROR_NO_DEVICE|100/],
        [35, "driver", /35/],
        [803, "driver", /803/],
        [999, "driver", /999/],
      ] as const
    ) {
      const error = refusal(
        await driverWith(
          dir,
          `int cuInit(unsigned flags) { (void)flags; return ${result}; }`,
        ),
      );
      assertEquals(error.code, code, error.message);
      assertMatch(error.message, why);
      assertMatch(error.message, /cuInit|cuda:0/);
    }
  }));

Deno.test("a driver that failed to start is asked again at the next opening", () =>
  inTempDir(async (dir) => {
    const vendorLibrary = await driverWith(
      dir,
      `#define _GNU_SOURCE
       #include <dlfcn.h>
       static int calls;
       int cuInit(unsigned flags) {
         int (*next)(unsigned) = (int (*)(unsigned))dlsym(RTLD_NEXT, "cuInit");
         return calls++ < 2 ? 999 : next(flags);
       }`,
    );
    for (let round = 0; round < 2; round++) {
      assertFailsWith(
        "driver",
        () => openDriver({ device: "cuda:0", vendorLibrary }),
        "cuInit",
      );
    }
    using mb = MoonBright.open({ device: "cuda:0", vendorLibrary });
    assertEquals(mb.alloc(100).size, 100);
  }));
