import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import fc from "fast-check";
import { join } from "@std/path";
import { openDriver } from "../../ffi/devices.ts";
import { buildHostKernels } from "../../ffi/build.ts";
import { kernelImage, type KernelSet } from "../../ffi/kernels.ts";
import { AMD_ARCHITECTURES, BUILD_DIR } from "../../kernels/build.ts";
import type { DeviceInfo } from "../../lib/driver.ts";
import { DriverError, MoonBrightError } from "../../lib/errors.ts";
import { asHipImage } from "../fake/control.ts";
import { hipTest } from "./fake_runtime.ts";

const SETS: KernelSet[] = [
  "busy",
  "paging_copy",
  "paging_entries",
  "paging_read",
  "pattern",
];

const BUNDLE_MAGIC = new TextEncoder().encode("__CLANG_OFFLOAD_BUNDLE__");

function device(architecture: string): DeviceInfo {
  return {
    backend: "hip",
    ordinal: 0,
    name: "made up",
    architecture,
    totalMemory: 0,
    granularity: 4096,
    processors: 1,
    driverVersion: 0,
    pools: false,
  };
}

/** A bundle as `clang-offload-bundler` writes it: entries, then the objects. */
function bundleOf(
  objects: readonly [target: string, object: Uint8Array][],
): Uint8Array<ArrayBuffer> {
  const names = objects.map(([target]) => new TextEncoder().encode(target));
  const head = BUNDLE_MAGIC.length + 8 +
    names.reduce((sum, name) => sum + 24 + name.length, 0);
  const bytes = objects.reduce((sum, [, { length }]) => sum + length, head);
  const bundle = new Uint8Array(bytes);
  const view = new DataView(bundle.buffer);
  bundle.set(BUNDLE_MAGIC);
  view.setBigUint64(BUNDLE_MAGIC.length, BigInt(objects.length), true);
  let at = BUNDLE_MAGIC.length + 8;
  let offset = head;
  objects.forEach(([, object], index) => {
    const name = names[index]!;
    [offset, object.length, name.length].forEach((value, word) =>
      view.setBigUint64(at + 8 * word, BigInt(value), true)
    );
    bundle.set(name, at + 24);
    bundle.set(object, offset);
    at += 24 + name.length;
    offset += object.length;
  });
  return bundle;
}

Deno.test("a device gets the code object of its architecture, features or not", () => {
  for (const set of SETS) {
    for (const architecture of AMD_ARCHITECTURES) {
      const object = Deno.readFileSync(
        join(BUILD_DIR, `${set}.${architecture}.hsaco`),
      );
      for (const features of ["", ":sramecc+:xnack-", ":xnack-"]) {
        assertEquals(
          kernelImage(set, device(architecture + features)),
          object,
        );
      }
    }
  }
});

Deno.test("an architecture without code objects is told which have them", () => {
  for (const architecture of ["gfx906", "gfx90", "", "toString", "gfx90a "]) {
    const error = assertThrows(
      () => kernelImage("pattern", device(architecture)),
      MoonBrightError,
    );
    assertEquals(error.code, "unsupported");
    assert(error.message.includes(`not for "${architecture}"`), error.message);
    for (const name of AMD_ARCHITECTURES) {
      assert(error.message.includes(`${name},`), error.message);
    }
  }
});

hipTest(
  "shipped code objects reach the runtime",
  {},
  ({ device: wanted, fake }) => {
    const driver = openDriver(wanted);
    for (const set of SETS) {
      for (const architecture of AMD_ARCHITECTURES) {
        const before = fake.calls("hipModuleLoadData");
        // The fake runs shared objects of this machine alone.
        const error = assertThrows(
          () => driver.loadModule(kernelImage(set, device(architecture))),
          DriverError,
        );
        assertMatch(error.message, /hipModuleLoadData of \d+ bytes/);
        assertEquals(fake.calls("hipModuleLoadData"), before + 1);
      }
    }
    driver.close();
  },
);

