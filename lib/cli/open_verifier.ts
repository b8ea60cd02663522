import { MoonBrightError } from "../errors.ts";
import type { MoonBright } from "../moonbright.ts";
import type { CommandContext } from "./context.ts";
import { HostVerifier } from "./host_verifier.ts";
import { KernelVerifier } from "./kernel_verifier.ts";
import type { Verifier } from "./verifier.ts";

/**
 * The verifier that is wanted (`kernel`, `host`, `none`): kernels unless told otherwise, or
 * if they can't be had.
 */
export function openVerifier(
  context: CommandContext,
  mb: MoonBright,
  wanted: string | undefined,
): Verifier | undefined {
  if (wanted === "none") return undefined;
  if (wanted === "host") return new HostVerifier();
  try {
    context.progress.update("loading kernels");
    const image = context.host.kernelImage("pattern", mb.device);
    return new KernelVerifier(mb, image);
  } catch (error) {
    if (wanted === "kernel" || !(error instanceof MoonBrightError)) throw error;
    context.warn(`checking by copies to the host: ${error.message}`);
    return new HostVerifier();
  }
}
