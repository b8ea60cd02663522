/**
 * Tables of text.
 *
 * @module
 */

import { type Style, styleFor } from "./style.ts";

/** A column of a table. */
export interface Column {
  /** Its heading. */
  title: string;
  /** Where its cells lie; numbers go to the right. */
  align?: "left" | "right";
}

/**
 * Lays out rows under headings, two spaces between columns, each line with its newline.
 * Cells must be plain text: escape sequences would count as letters.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  style: Style = styleFor(false),
): string {
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...rows.map((row) => row[index]!.length))
  );
  const line = (cells: readonly string[]) =>
    cells.map((cell, index) =>
      columns[index]!.align === "right"
        ? cell.padStart(widths[index]!)
        : cell.padEnd(widths[index]!)
    ).join("  ").trimEnd();
  const heading = style.bold(line(columns.map(({ title }) => title)));
  return [heading, ...rows.map(line)].map((text) => `${text}\n`).join("");
}

/** Lays out pairs of a term and what it means, indented by two spaces. */
export function renderPairs(
  pairs: readonly (readonly [string, string])[],
): string {
  const width = Math.max(0, ...pairs.map(([term]) => term.length));
  return pairs.map(([term, meaning]) =>
    `  ${term.padEnd(width)}  ${meaning}`.trimEnd() + "\n"
  ).join("");
}