hipTest("images that are not whole never reach the runtime", {}, ({
  device: wanted,
  fake,
}) => {
  const driver = openDriver(wanted);
  const object = kernelImage("busy", device("gfx90a"));
  const bundle = bundleOf([
    ["host-x86_64-unknown-linux--", new Uint8Array()],
    ["hipv4-amdgcn-amd-amdhsa--gfx90a", object],
  ]);
  const refuse = (image: Uint8Array, why: RegExp) => {
    const error = assertThrows(() => driver.loadModule(image), RangeError);
    assertMatch(error.message, why);
  };
  refuse(new Uint8Array(100), /neither an AMD code object nor/);
  refuse(
    new TextEncoder().encode(".version 6.0\n\0"),
    /neither an AMD code object nor/,
  );
  refuse(BUNDLE_MAGIC, /cut off/);
  refuse(Deno.readFileSync(buildHostKernels("busy")), /machine/);
  fc.assert(fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (part) => {
    const shorter = (bytes: Uint8Array) =>
      bytes.subarray(0, Math.max(1, Math.floor(bytes.length * part * 0.999)));
    assertThrows(() => driver.loadModule(shorter(object)), RangeError);
    assertThrows(() => driver.loadModule(shorter(bundle)), RangeError);
  }));
  assertEquals(fake.calls("hipModuleLoadData"), 0);
  // A whole bundle is the runtime's to judge.
  assertThrows(() => driver.loadModule(bundle), DriverError);
  assertEquals(fake.calls("hipModuleLoadData"), 1);
  driver.close();
});

hipTest(
  "no bundle's numbers lead outside of it",
  {},
  ({ device: wanted, fake }) => {
    const driver = openDriver(wanted);
    const whole = bundleOf([["a", new Uint8Array(64)], [
      "b",
      new Uint8Array(8),
    ]]);
    const FIELDS_AT = BUNDLE_MAGIC.length + 8;
    const huge = fc.constantFrom(2n ** 64n - 1n, 2n ** 63n, 2n ** 32n, 1000n);
    fc.assert(fc.property(fc.nat(3), huge, (field, value) => {
      const bundle = new Uint8Array(whole);
      const at = field === 3 ? BUNDLE_MAGIC.length : FIELDS_AT + 8 * field;
      new DataView(bundle.buffer).setBigUint64(at, value, true);
      assertThrows(() => driver.loadModule(bundle), RangeError, "cut off");
    }));
    assertEquals(fake.calls("hipModuleLoadData"), 0);
    driver.close();
  },
);

hipTest("a module's image is kept as long as the module", {}, ({
  device: wanted,
}) => {
  const driver = openDriver(wanted);
  const image = asHipImage(Deno.readFileSync(buildHostKernels("busy")));
  const modules = [1, 2, 3].map(() => driver.loadModule(image));
  image.fill(0);
  // The runtime looks at it again with each of these.
  for (const module of modules) {
    driver.getFunction(module, "mb_spin");
    driver.unloadModule(module);
  }
  driver.close();
});

hipTest(
  "no more threads are launched along an axis than the runtime can count",
  {},
  ({
    device: wanted,
    fake,
  }) => {
    const driver = openDriver(wanted);
    const image = asHipImage(Deno.readFileSync(buildHostKernels("busy")));
    const empty = driver.getFunction(driver.loadModule(image), "mb_empty");
    const args = new Uint8Array(8);
    const error = assertThrows(
      () => driver.launch(empty, { grid: [2 ** 26], block: [64] }, args, 0),
      RangeError,
    );
    assertMatch(error.message, /more than 2\^32 - 1 threads along an axis/);
    assertEquals(fake.calls("hipModuleLaunchKernel"), 0);
    driver.launch(empty, { grid: [3], block: [64] }, args, 0);
    driver.synchronize();
    driver.close();
  },
);
