import { assertEquals } from "@std/assert";
import { type DeviceOptions, openDriver } from "../../ffi/devices.ts";
import { buildFakeHip } from "../fake/build.ts";
import { FakeHip, type HipOptions } from "../fake/control.ts";

/** The shim's pages that it takes for a granule where the runtime's are smaller. */
export const GRANULE = 2 * 2 ** 20;

/** What hipErrorOutOfMemory and hipErrorInvalidValue are. */
export const OUT_OF_MEMORY = 2;
export const INVALID_VALUE = 1;
export const UNKNOWN = 999;

/** Why the fakes can't be built here, if they can't. */
export const skip: string | undefined = await whyNotBuilt();

async function whyNotBuilt(): Promise<string | undefined> {
  try {
    openDriver({ device: "host" }).close();
    await Promise.all([buildFakeHip(), buildFakeHip(5)]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A fake runtime, and how to open its device. */
export interface Runtime {
  /** Steers it. */
  fake: FakeHip;
  /** What opens its first device. */
  device: DeviceOptions;
  /** Its file. */
  path: string;
}

/** How a test's runtime is. */
export interface RuntimeOptions extends Partial<HipOptions> {
  /** As ROCm 5 exports it. */
  rocm?: 5 | 6;
  /** The device's architecture, features included. */
  architecture?: string;
  /** Whether the test makes violations on purpose. */
  violates?: boolean;
}

/**
 * A test on a fake HIP runtime with options of its own. Nothing may be left in the
 * runtime afterwards, and nothing may have happened that the real one does not survive.
 */
export function hipTest(
  name: string,
  options: RuntimeOptions,
  check: (runtime: Runtime) => void | Promise<void>,
): void {
  const { rocm, architecture, violates, ...set } = options;
  Deno.test({
    name: `hip: ${name}${skip ? ` (ignored: ${skip})` : ""}`,
    ignore: skip !== undefined,
    async fn() {
      const path = await buildFakeHip(rocm);
      using fake = new FakeHip(path);
      fake.reset();
      fake.set(set);
      if (architecture !== undefined) fake.setArchitecture(architecture);
      try {
        const device = { device: "hip:0", vendorLibrary: path };
        await check({ fake, device, path });
        if (!violates) assertEquals(fake.violation(), "");
        const { violations: _, ...left } = fake.leftovers();
        assertEquals(left, {});
      } finally {
        fake.reset();
      }
    },
  });
}
