/**
 * A map of memory as text. What a letter stands for shows without colour.
 *
 * @module
 */

import {
  bytesPerRow,
  type MemoryLayout,
  rowsOf,
  type Stretch,
} from "../live/memory_layout.ts";
import type { BlockSnapshot } from "../snapshot.ts";
import { formatSize } from "../sizes.ts";
import { printable } from "./printable.ts";
import type { Style } from "./style.ts";
import { renderTable } from "./table.ts";

/** How to draw. */
export interface MapLook {
  /** Letters across. */
  columns: number;
  /** Whether letters beyond ASCII may be used. */
  unicode: boolean;
  /** How headings look. */
  style: Style;
  /** Bytes of a letter; chosen so that the map is about a screen high if left out. */
  cellBytes?: number;
}

interface Glyphs {
  unnamed: string;
  free: string;
  pending: string;
  border: string;
  line: string;
}

const UNICODE: Glyphs = {
  unnamed: "█",
  free: "░",
  pending: "▒",
  border: "┬",
  line: "─",
};
const ASCII: Glyphs = {
  unnamed: "#",
  free: ".",
  pending: "~",
  border: "+",
  line: "-",
};

/** Rows of a map that is as high as a screen. */
const SCREEN_ROWS = 16;
const SMALLEST_CELL = 512;
const LONGEST_NAME = 50;
/** An address of 48 bits, and a space. */
const ADDRESS_COLUMNS = 15;

/** Draws a layout; lines with their newlines. */
export function renderMap(layout: MemoryLayout, look: MapLook): string {
  const glyphs = look.unicode ? UNICODE : ASCII;
  const cells = Math.max(16, look.columns - ADDRESS_COLUMNS);
  // A power of two, so that extents begin at the same letters in each row.
  const across = 2 ** Math.floor(Math.log2(cells));
  const cellBytes = look.cellBytes ??
    bytesPerRow(layout.stretches, SCREEN_ROWS, SMALLEST_CELL * across) / across;
  const { device, time } = layout;
  const parts = [
    look.style.bold(
      `${printable(device.backend)}:${device.ordinal} ${
        printable(device.name, LONGEST_NAME)
      }`,
    ) + `  ${printable(time)}\n`,
  ];
  if (layout.stretches.length === 0) parts.push("nothing is mapped\n");
  let end: number | undefined;
  for (const stretch of layout.stretches) {
    if (end !== undefined) {
      parts.push(`${formatSize(stretch.address - end)} not mapped\n`);
    }
    end = stretch.address + stretch.size;
    parts.push(drawStretch(layout, stretch, across, cellBytes, glyphs));
  }
  parts.push("\n", legend(layout, cellBytes, glyphs, look.style));
  return parts.join("");
}

function drawStretch(
  layout: MemoryLayout,
  stretch: Stretch,
  across: number,
  cellBytes: number,
  glyphs: Glyphs,
): string {
  let text = "";
  for (const row of rowsOf(stretch, across * cellBytes)) {
    const cells = Math.ceil(row.size / cellBytes);
    const address = `0x${row.address.toString(16).padStart(12, "0")}`;
    text += `${address} ${cellsOf(layout, row, cells, cellBytes, glyphs)}\n`;
    const borders = new Array<string>(cells).fill(glyphs.line);
    for (const extent of row.extents) {
      const at = Math.floor((extent.address - row.address) / cellBytes);
      if (at >= 0) borders[at] = glyphs.border;
    }
    text += `${" ".repeat(ADDRESS_COLUMNS)}${borders.join("")}\n`;
  }
  return text;
}

