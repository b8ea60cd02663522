/**
 * Every driver call fails, at every place where an operation of a paged space makes it: the
 * error is typed, the table, the figures and all contents are as before, and the operation
 * can be done again.
 */

import { assert, assertEquals } from "@std/assert";
import { openDriver } from "../../ffi/devices.ts";
import { MoonBright } from "../../ffi/moonbright.ts";
import { type ErrorCode, MoonBrightError } from "../../lib/errors.ts";
import { Graph } from "../../lib/graph.ts";
import { PagedRange } from "../../lib/paging/paged_range.ts";
import type { PagedSpace } from "../../lib/paging/paged_space.ts";
import type { Stream } from "../../lib/stream.ts";
import { testBytes } from "../contract/harness.ts";
import { buildFakeCuda } from "../fake/build.ts";
import { FakeCuda } from "../fake/control.ts";
import {
  type FallibleMethod,
  Faults,
  faulty,
} from "../faults/faulty_driver.ts";
import { FAKE_CUDA, PagedBench, UNMEASURED } from "./paged_bench.ts";

const PAGE = 4096;
const { skip } = FAKE_CUDA;
const fakeCuda = skip === undefined ? await buildFakeCuda() : "";

/** A space, and what a scenario puts there. */
interface World {
  bench: PagedBench;
  faults: Faults;
  space: PagedSpace;
  /** Ranges that the scenario prepared; those still live are compared. */
  ranges: PagedRange[];
  graphs: Graph[];
  stream(): Stream;
}

interface Scenario {
  name: string;
  /** Pages and frames of the space; 64 and 48 by default. */
  pages?: number;
  frames?: number;
  /** Frames that have memory at first; all by default. */
  backed?: number;
  /**
   * What a failure may change all the same: the `store` may have grown, the first `range`
   * have got pages of its own and some of the new contents, and `graphs` keep what they
   * were about to write.
   */
  open?: "store" | "range" | "graphs";
  prepare(world: World): () => unknown;
}

/** A range that holds bytes of its own. */
function filled(world: World, pages: number, stream?: Stream): PagedRange {
  const range = world.space.alloc(pages, {
    maxPages: pages + 4,
    ...(stream ? { stream } : {}),
  });
  range.write(testBytes(pages * PAGE, world.ranges.length + 1));
  world.ranges.push(range);
  return range;
}

/** Leaves single free frames, so that many runs are needed. */
function scatterFrames(world: World, frames: number): void {
  const singles = Array.from({ length: frames }, () => world.space.alloc(1));
  singles.forEach((range, at) =>
    at % 2 === 0 ? range.free() : world.ranges.push(range)
  );
}

