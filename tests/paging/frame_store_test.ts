import { assert, assertEquals, assertThrows } from "@std/assert";
import { OutOfMemoryError } from "../../lib/errors.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import type { Piece } from "../../lib/paging/frame_run.ts";
import { FrameStore } from "../../lib/paging/frame_store.ts";
import { assertCode, GRANULE, openGated, openModel } from "../lib/support.ts";
import { Random } from "../model/random.ts";

/** A store of frames of one granule. */
function storeOf(mb: MoonBright, first: number, most: number): FrameStore {
  return new FrameStore(mb, GRANULE, first, most, "store");
}

function framesOf(pieces: readonly Piece[]): number[] {
  return pieces.flatMap(({ run, offset, count }) =>
    Array.from({ length: count }, (_, i) => run.first + offset + i)
  );
}

/** Takes frames and gives their numbers; each is in a run of its own. */
function takeSingly(store: FrameStore, stream: number, count: number) {
  return Array.from(
    { length: count },
    () => framesOf(store.take(stream, 1, false))[0]!,
  );
}

Deno.test("frames lie in one window, neighbours first", () => {
  const { mb } = openModel();
  const store = storeOf(mb, 4, 8);
  assertEquals([store.used, store.backed, store.most], [0, 4, 8]);
  assertEquals(store.addressOf(3) - store.addressOf(0), 3 * GRANULE);
  assertEquals(framesOf(store.take(0, 3, false)), [0, 1, 2]);
  // More memory comes as it is needed; what was there is used too.
  assertEquals(framesOf(store.take(0, 4, false)).sort(), [3, 4, 5, 6]);
  assertEquals([store.used, store.backed], [7, 8]);
  mb.close();
});

Deno.test("what a stream freed last it gets first, without a call of the driver", () => {
  const { mb, gated } = openGated();
  const store = storeOf(mb, 8, 8);
  const stream = mb.createStream().number;
  const frames = takeSingly(store, stream, 8);
  store.give(stream, frames[2]!, 1);
  store.give(stream, frames[6]!, 1);
  store.give(stream, frames[4]!, 1);
  const calls = gated.log.length;
  assertEquals(framesOf(store.take(stream, 2, false)), [
    frames[4]!,
    frames[6]!,
  ]);
  assertEquals(gated.log.length, calls);
  mb.close();
});

Deno.test("frames that one after another come back side by side are one run again", () => {
  const { mb } = openModel();
  const store = storeOf(mb, 8, 8);
  const frames = takeSingly(store, 0, 8);
  for (const frame of frames) store.give(0, frame, 1);
  const pieces = store.take(0, 8, false);
  assertEquals(pieces.length, 1);
  assertEquals(framesOf(pieces), frames);
  mb.close();
});

Deno.test("another stream gets frames once they have passed, else memory, else it waits for them", () => {
  const { mb, gated } = openGated();
  const store = storeOf(mb, 4, 6);
  const [a, b] = [mb.createStream().number, mb.createStream().number];
  assertEquals(framesOf(store.take(a, 4, false)), [0, 1, 2, 3]);
  store.give(a, 0, 4);
  // Two more frames before it waits.
  assertEquals(framesOf(store.take(b, 2, false)), [4, 5]);
  assertEquals(store.backed, 6);
  const { clocks } = mb.allocator.streams;
  assertEquals(clocks[b]!.waited.has(a), false);
  const first = framesOf(store.take(b, 1, false));
  assert(clocks[b]!.waited.has(a));
  assert(first[0]! < 4);
  // From then on the rest can be had as well, without another event.
  const events = gated.log.length;
  framesOf(store.take(b, 3, false));
  assertEquals(gated.log.length, events);
  assertEquals(store.used, 6);
  // What has passed serves at once.
  store.give(b, 4, 2);
  mb.allocator.streams.tick(b);
  gated.pass(clocks[b]!.driverId);
  const waits = clocks[a]!.waited.get(b);
  assertEquals(framesOf(store.take(a, 2, false)), [4, 5]);
  assertEquals(clocks[a]!.waited.get(b), waits);
  mb.close();
});

Deno.test("frames given back after the event that a stream waited for are not in it", () => {
  const { mb } = openGated();
  const store = storeOf(mb, 2, 2);
  const { streams } = mb.allocator;
  const [a, b] = [mb.createStream().number, mb.createStream().number];
  store.take(a, 2, false);
  streams.join(b, a);
  const waited = streams.clocks[b]!.waited.get(a)!;
  store.give(a, 0, 2);
  store.take(b, 2, false);
  assert(streams.clocks[b]!.waited.get(a)! > waited);
  mb.close();
});

Deno.test("frames of a closed stream serve all", () => {
  const { mb } = openModel();
  const store = storeOf(mb, 4, 4);
  const stream = mb.createStream();
  store.take(stream.number, 4, false);
  store.give(stream.number, 0, 3);
  stream.close();
  store.take(0, 2, false);
  assertCode("limit", () => store.take(0, 2, false), "Cannot take 2 frames");
  assertEquals(store.used, 3);
  store.take(0, 1, false);
  mb.close();
});

