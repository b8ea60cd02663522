/**
 * Text in HTML and SVG. Names and reasons come from files: everything that is not
 * markup of ours goes through here.
 *
 * @module
 */

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Characters that XML cannot hold, not even escaped, but for halves of surrogate pairs. */
// deno-lint-ignore no-control-regex
const NOT_XML = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g;

/** Escapes text for elements and quoted attributes. */
export function escapeText(text: string): string {
  return text.toWellFormed().replace(NOT_XML, "\ufffd").replace(
    /[&<>"']/g,
    (letter) => ENTITIES[letter]!,
  );
}

/** Writes a value as JSON that no script element ends early at. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

/** A script as it can stand in a script element; its meaning stays. */
export function scriptText(source: string): string {
  // The parser would change line ends, and with them the hash in the content policy.
  return source.replaceAll("\r\n", "\n").replaceAll("\r", "\n")
    .replace(/<(\/script|!--|script)/gi, "\\x3c$1");
}

/** A column of a table. */
export interface TableColumn {
  /** Its heading, plain text. */
  title: string;
  /** Whether it holds numbers, which go to the right. */
  numeric?: boolean;
  /** Heading of the group that it belongs to. */
  group?: string;
}

/**
 * A table in a box that scrolls where it is too wide.
 *
 * Cells are plain text; the first of each row is its heading. Equal headings of rows
 * that follow each other become one.
 */
export function tableMarkup(
  caption: string,
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
): string {
  return `<div class="scroll" role="region" tabindex="0" aria-label="${
    escapeText(caption)
  }"><table><caption>${escapeText(caption)}</caption><thead>${
    headings(columns)
  }</thead>${bodies(columns, rows)}</table></div>`;
}

function headings(columns: readonly TableColumn[]): string {
  const grouped = columns.some(({ group }) => group !== undefined);
  const heading = (column: TableColumn, rowspan: string) =>
    `<th scope="col"${rowspan}${numeric(column)}>${
      escapeText(column.title)
    }</th>`;
  if (!grouped) {
    return `<tr>${columns.map((column) => heading(column, "")).join("")}</tr>`;
  }
  const upper = columns.map((column, index) => {
    const { group } = column;
    if (group === undefined) return heading(column, ' rowspan="2"');
    if (columns[index - 1]?.group === group) return "";
    const width = columns.filter((other) => other.group === group).length;
    return `<th scope="colgroup" colspan="${width}" class="group">${
      escapeText(group)
    }</th>`;
  });
  const lower = columns.filter(({ group }) => group !== undefined)
    .map((column) => heading(column, ""));
  return `<tr>${upper.join("")}</tr><tr>${lower.join("")}</tr>`;
}

function bodies(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
): string {
  const groups: (readonly string[])[][] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    if (last !== undefined && last[0]![0] === row[0]) last.push(row);
    else groups.push([row]);
  }
  return groups.map((group) =>
    `<tbody>${
      group.map((row, index) =>
        `<tr>${index > 0 ? "" : rowHeading(row[0]!, group.length)}${
          row.slice(1).map((cell, at) =>
            `<td${numeric(columns[at + 1]!)}>${escapeText(cell)}</td>`
          ).join("")
        }</tr>`
      ).join("")
    }</tbody>`
  ).join("");
}

function rowHeading(text: string, rows: number): string {
  return rows === 1
    ? `<th scope="row">${escapeText(text)}</th>`
    : `<th scope="rowgroup" rowspan="${rows}">${escapeText(text)}</th>`;
}

function numeric(column: TableColumn): string {
  return column.numeric ? ' class="number"' : "";
}
