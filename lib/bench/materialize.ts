import type { LaunchGeometry } from "../driver.ts";
import type { Module } from "../kernel.ts";
import {
  materializeBlock,
  materializeListBlock,
  type MaterializeTarget,
  MOST_RUNS,
  type Span,
} from "../paging/argument_blocks.ts";
import { FORMATS } from "../paging/formats.ts";
import { entriesGeometry, listGeometry } from "../paging/launch_sizes.ts";
import { type BenchContext, sampleCount } from "./context.ts";
import { DeviceTimer } from "./device_timer.ts";
import { encodeOnHost } from "./host_encoder.ts";
import { type Series, series, timeOnce } from "./samples.ts";
import { scatteredFrames, singleFrameRuns } from "./scattered_frames.ts";

/** Entries written at once; the most are 4 TiB of pages. */
const COUNTS = [1, 1024, 32_768, 262_144, 2 ** 26];

/** Of these, the ones at which the layouts are compared. */
const LAYOUT_COUNTS = [32_768, 2 ** 26];

const PAGE_SIZE = 64 * 1024;

/** Frames are written down and never touched: they may lie where no layout can say. */
const FRAMES = 2 ** 32;

/** Rounds that load the kernels and compile the code. */
const WARM_UP = 3;

/** A launch of a kernel, by what the report calls it. */
type Launches = Map<string, () => void>;

/**
 * Device time of the kernels that write page-table entries, beside encoding the entries
 * on the host and copying them; sizes are the bytes written. Then the layouts beside each
 * other. A quick run leaves the largest table out.
 */
export async function benchMaterialize(c: BenchContext): Promise<Series[]> {
  using module = c.mb.loadModule(c.images("paging_entries"));
  using timer = new DeviceTimer(c);
  const all: Series[] = [];
  for (const count of COUNTS.filter((count) => fits(c, count))) {
    all.push(...await benchWays(c, module, timer, count));
  }
  for (const count of LAYOUT_COUNTS.filter((count) => fits(c, count))) {
    all.push(...await benchLayouts(c, module, timer, count));
  }
  c.mb.trim();
  return all;
}

function fits(c: BenchContext, count: number): boolean {
  return 8 * count <= c.available / 2 && !(c.quick && count > 2 ** 20);
}

async function benchWays(
  c: BenchContext,
  module: Module,
  timer: DeviceTimer,
  count: number,
): Promise<Series[]> {
  const { mb, driver } = c;
  const { backend, processors } = mb.device;
  const table = mb.alloc(8 * count);
  const target = targetAt(table.address);
  const frames = scatteredFrames(count);
  const list = singleFrameRuns(frames);
  const listAddress = driver.allocPinned(list.bytes.byteLength);
  driver.writePinned(listAddress, list.bytes);
  const geometry = entriesGeometry(count, backend, processors);
  const oneRun = launcher(
    c,
    module.kernel("mb_materialize").driverId,
    geometry,
    materializeBlock(target, [{ first: 0, count }]),
  );
  const launches: Launches = new Map([
    [
      "empty kernel",
      launcher(c, c.empty.driverId, geometry, new Uint8Array(8)),
    ],
    ["one run", oneRun],
  ]);
  if (count > MOST_RUNS) {
    launches.set(
      `${MOST_RUNS} runs`,
      launcher(
        c,
        module.kernel("mb_materialize").driverId,
        geometry,
        materializeBlock(target, separateRuns(count)),
      ),
    );
  }
  const fromList = launcher(
    c,
    module.kernel("mb_materialize_list").driverId,
    listGeometry(list.runCount, backend),
    materializeListBlock(target, list, listAddress),
  );
  launches.set("scattered frames, pinned list", fromList);
  const entries = new BigUint64Array(count);
  const bytes = new Uint8Array(entries.buffer);
  const onHost = () => {
    encodeOnHost(target, frames, entries);
    driver.copyIn(table.address, bytes, 0);
    driver.synchronizeStream(0);
  };
  const group = "page-table entries";
  const all = await inTurn(c, group, count, timer, launches, onHost);
  oneRun();
  fromList();
  assertTable(c, table.address, bytes);
  driver.freePinned(listAddress);
  table.free();
  return all;
}

async function benchLayouts(
  c: BenchContext,
  module: Module,
  timer: DeviceTimer,
  count: number,
): Promise<Series[]> {
  const { mb } = c;
  const { backend, processors } = mb.device;
  const table = mb.alloc(8 * count);
  const kernel = module.kernel("mb_materialize").driverId;
  const geometry = entriesGeometry(count, backend, processors);
  const launches: Launches = new Map();
  for (const format of Object.values(FORMATS)) {
    const target = { ...targetAt(table.address), format };
    const block = materializeBlock(target, [{ first: 0, count }]);
    launches.set(format.name, launcher(c, kernel, geometry, block));
  }
  const group = "page-table entries of one run, by layout";
  const all = await inTurn(c, group, count, timer, launches);
  table.free();
  return all;
}

/** Samples of everything, round by round, so that a drift of the machine hits all alike. */
async function inTurn(
  c: BenchContext,
  group: string,
  count: number,
  timer: DeviceTimer,
  launches: Launches,
  onHost?: () => void,
): Promise<Series[]> {
  const n = sampleCount(c, count > 2 ** 20 ? 20 : 100);
  const batch = Math.max(4, Math.min(128, 2 ** 22 / count));
  const hostNs: number[] = [];
  const deviceNs = new Map<string, number[]>();
  for (const subject of launches.keys()) deviceNs.set(subject, []);
  for (let i = 0; i < n + WARM_UP; i++) {
    await c.step(`${group}: ${count}`);
    const ns = onHost ? timeOnce(onHost) : 0;
    if (i >= WARM_UP) hostNs.push(ns);
    for (const [subject, launch] of launches) {
      const ns = timer.time(batch, launch);
      if (i >= WARM_UP) deviceNs.get(subject)!.push(ns);
    }
  }
  const size = 8 * count;
  const all = onHost ? [series(group, "host loop and copy", size, hostNs)] : [];
  for (const [subject, ns] of deviceNs) {
    all.push(series(group, subject, size, ns));
  }
  return all;
}

function targetAt(entries: number): MaterializeTarget {
  return {
    entries,
    frames: FRAMES,
    format: FORMATS.moonbright,
    pageSize: PAGE_SIZE,
  };
}

function launcher(
  { driver }: BenchContext,
  kernel: number,
  geometry: LaunchGeometry,
  block: Uint8Array,
): () => void {
  return () => driver.launch(kernel, geometry, block, 0);
}

/** As many runs as a launch takes, none of which continues the one before. */
function separateRuns(count: number): Span[] {
  const each = count / MOST_RUNS;
  return Array.from({ length: MOST_RUNS }, (_, run) => ({
    first: (MOST_RUNS - 1 - run) * each,
    count: each,
  }));
}

/** A kernel that does something else may well be quicker. */
function assertTable(
  { driver }: BenchContext,
  address: number,
  expected: Uint8Array<ArrayBuffer>,
): void {
  const found = new Uint8Array(expected.length);
  driver.copyOut(found, address, 0);
  const wanted = new Uint32Array(expected.buffer);
  if (!new Uint32Array(found.buffer).every((half, i) => half === wanted[i])) {
    throw new Error("the benchmark's kernel wrote other entries than the host");
  }
}
