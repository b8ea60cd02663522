/**
 * Every public operation of an instance, each prepared so that it takes one way through the
 * allocator: what the tests let the driver fail in.
 *
 * @module
 */

import type { Block } from "../../lib/block.ts";
import type { Kernel } from "../../lib/kernel.ts";
import type { MoonBright, MoonBrightOptions } from "../../lib/moonbright.ts";
import { GRANULE } from "../lib/support.ts";
import { modelImage } from "../model/kernels.ts";

/** One operation and what has to be there for it. */
export interface Operation {
  /** Shown in the tests' names. */
  name: string;
  /** How the instance is opened. */
  options?: MoonBrightOptions;
  /**
   * Whether a failure leaves all memory as it was. Otherwise a relief that came before it,
   * such as a flush, stays done; live blocks are as they were all the same.
   */
  unchanged: boolean;
  /** Prepares an instance; returns the operation. */
  prepare(mb: MoonBright): () => unknown;
}

/** Blocks of a granule each, or of more. */
function blocksOf(mb: MoonBright, count: number, granules = 1): Block[] {
  return Array.from({ length: count }, () => mb.alloc(granules * GRANULE));
}

/** Frees every other block, so that only stitching can serve more than one granule. */
function makeHoles(blocks: Block[]): void {
  blocks.forEach((block, index) => index % 2 === 0 && block.free());
}

function patternKernel(mb: MoonBright): Kernel {
  return mb.loadModule(modelImage).kernel("mb_pattern_fill");
}

