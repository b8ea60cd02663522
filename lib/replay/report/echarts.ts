/**
 * The chart library, fetched when a report is made and not before: it takes 60 MB in
 * the cache, and most runs need none of it. Specifiers of strings in the text would have it
 * fetched at the start of the program, so they are put together here.
 *
 * @module
 */

/** The package and its version, as in `deno.json`; a registry's copy has no import map. */
export const ECHARTS = "npm:echarts@^6.1.0";

/** A chart of the library, as far as reports use it. */
export interface Chart {
  /** Draws something else. */
  setOption(option: Record<string, unknown>): void;
  /** The drawing as SVG. */
  renderToSVGString(): string;
  /** Ends the chart. */
  dispose(): void;
}

/** Makes charts that draw SVG without a page. */
export type ChartMaker = (
  element: null,
  theme: null,
  options: {
    renderer: "svg";
    ssr: true;
    /** Pixels. */
    width: number;
    /** Pixels. */
    height: number;
  },
) => Chart;

/** The library as the text of a script for a page. */
export async function chartLibraryText(): Promise<string> {
  // Only a module makes the package known, so that its other files can be read.
  await load("package.json", "json");
  const { default: text } = await load("dist/echarts.min.js", "text");
  return text as string;
}

/** The library itself. */
export async function chartMaker(): Promise<ChartMaker> {
  const { init } = await load("dist/echarts.esm.min.mjs");
  return init as ChartMaker;
}

/** Loads a file of the package: its specifier must be whole, and no string in the text. */
async function load(
  file: string,
  type?: "json" | "text",
): Promise<Record<string, unknown>> {
  const specifier = `${ECHARTS}/${file}`;
  return await import(specifier, type && { with: { type } });
}
