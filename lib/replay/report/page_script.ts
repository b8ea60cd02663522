import charts from "./page/charts.js" with { type: "text" };
import failures from "./page/failures.js" with { type: "text" };
import formatters from "./page/formatters.js" with { type: "text" };
import legend from "./page/legend.js" with { type: "text" };
import main from "./page/main.js" with { type: "text" };
import mapCanvas from "./page/map_canvas.js" with { type: "text" };
import mapLayout from "./page/map_layout.js" with { type: "text" };
import mapView from "./page/map_view.js" with { type: "text" };
import present from "./page/present.js" with { type: "text" };
import theme from "./page/theme.js" with { type: "text" };
import unpack from "./page/unpack.js" with { type: "text" };
import zoomKeys from "./page/zoom_keys.js" with { type: "text" };

/** Classes must stand before what makes use of them as the script starts. */
const MODULES: readonly string[] = [
  formatters,
  failures,
  unpack,
  present,
  mapLayout,
  mapCanvas,
  mapView,
  legend,
  zoomKeys,
  charts,
  theme,
  main,
];

/**
 * The page's modules as one script: a page opened from a file may not import any.
 *
 * They share one scope, so no two may declare the same name.
 */
export function pageScript(): string {
  const body = MODULES.map((module) =>
    module
      .replace(/^import [^;]*;\n/gm, "")
      .replace(/^export (?=class|const|function|async)/gm, "")
  ).join("\n");
  return `(() => {\n"use strict";\n${body}})();\n`;
}