/** Operations that call the driver. */
export const OPERATIONS: readonly Operation[] = [
  {
    name: "an allocation that grows",
    unchanged: true,
    prepare: (mb) => {
      blocksOf(mb, 1, 8);
      return () => mb.alloc(5 * GRANULE);
    },
  },
  {
    name: "an allocation that grows ahead",
    options: {
      policy: "latency",
      growth: { least: 4 * GRANULE, ahead: 3 * GRANULE },
    },
    unchanged: true,
    prepare: (mb) => {
      blocksOf(mb, 1, 8);
      return () => mb.alloc(5 * GRANULE);
    },
  },
  {
    name: "an allocation that extends",
    unchanged: true,
    prepare: (mb) => {
      mb.alloc(512);
      return () => mb.alloc(3 * GRANULE);
    },
  },
  {
    name: "an allocation that stitches",
    unchanged: true,
    options: { budget: 8 * GRANULE },
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      return () => mb.alloc(4 * GRANULE);
    },
  },
  {
    name: "an allocation that stitches and grows",
    unchanged: true,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      return () => mb.alloc(7 * GRANULE, { name: "both" });
    },
  },
  {
    name: "an allocation with a flush due",
    unchanged: false,
    options: { maxRetired: 0 },
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      mb.alloc(4 * GRANULE);
      return () => mb.alloc(6 * GRANULE);
    },
  },
  {
    name: "an allocation that has to flush for addresses",
    unchanged: false,
    options: { addressSpace: 11 * GRANULE, budget: 8 * GRANULE },
    prepare: (mb) => {
      const blocks = blocksOf(mb, 8);
      for (const at of [0, 1, 3]) blocks[at]!.free();
      // Retires three mappings, two of them side by side.
      mb.alloc(3 * GRANULE);
      for (const at of [5, 7]) blocks[at]!.free();
      return () => mb.alloc(2 * GRANULE);
    },
  },
  {
    name: "an allocation of a growable block",
    unchanged: true,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      return () => mb.alloc(6 * GRANULE, { maxSize: 9 * GRANULE });
    },
  },
  {
    name: "an allocation of a growable block that releases for addresses",
    unchanged: false,
    options: { addressSpace: 12 * GRANULE },
    prepare: (mb) => {
      mb.alloc(8 * GRANULE).free();
      return () => mb.alloc(2 * GRANULE, { maxSize: 10 * GRANULE });
    },
  },
  {
    name: "an allocation that takes over what another stream has finished",
    unchanged: false,
    prepare: (mb) => {
      const stream = mb.createStream();
      mb.alloc(4 * GRANULE, { stream }).free();
      stream.record();
      return () => mb.alloc(4 * GRANULE);
    },
  },
  {
    name: "an allocation under pressure from another stream and a pending free",
    unchanged: false,
    options: { budget: 8 * GRANULE },
    prepare: (mb) => {
      const stream = mb.createStream();
      mb.alloc(GRANULE);
      mb.alloc(3 * GRANULE, { stream }).free();
      const shared = mb.alloc(4 * GRANULE);
      shared.useOn(stream);
      shared.free();
      return () => mb.alloc(7 * GRANULE);
    },
  },
  {
    name: "growing at the frontier",
    unchanged: true,
    prepare: (mb) => {
      const blocks = blocksOf(mb, 8);
      makeHoles(blocks);
      return () => blocks.at(-1)!.resize(6 * GRANULE);
    },
  },
  {
    name: "growing over a free rest at the frontier",
    unchanged: true,
    prepare: (mb) => {
      blocksOf(mb, 8);
      const block = mb.alloc(GRANULE + 512);
      return () => block.resize(5 * GRANULE);
    },
  },
  {
    name: "growing a growable block",
    unchanged: true,
    prepare: (mb) => {
      blocksOf(mb, 1, 8);
      const block = mb.alloc(GRANULE, { maxSize: 12 * GRANULE });
      return () => block.resize(10 * GRANULE);
    },
  },
  {
    name: "growing a growable block over what it gave up",
    unchanged: false,
    prepare: (mb) => {
      blocksOf(mb, 1, 16);
      const block = mb.alloc(6 * GRANULE, { maxSize: 12 * GRANULE });
      block.resize(GRANULE);
      mb.alloc(2 * GRANULE);
      mb.synchronize();
      return () => block.resize(10 * GRANULE);
    },
  },
  {
    name: "shrinking a block in use on another stream",
    unchanged: true,
    prepare: (mb) => {
      const block = mb.alloc(4 * GRANULE);
      block.useOn(mb.createStream());
      return () => block.resize(512);
    },
  },
  {
    name: "shrinking a growable block in use on two other streams",
    unchanged: true,
    prepare: (mb) => {
      const block = mb.alloc(4 * GRANULE, { maxSize: 8 * GRANULE });
      block.useOn(mb.createStream());
      block.useOn(mb.createStream());
      return () => block.resize(512);
    },
  },
  {
    name: "noting a use on another stream",
    unchanged: true,
    prepare: (mb) => {
      const block = mb.alloc(GRANULE);
      const stream = mb.createStream();
      return () => block.useOn(stream);
    },
  },
  {
    name: "freeing a block in use on other streams",
    unchanged: true,
    prepare: (mb) => {
      const block = mb.alloc(GRANULE, { name: "shared", maxSize: 2 * GRANULE });
      block.useOn(mb.createStream());
      block.useOn(mb.createStream());
      return () => block.free();
    },
  },
  {
    name: "freeing a block in use on another stream by its address, on a third",
    unchanged: true,
    prepare: (mb) => {
      const block = mb.alloc(GRANULE);
      block.useOn(mb.createStream());
      const third = mb.createStream();
      return () => mb.blockAt(block.address).free(third);
    },
  },
  {
    name: "a flush of what has passed",
    unchanged: true,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      mb.alloc(4 * GRANULE);
      mb.synchronize();
      return () => mb.flush();
    },
  },
  {
    name: "a flush that waits",
    unchanged: true,
    prepare: (mb) => {
      makeHoles(blocksOf(mb, 8));
      mb.alloc(4 * GRANULE);
      return () => mb.flush({ wait: true });
    },
  },
  {
    name: "a trim that waits",
    unchanged: false,
    prepare: (mb) => {
      const stream = mb.createStream();
      makeHoles(blocksOf(mb, 8));
      mb.alloc(2 * GRANULE, { stream }).free();
      return () => mb.trim();
    },
  },
  {
    name: "a trim of what has passed",
    unchanged: false,
    prepare: (mb) => {
      const stream = mb.createStream();
      makeHoles(blocksOf(mb, 8));
      mb.alloc(2 * GRANULE, { stream }).free();
      mb.synchronize();
      return () => mb.trim({ wait: false });
    },
  },
  {
    name: "waiting for the device",
    unchanged: true,
    prepare: (mb) => {
      mb.createStream();
      return () => mb.synchronize();
    },
  },
  {
    name: "making a stream",
    unchanged: true,
    prepare: (mb) => () => mb.createStream(),
  },
  {
    name: "making a stream where one was closed",
    unchanged: true,
    prepare: (mb) => {
      mb.createStream().close();
      return () => mb.createStream();
    },
  },
  {
    name: "waiting for a stream",
    unchanged: true,
    prepare: (mb) => {
      const stream = mb.createStream();
      return () => stream.synchronize();
    },
  },
  {
    name: "reading a stream's handle and state",
    unchanged: true,
    prepare: (mb) => {
      const stream = mb.createStream();
      return () => [stream.unsafeHandle, stream.capturing];
    },
  },
  {
    name: "closing a stream",
    unchanged: false,
    prepare: (mb) => {
      const stream = mb.createStream();
      mb.alloc(GRANULE, { stream });
      mb.alloc(GRANULE, { stream }).free();
      return () => stream.close();
    },
  },
  {
    name: "making an event",
    unchanged: true,
    prepare: (mb) => () => mb.createEvent({ timing: true }),
  },
  {
    name: "recording a new event",
    unchanged: true,
    prepare: (mb) => {
      const stream = mb.createStream();
      return () => stream.record();
    },
  },
  {
    name: "recording, asking and waiting for an event",
    unchanged: true,
    prepare: (mb) => {
      const [stream, other] = [mb.createStream(), mb.createStream()];
      const [start, end] = [stream, stream].map((stream) =>
        stream.record({ timing: true })
      );
      return () => {
        end!.record(stream);
        other.wait(end!);
        void end!.passed;
        end!.synchronize();
        end!.elapsedMsSince(start!);
      };
    },
  },
  {
    name: "closing an event",
    unchanged: true,
    prepare: (mb) => {
      const event = mb.createEvent();
      return () => event.close();
    },
  },
  {
    name: "writing, filling and reading a block on another stream",
    unchanged: true,
    prepare: (mb) => {
      const block = mb.alloc(GRANULE);
      const stream = mb.createStream();
      return () => {
        block.write(new Uint8Array(600), { stream });
        block.fill(7, { stream, offset: 600, bytes: 8 });
        block.read(608, { stream });
      };
    },
  },
  {
    name: "loading a module",
    unchanged: true,
    prepare: (mb) => () => mb.loadModule(modelImage),
  },
  {
    name: "finding a kernel",
    unchanged: true,
    prepare: (mb) => {
      const module = mb.loadModule(modelImage);
      return () => module.kernel("mb_empty");
    },
  },
  {
    name: "unloading a module",
    unchanged: true,
    prepare: (mb) => {
      const module = mb.loadModule(modelImage);
      module.kernel("mb_empty");
      return () => module.close();
    },
  },
  {
    name: "launching a kernel on another stream than its blocks'",
    unchanged: true,
    prepare: (mb) => {
      const kernel = patternKernel(mb);
      const [block, other] = [mb.alloc(GRANULE), mb.alloc(GRANULE)];
      const stream = mb.createStream();
      return () =>
        [block, other].forEach((block) =>
          kernel.launch({ grid: [1], block: [32], stream }, [
            block,
            { u64: 8n },
            { u64: 1n },
          ])
        );
    },
  },
  {
    name: "capturing a graph",
    unchanged: true,
    prepare: (mb) => {
      const kernel = patternKernel(mb);
      const stream = mb.createStream();
      const block = mb.alloc(GRANULE, { stream });
      return () =>
        stream.capture(() => {
          block.fill(1);
          kernel.launch({ grid: [1], block: [32], stream }, [
            block,
            { u64: 8n },
            { u64: 1n },
          ]);
        });
    },
  },
  {
    name: "launching a graph on two streams",
    unchanged: true,
    prepare: (mb) => {
      const stream = mb.createStream();
      const block = mb.alloc(GRANULE, { stream });
      const graph = stream.capture(() => block.fill(1));
      return () => {
        graph.launch();
        graph.launch(mb.defaultStream);
        return graph;
      };
    },
  },
  {
    name: "allocating and freeing during a capture",
    unchanged: false,
    prepare: (mb) => {
      const [stream, other] = [mb.createStream(), mb.createStream()];
      const kept = mb.alloc(2 * GRANULE, { stream: other });
      return () =>
        stream.capture(() => {
          mb.alloc(3 * GRANULE, { stream }).free();
          mb.alloc(2 * GRANULE, { stream: other }).free();
          kept.useOn(mb.defaultStream);
          mb.trim({ wait: false });
        });
    },
  },
  {
    name: "closing a stream while a block of it is used by a graph",
    unchanged: false,
    prepare: (mb) => {
      const stream = mb.createStream();
      const block = mb.alloc(GRANULE, { stream });
      const graph = stream.capture(() => block.fill(1));
      graph.launch();
      return () => {
        stream.close();
        return graph;
      };
    },
  },
  {
    name: "closing a graph",
    unchanged: true,
    prepare: (mb) => {
      const stream = mb.createStream();
      const [kept, freed] = [1, 2].map(() => mb.alloc(GRANULE, { stream }));
      const graph = stream.capture(() => {
        kept!.fill(1);
        freed!.fill(1);
      });
      graph.launch(mb.defaultStream);
      freed!.free();
      return () => graph.close();
    },
  },
];

