/**
 * A map of memory as a picture.
 *
 * @module
 */

import { FONT } from "../replay/report/chart_parts.ts";
import { escapeText } from "../replay/report/markup.ts";
import {
  type Theme,
  type ThemeName,
  THEMES,
} from "../replay/report/palette.ts";
import type { BlockSnapshot } from "../snapshot.ts";
import { formatSize } from "../sizes.ts";
import {
  bytesPerRow,
  type MemoryLayout,
  rowsOf,
  type Stretch,
} from "./memory_layout.ts";

const WIDTH = 1200;
const MARGIN = 24;
const LABEL_WIDTH = 130;
const ROW_WIDTH = 1024;
const BLOCK_HEIGHT = 24;
const EXTENT_HEIGHT = 5;
const ROW_HEIGHT = BLOCK_HEIGHT + EXTENT_HEIGHT + 8;
const GAP_HEIGHT = 20;
const LEGEND_ROW = 20;
const LETTER_WIDTH = 7;
const MOST_ROWS = 24;
const MOST_LEGEND = 60;
const SMALLEST_ROW = 512 * 1024;
/** Blocks narrower than this are drawn only where none has been drawn yet. */
const NARROWEST = 0.75;

/** How a picture is to look. */
export interface MapSvgOptions {
  /** Its colours; `light` unless given. */
  theme?: ThemeName;
}

/**
 * Draws a layout as one SVG picture with a background of its own. Each block tells its
 * name, size, address and stream under a mouse.
 */
export function mapSvg(
  layout: MemoryLayout,
  { theme = "light" }: MapSvgOptions = {},
): string {
  const colors = THEMES[theme];
  const title = mapTitle(layout);
  const { body, height } = drawMap(layout, 64);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="map-title">
<title id="map-title">${escapeText(title)}</title>
<style>svg{font-family:${FONT}}${mapStyle(colors)}</style>
<rect width="100%" height="100%" rx="8" fill="${colors.panel}" stroke="${colors.rule}"/>
<text class="ink" x="${MARGIN}" y="38" font-size="18" font-weight="600">${
    escapeText(title)
  }</text>
${body}</svg>
`;
}

/** The same without background and heading, for a page that has the style already. */
export function mapFigure(layout: MemoryLayout): string {
  const { body, height } = drawMap(layout, MARGIN);
  return `<svg viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="${
    escapeText(mapTitle(layout))
  }">${body}</svg>`;
}

/** What a map shows, in a line. */
export function mapTitle({ device, time, totals }: MemoryLayout): string {
  return `Memory of ${device.backend}:${device.ordinal} ${device.name}, ${
    formatSize(totals.mapped)
  } mapped, ${time}`;
}

/** The style sheet of a map in the colours of a theme. */
export function mapStyle(colors: Theme): string {
  return [
    `.ink{fill:${colors.ink}}`,
    `.quiet{fill:${colors.quietInk}}`,
    `.on{fill:${colors.panel}}`,
    `.free{fill:${colors.free}}`,
    `.stripe{stroke:${colors.freeStripe}}`,
    `.unnamed{fill:${colors.live}}`,
    `.pending{fill:${colors.alarm}}`,
    `.border{fill:${colors.quietInk}}`,
    `.extent{fill:${colors.freeStripe}}`,
    `.block{stroke:${colors.panel};stroke-width:.5}`,
    ...colors.runs.map((color, index) => `.n${index}{fill:${color}}`),
  ].join("");
}

function drawMap(
  layout: MemoryLayout,
  top: number,
): { body: string; height: number } {
  const parts = [
    `<defs><pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="free" width="6" height="6"/><path class="stripe" d="M0 0V6" stroke-width="2"/></pattern></defs>\n`,
  ];
  const rowBytes = bytesPerRow(layout.stretches, MOST_ROWS, SMALLEST_ROW);
  let y = top;
  let end: number | undefined;
  if (layout.stretches.length === 0) {
    parts.push(label(MARGIN, y + 14, "ink", "Nothing is mapped."));
    y += GAP_HEIGHT;
  }
  for (const stretch of layout.stretches) {
    if (end !== undefined) {
      const hole = formatSize(stretch.address - end);
      parts.push(
        label(MARGIN + LABEL_WIDTH, y + 12, "quiet", `${hole} not mapped`),
      );
      y += GAP_HEIGHT;
    }
    end = stretch.address + stretch.size;
    for (const row of rowsOf(stretch, rowBytes)) {
      parts.push(drawRow(layout, row, rowBytes, y));
      y += ROW_HEIGHT;
    }
  }
  y += 8;
  parts.push(
    label(
      MARGIN,
      y + 12,
      "quiet",
      `A row is ${formatSize(rowBytes)}. Below it, each line is an extent.`,
    ),
  );
  y += GAP_HEIGHT;
  const { body, height } = drawLegend(layout, y);
  parts.push(body);
  return { body: parts.join(""), height: y + height + MARGIN };
}

