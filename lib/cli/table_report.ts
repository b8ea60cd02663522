/**
 * What `table` found, for programs and for people.
 *
 * @module
 */

import type { DeviceInfo } from "../driver.ts";
import type { FormatName } from "../paging/formats.ts";
import { formatSize } from "../sizes.ts";
import type { Style } from "./style.ts";
import { renderTable } from "./table.ts";
import type { ExpectedPage } from "./table_scenario.ts";

/** An entry of the table, as the device holds it. */
export interface EntryReport {
  /** Number of the page. */
  page: number;
  /** All its bits, in hexadecimal digits. */
  entry: string;
  /** Whether the page has a frame. */
  valid: boolean;
  /** Number of the frame, `null` if the entry names none of the space. */
  frame: number | null;
  /** Address of the frame, in hexadecimal digits; `null` in an invalid entry. */
  address: string | null;
  /** Whether writing is forbidden. */
  readOnly: boolean;
  /** The version; 0 if the layout has none. */
  version: number;
  /** The range that the page is of, `null` if none. */
  range: ExpectedPage["range"] | null;
  /** What is wrong with the entry, `null` if nothing is. */
  problem: string | null;
}

/** Everything that a run of `table` found. Sizes in bytes. */
export interface TableReport {
  /** Always `table`. */
  command: "table";
  /** The device. */
  device: DeviceInfo;
  /** Layout of the entries. */
  format: FormatName;
  /** Bytes of a page. */
  pageSize: number;
  /** Address of the table. */
  table: string;
  /** Address of frame 0. */
  frames: string;
  /** All entries. */
  entries: EntryReport[];
  /** Checksums of the table: by a kernel, and of what was read back. */
  checksum: { device: string; host: string };
  /** Whether every entry and the checksum is as it should be. */
  sound: boolean;
}

/** The report as text. */
export function renderTableReport(report: TableReport, style: Style): string {
  const { device, format, pageSize, table, frames, entries } = report;
  return [
    `${device.backend}:${device.ordinal}, ${device.name}\n` +
    `"${format}", pages of ${formatSize(pageSize)}, table at ${table}, ` +
    `frames at ${frames}\n`,
    renderEntries(entries, style),
    renderVerdict(report),
  ].join("\n");
}

function renderEntries(entries: readonly EntryReport[], style: Style): string {
  return renderTable(
    [
      { title: "page", align: "right" },
      { title: "entry", align: "right" },
      { title: "valid" },
      { title: "frame", align: "right" },
      { title: "address", align: "right" },
      { title: "access" },
      { title: "version", align: "right" },
      { title: "range" },
    ],
    entries.map((entry) => [
      String(entry.page),
      entry.entry,
      entry.valid ? "yes" : "no",
      String(entry.frame ?? "-"),
      entry.address ?? "-",
      !entry.valid ? "-" : entry.readOnly ? "read" : "read, write",
      entry.valid ? String(entry.version) : "-",
      entry.range ?? "",
    ]),
    style,
  );
}

function renderVerdict({ entries, checksum, sound }: TableReport): string {
  if (sound) {
    return `verified ${entries.length} entries: all as encoded, checksum ${checksum.device}\n`;
  }
  const lines = entries.filter(({ problem }) => problem !== null).map((entry) =>
    `MISMATCH: page ${entry.page} has the entry ${entry.entry}: ${entry.problem}\n`
  );
  if (checksum.device !== checksum.host) {
    lines.push(
      `MISMATCH: the checksum is ${checksum.device} on the device, ${checksum.host} of what was read back\n`,
    );
  }
  return lines.join("");
}