/** Operations that make no driver call: they can't fail by one. */
export const QUIET_OPERATIONS: readonly Omit<Operation, "unchanged">[] = [
  {
    name: "an allocation that reuses",
    prepare: (mb) => {
      mb.alloc(3 * GRANULE).free();
      return () => mb.alloc(2 * GRANULE);
    },
  },
  {
    name: "an empty block",
    prepare: (mb) => () => mb.alloc(0).free(),
  },
  {
    name: "freeing a block",
    prepare: (mb) => {
      const block = mb.alloc(2 * GRANULE, { name: "mine" });
      return () => block.free();
    },
  },
  {
    name: "freeing a block on another stream",
    prepare: (mb) => {
      const block = mb.alloc(600);
      const stream = mb.createStream();
      return () => block.free(stream);
    },
  },
  {
    name: "freeing a growable block",
    prepare: (mb) => {
      const block = mb.alloc(3 * GRANULE, { maxSize: 8 * GRANULE });
      block.resize(GRANULE);
      return () => block.free();
    },
  },
  {
    name: "finding and freeing by address",
    prepare: (mb) => {
      const { address } = mb.alloc(600);
      return () => mb.free(address);
    },
  },
  {
    name: "growing over a free neighbour, and shrinking",
    prepare: (mb) => {
      const [block, next] = [mb.alloc(600), mb.alloc(2048)];
      next.free();
      return () => {
        block.resize(2048);
        block.resize(1);
      };
    },
  },
  {
    name: "reviving what a growable block gave up",
    prepare: (mb) => {
      const block = mb.alloc(4 * GRANULE, { maxSize: 8 * GRANULE });
      return () => {
        block.resize(GRANULE);
        block.resize(4 * GRANULE);
      };
    },
  },
  {
    name: "figures and snapshots",
    prepare: (mb) => {
      mb.alloc(600);
      return () => [mb.stats(), mb.snapshot(), mb.budget = 2 ** 20];
    },
  },
];
