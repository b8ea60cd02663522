/**
 * What stands on the page, section by section.
 *
 * @module
 */

import type {
  ReplayReport,
  ReplayRun,
  WorkloadFigures,
} from "../report_data.ts";
import { escapeText } from "./markup.ts";
import { amountText, countText, sizeText } from "./numbers.ts";
import { SIZE_CLASSES } from "./palette.ts";
import { runNames } from "./run_names.ts";
import {
  callsTable,
  runsTable,
  unservedTable,
  waysTable,
} from "./run_tables.ts";
import { callKinds, wayKinds } from "./time_kinds.ts";
import { verdict } from "./verdict.ts";

const SOURCES: Record<WorkloadFigures["source"], string> = {
  pytorch: "PyTorch memory snapshot",
  rmm: "RMM log",
  moonbright: "MoonBright recording",
};

/** The page's header: what was replayed, and the outcome. */
export function headerSection(report: ReplayReport): string {
  const { workload } = report;
  const facts: [string, string][] = [
    ["Source", SOURCES[workload.source] ?? workload.source],
    ["Device", String(workload.device)],
    ["Allocations", countText(workload.allocations)],
    ["Frees", countText(workload.frees)],
    ["Live at start", amountText(workload.liveAtStart, "block")],
    ["Streams", countText(workload.streams)],
    ["Allocated in all", sizeText(workload.bytesAllocated)],
    ["Live peak", sizeText(workload.livePeak)],
    ["Recorded allocator’s peak", sizeText(workload.reservedPeak)],
  ];
  return `<header><div class="title"><div><p class="kind">MoonBright memory replay</p><h1>${
    escapeText(workload.name)
  }</h1></div><button type="button" id="theme-button" aria-pressed="false" hidden>Dark colours</button></div>
<p class="verdict">${escapeText(verdict(report).join(" "))}</p>
<dl class="facts">${
    facts.map(([term, value]) =>
      `<div><dt>${term}</dt><dd>${escapeText(value)}</dd></div>`
    ).join("")
  }</dl></header>`;
}

/** The table of all runs. */
export function runsSection(runs: readonly ReplayRun[]): string {
  return section(
    "runs",
    "Runs",
    runs.length === 0
      ? "<p>No allocator replayed this workload.</p>"
      : runsTable(runs),
  );
}

/** Memory over time, if that chart is among those drawn. */
export function memorySection(
  drawn: readonly string[],
  hasMap: boolean,
): string {
  return section(
    "memory",
    "Memory over time",
    !drawn.includes("memory")
      ? "<p>Nothing was allocated.</p>"
      : `<div class="controls"><fieldset><legend>Along the charts</legend><label><input type="radio" name="axis" value="step" checked> steps</label> <label><input type="radio" name="axis" value="timeUs"> recorded time</label></fieldset></div>
${courseChart("memory", " tall")}
<p class="hint">Symbols mark peaks. Drag the bar below the chart, turn the wheel with Ctrl held, or press + − ← → 0 on the focused chart to zoom.${
        hasMap
          ? " Click into the chart to see the memory map at that step."
          : ""
      }</p>`,
  );
}

/** The memory map at any step. */
export function mapSection(
  runs: readonly ReplayRun[],
  mapped: readonly number[],
): string {
  if (mapped.length === 0) return "";
  const names = runNames(runs);
  const choice = mapped.length === 1
    ? `<p>Of ${escapeText(names[mapped[0]!]!)}.</p>`
    : `<label>Run <select id="map-run">${
      mapped.map((run, index) =>
        `<option value="${index}">${escapeText(names[run]!)}</option>`
      ).join("")
    }</select></label>`;
  return section(
    "map",
    "Memory map",
    `<div class="controls">${choice}<label class="wide">Step <input type="range" id="map-slider" min="0" max="0" value="0"></label><input type="number" id="map-step" min="0" max="0" value="0" aria-label="Step shown"><button type="button" id="map-live-peak">At live peak</button><button type="button" id="map-mapped-peak">At mapped peak</button></div>
<p id="map-summary" aria-live="polite"></p>
<ul class="keys" aria-label="Colours of the map">${classKeys()}<li><span class="key free"></span>mapped, free</li><li><span class="key unmapped"></span>not mapped now</li><li><span class="key cut"></span>addresses never mapped, cut out</li></ul>
<div id="map-frame"><canvas id="map-canvas" role="img" tabindex="0" aria-label="Map of memory by address: live blocks, free memory that is mapped, and unmapped addresses. The summary above and the table below say the same in words." aria-describedby="map-summary map-block"></canvas></div>
<p id="map-block" aria-live="polite"></p>
<details><summary>Largest blocks at this step</summary><div class="scroll" role="region" tabindex="0" aria-label="Largest blocks at this step"><table class="numbers"><thead><tr><th scope="col">Address</th><th scope="col">Size</th><th scope="col">From step</th><th scope="col">Until step</th></tr></thead><tbody id="map-largest"></tbody></table></div></details>
<p class="hint">Addresses count from the lowest one in use. Only addresses that were mapped at some time are shown.</p>`,
  );
}

