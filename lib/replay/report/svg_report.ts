/**
 * The report of a replay as a picture.
 *
 * @module
 */

import type { ReplayReport } from "../report_data.ts";
import { FONT, withDatasets } from "./chart_parts.ts";
import { chartMaker } from "./echarts.ts";
import type { ChartOption } from "./json.ts";
import { latencyChart } from "./latency_chart.ts";
import { escapeText } from "./markup.ts";
import { memoryChart } from "./memory_chart.ts";
import { addFormatters } from "./page/formatters.js";
import { type ThemeName, THEMES } from "./palette.ts";
import { timelineColumns } from "./timeline_columns.ts";
import { verdict } from "./verdict.ts";

/** How a picture is to look. */
export interface SvgReportOptions {
  /** Its colours; `light` unless given. */
  theme?: ThemeName;
}

const WIDTH = 1200;
const MARGIN = 24;
const MEMORY_WIDTH = 720;
const LATENCY_WIDTH = WIDTH - MEMORY_WIDTH;
/** Letters that fit across the picture. */
const LONGEST_TITLE = 90;
const SENTENCE_ROW = 20;
const LEGEND_ROW = 18;
const FRAME_MS = 16;
/** Height of a chart without its legend. */
const PLOT_HEIGHT = 320;

/**
 * Draws the report of a replay as one SVG picture: memory over time, and the latency of
 * allocations. It has a background of its own, so it can stand on any page.
 */
export async function svgReport(
  report: ReplayReport,
  options: SvgReportOptions = {},
): Promise<string> {
  const theme = THEMES[options.theme ?? "light"];
  const memory = withDatasets(
    memoryChart(report, theme),
    timelineColumns(report.runs),
  );
  const latency = latencyChart(report, theme);
  const rows = Math.max(seriesCount(memory), seriesCount(latency));
  const height = PLOT_HEIGHT + rows * LEGEND_ROW + MARGIN / 2;
  const [left, right] = await Promise.all([
    draw(memory, MEMORY_WIDTH, height),
    draw(latency, LATENCY_WIDTH, height),
  ]);
  const title = `Memory replay of ${report.workload.name}`;
  const outcome = verdict(report);
  const chartsTop = 84 + outcome.length * SENTENCE_ROW;
  const whole = chartsTop + height;
  const text = (x: number, y: number, attributes: string, content: string) =>
    `<text x="${x}" y="${y}" ${attributes}>${escapeText(content)}</text>`;
  const heading = 'font-size="14" font-weight="600"';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${whole}" viewBox="0 0 ${WIDTH} ${whole}" role="img" aria-labelledby="replay-title replay-outcome">
<title id="replay-title">${escapeText(title)}</title>
<desc id="replay-outcome">${escapeText(outcome.join(" "))}</desc>
<rect width="100%" height="100%" rx="8" fill="${theme.panel}" stroke="${theme.rule}"/>
<g font-family="${escapeText(FONT)}" fill="${theme.ink}">
${
    [
      text(
        MARGIN,
        38,
        'font-size="20" font-weight="600"',
        shortened(title, LONGEST_TITLE),
      ),
      ...outcome.map((sentence, row) =>
        text(MARGIN, 64 + row * SENTENCE_ROW, 'font-size="14"', sentence)
      ),
      text(MARGIN, chartsTop - 6, heading, "Memory over time"),
      text(
        MEMORY_WIDTH + MARGIN,
        chartsTop - 6,
        heading,
        "Allocation latency",
      ),
    ].join("\n")
  }
</g>
${placed(left, 0, chartsTop)}
${placed(right, MEMORY_WIDTH, chartsTop)}
</svg>
`;
}

async function draw(
  option: ChartOption,
  width: number,
  height: number,
): Promise<string> {
  const makeChart = await chartMaker();
  const chart = makeChart(null, null, {
    renderer: "svg",
    ssr: true,
    width,
    height,
  });
  try {
    chart.setOption(addFormatters({
      ...option,
      // A picture of fixed size has room for one series a line.
      legend: {
        ...option.legend as ChartOption,
        show: true,
        orient: "vertical",
        left: MARGIN,
        top: PLOT_HEIGHT,
        itemGap: 4,
      },
      grid: {
        ...option.grid as ChartOption,
        right: MARGIN + 8,
        bottom: height - PLOT_HEIGHT + 56,
      },
    }));
    // Styles only say how things look under a mouse, in colours of no theme.
    return chart.renderToSVGString().replace(/<style[\s\S]*?<\/style>/, "");
  } finally {
    // Its timers would keep the process alive.
    chart.dispose();
    await lastFrame();
  }
}

/** Waits for the frame that a chart asked for in vain, so that no timer outlives the picture. */
function lastFrame(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2 * FRAME_MS));
}

function placed(svg: string, x: number, y: number): string {
  return svg.replace("<svg ", `<svg x="${x}" y="${y}" `);
}

function seriesCount(option: ChartOption): number {
  return (option.series as unknown[]).length;
}

function shortened(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
}
