/**
 * What `moonbright top` shows of an instance.
 *
 * @module
 */

import type { Rate, Rates } from "../live/rates.ts";
import type { Summary } from "../live/summary.ts";
import { formatSize } from "../sizes.ts";
import { formatDuration } from "./duration.ts";
import { printable } from "./printable.ts";
import type { Style } from "./style.ts";
import { renderTable } from "./table.ts";

/** An instance at one moment. */
export interface TopSample {
  /** Its figures. */
  summary: Summary;
  /** What happened since the sample before; nothing of the first. */
  rates: Rates | undefined;
}

/** How to show it. */
export interface TopLook {
  /** Letters across. */
  columns: number;
  /** Whether bars may have letters beyond ASCII. */
  unicode: boolean;
  /** How headings look. */
  style: Style;
}

/** Stands for a rate that is not known yet. */
const UNKNOWN = "-";
const LONGEST_NAME = 40;
const MOST_NAMES_SHOWN = 10;
const MOST_STREAMS_SHOWN = 8;

/** All of an instance, as lines with their newlines. */
export function renderTop(sample: TopSample, look: TopLook): string {
  const { summary, rates } = sample;
  const { pid, device, time, stats } = summary;
  const { style } = look;
  const name = printable(device.name, LONGEST_NAME);
  const head = `process ${pid}, ${device.backend}:${device.ordinal} ${name}`;
  return [
    `${style.bold(head)}  ${style.dim(time)}\n${renderBars(summary, look)}`,
    `blocks ${stats.liveBlocks}, extents ${stats.extents}, free ${
      formatSize(stats.free)
    } (largest ${formatSize(stats.largestFree)}), pending ${
      formatSize(stats.pending)
    }, retired ${formatSize(stats.retired)}\npeak live ${
      formatSize(stats.peak.live)
    }, mapped ${formatSize(stats.peak.mapped)}; frees ${
      perSecond(rates?.frees)
    }/s, flushes ${stats.flushes}\n`,
    renderWays(sample, style),
    renderCalls(sample, style),
    renderStreams(summary, style),
    renderNames(summary, style),
  ].filter(Boolean).join("\n");
}

/** The headings of `renderTopLine`. */
export function topLineHeadings(): string {
  return columnsOf([
    "time",
    "process",
    "device",
    "live",
    "mapped",
    "budget",
    "requests/s",
    "frees/s",
    "calls/s",
  ]);
}

/** An instance in one line, for logs. */
export function renderTopLine({ summary, rates }: TopSample): string {
  const { time, pid, device, stats } = summary;
  return columnsOf([
    time.slice(11, 19),
    String(pid),
    `${device.backend}:${device.ordinal}`,
    formatSize(stats.live),
    formatSize(stats.mapped),
    stats.budget === null ? "none" : formatSize(stats.budget),
    perSecond(rates?.requests),
    perSecond(rates?.frees),
    perSecond(rates?.calls),
  ]);
}

function columnsOf(cells: string[]): string {
  return `${cells.map((cell) => cell.padStart(10)).join(" ").trimEnd()}\n`;
}

function renderBars({ stats, device }: Summary, look: TopLook): string {
  const limit = stats.budget ?? device.totalMemory;
  const of = stats.budget === null ? "the device" : "the budget";
  const bars: [string, number, number, string][] = [
    [
      "live",
      stats.live,
      limit,
      `${percent(stats.live, stats.mapped)} of mapped`,
    ],
    ["mapped", stats.mapped, limit, `${percent(stats.mapped, limit)} of ${of}`],
  ];
  if (stats.budget !== null) {
    const { totalMemory } = device;
    bars.push([
      "budget",
      stats.budget,
      totalMemory,
      `${percent(stats.budget, totalMemory)} of the device`,
    ]);
  }
  return bars.map(([what, bytes, whole, says]) => {
    const text = `${formatSize(bytes).padStart(10)}, ${says}`;
    const width = Math.max(10, Math.min(50, look.columns - 9 - 38));
    return `${what.padEnd(7)} ${
      bar(bytes, whole, width, look.unicode)
    } ${text}\n`;
  }).join("");
}

