/**
 * The flag that chooses a device, and opening the chosen one.
 *
 * @module
 */

import type { MoonBright, MoonBrightOptions } from "../moonbright.ts";
import type { Flag } from "./command.ts";
import type { CommandContext } from "./context.ts";
import type { Flags } from "./flags.ts";
import { didYouMean } from "./suggest.ts";
import { UsageError } from "./usage_error.ts";

/** The flag that commands with a device declare. */
export const DEVICE_FLAG: Flag = {
  name: "device",
  value: "DEVICE",
  summary: "auto, host, cuda:N or hip:N",
  default: "auto",
};

const BACKENDS = ["auto", "host", "cuda", "hip"];

/**
 * The chosen device, `auto` if none is.
 *
 * @throws {UsageError} if it is not named as devices are
 */
export function deviceOf(flags: Flags): string {
  const device = flags.text(DEVICE_FLAG.name) ?? "auto";
  if (!/^(auto|host|(host|cuda|hip)(:\d{1,4})?)$/.test(device)) {
    throw new UsageError(
      `Cannot use --device: "${device}" is not auto, host, cuda:N or hip:N${
        didYouMean(device.split(":")[0]!, BACKENDS)
      }`,
    );
  }
  return device;
}

/**
 * Opens the device that the flags choose. Hold it with `using`, so that it is closed
 * however the command ends.
 *
 * @throws {MoonBrightError} if it can't be opened
 */
export function openDevice(
  context: CommandContext,
  options: MoonBrightOptions = {},
): MoonBright {
  const device = deviceOf(context.flags);
  context.progress.update(`opening ${device}`);
  return context.host.open({ ...options, device });
}
