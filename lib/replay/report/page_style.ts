import { FONT } from "./chart_parts.ts";
import { PAGE } from "./embedded/page.ts";
import { type Theme, THEMES } from "./palette.ts";

/** The page's style sheet, with the colours of both themes. */
export function pageStyle(): string {
  const dark = `color-scheme:dark;${variables(THEMES.dark)}`;
  // Without a script, and until it runs, the page follows the system.
  return `:root{--font:${FONT};color-scheme:light;${variables(THEMES.light)}}
@media screen and (prefers-color-scheme:dark){:root:not([data-theme]){${dark}}}
:root[data-theme="dark"]{${dark}}
${PAGE["page.css"]}`;
}

function variables(theme: Theme): string {
  return Object.entries({
    paper: theme.paper,
    panel: theme.panel,
    ink: theme.ink,
    "quiet-ink": theme.quietInk,
    rule: theme.rule,
    accent: theme.accent,
    alarm: theme.alarm,
    unmapped: theme.unmapped,
    free: theme.free,
    "free-stripe": theme.freeStripe,
  }).map(([name, color]) => `--${name}:${color}`).join(";");
}
