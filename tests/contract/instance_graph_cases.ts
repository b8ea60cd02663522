import { assert, assertEquals } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import {
  assertFailsWith,
  type InstanceCase,
  preload,
} from "./instance_harness.ts";

/** The bytes of a block, which all must be the same; waits for its stream. */
function valueOf(block: Block): number {
  const bytes = block.read();
  const [first] = bytes;
  assert(bytes.every((byte) => byte === first), "the bytes differ");
  return first!;
}

/** Takes all memory that the budget leaves, in blocks that each hold a value of their own. */
function fillUp(mb: MoonBright, size: number): Block[] {
  const blocks: Block[] = [];
  for (;;) {
    try {
      blocks.push(mb.alloc(size));
    } catch {
      break;
    }
    blocks.at(-1)!.fill(blocks.length % 200);
  }
  return blocks;
}

function assertUnharmed(blocks: readonly Block[]): void {
  blocks.forEach((block, at) => assertEquals(valueOf(block), (at + 1) % 200));
}

/** Graphs and the memory of the blocks that they use. */
export const graphCases: InstanceCase[] = [
  {
    name:
      "case 18: freed blocks of a graph serve nothing else before it is closed",
    check(bench) {
      const mb = bench.openGranular();
      const { granularity } = mb.device;
      preload(mb, 16);
      mb.budget = mb.stats().mapped + 12 * granularity;
      const stream = mb.createStream();
      const blocks = [1, 2, 3].map((granules) =>
        mb.alloc(granules * granularity, { stream })
      );
      const graph = stream.capture(() =>
        blocks.forEach((block, at) => block.fill(250 + at))
      );
      graph.launch();
      assertEquals(blocks.map(valueOf), [250, 251, 252]);
      for (const block of blocks) block.free();
      const { pending, captured, live } = mb.stats();
      assertEquals([pending, captured], [6 * granularity, 6 * granularity]);
      // Neither reused nor stitched, flushed nor released.
      mb.flush({ wait: true });
      mb.trim();
      const others = fillUp(mb, granularity);
      assertEquals(others.length, 6);
      assertEquals(mb.stats().live, live + 6 * granularity);
      const error = assertFailsWith("out-of-memory", () => mb.alloc(1));
      assert(error.message.includes("used by open graphs"), error.message);
      for (let round = 0; round < 3; round++) {
        graph.launch(round === 1 ? mb.defaultStream : stream);
        mb.synchronize();
        assertUnharmed(others);
      }
      graph.close();
      const more = fillUp(mb, granularity);
      assertEquals(more.length, 6);
      assertUnharmed(others);
      assertUnharmed(more);
      assertEquals(mb.stats().pending, 0);
      for (const block of [...others, ...more]) block.free();
    },
  },
  {
    name:
      "case 18: a closed graph's memory waits for the launches that are under way",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const [stream, other] = [mb.createStream(), mb.createStream()];
      for (let round = 0; round < 4; round++) {
        const block = mb.alloc(2 * granularity, { stream });
        const graph = stream.capture(() => {
          patterns.spin(bench.scale.longKernelMs, stream);
          block.fill(99);
        });
        other.wait(stream.record());
        graph.launch(other);
        // The allocator knows of the launch from the graph alone.
        if (round % 2 === 0) block.free();
        graph.close();
        if (block.live) block.free();
        const next = mb.alloc(2 * granularity, { stream });
        patterns.fill(next, round);
        patterns.checkLate(next, round, `round ${round}`);
        next.free();
      }
      patterns.settle();
    },
  },
  {
    name: "case 18: a block that a graph uses keeps its place and size",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const mb = bench.openGranular();
      const { granularity } = mb.device;
      preload(mb, 8);
      const stream = mb.createStream();
      const plain = mb.alloc(3 * granularity, { stream });
      const growable = mb.alloc(3 * granularity, {
        stream,
        maxSize: 6 * granularity,
      });
      const graph = stream.capture(() => {
        plain.fill(1);
        growable.fill(2);
      });
      for (const block of [plain, growable]) {
        block.resize(granularity);
        assertEquals(block.size, granularity);
        assertEquals(block.capacity, 3 * granularity);
      }
      growable.resize(4 * granularity);
      growable.fill(9);
      mb.budget = mb.stats().mapped + 2 * granularity;
      mb.trim();
      const others = fillUp(mb, granularity);
      graph.launch();
      mb.synchronize();
      assertUnharmed(others);
      assertEquals([plain, growable].map((block) => block.read(1)[0]), [1, 2]);
      assertEquals(
        growable.read(1, { offset: 3 * granularity + 5 })[0],
        9,
      );
      graph.close();
      for (const block of [plain, growable]) {
        block.resize(granularity);
        assertEquals(block.capacity, granularity);
      }
    },
  },
  {
    name:
      "case 18: an address that reaches a kernel as a number is held where it is named",
    check(bench) {
      const mb = bench.openGranular();
      const patterns = bench.patterns(mb);
      const { granularity } = mb.device;
      const stream = mb.createStream();
      const block = mb.alloc(granularity, { stream });
      const graph = stream.capture(() => {
        block.useOn(stream);
        patterns.fill(block, 5, { stream });
      });
      const { address } = block;
      block.free();
      const next = mb.alloc(granularity, { stream });
      assert(next.address !== address);
      patterns.fill(next, 6);
      graph.launch();
      patterns.check(next, 6, "beside the graph");
      patterns.settle();
      graph.close();
      assertEquals(mb.snapshot().blocks.filter((one) => one.captured), []);
      next.free();
    },
  },
];
