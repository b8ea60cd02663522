/**
 * A map of memory as a page.
 *
 * @module
 */

import { escapeText, tableMarkup } from "../replay/report/markup.ts";
import { pageStyle } from "../replay/report/page_style.ts";
import { THEMES } from "../replay/report/palette.ts";
import { formatSize } from "../sizes.ts";
import { mapFigure, mapStyle, mapTitle } from "./map_svg.ts";
import type { MemoryLayout } from "./memory_layout.ts";

/** More rows than this and a table would be too long to look at. */
const MOST_ROWS = 5000;

/** Writes a map as one HTML file without a script, which needs nothing else. */
export function mapHtml(layout: MemoryLayout): string {
  const { names, totals } = layout;
  const title = mapTitle(layout);
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeText(title)}</title>
<style>${pageStyle()}
${mapStyle(THEMES.light)}
@media screen and (prefers-color-scheme:dark){${mapStyle(THEMES.dark)}}</style>
</head>
<body>
<header><p class="kind">MoonBright memory map</p><h1>${escapeText(title)}</h1>
<dl class="facts">${
    facts(layout).map(([term, value]) =>
      `<div><dt>${term}</dt><dd>${escapeText(value)}</dd></div>`
    ).join("")
  }</dl></header>
<main id="main">
<section><h2>Map</h2><div class="scroll" role="region" tabindex="0" aria-label="Map">${
    mapFigure(layout)
  }</div><p class="hint">Point at a block to see its name, size, address and stream.</p></section>
<section><h2>Names</h2>${
    tableMarkup(
      "Live blocks by name",
      [
        { title: "Letter" },
        { title: "Name" },
        { title: "Blocks", numeric: true },
        { title: "Bytes", numeric: true },
        { title: "Of mapped", numeric: true },
      ],
      names.slice(0, MOST_ROWS).map(({ letter, name, blocks, bytes }) => [
        letter,
        name,
        String(blocks),
        formatSize(bytes),
        `${(100 * bytes / totals.mapped).toFixed(1)} %`,
      ]),
    )
  }</section>
<section><h2>Blocks</h2>${blockTable(layout)}</section>
<section><h2>Extents</h2>${extentTable(layout)}</section>
</main>
<footer><p>Sizes are in binary units.</p></footer>
</body>
</html>
`;
}

function facts(layout: MemoryLayout): [string, string][] {
  const { totals, stretches, loose, retired } = layout;
  const sum = (sizes: readonly number[]) =>
    formatSize(sizes.reduce((all, size) => all + size, 0));
  return [
    ["Mapped", formatSize(totals.mapped)],
    ["Live", formatSize(totals.named + totals.unnamed)],
    ["Free", formatSize(totals.free)],
    ["Freed, still in use", formatSize(totals.pending)],
    ["Stretches of addresses", String(stretches.length)],
    ["Extents mapped nowhere", `${loose.length}, ${sum(loose)}`],
    [
      "Retired mappings",
      `${retired.length}, ${sum(retired.map(({ size }) => size))}`,
    ],
  ];
}

function blockTable({ stretches }: MemoryLayout): string {
  const blocks = stretches.flatMap((stretch) => stretch.blocks);
  return cutNote(blocks.length) + tableMarkup(
    "Blocks by address",
    [
      { title: "Address" },
      { title: "Name" },
      { title: "State" },
      { title: "Size", numeric: true },
      { title: "Asked for", numeric: true },
      { title: "Stream", numeric: true },
    ],
    blocks.slice(0, MOST_ROWS).map((
      { address, name, state, size, requested, stream },
    ) => [
      `0x${address.toString(16)}`,
      name ?? "",
      state,
      formatSize(size),
      state === "free" ? "" : String(requested),
      String(stream),
    ]),
  );
}

function extentTable({ stretches, loose }: MemoryLayout): string {
  const rows = [
    ...stretches.flatMap(({ extents }) =>
      extents.map(({ address, size }) => [`0x${address.toString(16)}`, size])
    ),
    ...loose.map((size) => ["mapped nowhere", size]),
  ] as [string, number][];
  return cutNote(rows.length) + tableMarkup(
    "Extents by address",
    [{ title: "Address" }, { title: "Size", numeric: true }],
    rows.slice(0, MOST_ROWS).map(([where, size]) => [where, formatSize(size)]),
  );
}

function cutNote(rows: number): string {
  return rows > MOST_ROWS
    ? `<p class="hint">The first ${MOST_ROWS} of ${rows}.</p>`
    : "";
}
