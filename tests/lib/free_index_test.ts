import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Blocks, BlockState } from "../../lib/blocks.ts";
import { FreeIndex } from "../../lib/free_index.ts";
import { classOf } from "../../lib/size_classes.ts";

/** An index with one free block per size, and the record of each. */
function indexOf(sizes: readonly number[]) {
  const blocks = new Blocks();
  const index = new FreeIndex(blocks);
  const add = (size: number) => {
    const id = blocks.add(0, size);
    blocks.state[id] = BlockState.FREE;
    blocks.whole[id] = size - size % 4096;
    index.insert(id);
    return id;
  };
  const ids = sizes.map(add);
  index.assertInvariants();
  return { blocks, index, ids, add };
}

Deno.test("an empty index finds nothing", () => {
  const { index } = indexOf([]);
  assertEquals([index.find(512), index.largest(), index.count], [0, 0, 0]);
  assertEquals([...index.ascending(0)], []);
});

Deno.test("an exact fit is preferred to a larger block", () => {
  const { index, ids } = indexOf([8192, 4096, 1024]);
  assertEquals(index.find(4096), ids[1]);
  assertEquals(index.find(512), ids[2]);
  assertEquals(index.find(4608), ids[0]);
  assertEquals(index.find(8704), 0);
});

Deno.test("a block hidden behind many smaller ones of its class is found", () => {
  const size = 2 ** 20;
  const fitting = size + 8 * 512;
  assertEquals(classOf(fitting), classOf(size));
  const { index, ids } = indexOf([
    fitting,
    ...new Array<number>(200).fill(size),
  ]);
  assertEquals(index.find(fitting), ids[0]);
});

Deno.test("removing the last block of a class clears its marks", () => {
  const { index, ids } = indexOf([512, 2 ** 30, 2 ** 39]);
  index.remove(ids[2]!);
  index.assertInvariants();
  assertEquals(index.largest(), ids[1]);
  index.remove(ids[1]!);
  index.remove(ids[0]!);
  index.assertInvariants();
  assertEquals([index.bytes, index.wholeBytes, index.largest()], [0, 0, 0]);
});

Deno.test("invariants notice a block that is not free or has changed size", () => {
  const { index, blocks, ids } = indexOf([4096]);
  blocks.state[ids[0]!] = BlockState.LIVE;
  assertThrows(() => index.assertInvariants(), Error, "not free");
  blocks.state[ids[0]!] = BlockState.FREE;
  blocks.size[ids[0]!] = 65536;
  assertThrows(() => index.assertInvariants(), Error, "class");
});

const blockSizes = fc.oneof(
  fc.integer({ min: 1, max: 100 }),
  fc.integer({ min: 1, max: 2 ** 31 }),
  // Several of one class, which differ a little.
  fc.integer({ min: 0, max: 40 }).map((more) => 2 ** 11 + more),
).map((units) => units * 512);

Deno.test("an index agrees with a sorted list", () => {
  const command = fc.record({
    kind: fc.constantFrom("insert", "insert", "remove", "find", "resize"),
    size: blockSizes,
    which: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 120 }), (commands) => {
      const { index, blocks, add } = indexOf([]);
      const ids: number[] = [];
      for (const { kind, size, which } of commands) {
        if (kind === "insert") ids.push(add(size));
        else if (kind === "remove" && ids.length > 0) {
          const [id] = ids.splice(which % ids.length, 1);
          index.remove(id!);
          blocks.remove(id!);
        } else if (kind === "resize" && ids.length > 0) {
          index.resize(ids[which % ids.length]!, size, size - size % 4096);
        } else {
          assertTightest(index, blocks, ids, size);
        }
        index.assertInvariants();
        const sizes = ids.map((id) => blocks.size[id]!);
        assertEquals(index.count, ids.length);
        assertEquals(index.bytes, sizes.reduce((sum, one) => sum + one, 0));
        assertEquals(
          blocks.size[index.largest()],
          Math.max(0, ...sizes),
        );
        const listed = [...index.ascending(size)];
        assertEquals(
          [...listed].sort((a, b) => a - b),
          ids.filter((id) => blocks.size[id]! >= size).sort((a, b) => a - b),
        );
        const classes = listed.map((id) => classOf(blocks.size[id]!));
        assert(classes.every((one, at) => at === 0 || classes[at - 1]! <= one));
      }
    }),
    { numRuns: 200 },
  );
});

/** A block that fits is found whenever there is one, from the lowest class that can have it. */
function assertTightest(
  index: FreeIndex,
  blocks: Blocks,
  ids: readonly number[],
  size: number,
): void {
  const fitting = ids.map((id) => blocks.size[id]!)
    .filter((one) => one >= size).sort((a, b) => a - b);
  const found = index.find(size);
  assertEquals(found !== 0, fitting.length > 0);
  if (found === 0) return;
  const got = blocks.size[found]!;
  assert(got >= size);
  const ofClass = (one: number) =>
    ids.filter((id) => classOf(blocks.size[id]!) === classOf(one)).length;
  const tightest = fitting[0]!;
  const next = fitting.find((one) => classOf(one) > classOf(size)) ?? tightest;
  // A long list of the size's own class is given up for the next class.
  const giveUp = ofClass(size) > 32 && classOf(tightest) === classOf(size);
  assert(classOf(got) <= classOf(giveUp ? next : tightest));
  if (ofClass(got) <= 32 && !giveUp) assertEquals(got, tightest);
}
