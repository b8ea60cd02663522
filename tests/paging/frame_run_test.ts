import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  FrameRun,
  type Piece,
  slicePieces,
} from "../../lib/paging/frame_run.ts";

Deno.test("a run that was never split is counted as a whole", () => {
  const run = new FrameRun(5, 4);
  const freed: number[][] = [];
  const note = (first: number, count: number) => freed.push([first, count]);
  assertEquals([run.run, run.offset], [run, 0]);
  assert(!run.isShared(0, 4));
  run.retain(0, 4);
  assert(run.isShared(0, 4) && run.isShared(2, 1));
  run.release(0, 4, note);
  assertEquals(freed, []);
  assert(!run.isShared(0, 4));
  run.release(0, 4, note);
  assertEquals(freed, [[5, 4]]);
});

Deno.test("frames of a split run are freed in runs of those that nobody has", () => {
  const run = new FrameRun(10, 6);
  const freed: number[][] = [];
  const note = (first: number, count: number) => freed.push([first, count]);
  run.retain(2, 1);
  assert(run.isShared(0, 6) && run.isShared(2, 1) && !run.isShared(0, 2));
  run.release(0, 6, note);
  assertEquals(freed, [[10, 2], [13, 3]]);
  run.release(2, 1, note);
  assertEquals(freed.at(-1), [12, 1]);
});

Deno.test("counts are those of frames counted one by one", () => {
  const size = 9;
  const part = fc.tuple(fc.nat(size - 1), fc.nat(size - 1), fc.boolean())
    .map(([a, b, retain]) => ({
      offset: Math.min(a, b),
      count: Math.abs(a - b) + 1,
      retain,
    }));
  const whole = fc.boolean().map((retain) => ({
    offset: 0,
    count: size,
    retain,
  }));
  fc.assert(fc.property(fc.array(fc.oneof(part, whole)), (steps) => {
    const run = new FrameRun(100, size);
    const naive = Array<number>(size).fill(1);
    for (const { offset, count, retain } of steps) {
      const frames = naive.slice(offset, offset + count);
      // Nobody can use a part with frames that nobody has.
      if (frames.some((references) => references === 0)) continue;
      const expected: number[] = [];
      for (let i = offset; i < offset + count; i++) {
        naive[i]! += retain ? 1 : -1;
        if (naive[i] === 0) expected.push(100 + i);
      }
      const freed: number[] = [];
      let last = -1;
      if (retain) run.retain(offset, count);
      else {
        run.release(offset, count, (first, frames) => {
          assert(first > last, "freed runs that touch are one");
          last = first + frames;
          for (let i = 0; i < frames; i++) freed.push(first + i);
        });
      }
      assertEquals(freed, expected);
      for (let from = 0; from < size; from++) {
        if (naive[from]! > 0) assertEquals(run.referencesAt(from), naive[from]);
        const rest = naive.slice(from);
        assertEquals(
          run.isShared(from, size - from),
          rest.some((references) => references > 1),
        );
      }
      if (naive.every((references) => references === 0)) return;
    }
  }));
});

Deno.test("a former user is kept with its last epoch", () => {
  const run = new FrameRun(0, 2);
  assertEquals(run.formerUsers, undefined);
  run.addFormerUser(3, 1);
  run.addFormerUser(0, 5);
  run.addFormerUser(3, 2);
  assertEquals([...run.formerUsers!], [[3, 2], [0, 5]]);
});

Deno.test("a slice has the frames of its pages", () => {
  const framesOf = (pieces: readonly Piece[]) =>
    pieces.flatMap(({ run, offset, count }) =>
      Array.from({ length: count }, (_, i) => run.first + offset + i)
    );
  const piece = fc.tuple(
    fc.nat(1000),
    fc.nat(5),
    fc.integer({ min: 1, max: 6 }),
  )
    .map(([first, offset, count]): Piece => ({
      run: new FrameRun(first, offset + count),
      offset,
      count,
    }));
  fc.assert(fc.property(
    fc.array(piece),
    fc.nat(40),
    fc.nat(40),
    (pieces, a, b) => {
      const [from, to] = [Math.min(a, b), Math.max(a, b)];
      const slice = slicePieces(pieces, from, to);
      assertEquals(framesOf(slice), framesOf(pieces).slice(from, to));
      for (const { run, offset, count } of slice) {
        assert(count > 0 && offset + count <= run.count);
        assert(pieces.some((whole) => whole.run === run));
      }
    },
  ));
});
