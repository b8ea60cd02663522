/**
 * The kernels that ship with MoonBright, as module images for a device.
 *
 * @module
 */

import type { DeviceInfo } from "../lib/driver.ts";
import { MoonBrightError } from "../lib/errors.ts";
import { buildHostKernels } from "./build.ts";
import { CODE_OBJECTS } from "./embedded/code_objects.ts";
import { PTX } from "./embedded/ptx.ts";

/** Name of a kernel file in `kernels/`. */
export type KernelSet =
  | "busy"
  | "paging_copy"
  | "paging_entries"
  | "paging_read"
  | "pattern";

/** AMD code objects in base64, by kernel file and architecture: `busy.gfx90a`. */
const OBJECTS: Readonly<Record<string, string>> = CODE_OBJECTS;

/**
 * The image of a set of kernels for a device: PTX for CUDA, a code object of its
 * architecture for HIP; for the host a shared object, built on first use.
 *
 * @throws {MoonBrightError} if there is none for the device, or no compiler to make it
 */
export function kernelImage(name: KernelSet, device: DeviceInfo): Uint8Array {
  switch (device.backend) {
    case "cuda":
      // The driver reads text up to its final zero.
      return new TextEncoder().encode(PTX[name] + "\0");
    case "hip":
      return codeObject(name, device.architecture);
    case "host":
      return Deno.readFileSync(buildHostKernels(name));
    default:
      throw new MoonBrightError(
        "unsupported",
        "load kernels",
        `Cannot load the kernels "${name}": none ship for the backend "${device.backend}"`,
      );
  }
}

/** The code object for an architecture such as `gfx90a` or `gfx90a:sramecc+:xnack-`. */
function codeObject(name: KernelSet, architecture: string): Uint8Array {
  // Ours run whatever features are on: none is named in them.
  const [processor = ""] = architecture.split(":");
  const base64 = OBJECTS[`${name}.${processor}`];
  if (base64 === undefined) {
    const shipped = Object.keys(OBJECTS)
      .filter((key) => key.startsWith(`${name}.`))
      .map((key) => key.slice(name.length + 1));
    throw new MoonBrightError(
      "unsupported",
      "load kernels",
      `Cannot load the kernels "${name}": they ship for ${
        shipped.join(", ")
      }, not for "${processor}"; add it to AMD_ARCHITECTURES in kernels/build.ts, run that, and "deno task embed"`,
    );
  }
  return Uint8Array.fromBase64(base64);
}
