/**
 * `moonbright table`: has kernels write a page table, reads it back, and shows and checks
 * every entry.
 *
 * @module
 */

import type { MoonBright } from "../moonbright.ts";
import { checksum } from "../paging/checksum.ts";
import { type FormatName, FORMATS } from "../paging/formats.ts";
import { PagedSpace, type PagedSpaceOptions } from "../paging/paged_space.ts";
import { formatSize } from "../sizes.ts";
import type { Command } from "./command.ts";
import type { CommandContext } from "./context.ts";
import { DEVICE_FLAG, openDevice } from "./device_flag.ts";
import { ExitCode } from "./exit_codes.ts";
import type { Flags } from "./flags.ts";
import { checkEntry, deviceChecksum, hex, readTable } from "./table_check.ts";
import {
  type EntryReport,
  renderTableReport,
  type TableReport,
} from "./table_report.ts";
import { didYouMean } from "./suggest.ts";
import { LEAST_PAGES, makeRanges } from "./table_scenario.ts";
import { UsageError } from "./usage_error.ts";

const MOST_PAGES = 65_536;

/** The name that tells the space's memory from other memory. */
const NAME = "table";

/** The command. */
export const tableCommand: Command = {
  name: "table",
  summary: "show and verify a page table that kernels wrote",
  usage: "",
  details:
    `Makes a small paged space on the device: a range that grows, a fork of it of
which one page is written, and a range made read-only. The table is then read
back. Every entry must be as the host encodes it and lead to what was written
to its page, and the checksum of the table by a kernel must be that of the
entries read; else the exit code is 5.

Layouts are MoonBright's own, "moonbright", and those of the GPUs' own tables:
nvidia-v2, nvidia-v3, amd-gfx9, amd-gfx10 (also of GFX11) and amd-gfx12.`,
  flags: [
    DEVICE_FLAG,
    {
      name: "format",
      value: "FORMAT",
      summary: "layout of the entries",
      default: "moonbright",
    },
    {
      name: "page-size",
      value: "SIZE",
      summary: "bytes of a page",
      default: "64KiB",
    },
    {
      name: "pages",
      value: "NUMBER",
      summary: "entries of the table",
      default: "32",
    },
  ],
  examples: [
    { args: "table", what: "a table in MoonBright's own layout" },
    {
      args: "table --format amd-gfx9 --page-size 2MiB --pages 8 --json",
      what: "another layout and page size, as JSON",
    },
  ],
  async run(context) {
    const options = optionsFrom(context.flags);
    using mb = openDevice(context);
    context.progress.update("loading kernels");
    const images = {
      entries: context.host.kernelImage("paging_entries", mb.device),
      copy: context.host.kernelImage("paging_copy", mb.device),
    };
    using space = new PagedSpace(mb, images, options);
    const report = await makeReport(context, mb, space, images.entries);
    if (context.json) context.printJson(report);
    else context.print(renderTableReport(report, context.style));
    return report.sound ? ExitCode.OK : ExitCode.MISMATCH;
  },
};

async function makeReport(
  context: CommandContext,
  mb: MoonBright,
  space: PagedSpace,
  image: Uint8Array,
): Promise<TableReport> {
  const frames = space.store;
  context.progress.update("writing the table");
  const expected = makeRanges(space);
  const table = readTable(mb, space);
  const entries: EntryReport[] = [];
  for (const [page, entry] of table.entries()) {
    await context.breathe();
    context.progress.update(`checking entries: ${page} of ${table.length}`);
    entries.push(
      checkEntry(mb.driver, space, frames, page, entry, expected.get(page)),
    );
  }
  const sums = {
    device: hex(deviceChecksum(mb, space, image)),
    host: hex(checksum(table)),
  };
  return {
    command: "table",
    device: mb.device,
    format: space.format.name,
    pageSize: space.pageSize,
    table: hex(space.table),
    frames: hex(frames),
    entries,
    checksum: sums,
    sound: sums.device === sums.host &&
      entries.every(({ problem }) => problem === null),
  };
}

function optionsFrom(flags: Flags): PagedSpaceOptions {
  const format = formatOf(flags);
  const pageSize = flags.size("page-size") ?? 64 * 1024;
  const sizes = [...FORMATS[format].flags.keys()];
  if (!sizes.includes(pageSize)) {
    throw new UsageError(
      `Cannot use --page-size: "${format}" has no pages of ${
        formatSize(pageSize)
      }; it has ${sizes.map(formatSize).join(", ")}`,
    );
  }
  const pages = flags.integer("pages", LEAST_PAGES, MOST_PAGES) ?? 32;
  // Device addresses have more bits than this layout has room for.
  const addresses = format === "nvidia-v2" ? "store" : "device";
  return { pages, pageSize, format, addresses, name: NAME };
}

function formatOf(flags: Flags): FormatName {
  const name = flags.text("format") ?? "moonbright";
  if (!Object.hasOwn(FORMATS, name)) {
    const known = Object.keys(FORMATS);
    throw new UsageError(
      `Cannot use --format: "${name}" is none of ${known.join(", ")}${
        didYouMean(name, known)
      }`,
    );
  }
  return name as FormatName;
}
