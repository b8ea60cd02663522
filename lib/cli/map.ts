/**
 * `moonbright map`: where every extent and block lies.
 *
 * @module
 */

import { ask, type Published } from "../live/ask.ts";
import { mapHtml } from "../live/map_html.ts";
import { mapSvg } from "../live/map_svg.ts";
import { layOut } from "../live/memory_layout.ts";
import {
  checkSnapshot,
  type MappedSnapshot,
  parseSnapshot,
} from "../live/read_snapshot.ts";
import type { Command } from "./command.ts";
import type { CommandContext } from "./context.ts";
import { ExitCode } from "./exit_codes.ts";
import { openFile, writeTextFile } from "./files.ts";
import { renderMap, renderMapList } from "./map_text.ts";
import { findPublished, parsePid } from "./published.ts";
import { UsageError } from "./usage_error.ts";

/** The command. */
export const mapCommand: Command = {
  name: "map",
  summary: "show where every extent and block lies",
  usage: "[PID|FILE]",
  details:
    `PID is a program that publishes its memory (see "moonbright help top"); it
may be left out if there is just one. FILE is a snapshot: JSON as snapshot()
gives it or --json prints it. A letter stands for each name and shows what
takes most of its place; the line below shows where extents begin.`,
  flags: [
    { name: "list", summary: "list extents and blocks instead of drawing" },
    {
      name: "scale",
      value: "SIZE",
      summary: "bytes of a letter",
      default: "a screen high",
    },
    {
      name: "instance",
      value: "NUMBER",
      summary: "which one, of a process that has several",
    },
    { name: "ascii", summary: "draw with ASCII letters only" },
    { name: "svg", value: "FILE", summary: "write a picture" },
    { name: "html", value: "FILE", summary: "write a page" },
  ],
  examples: [
    { args: "map 4711", what: "the memory of a running program" },
    { args: "map 4711 --json > snapshot.json", what: "keep it" },
    {
      args: "map snapshot.json --html map.html",
      what: "a page to look at, from a snapshot that was kept",
    },
  ],
  async run(context) {
    const { flags, host, style } = context;
    const scale = flags.size("scale");
    if (scale !== undefined && scale < 512) {
      throw new UsageError(
        "Cannot use --scale: blocks are multiples of 512 bytes, so it must be at least that",
      );
    }
    const { raw, snapshot } = await readMemory(context);
    const layout = layOut(snapshot);
    const svg = flags.text("svg");
    if (svg !== undefined) writeTextFile(svg, mapSvg(layout));
    const html = flags.text("html");
    if (html !== undefined) writeTextFile(html, mapHtml(layout));
    if (context.json) context.printJson(raw);
    else if (flags.on("list")) context.print(renderMapList(layout, style));
    else if ((svg ?? html) === undefined) {
      context.print(renderMap(layout, {
        columns: host.stdout.columns(),
        unicode: host.unicode && !flags.on("ascii"),
        style,
        ...(scale === undefined ? {} : { cellBytes: scale }),
      }));
    }
    return ExitCode.OK;
  },
};

/** A snapshot as it came, and checked. */
interface Memory {
  raw: object;
  snapshot: MappedSnapshot;
}

async function readMemory(context: CommandContext): Promise<Memory> {
  const [from, ...more] = context.flags.positionals;
  if (more.length > 0) {
    throw new UsageError(
      `Cannot map ${more.length + 1} things at once: name one process or file`,
    );
  }
  if (from !== undefined && !/^\d+$/.test(from)) {
    const text = await new Response(await openFile(from)).text();
    const snapshot = parseSnapshot(text, from);
    return { raw: JSON.parse(text), snapshot };
  }
  const pid = from === undefined ? undefined : parsePid(from);
  const wanted = context.flags.integer("instance", 1, 1e6);
  const one = theOnly(await context.until(findPublished(pid)), wanted);
  context.progress.update(`asking process ${one.pid}`);
  const raw = await context.until(ask(one, "snapshot")) as object;
  return { raw, snapshot: checkSnapshot(raw, `process ${one.pid}`) };
}

/** The one to look at; `wanted` counts the instances of a process from 1. */
function theOnly(
  found: readonly Published[],
  wanted: number | undefined,
): Published {
  const pids = [...new Set(found.map(({ pid }) => pid))];
  if (pids.length > 1) {
    throw new UsageError(
      `Cannot choose a process to map: ${
        pids.join(", ")
      } publish their memory; name one`,
    );
  }
  const [first] = found as [Published];
  if (wanted === undefined && found.length === 1) return first;
  const chosen = wanted === undefined ? undefined : found[wanted - 1];
  if (chosen) return chosen;
  throw new UsageError(
    `Cannot choose an instance of process ${first.pid}: use --instance with ${
      found.map(({ device }, index) => `${index + 1} for ${device}`).join(", ")
    }`,
  );
}
