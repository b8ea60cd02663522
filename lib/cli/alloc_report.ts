/**
 * What `alloc` found, for programs and for people.
 *
 * @module
 */

import type { DeviceInfo } from "../driver.ts";
import type { WayStats } from "../stats.ts";
import type { Way } from "../planner.ts";
import { formatSize } from "../sizes.ts";
import type { AllocSpec } from "./alloc_spec.ts";
import type { CallTotal } from "./call_tally.ts";
import { formatDuration } from "./duration.ts";
import type { Style } from "./style.ts";
import { renderTable } from "./table.ts";
import type { Mismatch } from "./verifier.ts";

/** What allocating a spec took. */
export interface SpecReport extends AllocSpec {
  /** Bytes of all its blocks. */
  bytes: number;
  /** Requests by the way that served them; blocks of zero bytes need none. */
  ways: Record<Way, number>;
  /** How long one allocation took, in nanoseconds. */
  allocNs: { p50: number; max: number };
  /** Driver calls meanwhile. */
  driverCalls: CallTotal[];
}

/** A block that did not hold its pattern. */
export interface BlockMismatch extends Mismatch {
  /** The spec that it is of, `null` if it can't be told. */
  spec: string | null;
}

/** Bytes in use at one moment. */
export interface Usage {
  /** In live blocks. */
  live: number;
  /** In extents. */
  mapped: number;
  /** Free, as the driver sees the device. */
  deviceFree: number;
}

/** Everything that a run of `alloc` found. Sizes in bytes. */
export interface AllocReport {
  /** Always `alloc`. */
  command: "alloc";
  /** The device. */
  device: DeviceInfo;
  /** Most that extents might take, `null` for no limit. */
  budget: number | null;
  /** The specs, in order. */
  specs: SpecReport[];
  /** The check of the blocks' contents. */
  verification: {
    mode: "kernel" | "host" | "none";
    blocks: number;
    bytes: number;
    ns: number;
    mismatches: BlockMismatch[];
  };
  /** Giving everything back. */
  release: {
    order: string;
    seed: number;
    /** Nanoseconds of freeing all blocks. */
    freeNs: number;
    /** Nanoseconds of giving the extents back. */
    trimNs: number;
    driverCalls: CallTotal[];
    before: Usage;
    allocated: Usage;
    after: Usage;
    /** Whether no live block and no extent is left. */
    complete: boolean;
  };
}

const WAYS: readonly Way[] = ["reuse", "extend", "stitch", "grow"];

/** How many requests each way served between two moments. */
export function waysBetween(
  before: Record<Way, WayStats>,
  after: Record<Way, WayStats>,
): Record<Way, number> {
  const count = (way: Way) => after[way].count - before[way].count;
  return {
    reuse: count("reuse"),
    extend: count("extend"),
    stitch: count("stitch"),
    grow: count("grow"),
  };
}

/** The report as text. */
export function renderAllocReport(report: AllocReport, style: Style): string {
  const { device, specs, release } = report;
  return [
    `${device.backend}:${device.ordinal}, ${device.name}, ${
      formatSize(device.totalMemory)
    }\n`,
    renderSpecs(specs, style),
    renderCalls([
      ...specs.map(({ text, driverCalls }) => ({ during: text, driverCalls })),
      { during: "free and trim", driverCalls: release.driverCalls },
    ], style),
    renderVerification(report) + renderRelease(report),
  ].filter(Boolean).join("\n");
}

function renderSpecs(specs: readonly SpecReport[], style: Style): string {
  return renderTable(
    [
      { title: "spec" },
      { title: "blocks", align: "right" },
      { title: "bytes", align: "right" },
      ...WAYS.map((title) => ({ title, align: "right" as const })),
      { title: "alloc p50", align: "right" },
      { title: "alloc max", align: "right" },
    ],
    specs.map((spec) => [
      spec.text,
      String(spec.count),
      formatSize(spec.bytes),
      ...WAYS.map((way) => String(spec.ways[way])),
      formatDuration(spec.allocNs.p50),
      formatDuration(spec.allocNs.max),
    ]),
    style,
  );
}

function renderCalls(
  phases: readonly { during: string; driverCalls: readonly CallTotal[] }[],
  style: Style,
): string {
  const names = {
    create: "create",
    map: "map",
    setAccess: "set access",
    unmap: "unmap",
    release: "release",
  };
  const rows = phases.flatMap(({ during, driverCalls }) =>
    driverCalls.map((call, index) => [
      index === 0 ? during : "",
      names[call.kind],
      String(call.calls),
      String(call.items),
      formatSize(call.bytes),
      formatDuration(call.ns),
      formatDuration(call.ns / call.calls),
    ])
  );
  if (rows.length === 0) return "";
  return renderTable(
    [
      { title: "during" },
      { title: "driver call" },
      { title: "calls", align: "right" },
      { title: "items", align: "right" },
      { title: "bytes", align: "right" },
      { title: "time", align: "right" },
      { title: "per call", align: "right" },
    ],
    rows,
    style,
  );
}

function renderVerification({ verification }: AllocReport): string {
  const { mode, blocks, bytes, ns, mismatches } = verification;
  if (mode === "none") return "verified nothing, as asked\n";
  const by = mode === "kernel" ? "kernels on the device" : "copies to the host";
  if (mismatches.length === 0) {
    return `verified ${formatSize(bytes)} in ${blocks} blocks by ${by} in ${
      formatDuration(ns)
    }: all as written\n`;
  }
  return mismatches.map(({ spec, index, words, firstByte }) =>
    spec === null
      ? `MISMATCH: ${words} words differed, but none when looked at again\n`
      : `MISMATCH: block ${index} (${spec}): ${words} words differ, the first at byte ${firstByte}\n`
  ).join("");
}

function renderRelease({ release }: AllocReport): string {
  const { order, freeNs, trimNs, before, allocated, after } = release;
  const course = (key: keyof Usage) =>
    [before, allocated, after].map((usage) => formatSize(usage[key]))
      .join(" → ");
  return `freed in ${order} order in ${formatDuration(freeNs)}, trimmed in ${
    formatDuration(trimNs)
  }\n` +
    `live ${course("live")}, mapped ${course("mapped")}, device free ${
      course("deviceFree")
    }\n`;
}
