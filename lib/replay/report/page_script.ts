import { PAGE } from "./embedded/page.ts";

/** Classes must stand before what makes use of them as the script starts. */
const MODULES: readonly (keyof typeof PAGE)[] = [
  "formatters.js",
  "failures.js",
  "unpack.js",
  "present.js",
  "map_layout.js",
  "map_canvas.js",
  "map_view.js",
  "legend.js",
  "zoom_keys.js",
  "charts.js",
  "theme.js",
  "main.js",
];

/**
 * The page's modules as one script: a page opened from a file may not import any.
 *
 * They share one scope, so no two may declare the same name.
 */
export function pageScript(): string {
  const body = MODULES.map((name) =>
    PAGE[name]
      .replace(/^import [^;]*;\n/gm, "")
      .replace(/^export (?=class|const|function|async)/gm, "")
  ).join("\n");
  return `(() => {\n"use strict";\n${body}})();\n`;
}
