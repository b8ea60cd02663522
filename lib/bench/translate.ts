import type { Module } from "../kernel.ts";
import {
  materializeBlock,
  type PagedViewFields,
  readDirectBlock,
  readPagedBlock,
} from "../paging/argument_blocks.ts";
import { FORMATS, MAX_PAGE_SIZE } from "../paging/formats.ts";
import { entriesGeometry, readGeometry } from "../paging/launch_sizes.ts";
import { formatSize, roundUp } from "../sizes.ts";
import { type BenchContext, GIB, MIB, sampleCount } from "./context.ts";
import { DeviceTimer } from "./device_timer.ts";
import { encodeOnHost } from "./host_encoder.ts";
import { type Series, series } from "./samples.ts";
import { scatteredFrames } from "./scattered_frames.ts";

const PAGE_SIZES = [4096, 64 * 1024, 2 * MIB];

const WARM_UP = 3;

/** Memory that is read, and the word that its sum is added to. */
interface Memory {
  /** First byte, a multiple of every page size. */
  address: number;
  bytes: number;
  /** Address of the word. */
  sum: number;
}

/**
 * Device time of reading memory through a page table whose frames are scattered, beside
 * reading it without one: with a translation a page, and with one an access.
 */
export async function benchTranslate(c: BenchContext): Promise<Series[]> {
  const { mb } = c;
  const bytes = bytesToRead(c);
  const block = mb.alloc(bytes + MAX_PAGE_SIZE);
  const sum = mb.alloc(8);
  const memory = {
    address: roundUp(block.address, MAX_PAGE_SIZE),
    bytes,
    sum: sum.address,
  };
  fillWithDifferentWords(c, memory);
  using module = mb.loadModule(c.images("paging_read"));
  using timer = new DeviceTimer(c);
  const all: Series[] = [];
  for (const pageSize of PAGE_SIZES) {
    all.push(...await benchPageSize(c, module, timer, memory, pageSize));
  }
  sum.free();
  block.free();
  mb.trim();
  return all;
}

/** More than any cache holds; a host's are outgrown soon, and its memory is not for this. */
function bytesToRead(c: BenchContext): number {
  let bytes = c.quick || c.mb.device.backend === "host" ? 256 * MIB : 16 * GIB;
  while (bytes > c.available / 2) bytes /= 2;
  return bytes;
}

async function benchPageSize(
  c: BenchContext,
  module: Module,
  timer: DeviceTimer,
  memory: Memory,
  pageSize: number,
): Promise<Series[]> {
  const { mb, driver } = c;
  const { backend, processors } = mb.device;
  const { address, bytes, sum } = memory;
  const pages = bytes / pageSize;
  const table = mb.alloc(8 * pages);
  const format = FORMATS.moonbright;
  const entries = new BigUint64Array(pages);
  encodeOnHost(
    { entries: table.address, frames: address, format, pageSize },
    scatteredFrames(pages),
    entries,
  );
  driver.copyIn(table.address, new Uint8Array(entries.buffer), 0);
  const view: PagedViewFields = {
    table: table.address,
    pages,
    pageShift: Math.log2(pageSize),
    format,
  };
  const geometry = readGeometry(bytes, backend, processors);
  const launches = [
    ["without a table", "mb_read_direct", readDirectBlock(address, bytes, sum)],
    ["a translation a page", "mb_read_paged", readPagedBlock(view, bytes, sum)],
    [
      "a translation an access",
      "mb_translate_each",
      readPagedBlock(view, bytes, sum),
    ],
  ].map(([subject, name, block]) => {
    const kernel = module.kernel(name as string).driverId;
    return {
      subject: subject as string,
      launch: () => driver.launch(kernel, geometry, block as Uint8Array, 0),
      ns: [] as number[],
    };
  });
  const sums = launches.map(({ launch }) => sumOf(c, memory, launch));
  if (sums.some((one) => one !== sums[0])) {
    throw new Error("the benchmark's kernels did not read the same words");
  }
  const n = sampleCount(c, 30);
  for (let i = 0; i < n + WARM_UP; i++) {
    for (const { subject, launch, ns } of launches) {
      await c.step(`reading ${formatSize(bytes)} ${subject}`);
      const sample = timer.time(1, launch);
      if (i >= WARM_UP) ns.push(sample);
    }
  }
  table.free();
  const group = `reading scattered pages of ${formatSize(pageSize)}`;
  return launches.map(({ subject, ns }) => series(group, subject, bytes, ns));
}

/** The sum that a launch finds. */
function sumOf(
  { driver }: BenchContext,
  { sum }: Memory,
  launch: () => void,
): bigint {
  const found = new BigUint64Array(1);
  driver.fill(sum, 0, 4, 2, 0);
  launch();
  driver.copyOut(new Uint8Array(found.buffer), sum, 0);
  return found[0]!;
}

/** So that sums tell whether a page was left out or read twice: entries all differ. */
function fillWithDifferentWords(c: BenchContext, memory: Memory): void {
  const { mb, driver } = c;
  const count = memory.bytes / 8;
  using module = mb.loadModule(c.images("paging_entries"));
  const { backend, processors } = mb.device;
  driver.launch(
    module.kernel("mb_materialize").driverId,
    entriesGeometry(count, backend, processors),
    materializeBlock(
      {
        entries: memory.address,
        frames: 0,
        format: FORMATS.moonbright,
        pageSize: 4096,
      },
      [{ first: 0, count }],
    ),
    0,
  );
  driver.synchronizeStream(0);
}
