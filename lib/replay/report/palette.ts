/**
 * The colours of reports. Series use the palette of Okabe and Ito, which people with
 * colour blindness can tell apart; each also has a dash, a symbol and a pattern of its own.
 *
 * @module
 */

import type { Json } from "./json.ts";

/** Light or dark. */
export type ThemeName = "light" | "dark";

/** Colours of a report. */
export interface Theme {
  /** Behind everything. */
  paper: string;
  /** Behind charts and tables. */
  panel: string;
  /** Text. */
  ink: string;
  /** Less important text, still with a contrast of 4.5:1. */
  quietInk: string;
  /** Lines between things. */
  rule: string;
  /** Links, buttons, the step shown. */
  accent: string;
  /** That something failed. */
  alarm: string;
  /** Live bytes. */
  live: string;
  /** What the recorded allocator held. */
  reserved: string;
  /** One a run. */
  runs: string[];
  /** Unmapped addresses on the memory map. */
  unmapped: string;
  /** Mapped, but free. */
  free: string;
  /** Stripes on it. */
  freeStripe: string;
}

/** Both themes. The light one leaves out the hues too pale for white, the dark one those too dark for black. */
export const THEMES: Record<ThemeName, Theme> = {
  light: {
    paper: "#f4f6f8",
    panel: "#ffffff",
    ink: "#1b2430",
    quietInk: "#55606e",
    rule: "#d5dbe2",
    accent: "#005a8f",
    alarm: "#a63a00",
    live: "#5b6673",
    reserved: "#000000",
    runs: ["#0072b2", "#d55e00", "#009e73", "#b8578f", "#b87f00", "#2f8fc4"],
    unmapped: "#eceff3",
    free: "#dfe4ea",
    freeStripe: "#a9b3bf",
  },
  dark: {
    paper: "#0f141a",
    panel: "#182028",
    ink: "#e8edf2",
    quietInk: "#a3afbc",
    rule: "#33404d",
    accent: "#7cc4f2",
    alarm: "#ff9d66",
    live: "#93a1b0",
    reserved: "#ffffff",
    runs: ["#56b4e9", "#f0823a", "#1fc496", "#e09bc4", "#f0e442", "#e69f00"],
    unmapped: "#131a21",
    free: "#2a343f",
    freeStripe: "#55636f",
  },
};

/** Classes of block sizes on the memory map: below how many bytes, and the colour. */
export const SIZE_CLASSES: readonly { below: number; color: string }[] = [
  { below: 2 ** 20, color: "#56b4e9" },
  { below: 2 ** 24, color: "#009e73" },
  { below: 2 ** 27, color: "#e69f00" },
  { below: 2 ** 30, color: "#cc79a7" },
  { below: Infinity, color: "#d55e00" },
];

/** How a series looks. */
export interface Look {
  /** Its colour. */
  color: string;
  /** Lengths of dashes and gaps; empty for a solid line. */
  dash: number[];
  /** ECharts' name of the symbol at its peak. */
  symbol: string;
  /** ECharts' description of the pattern on its bars; null for none. */
  decal: Json;
}

const DASHES = [[], [9, 4], [2, 3], [11, 3, 2, 3], [5, 5], [14, 4]];
const SYMBOLS = ["circle", "triangle", "diamond", "rect"];

/** The look of the run with this index. Colours repeat after 6 runs, looks after 36. */
export function runLook(theme: Theme, index: number): Look {
  // Where colours begin anew, dashes and patterns begin with the next one.
  const shifted = index + Math.floor(index / theme.runs.length);
  return {
    color: theme.runs[index % theme.runs.length]!,
    dash: DASHES[shifted % DASHES.length]!,
    symbol: SYMBOLS[index % SYMBOLS.length]!,
    decal: decal(theme, shifted),
  };
}

/** The look of live bytes. */
export function liveLook(theme: Theme): Look {
  return { color: theme.live, dash: [], symbol: "rect", decal: null };
}

/** The look of what the recorded allocator held. */
export function reservedLook(theme: Theme): Look {
  return {
    color: theme.reserved,
    dash: [6, 2, 1, 2, 1, 2],
    symbol: "diamond",
    decal: null,
  };
}

function decal(theme: Theme, index: number): Json {
  const color = theme.panel + "99";
  const stripes = { color, dashArrayX: [1, 0], dashArrayY: [2, 5] };
  const patterns: Json[] = [
    null,
    { ...stripes, rotation: Math.PI / 4 },
    {
      color,
      symbol: "circle",
      dashArrayX: [[6, 6], [0, 6, 6, 0]],
      dashArrayY: [6, 0],
      symbolSize: 0.8,
    },
    { ...stripes, rotation: -Math.PI / 4 },
    { ...stripes, rotation: Math.PI / 2 },
    { ...stripes, dashArrayY: [4, 3] },
  ];
  return patterns[index % patterns.length]!;
}