/** A letter a cell: what takes most of it. */
function cellsOf(
  layout: MemoryLayout,
  row: Stretch,
  cells: number,
  cellBytes: number,
  glyphs: Glyphs,
): string {
  const glyph = new Array<string>(cells).fill(glyphs.free);
  const most = new Float64Array(cells);
  // Two blocks of one kind count together.
  const run = { kind: "", cell: -1, bytes: 0 };
  for (const block of row.blocks) {
    const kind = glyphOf(layout, block, glyphs);
    const from = Math.max(block.address, row.address);
    const to = Math.min(block.address + block.size, row.address + row.size);
    const last = Math.floor((to - 1 - row.address) / cellBytes);
    for (
      let cell = Math.floor((from - row.address) / cellBytes);
      cell <= last;
      cell++
    ) {
      const start = row.address + cell * cellBytes;
      const bytes = Math.min(to, start + cellBytes) - Math.max(from, start);
      if (run.kind === kind && run.cell === cell) run.bytes += bytes;
      else Object.assign(run, { kind, cell, bytes });
      if (run.bytes > most[cell]!) {
        most[cell] = run.bytes;
        glyph[cell] = kind;
      }
    }
  }
  return glyph.join("");
}

function glyphOf(
  { names, places }: MemoryLayout,
  { state, name }: BlockSnapshot,
  glyphs: Glyphs,
): string {
  if (state === "free") return glyphs.free;
  if (state === "pending") return glyphs.pending;
  return name === undefined ? glyphs.unnamed : names[places.get(name)!]!.letter;
}

function legend(
  { names, totals, loose, retired, stretches }: MemoryLayout,
  cellBytes: number,
  glyphs: Glyphs,
  style: Style,
): string {
  const rows: string[][] = names.map(({ letter, name, blocks, bytes }) => [
    letter,
    printable(name, LONGEST_NAME),
    String(blocks),
    formatSize(bytes),
  ]);
  rows.push(
    [glyphs.unnamed, "(live, no name)", "", formatSize(totals.unnamed)],
    [glyphs.pending, "(freed, still in use)", "", formatSize(totals.pending)],
    [glyphs.free, "(free)", "", formatSize(totals.free)],
  );
  const extents = stretches.reduce((sum, one) => sum + one.extents.length, 0);
  const sum = (sizes: readonly number[]) =>
    formatSize(sizes.reduce((all, size) => all + size, 0));
  return renderTable(
    [
      { title: " " },
      { title: "name" },
      { title: "blocks", align: "right" },
      { title: "bytes", align: "right" },
    ],
    rows,
    style,
  ) +
    `\na letter is ${
      formatSize(cellBytes)
    }; ${glyphs.border} begins one of ${extents} mapped extents\n` +
    `mapped ${
      formatSize(totals.mapped)
    }; extents mapped nowhere: ${loose.length} (${
      sum(loose)
    }); retired mappings: ${retired.length} (${
      sum(retired.map(({ size }) => size))
    })\n`;
}

/** Every extent and every block, as a table. */
export function renderMapList(layout: MemoryLayout, style: Style): string {
  const rows: { address: number; cells: string[] }[] = [];
  const add = (
    what: string,
    address: number,
    size: number,
    stream: string,
    name: string,
  ) =>
    rows.push({
      address,
      cells: [
        `0x${address.toString(16).padStart(12, "0")}`,
        what,
        String(size),
        formatSize(size),
        stream,
        name,
      ],
    });
  for (const { extents, blocks } of layout.stretches) {
    for (const { address, size } of extents) {
      add("extent", address, size, "", "");
    }
    for (const { address, size, state, stream, name } of blocks) {
      add(`  ${state}`, address, size, String(stream), printable(name ?? ""));
    }
  }
  for (const { address, size } of layout.retired) {
    add("retired", address, size, "", "");
  }
  // Stable, so an extent comes before the blocks that begin with it.
  rows.sort((a, b) => a.address - b.address);
  for (const size of layout.loose) {
    rows.push({
      address: Infinity,
      cells: ["nowhere", "extent", String(size), formatSize(size), "", ""],
    });
  }
  return renderTable(
    [
      { title: "address" },
      { title: "what" },
      { title: "bytes", align: "right" },
      { title: "size", align: "right" },
      { title: "stream", align: "right" },
      { title: "name" },
    ],
    rows.map(({ cells }) => cells),
    style,
  );
}
