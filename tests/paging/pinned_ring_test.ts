import { assert, assertEquals } from "@std/assert";
import { PinnedRing } from "../../lib/paging/pinned_ring.ts";
import { testBytes } from "../contract/harness.ts";
import { type GatedDriver, openGated } from "../lib/support.ts";
import { Random } from "../model/random.ts";

const CHUNK = 1024 ** 2;

/** Counts page-locked memory from now on. */
function countPinned(driver: GatedDriver): () => number {
  let live = 0;
  const { allocPinned, freePinned } = driver;
  driver.allocPinned = (bytes) => {
    live++;
    return allocPinned.call(driver, bytes);
  };
  driver.freePinned = (address) => {
    live--;
    freePinned.call(driver, address);
  };
  return () => live;
}

function pinnedBytes(driver: GatedDriver, address: number, length: number) {
  const bytes = new Uint8Array(length);
  driver.readPinned(bytes, address);
  return bytes;
}

Deno.test("lists lie one after another, at multiples of 16", () => {
  const { mb, gated } = openGated();
  const count = countPinned(gated);
  const ring = new PinnedRing(mb);
  const addresses = [1, 16, 17, 8].map((length) =>
    ring.write(testBytes(length, length), 0)
  );
  const [first] = addresses as [number];
  assertEquals(addresses.map((address) => address - first), [0, 16, 32, 64]);
  assertEquals(first % 16, 0);
  assertEquals(pinnedBytes(gated, first + 32, 17), testBytes(17, 17));
  assertEquals(count(), 1);
  ring.close();
  assertEquals(count(), 0);
  mb.close();
});

Deno.test("a list longer than usual gets memory of its own", () => {
  const { mb, gated } = openGated();
  const count = countPinned(gated);
  const ring = new PinnedRing(mb);
  const long = testBytes(3 * CHUNK + 8, 1);
  ring.write(testBytes(8, 2), 0);
  const address = ring.write(long, 0);
  assertEquals(pinnedBytes(gated, address, long.length), long);
  assertEquals(count(), 2);
  ring.close();
  assertEquals(count(), 0);
  mb.close();
});

Deno.test("memory is used again once every stream that reads it has passed", () => {
  const { mb, gated } = openGated();
  const count = countPinned(gated);
  const ring = new PinnedRing(mb);
  const { streams } = mb.allocator;
  const [a, b] = [mb.createStream().number, mb.createStream().number];
  const half = testBytes(CHUNK / 2, 1);
  const first = ring.write(half, a);
  ring.write(half, b);
  // Full: the next one needs memory, for neither has passed.
  ring.write(half, a);
  ring.write(half, a);
  assertEquals(count(), 2);
  gated.pass(streams.clocks[a]!.driverId);
  ring.write(half, a);
  assertEquals(count(), 3);
  gated.pass(streams.clocks[a]!.driverId);
  gated.pass(streams.clocks[b]!.driverId);
  ring.write(half, a);
  const again = ring.write(half, a);
  assertEquals(count(), 3);
  assertEquals(again, first);
  ring.close();
  mb.close();
});

Deno.test("what a graph reads is never used again", () => {
  const { mb, gated } = openGated();
  const ring = new PinnedRing(mb);
  const { streams } = mb.allocator;
  const stream = mb.createStream();
  const list = testBytes(1000, 1);
  let address = 0;
  const graph = stream.capture(() => {
    address = ring.write(list, stream.number);
  });
  // Some of them would fit where the graph's list is, and its stream has passed.
  const others = [testBytes(100, 2), testBytes(CHUNK / 2, 3)];
  streams.tick(stream.number);
  gated.pass(streams.clocks[stream.number]!.driverId);
  for (let round = 0; round < 20; round++) {
    const bytes = others[round % 2]!;
    const other = ring.write(bytes, stream.number);
    assert(other + bytes.length <= address || other >= address + list.length);
    streams.tick(stream.number);
    gated.pass(streams.clocks[stream.number]!.driverId);
  }
  assertEquals(pinnedBytes(gated, address, list.length), list);
  graph.close();
  ring.close();
  mb.close();
});

Deno.test("memory is not used before a stream that was closed, and then used again", () => {
  const { mb, gated } = openGated();
  const count = countPinned(gated);
  const ring = new PinnedRing(mb);
  const half = testBytes(CHUNK / 2, 1);
  for (let round = 0; round < 10; round++) {
    const stream = mb.createStream();
    ring.write(half, stream.number);
    ring.write(half, stream.number);
    stream.close();
  }
  assert(count() <= 2, `${count()} pieces of memory`);
  ring.close();
  mb.close();
});

for (const seed of [1, 2]) {
  Deno.test(`lists under way stay as they are, and memory stays little, seed ${seed}`, () => {
    const { mb, gated } = openGated();
    const count = countPinned(gated);
    const ring = new PinnedRing(mb);
    const { streams } = mb.allocator;
    const random = new Random(seed);
    const numbers = [0, mb.createStream().number, mb.createStream().number];
    interface List {
      address: number;
      bytes: Uint8Array;
      stream: number;
      epoch: number;
    }
    let lists: List[] = [];
    let most = 0;
    for (let step = 0; step < 3000; step++) {
      const stream = numbers[random.below(3)]!;
      if (random.below(3) > 0) {
        const bytes = testBytes(1 + random.below(CHUNK / 4), step % 7);
        const address = ring.write(bytes, stream);
        const epoch = streams.clocks[stream]!.recorded;
        for (const list of lists) {
          assert(
            address + bytes.length <= list.address ||
              address >= list.address + list.bytes.length,
            `step ${step} overwrites a list under way`,
          );
        }
        lists.push({ address, bytes, stream, epoch });
      } else {
        if (random.below(2) === 0) streams.tick(stream);
        gated.pass(streams.clocks[stream]!.driverId);
        streams.poll(stream);
      }
      lists = lists.filter(({ stream, epoch }) =>
        !streams.isPassed(stream, epoch)
      );
      most = Math.max(most, count());
    }
    for (const { address, bytes } of lists) {
      assertEquals(pinnedBytes(gated, address, bytes.length), bytes);
    }
    assert(most < 12, `${most} pieces of memory at once`);
    ring.close();
    assertEquals(count(), 0);
    mb.close();
  });
}
