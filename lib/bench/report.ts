/**
 * What a benchmark run is stored as, and how it is compared within itself.
 *
 * @module
 */

import type { DeviceInfo } from "../driver.ts";
import { type Series, summarize, type Summary, type Unit } from "./samples.ts";

/** Where and on what a benchmark ran. */
export interface BenchEnvironment {
  /** Version of MoonBright. */
  version: string;
  /** Commit of the checkout, if it is one. */
  commit: string | null;
  /** Version of Deno. */
  deno: string;
  /** Operating system and processor architecture. */
  platform: string;
  /** The processor's model, if it can be read. */
  processor: string | null;
  /** The device. */
  device: DeviceInfo;
  /** When the run began, ISO 8601. */
  time: string;
}

/** A benchmark run with every sample, as JSON. */
export interface BenchReport {
  /** Version of this layout. */
  schemaVersion: 1;
  /** Where it ran. */
  environment: BenchEnvironment;
  /** What was measured. */
  series: (Series & { summary: Summary })[];
}

/** Puts a report together. */
export function makeReport(
  environment: BenchEnvironment,
  series: readonly Series[],
): BenchReport {
  return {
    schemaVersion: 1,
    environment,
    series: series.map((one) => ({
      ...one,
      summary: summarize(one.samples),
    })),
  };
}

/** One row of a comparison: a series and how it relates to the first of its group and size. */
export interface ComparisonRow {
  /** What was done. */
  subject: string;
  /** Bytes per request. */
  size: number;
  /** What the statistics count. */
  unit: Unit;
  /** Order statistics. */
  summary: Summary;
  /** Median as a multiple of the first subject's median of the same group and size. */
  ratio: number;
}

/** The rows of a report by group; in each size the first row is what the others relate to. */
export function compare(report: BenchReport): Map<string, ComparisonRow[]> {
  const groups = new Map<string, ComparisonRow[]>();
  for (const { group, subject, size, unit, summary } of report.series) {
    const rows = groups.get(group) ?? [];
    const first = rows.find((row) => row.size === size);
    const ratio = summary.p50 / (first?.summary ?? summary).p50;
    rows.push({ subject, size, unit, summary, ratio });
    groups.set(group, rows);
  }
  return groups;
}
