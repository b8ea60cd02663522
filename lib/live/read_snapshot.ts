/**
 * Reading a snapshot back from JSON, as `snapshot()` gives it. It may come from a file, so
 * nothing in it is trusted.
 *
 * @module
 */

import type { DeviceInfo } from "../driver.ts";
import { TraceFormatError } from "../replay/read/trace_format_error.ts";
import type { BlockSnapshot, ExtentSnapshot, Snapshot } from "../snapshot.ts";

/** What a map needs of a snapshot. */
export type MappedSnapshot =
  & Pick<
    Snapshot,
    "time" | "arena" | "extents" | "blocks" | "retired"
  >
  & { device: Pick<DeviceInfo, "backend" | "ordinal" | "name"> };

const STATES: readonly unknown[] = ["free", "live", "pending"];

/**
 * Reads the text of a file.
 *
 * @throws {TraceFormatError} if it is no JSON, or no snapshot
 */
export function parseSnapshot(text: string, file: string): MappedSnapshot {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TraceFormatError(
      file,
      `it is no JSON; expected what snapshot() gives, or "moonbright map PID --json" prints`,
      {},
      { cause },
    );
  }
  return checkSnapshot(value, file);
}

/**
 * Checks that a value is a snapshot: every address and size a whole number, and blocks in
 * order, apart from each other.
 *
 * @param from what to call it in errors
 * @throws {TraceFormatError} if it is not
 */
export function checkSnapshot(value: unknown, from: string): MappedSnapshot {
  const fail = (problem: string) => new TraceFormatError(from, problem);
  const whole = object(value, fail, "it");
  if (whole.schemaVersion !== 1) {
    throw fail(
      `expected a snapshot of version 1, got ${
        JSON.stringify(whole.schemaVersion) ?? "none"
      }`,
    );
  }
  const arena = object(whole.arena, fail, "arena");
  const device = object(whole.device, fail, "device");
  const snapshot: MappedSnapshot = {
    time: text(whole.time, fail, "time"),
    device: {
      backend: text(device.backend, fail, "backend"),
      ordinal: count(device.ordinal, fail, "ordinal"),
      name: text(device.name, fail, "name"),
    },
    arena: {
      base: count(arena.base, fail, "base"),
      size: count(arena.size, fail, "size"),
      frontier: count(arena.frontier, fail, "frontier"),
    },
    extents: list(whole.extents, fail, "extents").map((one, index) =>
      extent(one, (problem) => fail(`extent ${index}: ${problem}`))
    ),
    blocks: list(whole.blocks, fail, "blocks").map((one, index) =>
      block(one, (problem) => fail(`block ${index}: ${problem}`))
    ),
    retired: list(whole.retired, fail, "retired").map((one, index) =>
      retired(one, (problem) => fail(`retired mapping ${index}: ${problem}`))
    ),
  };
  checkApart("blocks", snapshot.blocks, fail);
  const mapped = snapshot.extents.filter(({ address }) => address !== null)
    .map(({ address, size }) => ({ address: address!, size }))
    .sort((a, b) => a.address - b.address);
  checkApart("extents", mapped, fail);
  return snapshot;
}

type Fail = (problem: string) => Error;

function extent(value: unknown, fail: Fail): ExtentSnapshot {
  const { size, address, retiredMappings } = object(value, fail, "it");
  return {
    size: sizeOf(size, fail),
    address: address === null ? null : count(address, fail, "address"),
    retiredMappings: count(retiredMappings, fail, "retiredMappings"),
  };
}

function block(value: unknown, fail: Fail): BlockSnapshot {
  const { address, size, requested, state, stream, name } = object(
    value,
    fail,
    "it",
  );
  if (!STATES.includes(state)) {
    throw fail(`expected the state ${STATES.join(", ")}`);
  }
  return {
    address: count(address, fail, "address"),
    size: sizeOf(size, fail),
    requested: count(requested, fail, "requested"),
    state: state as BlockSnapshot["state"],
    stream: count(stream, fail, "stream"),
    ...(name === undefined ? {} : { name: text(name, fail, "name") }),
  };
}

function retired(value: unknown, fail: Fail): Snapshot["retired"][number] {
  const { address, size, stream } = object(value, fail, "it");
  return {
    address: count(address, fail, "address"),
    size: sizeOf(size, fail),
    stream: count(stream, fail, "stream"),
  };
}

function checkApart(
  what: string,
  ranges: readonly { address: number; size: number }[],
  fail: Fail,
): void {
  for (let i = 1; i < ranges.length; i++) {
    const before = ranges[i - 1]!;
    if (before.address + before.size > ranges[i]!.address) {
      throw fail(`its ${what} overlap or are out of order, at ${i}`);
    }
  }
}

function object(
  value: unknown,
  fail: Fail,
  what: string,
): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw fail(`expected ${what} to be an object; it is no snapshot`);
}

function list(value: unknown, fail: Fail, what: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw fail(`expected "${what}" to be a list`);
}

function text(value: unknown, fail: Fail, what: string): string {
  if (typeof value === "string") return value;
  throw fail(`expected "${what}" to be a string`);
}

function count(value: unknown, fail: Fail, what: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) {
    return value as number;
  }
  throw fail(`expected "${what}" to be a whole number from 0 to 2^53 - 1`);
}

function sizeOf(value: unknown, fail: Fail): number {
  const bytes = count(value, fail, "size");
  if (bytes > 0) return bytes;
  throw fail('expected "size" to be more than 0');
}
