/**
 * The report of a replay as a page.
 *
 * @module
 */

import type { ReplayReport } from "../report_data.ts";
import { contentPolicy } from "./content_policy.ts";
import { chartLibraryText } from "./echarts.ts";
import { escapeText, jsonText, scriptText } from "./markup.ts";
import { pageData, runsWithMap } from "./page_data.ts";
import { pageStyle } from "./page_style.ts";
import {
  fragmentationSection,
  headerSection,
  latencySection,
  mapSection,
  memorySection,
  runsSection,
  timeSection,
  unservedSection,
} from "./sections.ts";

/**
 * Writes the report of a replay as one HTML file that needs nothing else: no network,
 * no server, no other file.
 */
export async function htmlReport(report: ReplayReport): Promise<string> {
  // Only who makes a report pays for reading more than a megabyte of chart library.
  const [library, { pageScript }] = await Promise.all([
    chartLibraryText(),
    import("./page_script.ts"),
  ]);
  const scripts = [library, pageScript()].map(scriptText);
  const { runs, workload } = report;
  const mapped = runsWithMap(runs);
  const { json, drawn, packed } = await pageData(report, mapped);
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${
    escapePolicy(await contentPolicy(scripts))
  }">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeText(workload.name)} – MoonBright memory replay</title>
<style>${pageStyle()}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the figures</a>
${headerSection(report)}
<main id="main">
<p id="failure" role="alert" hidden></p>
<noscript><p class="failure">The charts and the memory map need JavaScript; the tables do not.</p></noscript>
${runsSection(runs)}
${memorySection(drawn, mapped.length > 0)}
${mapSection(runs, mapped)}
${latencySection(drawn)}
${timeSection(runs)}
${fragmentationSection(drawn)}
${unservedSection(runs)}
</main>
<footer><p>Sizes are in binary units. Charts are drawn by Apache ECharts, under the Apache License 2.0.</p></footer>
<script type="application/json" id="report-data">${jsonText(json)}</script>
${
    Object.entries(packed).map(([id, data]) =>
      `<script type="text/plain" id="${id}">${data}</script>`
    ).join("\n")
  }
${scripts.map((script) => `<script>${script}</script>`).join("\n")}
</body>
</html>
`;
}

/** In double quotes, a policy's single quotes may stay as they are. */
function escapePolicy(policy: string): string {
  return policy.replaceAll('"', "&quot;");
}
