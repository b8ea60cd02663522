/**
 * Facts about the machine and the checkout that a benchmark runs on. What may not be
 * read is left out.
 *
 * @module
 */

import type { DeviceInfo } from "../driver.ts";
import type { BenchEnvironment } from "./report.ts";

/** The surroundings of a run on a device. */
export function benchEnvironment(
  version: string,
  device: DeviceInfo,
): BenchEnvironment {
  return {
    version,
    commit: readCommit(),
    deno: Deno.version.deno,
    platform: `${Deno.build.os} ${Deno.build.arch}`,
    processor: readProcessor(),
    device,
    time: new Date().toISOString(),
  };
}

/** The checkout's commit, by git's files rather than by running git. */
function readCommit(): string | null {
  const git = new URL("../../.git/", import.meta.url);
  const head = readText(new URL("HEAD", git))?.trim();
  const branch = head?.match(/^ref: (.+)$/)?.[1];
  const commit = branch === undefined ? head : readText(new URL(branch, git));
  return commit?.trim() ?? null;
}

function readProcessor(): string | null {
  const text = readText("/proc/cpuinfo");
  return text?.match(/^model name\s*: (.+)$/m)?.[1] ?? null;
}

function readText(path: string | URL): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined;
  }
}