function drawRow(
  layout: MemoryLayout,
  row: Stretch,
  rowBytes: number,
  y: number,
): string {
  const left = MARGIN + LABEL_WIDTH;
  const end = row.address + row.size;
  const x = (address: number) =>
    left +
    (Math.min(Math.max(address, row.address), end) - row.address) / rowBytes *
      ROW_WIDTH;
  let drawnTo = -Infinity;
  let text = label(MARGIN, y + 16, "quiet", hex(row.address));
  text += `<rect fill="url(#stripes)" x="${px(left)}" y="${y}" width="${
    px(row.size / rowBytes * ROW_WIDTH)
  }" height="${BLOCK_HEIGHT}"/>\n`;
  for (const block of row.blocks) {
    const from = x(block.address);
    const width = x(block.address + block.size) - from;
    if (width < NARROWEST && from < drawnTo) continue;
    if (block.state === "free") {
      // The stripes behind show already; only a mouse needs more.
      if (width >= 4) text += rect("", from, y, width, about(block), true);
      continue;
    }
    const drawn = Math.max(width, NARROWEST);
    drawnTo = from + drawn;
    text += rect(classOf(layout, block), from, y, drawn, about(block), false);
    text += nameIn(layout, block, from, width, y);
  }
  for (const { address, size } of row.extents) {
    const from = x(address);
    const width = Math.max(0.5, x(address + size) - from - 1);
    text += `<rect class="extent" x="${px(from)}" y="${
      y + BLOCK_HEIGHT + 2
    }" width="${px(width)}" height="${EXTENT_HEIGHT}"><title>extent of ${
      formatSize(size)
    } at ${hex(address)}</title></rect>\n`;
  }
  return text;
}

function rect(
  className: string,
  x: number,
  y: number,
  width: number,
  title: string,
  clear: boolean,
): string {
  return `<rect ${
    clear ? 'fill="transparent"' : `class="block ${className}"`
  } x="${px(x)}" y="${y}" width="${
    px(width)
  }" height="${BLOCK_HEIGHT}"><title>${escapeText(title)}</title></rect>\n`;
}

/** The name within a block, its letter if only that fits, or nothing. */
function nameIn(
  { names, places }: MemoryLayout,
  { name, state }: BlockSnapshot,
  x: number,
  width: number,
  y: number,
): string {
  if (name === undefined || state !== "live") return "";
  const { letter } = names[places.get(name)!]!;
  const full = `${letter} ${name}`;
  const shown = [full, letter].find((text) =>
    text.length * LETTER_WIDTH + 6 <= width
  );
  return shown === undefined
    ? ""
    : `<text class="on" x="${px(x + 4)}" y="${
      y + 16
    }" font-size="12" pointer-events="none">${escapeText(shown)}</text>\n`;
}

function drawLegend(
  { names, totals }: MemoryLayout,
  top: number,
): { body: string; height: number } {
  const entries = names.slice(0, MOST_LEGEND).map((
    { letter, name, blocks, bytes },
    place,
  ) => ({
    mark: `class="n${place % THEMES.light.runs.length}"`,
    text: `${letter}  ${name}: ${formatSize(bytes)} in ${blocks}`,
  }));
  if (names.length > MOST_LEGEND) {
    entries.push({
      mark: 'fill="none"',
      text: `and ${names.length - MOST_LEGEND} more names`,
    });
  }
  entries.push(
    {
      mark: 'class="unnamed"',
      text: `live without a name: ${formatSize(totals.unnamed)}`,
    },
    {
      mark: 'class="pending"',
      text: `freed, still in use: ${formatSize(totals.pending)}`,
    },
    { mark: 'fill="url(#stripes)"', text: `free: ${formatSize(totals.free)}` },
  );
  const body = entries.map(({ mark, text }, index) => {
    const x = MARGIN + (index % 3) * 380;
    const y = top + Math.floor(index / 3) * LEGEND_ROW;
    const cut = text.length > 52 ? `${text.slice(0, 51)}…` : text;
    return `<rect ${mark} x="${x}" y="${y}" width="14" height="14"/>` +
      label(x + 20, y + 12, "ink", cut);
  }).join("");
  return { body, height: Math.ceil(entries.length / 3) * LEGEND_ROW };
}

function classOf(
  { places }: MemoryLayout,
  { state, name }: BlockSnapshot,
): string {
  if (state === "pending") return "pending";
  if (name === undefined) return "unnamed";
  return `n${places.get(name)! % THEMES.light.runs.length}`;
}

function about({ name, state, size, address, stream }: BlockSnapshot): string {
  const what = name === undefined ? state : `${name} (${state})`;
  return `${what}, ${formatSize(size)} at ${hex(address)}, stream ${stream}`;
}

function label(
  x: number,
  y: number,
  className: string,
  text: string,
): string {
  return `<text class="${className}" x="${x}" y="${y}" font-size="12">${
    escapeText(text)
  }</text>\n`;
}

function hex(address: number): string {
  return `0x${address.toString(16)}`;
}

/** Hundredths of a pixel are enough. */
function px(value: number): string {
  return String(Math.round(value * 100) / 100);
}