/** Latency of allocations, if that chart is among those drawn. */
export function latencySection(drawn: readonly string[]): string {
  return section(
    "latency",
    "Allocation latency",
    !drawn.includes("latency")
      ? "<p>No allocation was timed.</p>"
      : `${
        chartBox("latency", "Lines shown", 'class="chart"')
      }<p class="hint">Four bins to a doubling, both axes logarithmic. Upright lines mark medians.</p>`,
  );
}

/** Where the time went. */
export function timeSection(runs: readonly ReplayRun[]): string {
  const part = (
    title: string,
    kinds: string[],
    chart: string,
    table: string,
    hint: string,
  ) =>
    kinds.length === 0 ? "" : `<div><h3>${title}</h3>${
      chartBox(
        chart,
        "Allocators shown",
        `class="chart" style="height:${
          barChartHeight(runs.length, kinds.length)
        }px"`,
      )
    }${table}<p class="hint">${hint}</p></div>`;
  const parts = part(
    "By way of serving requests",
    wayKinds(runs),
    "ways",
    waysTable(runs),
    "“flush” counts coherence points.",
  ) + part(
    "By kind of driver call",
    callKinds(runs),
    "calls",
    callsTable(runs),
    "Items are extents or ranges handled by the calls.",
  );
  return parts === "" ? "" : section(
    "time",
    "Where the time went",
    `<div class="halves">${parts}</div>`,
  );
}

/** Fragmentation over time, if that chart is among those drawn. */
export function fragmentationSection(drawn: readonly string[]): string {
  return section(
    "fragmentation",
    "Fragmentation over time",
    !drawn.includes("fragmentation")
      ? "<p>No allocator told what it held.</p>"
      : `${
        courseChart("fragmentation", "")
      }<p class="hint">Mapped memory that holds no live block, and the largest block that could be had of it without a driver call.</p>`,
  );
}

/** Requests that could not be served. */
export function unservedSection(runs: readonly ReplayRun[]): string {
  const names = runNames(runs);
  let open = " open";
  const lists = runs.flatMap((run, index) => {
    const { unservedCount, unserved } = run;
    if (unservedCount === 0) return [];
    const first = unserved.length < unservedCount
      ? `, the first ${countText(unserved.length)}`
      : "";
    const attribute = open;
    open = "";
    return [
      `<details${attribute}><summary>${escapeText(names[index]!)}: ${
        amountText(unservedCount, "request")
      }${first}</summary>${
        unserved.length === 0 ? "" : unservedTable(names[index]!, run)
      }</details>`,
    ];
  });
  return section(
    "unserved",
    "Requests not served",
    lists.length === 0 ? "<p>Every request was served.</p>" : lists.join(""),
  );
}

function barChartHeight(runs: number, kinds: number): number {
  return 64 + kinds * (14 + runs * 14);
}

function section(id: string, title: string, content: string): string {
  return `<section aria-labelledby="${id}-title" id="${id}"><h2 id="${id}-title">${title}</h2>
${content}</section>`;
}

/** A chart over time, which answers to keys. */
function courseChart(name: string, size: string): string {
  return chartBox(name, "Lines shown", `class="chart${size}" tabindex="0"`);
}

function chartBox(name: string, legend: string, attributes: string): string {
  return `<ul class="legend" id="legend-${name}" aria-label="${legend}"></ul><div id="chart-${name}" ${attributes}></div>`;
}

function classKeys(): string {
  let above = 0;
  return SIZE_CLASSES.map(({ below }, index) => {
    const text = below === Infinity
      ? `${sizeText(above)} and more`
      : index === 0
      ? `blocks below ${sizeText(below)}`
      : `below ${sizeText(below)}`;
    above = below;
    return `<li><canvas class="key" width="24" height="14" data-class="${index}" aria-hidden="true"></canvas>${text}</li>`;
  }).join("");
}
