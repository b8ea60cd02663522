/**
 * What the ways cost, as a table.
 *
 * @module
 */

import { formatSize } from "@moonbright/moonbright";
import type { ExampleOptions } from "./options.ts";

/** What one way cost. */
export interface WayReport {
  /** Its name. */
  way: string;
  /** How it works. */
  explanation: string;
  /** Most bytes that the device had given at once. */
  peakMappedBytes: number;
  /** Most bytes of tokens that were live at once, shared ones counted once. */
  peakLiveBytes: number;
  /** Share of the mapped bytes that was not needed for those. */
  waste: number;
  /** Nanoseconds of a step. */
  stepNs: { p50: number; p99: number };
  /** Driver calls for memory. */
  driverCalls: number;
  /** Kernels launched for page tables and copies of pages. */
  launches: number;
  /** Bytes that were read back and found right. */
  verifiedBytes: number;
}

/** What the example prints. */
export interface Report {
  /** Version of this layout. */
  schemaVersion: 1;
  /** The device's name. */
  device: string;
  /** Bytes of a token. */
  tokenBytes: number;
  /** The command line. */
  options: ExampleOptions;
  /** The ways. */
  ways: WayReport[];
}

/** The value below which a share of the samples lies. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}

/** The report as text. */
export function renderReport(report: Report): string {
  const { device, tokenBytes, options, ways } = report;
  const { sequences, beams, steps, maxTokens } = options;
  const rows = [
    [
      ...["way", "peak mapped", "live", "waste", "step p50", "step p99"],
      ...["driver calls", "launches"],
    ],
    ...ways.map((way) => [
      way.way,
      formatSize(way.peakMappedBytes),
      formatSize(way.peakLiveBytes),
      `${Math.round(100 * way.waste)} %`,
      formatTime(way.stepNs.p50),
      formatTime(way.stepNs.p99),
      `${way.driverCalls}`,
      `${way.launches}`,
    ]),
  ];
  const nameWidth = Math.max(...ways.map(({ way }) => way.length));
  return `${device}: ${steps} steps of up to ${sequences} sequences, ${beams} to a prompt;
tokens of ${formatSize(tokenBytes)}, at most ${maxTokens} a sequence

${alignColumns(rows)}
peak mapped   most memory that the device had given at once
live          most that the tokens took, a shared one counted once
waste         share of the peak that they did not need
step          until the device is done: frees, forks, prompts, one token a sequence
driver calls  for memory; launches: of kernels that write page tables or copy pages

${
    ways.map(({ way, explanation }) =>
      `${way.padEnd(nameWidth)}  ${explanation}\n`
    ).join("")
  }`;
}

function alignColumns(rows: readonly string[][]): string {
  const widths = rows[0]!.map((_, column) =>
    Math.max(...rows.map((row) => row[column]!.length))
  );
  return rows.map((row) =>
    row.map((cell, column) =>
      column === 0
        ? cell.padEnd(widths[column]!)
        : cell.padStart(widths[column]!)
    ).join("  ") + "\n"
  ).join("");
}

function formatTime(ns: number): string {
  return ns < 1e6
    ? `${(ns / 1e3).toFixed(1)} µs`
    : `${(ns / 1e6).toFixed(2)} ms`;
}
