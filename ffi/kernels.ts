/**
 * The kernels that ship with MoonBright, as module images for a device.
 *
 * @module
 */

import busyPtx from "../kernels/build/busy.ptx" with { type: "text" };
import pagingCopyPtx from "../kernels/build/paging_copy.ptx" with {
  type: "text",
};
import pagingEntriesPtx from "../kernels/build/paging_entries.ptx" with {
  type: "text",
};
import pagingReadPtx from "../kernels/build/paging_read.ptx" with {
  type: "text",
};
import patternPtx from "../kernels/build/pattern.ptx" with { type: "text" };
import type { DeviceInfo } from "../lib/driver.ts";
import { MoonBrightError } from "../lib/errors.ts";
import { buildHostKernels } from "./build.ts";

/** Name of a kernel file in `kernels/`. */
export type KernelSet =
  | "busy"
  | "paging_copy"
  | "paging_entries"
  | "paging_read"
  | "pattern";

const PTX: Record<KernelSet, string> = {
  busy: busyPtx,
  paging_copy: pagingCopyPtx,
  paging_entries: pagingEntriesPtx,
  paging_read: pagingReadPtx,
  pattern: patternPtx,
};

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
