/**
 * Where MoonBright runs.
 *
 * @module
 */

import { MoonBrightError } from "../lib/errors.ts";

/** Processors that the shim is written for. */
const PROCESSORS: readonly string[] = ["x86_64", "aarch64"];

/**
 * Asserts that the shim can be built for a platform, before a compiler says in its own
 * words what is missing there.
 *
 * @throws {MoonBrightError} code `unsupported`, saying what to do
 */
export function assertPlatform(
  os: string = Deno.build.os,
  processor: string = Deno.build.arch,
): void {
  if (os === "linux" && PROCESSORS.includes(processor)) return;
  const instead = os === "windows"
    ? "use WSL 2"
    : "use such a machine, or a container or virtual machine";
  throw new MoonBrightError(
    "unsupported",
    "build",
    `Cannot build the native library for ${os} ${processor}: MoonBright runs on Linux, x86-64 or arm64; ${instead}`,
  );
}
