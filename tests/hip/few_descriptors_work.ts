/**
 * Run as a script by the tests, in a process that may hold few file descriptors: what the
 * HIP backend makes of that. Takes the fake runtime's path, prints what was found as JSON.
 *
 * @module
 */

import { openDriver } from "../../ffi/devices.ts";
import { MoonBright } from "../../ffi/moonbright.ts";
import type { Block } from "../../lib/block.ts";
import { MoonBrightError } from "../../lib/errors.ts";
import { FakeHip } from "../fake/control.ts";
import { GRANULE, OUT_OF_MEMORY } from "./fake_runtime.ts";

/** What the script prints. */
export interface FewDescriptors {
  /** Most extents, as the device's facts say. */
  extentLimit: number;
  /** Extents that could be created, and what the next one was refused with. */
  created: number;
  /** The refusal's code and text. */
  refusal: [code: string, message: string];
  /** Extents that there were when instances had filled the device. */
  shared: number;
  /** The refusal of an extent when the process can open no more files. */
  exhausted: [code: string, message: string];
}

function refusalOf(call: () => void): [string, string] {
  try {
    call();
  } catch (error) {
    if (error instanceof MoonBrightError) return [error.code, error.message];
    throw error;
  }
  throw new Error("Cannot go on: nothing was refused");
}

function main(vendorLibrary: string): FewDescriptors {
  using fake = new FakeHip(vendorLibrary);
  const device = { device: "hip:0", vendorLibrary };
  const driver = openDriver(device);
  const { extentLimit = 0 } = driver.info;
  const extents: number[] = [];
  const refusal = refusalOf(() => {
    for (;;) extents.push(...driver.createExtents([GRANULE]));
  });
  driver.releaseExtents(extents);

  // The limit is the process's: two instances share it.
  const growth = { least: GRANULE, extentSize: GRANULE };
  const instances = [1, 2].map(() => MoonBright.open({ ...device, growth }));
  const blocks: Block[] = [];
  refusalOf(() => {
    for (let i = 0;; i++) blocks.push(instances[i % 2]!.alloc(GRANULE));
  });
  const shared = fake.live("handles");
  for (const instance of instances) {
    instance.allocator.assertInvariants();
    instance.close();
  }

  const files: Deno.FsFile[] = [];
  try {
    for (;;) files.push(Deno.openSync("/dev/null"));
  } catch {
    // None is left, as the next call is to find.
  }
  fake.fail("hipMemCreate", 1, OUT_OF_MEMORY);
  const exhausted = refusalOf(() => driver.createExtents([GRANULE]));
  for (const file of files) file.close();
  driver.close();
  return { extentLimit, created: extents.length, refusal, shared, exhausted };
}

if (import.meta.main) console.log(JSON.stringify(main(Deno.args[0]!)));
