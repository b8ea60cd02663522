/**
 * Where a run happens: what results must be stored with to be comparable.
 *
 * @module
 */

import type { BenchEnvironment } from "../bench/report.ts";
import type { DeviceInfo } from "../driver.ts";

/** Describes this process, its machine and a device. What may not be read is `null`. */
export function describeEnvironment(
  version: string,
  device: DeviceInfo,
): BenchEnvironment {
  return { ...describeMachine(version), device };
}

/** Describes this process and its machine. What may not be read is `null`. */
export function describeMachine(
  version: string,
): Omit<BenchEnvironment, "device"> {
  return {
    version,
    commit: readCommit(new URL("../../.git/", import.meta.url)),
    deno: Deno.version.deno,
    platform: `${Deno.build.os} ${Deno.build.arch}`,
    processor: readProcessor(),
    time: new Date().toISOString(),
  };
}

/** The commit that a checkout's `.git` folder is at, without running git. */
export function readCommit(git: URL): string | null {
  const head = readText(new URL("HEAD", git))?.trim();
  const ref = head?.match(/^ref: (.+)$/)?.[1];
  if (head === undefined || ref === undefined) return head ?? null;
  const loose = readText(new URL(ref, git))?.trim();
  if (loose) return loose;
  const packed = readText(new URL("packed-refs", git)) ?? "";
  const line = packed.split("\n").find((one) => one.endsWith(` ${ref}`));
  return line?.split(" ")[0] ?? null;
}

function readProcessor(): string | null {
  if (Deno.build.os !== "linux") return null;
  const facts = readText("/proc/cpuinfo") ?? "";
  return facts.match(/^model name\s*: (.+)$/m)?.[1] ?? null;
}

/** A file's text; nothing if it isn't there, may not be read, or is not on this machine. */
function readText(path: string | URL): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined;
  }
}