const SCENARIOS: Scenario[] = [
  {
    name: "allocating",
    prepare: (world) => {
      filled(world, 3);
      return () => world.space.alloc(4, { maxPages: 6 });
    },
  },
  {
    name: "allocating for a stream that is new to the space",
    prepare: (world) => {
      filled(world, 3);
      const stream = world.stream();
      return () => world.space.alloc(4, { stream });
    },
  },
  {
    name: "allocating where only cleared pages are left",
    pages: 16,
    prepare: (world) => {
      const stream = world.stream();
      const range = world.space.alloc(2, { stream });
      filled(world, 10);
      range.free();
      return () => world.space.alloc(2);
    },
  },
  {
    name: "allocating where the store has to grow",
    frames: 40_000,
    pages: 40_000,
    backed: 4,
    open: "store",
    prepare: (world) => {
      filled(world, 3);
      return () => world.space.alloc(600);
    },
  },
  {
    name: "allocating frames that another stream has freed",
    frames: 8,
    prepare: (world) => {
      const stream = world.stream();
      const freed = world.space.alloc(6, { stream });
      filled(world, 2);
      freed.free();
      return () => world.space.alloc(5);
    },
  },
  {
    name: "allocating more runs than a launch holds",
    pages: 512,
    frames: 160,
    prepare: (world) => {
      scatterFrames(world, 160);
      return () => world.space.alloc(80);
    },
  },
  {
    name: "growing",
    prepare: (world) => {
      const range = filled(world, 3);
      return () => range.grow(2);
    },
  },
  {
    name: "shrinking a range that other streams read",
    prepare: (world) => {
      const range = filled(world, 5);
      range.useOn(world.stream());
      range.useOn(world.stream());
      return () => range.shrink(2);
    },
  },
  {
    name: "shrinking a range whose frames were shared with another stream",
    prepare: (world) => {
      const range = filled(world, 5);
      range.fork({ stream: world.stream() }).free();
      return () => range.shrink(2);
    },
  },
  {
    name: "forking",
    prepare: (world) => {
      const range = filled(world, 5);
      return () => range.fork();
    },
  },
  {
    name: "forking to another stream",
    prepare: (world) => {
      const range = filled(world, 5, world.stream());
      const stream = world.stream();
      return () => range.fork({ stream });
    },
  },
  {
    name: "making shared pages writable",
    prepare: (world) => {
      const range = filled(world, 5);
      world.ranges.push(range.fork({ stream: world.stream() }));
      range.useOn(world.stream());
      return () => range.writable(1, 3);
    },
  },
  {
    name: "making pages writable that were shared with another stream",
    prepare: (world) => {
      const range = filled(world, 5);
      const fork = range.fork({ stream: world.stream() });
      fork.free();
      return () => range.writable();
    },
  },
  {
    name: "making more shared runs writable than a launch holds",
    pages: 512,
    frames: 400,
    prepare: (world) => {
      scatterFrames(world, 180);
      const range = world.space.alloc(90);
      world.ranges.push(range, range.fork());
      return () => range.writable();
    },
  },
  {
    name: "forbidding writes",
    prepare: (world) => {
      const range = filled(world, 5);
      range.useOn(world.stream());
      return () => range.protect(true);
    },
  },
  {
    name: "allowing writes where some pages are shared",
    prepare: (world) => {
      const range = filled(world, 6);
      const fork = range.fork({ stream: world.stream() });
      world.ranges.push(fork);
      range.writable(0, 2);
      fork.writable(4, 2);
      range.protect(true);
      return () => range.protect(false);
    },
  },
  {
    name: "allowing writes in more stretches than a launch holds",
    pages: 512,
    frames: 400,
    prepare: (world) => {
      const range = filled(world, 150);
      world.ranges.push(range.fork());
      for (let page = 0; page < 150; page += 2) range.writable(page, 1);
      range.protect(true);
      return () => range.protect(false);
    },
  },
  {
    name: "writing shared pages from the host",
    open: "range",
    prepare: (world) => {
      const range = filled(world, 4);
      world.ranges.push(range.fork());
      const stream = world.stream();
      return () => range.write(testBytes(2 * PAGE, 77), { offset: 9, stream });
    },
  },
  {
    name: "reading on another stream",
    prepare: (world) => {
      const range = filled(world, 4);
      const stream = world.stream();
      return () => void range.read(3 * PAGE, { offset: 5, stream });
    },
  },
  {
    name: "noting a use on another stream",
    prepare: (world) => {
      const range = filled(world, 4);
      const stream = world.stream();
      return () => range.useOn(stream);
    },
  },
  {
    name: "freeing a range that other streams read",
    prepare: (world) => {
      const range = filled(world, 4);
      range.useOn(world.stream());
      range.useOn(world.stream());
      return () => range.free();
    },
  },
  {
    name: "freeing the last of forks on several streams",
    prepare: (world) => {
      const range = filled(world, 4);
      for (let i = 0; i < 2; i++) range.fork({ stream: world.stream() }).free();
      return () => range.free();
    },
  },
  {
    name: "freeing so much that a clearing is due",
    prepare: (world) => {
      filled(world, 2, world.stream());
      const range = filled(world, 12, world.stream());
      return () => range.free();
    },
  },
  {
    name: "clearing",
    prepare: (world) => {
      filled(world, 2, world.stream());
      world.space.alloc(3, { stream: world.stream() }).free();
      return () => world.space.clear();
    },
  },
  {
    name: "reserving frames",
    frames: 40_000,
    pages: 1000,
    backed: 4,
    prepare: ({ space }) => () => space.reserve(20_000),
  },
  {
    name: "changing ranges under capture",
    open: "graphs",
    prepare: (world) => {
      const stream = world.stream();
      const range = filled(world, 4, stream);
      const shared = range.fork();
      world.ranges.push(shared);
      return () =>
        stream.capture(() => {
          world.space.alloc(3, { stream }).free();
        });
    },
  },
  {
    name: "forgetting graphs",
    prepare: (world) => {
      const stream = world.stream();
      const other = world.stream();
      const range = filled(world, 4, stream);
      range.fork({ stream: other }).free();
      const inside: PagedRange[] = [];
      const graph = stream.capture(() => {
        inside.push(world.space.alloc(3, { stream }));
        range.protect(true);
      });
      graph.launch();
      for (const one of inside) {
        one.useOn(other);
        one.free();
      }
      range.useOn(other);
      range.free();
      graph.close();
      return () => world.space.forgetGraphs();
    },
  },
  {
    name: "closing the space",
    pages: 512,
    frames: 160,
    prepare: (world) => {
      filled(world, 4, world.stream());
      scatterFrames(world, 150);
      // From a list in page-locked memory.
      world.space.alloc(72).free();
      return () => world.space.close();
    },
  },
];