/** A bar of so many letters; a part that is not zero shows. */
export function bar(
  part: number,
  whole: number,
  width: number,
  unicode: boolean,
): string {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  const filled = Math.max(part > 0 ? 1 : 0, Math.round(share * width));
  const [full, empty] = unicode ? ["█", "░"] : ["#", "."];
  return full!.repeat(filled) + empty!.repeat(width - filled);
}

function renderWays({ summary, rates }: TopSample, style: Style): string {
  return rateTable(
    "way",
    Object.entries(summary.stats.ways).map(([way, total]) => ({
      name: way,
      count: total.count,
      ns: total.ns,
      rate: rates?.ways[way as keyof Rates["ways"]],
    })),
    style,
  );
}

function renderCalls({ summary, rates }: TopSample, style: Style): string {
  return rateTable(
    "driver call",
    Object.entries(summary.stats.driver).map(([kind, total]) => ({
      name: kind,
      count: total.calls,
      ns: total.ns,
      rate: rates?.driver[kind as keyof Rates["driver"]],
    })),
    style,
  );
}

interface RateRow {
  name: string;
  count: number;
  ns: number;
  rate: Rate | undefined;
}

function rateTable(
  title: string,
  rows: readonly RateRow[],
  style: Style,
): string {
  return renderTable(
    [
      { title: title.padEnd(11) },
      { title: "per second", align: "right" },
      { title: "bytes/s", align: "right" },
      { title: "each now", align: "right" },
      { title: "so far", align: "right" },
      { title: "each", align: "right" },
    ],
    rows.map(({ name, count, ns, rate }) => [
      name,
      perSecond(rate?.perSecond),
      rate === undefined
        ? UNKNOWN
        : formatSize(Math.round(rate.bytesPerSecond)),
      rate === undefined || rate.perSecond === 0
        ? UNKNOWN
        : formatDuration(rate.nsEach),
      String(count),
      count === 0 ? UNKNOWN : formatDuration(ns / count),
    ]),
    style,
  );
}

function renderStreams({ streams }: Summary, style: Style): string {
  if (streams.length === 0) return "";
  const shown = streams.slice(0, MOST_STREAMS_SHOWN);
  return renderTable(
    [
      { title: "stream".padEnd(11) },
      { title: "live", align: "right" },
      { title: "blocks", align: "right" },
      { title: "free", align: "right" },
      { title: "pending", align: "right" },
    ],
    shown.map(({ stream, live, liveBlocks, free, pending }) => [
      String(stream),
      formatSize(live),
      String(liveBlocks),
      formatSize(free),
      formatSize(pending),
    ]),
    style,
  ) + more(streams.length - shown.length, "streams");
}

function renderNames({ names, moreNames }: Summary, style: Style): string {
  if (names.length === 0) return "";
  const shown = names.slice(0, MOST_NAMES_SHOWN);
  return renderTable(
    [
      { title: "name".padEnd(11) },
      { title: "bytes", align: "right" },
      { title: "blocks", align: "right" },
      { title: "largest", align: "right" },
    ],
    shown.map(({ name, bytes, blocks, largest }) => [
      name === null ? "(no name)" : printable(name, LONGEST_NAME),
      formatSize(bytes),
      String(blocks),
      formatSize(largest),
    ]),
    style,
  ) + more(names.length - shown.length + moreNames, "names");
}

function more(count: number, what: string): string {
  return count > 0 ? `and ${count} more ${what}\n` : "";
}

function perSecond(rate: number | undefined): string {
  if (rate === undefined) return UNKNOWN;
  return rate < 10 && !Number.isInteger(rate)
    ? rate.toFixed(1)
    : Math.round(rate).toLocaleString("en-US");
}

function percent(part: number, whole: number): string {
  return whole > 0 ? `${(100 * part / whole).toFixed(0)} %` : UNKNOWN;
}
