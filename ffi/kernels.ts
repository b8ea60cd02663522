/**
 * The kernels that ship with MoonBright, as module images for a device.
 *
 * @module
 */

import type { DeviceInfo } from "../lib/driver.ts";
import { MoonBrightError } from "../lib/errors.ts";
import { buildHostKernels } from "./build.ts";
import { PTX } from "./embedded/ptx.ts";

/** Name of a kernel file in `kernels/`. */
export type KernelSet =
  | "busy"
  | "paging_copy"
  | "paging_entries"
  | "paging_read"
  | "pattern";

/**
 * The image of a set of kernels for a device: PTX for CUDA; for the host a shared
 * object, built on first use.
 *
 * @throws {MoonBrightError} if there is none for the device, or no compiler to make it
 */
export function kernelImage(name: KernelSet, device: DeviceInfo): Uint8Array {
  if (device.backend === "cuda") {
    // The driver reads text up to its final zero.
    return new TextEncoder().encode(PTX[name] + "\0");
  }
  if (device.backend === "host") {
    return Deno.readFileSync(buildHostKernels(name));
  }
  throw new MoonBrightError(
    "unsupported",
    "load kernels",
    `Cannot load the kernels "${name}": none ship for the backend "${device.backend}"`,
  );
}
