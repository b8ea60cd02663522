import type { PagedRange } from "../paging/paged_range.ts";
import { PagedSpace } from "../paging/paged_space.ts";
import { MAX_PAGE_SIZE } from "../paging/formats.ts";
import { MOST_RUNS } from "../paging/argument_blocks.ts";
import { roundUp } from "../sizes.ts";
import { type BenchContext, GIB, sampleCount } from "./context.ts";
import { type Series, series, timeOnce } from "./samples.ts";

const PAGE_SIZE = 64 * 1024;

/** Calls of each kind one after another, as a program makes them; the first are not counted. */
const IN_A_ROW = 16;
const WARM_CALLS = 4;
/** Rounds in which the engine compiles the code. */
const WARM_ROUNDS = 10;

/**
 * How long the calls of a paged space take the host for 1 GiB of pages, beside the bare
 * calls that map as much. The device writes the entries later, in stream order.
 */
export async function benchPages(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  let size = GIB;
  while (4 * size > c.available) size /= 2;
  const pages = size / PAGE_SIZE;
  const extent = roundUp(MAX_PAGE_SIZE, mb.device.granularity);
  const whole = makeSpace(c, pages);
  const broken = makeSpace(c, pages + MOST_RUNS);
  breakUp(broken, pages);
  const small = makeSpace(c, 2);
  const growing = small.alloc(1, { maxPages: 2 });
  const ns = {
    raw: [] as number[],
    alloc: [] as number[],
    allocRuns: [] as number[],
    fork: [] as number[],
    grow: [] as number[],
  };
  const rounds = sampleCount(c, 40);
  for (let round = 0; round < rounds + WARM_ROUNDS; round++) {
    await c.step(`${pages} pages`);
    const { mapNs, accessNs } = driver.timeVmm(size, extent, 1);
    if (round >= WARM_ROUNDS) ns.raw.push(mapNs[0]! + accessNs[0]!);
    for (let i = 0; i < IN_A_ROW; i++) {
      const one = timeCall(() => whole.alloc(pages));
      one.range.free();
      const many = timeCall(() => broken.alloc(pages));
      const fork = timeCall(() => many.range.fork());
      fork.range.free();
      many.range.free();
      const grow = timeOnce(() => growing.grow());
      growing.shrink();
      if (round < WARM_ROUNDS || i < WARM_CALLS) continue;
      ns.alloc.push(one.ns);
      ns.allocRuns.push(many.ns);
      ns.fork.push(fork.ns);
      ns.grow.push(grow);
    }
    mb.synchronize();
  }
  for (const space of [whole, broken, small]) space.close();
  mb.trim();
  const group = "paged space";
  return [
    series(group, "raw map and set access", size, ns.raw),
    series(group, "alloc, one run of frames", size, ns.alloc),
    series(group, `alloc, ${MOST_RUNS} runs`, size, ns.allocRuns),
    series(group, `fork, ${MOST_RUNS} runs`, size, ns.fork),
    series(group, "grow by a page", PAGE_SIZE, ns.grow),
  ];
}

/** A space with memory for all of its frames, and room in its table for three ranges. */
function makeSpace(c: BenchContext, frames: number): PagedSpace {
  const images = {
    entries: c.images("paging_entries"),
    copy: c.images("paging_copy"),
  };
  return new PagedSpace(c.mb, images, {
    pages: 3 * frames,
    pageSize: PAGE_SIZE,
    maxFrames: frames,
    frames,
    name: "benchmark",
  });
}

/** Leaves the free frames in runs, with a frame in use between each two. */
function breakUp(space: PagedSpace, pages: number): void {
  const runs: PagedRange[] = [];
  for (let i = 0; i < MOST_RUNS; i++) {
    runs.push(space.alloc(pages / MOST_RUNS));
    space.alloc(1);
  }
  for (const run of runs) run.free();
}

function timeCall(
  call: () => PagedRange,
): { range: PagedRange; ns: number } {
  let range: PagedRange | undefined;
  const ns = timeOnce(() => {
    range = call();
  });
  return { range: range!, ns };
}
