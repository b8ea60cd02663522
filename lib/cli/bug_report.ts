/**
 * The report of `info` as Markdown, to begin a bug report with.
 *
 * @module
 */

import type { BenchEnvironment } from "../bench/report.ts";
import { formatSize } from "../sizes.ts";
import type { InfoReport } from "./info_report.ts";

/** Variables that decide what is found. */
const VARIABLES = [
  "MOONBRIGHT_LIB",
  "MOONBRIGHT_CACHE",
  "CUDA_VISIBLE_DEVICES",
  "HIP_VISIBLE_DEVICES",
  "ROCR_VISIBLE_DEVICES",
  "LD_LIBRARY_PATH",
];

/** Writes the report. The user's home folder is shown as `~`. */
export function renderBugReport(
  { version, library, backends }: InfoReport,
  { commit, deno, platform, processor }: Omit<BenchEnvironment, "device">,
): string {
  const devices = backends.flatMap((backend) => backend.devices);
  const problems = backends.filter(({ problem }) => problem !== null)
    .map(({ name, problem }) => [name, problem!] as const);
  if (library.problem !== null) problems.unshift(["library", library.problem]);
  const parts = [
    heading("Environment"),
    list([
      ["MoonBright", commit === null ? version : `${version} (${commit})`],
      ["Deno", deno],
      ["Platform", platform],
      ["Processor", processor ?? "not known"],
      ["Library", library.path ?? "none"],
      ["Found", library.origin ?? "no"],
      ["ABI version", String(library.abiVersion ?? "not known")],
      ["Cache folder", library.cacheFolder ?? "none"],
    ]),
    heading("Devices"),
    devices.length === 0 ? "None can be used.\n" : table(
      [
        "Device",
        "Name",
        "Architecture",
        "Memory",
        "Free",
        "Granularity",
        "Driver",
        "Pools",
      ],
      devices.map(({ id, info, freeMemory }) => [
        id,
        info.name,
        info.architecture,
        formatSize(info.totalMemory),
        freeMemory === null ? "not known" : formatSize(freeMemory),
        formatSize(info.granularity),
        String(info.driverVersion),
        info.pools ? "yes" : "no",
      ]),
    ),
    ...(problems.length === 0 ? [] : [heading("Missing"), list(problems)]),
    heading("Variables"),
    list(VARIABLES.map((name) => [name, readVariable(name)])),
    heading("What happened"),
    "<!-- What did you do, what did you expect, what came instead? -->\n",
  ];
  return hideHome(parts.join("\n"));
}

function heading(text: string): string {
  return `### ${text}\n`;
}

function list(items: readonly (readonly [string, string])[]): string {
  return items.map(([term, text]) => `- ${term}: ${oneLine(text)}\n`).join("");
}

function table(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const row = (cells: readonly string[]) =>
    `| ${
      cells.map((cell) => oneLine(cell).replaceAll("|", "\\|")).join(" | ")
    } |\n`;
  return [titles, titles.map(() => "---"), ...rows].map(row).join("");
}

/** A line feed would end the item or row. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function readVariable(name: string): string {
  try {
    return Deno.env.get(name) ?? "not set";
  } catch {
    return "not allowed to read";
  }
}

function hideHome(text: string): string {
  let home: string | undefined;
  try {
    home = Deno.env.get("HOME");
  } catch {
    // Nor could paths be made from it.
  }
  return home !== undefined && home.length > 1
    ? text.replaceAll(home, "~")
    : text;
}