function open({ pages = 64, frames = 48, backed }: Partial<Scenario>): World {
  const faults = new Faults();
  const bench = new PagedBench({
    ...FAKE_CUDA,
    open(options) {
      using fake = new FakeCuda(fakeCuda);
      fake.seed(1);
      const driver = openDriver({
        device: "cuda:0",
        vendorLibrary: fakeCuda,
      });
      return new MoonBright(faulty(driver, faults), options);
    },
  }, { costs: UNMEASURED });
  const space = bench.space({
    pages,
    maxFrames: frames,
    frames: backed ?? frames,
  });
  return {
    bench,
    faults,
    space,
    ranges: [],
    graphs: [],
    stream: () => bench.mb.createStream(),
  };
}

/** Figures that a failed operation must leave as they were. */
function figuresOf({ bench, space, ranges }: World, open: Scenario["open"]) {
  const {
    launches: _launches,
    clearings: _clearings,
    retiredPages: _retired,
    backedFrames,
    ...stats
  } = space.stats();
  const { liveBlocks, live } = bench.mb.stats();
  return {
    stats: open === "range" || open === "graphs" ? undefined : stats,
    liveBlocks,
    ...(open !== "store" && { live, backedFrames }),
    ranges: ranges.map((range, at) =>
      range.live && {
        firstPage: range.firstPage,
        pages: range.pages,
        version: open === "range" && at === 0 ? undefined : range.version,
      }
    ),
  };
}

/** Of whole pages of bytes, short enough to be shown. */
function digest(bytes: Uint8Array): number {
  let sum = 0x811c9dc5;
  for (const word of new Uint32Array(bytes.slice().buffer)) {
    sum = Math.imul(sum ^ word, 0x01000193);
  }
  return sum;
}

/** What the device must hold as before. Waits for it. */
function memoryOf({ bench, space, ranges }: World, open: Scenario["open"]) {
  const same = open === "range" ? ranges.slice(1) : ranges;
  const entries = bench.entries(space);
  return same.filter(({ live }) => live).map((range) => ({
    entries: entries.slice(range.firstPage, range.firstPage + range.maxPages),
    contents: digest(range.read()),
  }));
}

/** Frees and closes everything: nothing may be left. */
function assertNothingLeaks(
  { bench, faults, space, ranges, graphs }: World,
): void {
  const { mb } = bench;
  for (const graph of graphs) graph.close();
  if (!space.closed) {
    for (const range of ranges) range[Symbol.dispose]();
    space.forgetGraphs();
    mb.synchronize();
    // Frames that could not be given back at once come with the next request.
    space.alloc(1).free();
    assertEquals(space.stats().usedFrames, 0);
    space.clear();
    assertEquals(space.stats().retiredPages, 0);
    space.close();
  }
  const { liveBlocks } = mb.stats();
  const { holdings } = faults;
  const { modules, pinned, captures } = holdings;
  assertEquals(
    { liveBlocks, modules, pinned, captures, graphs: holdings.graphs },
    { liveBlocks: 0, modules: 0, pinned: 0, captures: 0, graphs: 0 },
  );
  mb.trim();
  assertEquals(faults.holdings.mapped, mb.stats().anchor);
  bench.finish();
}