Deno.test("a store that is full refuses, and takes nothing", () => {
  const { mb } = openModel();
  const store = storeOf(mb, 2, 5);
  store.take(0, 3, false);
  for (const count of [3, 4, 1000]) {
    assertCode("limit", () => store.take(0, count, false), "3 are in use");
    assertEquals([store.used, store.backed], [3, 5]);
  }
  assertEquals(framesOf(store.take(0, 2, false)).length, 2);
  mb.close();
});

Deno.test("under capture nothing is added, but what others have freed is waited for", () => {
  const { mb } = openModel();
  const store = storeOf(mb, 4, 8);
  const b = mb.createStream();
  store.take(0, 4, false);
  store.give(0, 0, 4);
  using graph = b.capture(() => {
    assertCode("limit", () => store.take(b.number, 5, true), "reserve()");
    assertEquals([store.used, store.backed], [0, 4]);
    assertEquals(framesOf(store.take(b.number, 4, true)), [0, 1, 2, 3]);
  });
  assertEquals(store.used, 4);
  graph.close();
  mb.close();
});

Deno.test("frames that a capturing stream has freed are left alone", () => {
  const { mb } = openModel();
  const store = storeOf(mb, 2, 2);
  const [a, b] = [mb.createStream(), mb.createStream()];
  store.take(a.number, 2, false);
  store.give(a.number, 0, 2);
  a.capture(() => {
    assertCode("limit", () => store.take(b.number, 1, false));
    assertEquals(store.used, 0);
  }).close();
  assertEquals(framesOf(store.take(b.number, 2, false)), [0, 1]);
  mb.close();
});

Deno.test("a device that is full: what others have freed still serves", () => {
  const { mb } = openGated();
  const store = storeOf(mb, 4, 100);
  const stream = mb.createStream().number;
  mb.budget = mb.stats().mapped;
  store.take(0, 4, false);
  assertThrows(() => store.take(0, 1, false), OutOfMemoryError);
  assertThrows(() => store.reserve(5), OutOfMemoryError);
  store.give(0, 1, 2);
  assertThrows(() => store.take(stream, 3, false), OutOfMemoryError);
  assertEquals([store.used, store.backed], [2, 4]);
  assertEquals(framesOf(store.take(stream, 2, false)), [1, 2]);
  mb.budget = Infinity;
  assertEquals(framesOf(store.take(stream, 1, false)), [4]);
  mb.close();
});

Deno.test("less memory than usual is got where that is all there is", () => {
  const { mb } = openModel();
  const store = storeOf(mb, 1, 100_000);
  mb.budget = mb.stats().mapped + 3 * GRANULE;
  store.take(0, 3, false);
  assertEquals(store.backed, 3);
  mb.close();
});

Deno.test("closing gives the window back", () => {
  const { mb } = openModel();
  const store = storeOf(mb, 4, 8);
  store.reserve(6);
  store.reserve(2);
  assertEquals(store.backed, 6);
  assertEquals(mb.stats().liveBlocks, 1);
  store.close();
  assertEquals([mb.stats().liveBlocks, mb.stats().live], [0, 0]);
  mb.close();
});

for (const seed of [1, 2, 3]) {
  Deno.test(`no frame is ever had twice, nor before its stream can see it, seed ${seed}`, () => {
    const { mb, gated } = openGated();
    const { streams } = mb.allocator;
    const most = 24;
    const store = storeOf(mb, 3, most);
    const random = new Random(seed);
    const numbers = [0, 1, 2, 3].map((n) => n && mb.createStream().number);
    const owner = new Map<number, number>();
    const freedAt = new Map<number, { stream: number; epoch: number }>();
    for (let step = 0; step < 20_000; step++) {
      const stream = numbers[random.below(4)]!;
      const what = random.below(10);
      if (what < 4) {
        const count = 1 + random.below(6);
        if (owner.size + count > most) {
          assertCode("limit", () => store.take(stream, count, false));
        } else {
          const frames = framesOf(store.take(stream, count, false));
          assertEquals(frames.length, count);
          for (const frame of frames) {
            assert(frame < store.backed && !owner.has(frame));
            const last = freedAt.get(frame);
            assert(
              !last || streams.isVisibleTo(stream, last.stream, last.epoch),
              `step ${step}: frame ${frame} came too early`,
            );
            owner.set(frame, stream);
          }
        }
      } else if (what < 8 && owner.size > 0) {
        const frame = [...owner.keys()][random.below(owner.size)]!;
        const from = owner.get(frame)!;
        owner.delete(frame);
        store.give(from, frame, 1);
        const epoch = streams.clocks[from]!.recorded;
        freedAt.set(frame, { stream: from, epoch });
      } else if (what === 8) streams.tick(stream);
      else gated.pass(streams.clocks[stream]!.driverId, 1 + random.below(3));
      assertEquals(store.used, owner.size);
    }
    mb.close();
  });
}
