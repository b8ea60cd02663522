/**
 * Colour, where it is wanted.
 *
 * @module
 */

/** Ways to set text apart. Each returns the text unchanged where colour is off. */
export interface Style {
  /** For headings. */
  bold(text: string): string;
  /** For what matters less. */
  dim(text: string): string;
  /** For errors. */
  red(text: string): string;
  /** For warnings. */
  yellow(text: string): string;
}

const escape = (on: number, off: number) => (text: string) =>
  `\x1b[${on}m${text}\x1b[${off}m`;
const plain = (text: string) => text;

const COLOURED: Style = {
  bold: escape(1, 22),
  dim: escape(2, 22),
  red: escape(31, 39),
  yellow: escape(33, 39),
};

const PLAIN: Style = { bold: plain, dim: plain, red: plain, yellow: plain };

/** The style for an output that takes colour or does not. */
export function styleFor(coloured: boolean): Style {
  return coloured ? COLOURED : PLAIN;
}