function attempt(
  world: World,
  body: () => unknown,
): MoonBrightError | undefined {
  try {
    const result = body();
    if (result instanceof PagedRange) world.ranges.push(result);
    if (result instanceof Graph) world.graphs.push(result);
    return undefined;
  } catch (error) {
    assert(error instanceof MoonBrightError, String(error));
    assert(error.message.startsWith("Cannot "), error.message);
    return error;
  } finally {
    world.bench.mb.allocator.assertInvariants();
  }
}

/**
 * Does a scenario with a call that fails; returns whether it was made. `settled`: compares
 * what the device holds too, for which all work before has to be waited for.
 */
function failAndRetry(
  scenario: Scenario,
  method: FallibleMethod | "any",
  kth: number,
  code: ErrorCode,
  { lasting = false, settled = false },
): boolean {
  const world = open(scenario);
  using _bench = world.bench;
  const body = scenario.prepare(world);
  const memory = settled ? memoryOf(world, scenario.open) : undefined;
  const figures = figuresOf(world, scenario.open);
  world.faults.fail(method, kth, code, lasting);
  const failure = attempt(world, body);
  const fired = world.faults.clear();
  if (failure) {
    assert(fired, failure.message);
    assertEquals(failure.code, code);
    if (!world.space.closed) {
      assertEquals(figuresOf(world, scenario.open), figures);
      if (settled) assertEquals(memoryOf(world, scenario.open), memory);
    }
    assertEquals(attempt(world, body), undefined);
  }
  assertNothingLeaks(world);
  return fired;
}

function methodsOf(scenario: Scenario): FallibleMethod[] {
  const world = open(scenario);
  using _bench = world.bench;
  const body = scenario.prepare(world);
  world.faults.calls.clear();
  body();
  return [...world.faults.calls.keys()];
}

for (const scenario of SCENARIOS) {
  const test = (name: string, fn: () => void) =>
    Deno.test({
      name: `paged faults: ${scenario.name}: ${name}`,
      ignore: skip !== undefined,
      fn,
    });

  for (const code of ["driver", "out-of-memory"] satisfies ErrorCode[]) {
    test(`any call fails with "${code}"`, () => {
      for (const settled of [false, true]) {
        let kth = 1;
        while (failAndRetry(scenario, "any", kth, code, { settled })) kth++;
        assert(settled || kth > 1, "the operation makes no call");
      }
    });

    test(`a kind of call fails with "${code}" from then on`, () => {
      for (const method of methodsOf(scenario)) {
        let kth = 1;
        while (failAndRetry(scenario, method, kth, code, { lasting: true })) {
          kth++;
        }
        assert(kth > 1, `${method} is not called`);
      }
    });
  }

  test("the device is lost at any call", () => {
    for (let kth = 1, fired = true; fired; kth++) {
      const world = open(scenario);
      using _bench = world.bench;
      const body = scenario.prepare(world);
      world.faults.fail("any", kth, "lost");
      const failure = attempt(world, body);
      fired = world.faults.clear();
      if (failure) assertEquals(failure.code, "lost");
      world.bench.mb.close();
      FAKE_CUDA.closed?.();
    }
  });
}

Deno.test({
  name: "paged faults: making a space: any call fails, and nothing is left",
  ignore: skip !== undefined,
  fn() {
    for (const code of ["driver", "out-of-memory"] satisfies ErrorCode[]) {
      for (let kth = 1, fired = true; fired; kth++) {
        const world = open({});
        using bench = world.bench;
        world.space.close();
        const { faults } = world;
        faults.fail("any", kth, code);
        let made: PagedSpace | undefined;
        const failure = attempt(world, () => {
          made = bench.space({ pages: 16, maxFrames: 8 });
        });
        fired = faults.clear();
        if (failure) {
          assertEquals(failure.code, code);
          assertNothingLeaks(world);
        } else made!.close();
      }
    }
  },
});
