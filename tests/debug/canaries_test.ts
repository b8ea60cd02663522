import {
  assert,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import fc from "fast-check";
import type { Block } from "../../lib/block.ts";
import { CanaryError } from "../../lib/errors.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import { GRANULE, openModel } from "../lib/support.ts";

/** Writes past MoonBright's own checks, as a kernel would. */
function overwrite(mb: MoonBright, address: number, bytes: number, value = 1) {
  mb.driver.fill(address, value, 1, bytes, 0);
}

function damageOf(body: () => void) {
  const error = assertThrows(body, CanaryError);
  assertEquals(error.code, "canary");
  return error.damage;
}

Deno.test("every block that lies among others has a canary behind its end", () => {
  const { mb } = openModel({ canaries: true });
  for (let size = 1; size < 1500; size += 37) {
    const block = mb.alloc(size);
    assert(block.capacity - size >= 32);
    assertEquals(block.capacity % 512, 0);
    overwrite(mb, block.address + size, 1);
    const [damage] = damageOf(() => block.free());
    assertEquals(damage, {
      address: block.address,
      size,
      offset: size,
      bytes: 1,
    });
  }
  assertEquals(mb.alloc(512).capacity, 1024);
});

Deno.test("using all of a block, and no more, kills no canary", () => {
  fc.assert(fc.property(
    fc.array(
      fc.record({
        size: fc.integer({ min: 1, max: 3 * GRANULE }),
        maxSize: fc.option(fc.integer({ min: 0, max: 4 * GRANULE })),
        resized: fc.option(fc.integer({ min: 1, max: 4 * GRANULE })),
      }),
      { maxLength: 12 },
    ),
    fc.constantFrom(
      {},
      { debug: "quarantine" as const },
      { debug: "quarantine" as const, guard: true },
    ),
    fc.boolean(),
    (wanted, extra, zero) => {
      const { mb } = openModel({ canaries: true, zero, ...extra });
      const blocks = wanted.map(({ size, maxSize, resized }) => {
        const block = mb.alloc(size, {
          ...(maxSize === null ? {} : { maxSize: size + maxSize }),
        });
        if (zero) assert(block.read().every((byte) => byte === 0));
        block.fill(0xff);
        if (resized === null) return block;
        try {
          block.resize(resized);
        } catch (error) {
          assert(
            error instanceof Error && /in place|maxSize/.test(error.message),
          );
        }
        if (zero) {
          const added = block.read().subarray(Math.min(size, block.size));
          assert(added.every((byte) => byte === 0));
        }
        block.fill(0xff);
        return block;
      });
      mb.checkCanaries();
      for (const block of blocks) block.free();
      mb.allocator.assertInvariants();
    },
  ));
});

Deno.test("one byte anywhere around a block is found, and told where", () => {
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 2 * GRANULE }),
    fc.nat(),
    fc.boolean(),
    (size, where, guard) => {
      const { mb } = openModel({ canaries: true, debug: "quarantine", guard });
      const block = mb.alloc(size, { name: "overrun" });
      const { base } = mb.allocator.arena;
      const start = block.address;
      const first = start - (start - base) % GRANULE;
      const end = start + block.capacity;
      // Bytes of the extents that are not the block's own.
      const around = (start - first) + (end - start - size);
      fc.pre(around > 0);
      const at = where % around;
      const address = at < start - first ? first + at : end - around + at;
      overwrite(mb, address, 1);
      const [damage] = damageOf(() => mb.checkCanaries());
      assertEquals(damage, {
        address: start,
        size,
        name: "overrun",
        offset: address - start,
        bytes: 1,
      });
    },
  ));
});

Deno.test("a free tells of an overrun once, and the block stays live until the next", () => {
  const { mb } = openModel({ canaries: true, stacks: true });
  const block = mb.alloc(100, { name: "victim" });
  block.write(new Uint8Array([1, 2, 3]));
  overwrite(mb, block.address + 90, 30);
  const error = assertThrows(() => block.free(), CanaryError);
  assertStringIncludes(error.message, 'the block "victim" of 100 bytes');
  assertStringIncludes(error.message, "20 bytes around it were overwritten");
  assertStringIncludes(error.message, "the first 0 bytes behind its end");
  assertStringIncludes(error.message, "canaries_test.ts");
  assert(block.live);
  assertEquals([...block.read(3)], [1, 2, 3]);
  block.free();
  assert(!block.live);
  mb.allocator.assertInvariants();
});

Deno.test("checkCanaries names every block that was overrun", () => {
  const { mb } = openModel({ canaries: true });
  const blocks: Block[] = [];
  for (const name of ["a", "b", "c"]) blocks.push(mb.alloc(600, { name }));
  overwrite(mb, blocks[0]!.address + 600, 5);
  overwrite(mb, blocks[2]!.address + 605, 2);
  const damage = damageOf(() => mb.checkCanaries());
  assertEquals(
    damage.map(({ name, offset, bytes }) => [name, offset, bytes]),
    [["a", 600, 5], ["c", 605, 2]],
  );
  // Unlike a free, it goes on telling.
  assertEquals(damageOf(() => mb.checkCanaries()).length, 2);
});

Deno.test("a resize looks at the canaries, moves them, and is refused if they are dead", () => {
  const { mb } = openModel({ canaries: true });
  const block = mb.alloc(1000);
  block.resize(700);
  overwrite(mb, block.address + 700, 1);
  assertEquals(damageOf(() => block.resize(100))[0]!.offset, 700);
  assertEquals(block.size, 700);
  block.resize(100);
  overwrite(mb, block.address + 100, 1);
  assertEquals(damageOf(() => block.free())[0]!.offset, 100);
});

Deno.test("an overrun by work of another stream is seen once that work is done", () => {
  const { mb } = openModel({ canaries: true });
  const [own, other] = [mb.createStream(), mb.createStream()];
  const block = mb.alloc(64, { stream: own });
  block.useOn(other);
  mb.driver.fill(block.address, 1, 1, 65, other.driverId("fill"));
  damageOf(() => block.free());
});

Deno.test("blocks allocated while their stream captures have no canaries", () => {
  const { mb } = openModel({ canaries: true });
  const stream = mb.createStream();
  let block: Block | undefined;
  using graph = stream.capture(() => {
    block = mb.alloc(64, { stream });
    block.fill(1);
  });
  overwrite(mb, block!.address + 64, 1);
  mb.checkCanaries();
  graph.launch();
  block!.free();
  mb.synchronize();
});

Deno.test("a block that is overrun while its stream captures is told of afterwards", () => {
  const { mb } = openModel({ canaries: true });
  const stream = mb.createStream();
  const block = mb.alloc(64, { stream });
  mb.synchronize();
  overwrite(mb, block.address + 64, 1);
  mb.synchronize();
  using _graph = stream.capture(() => mb.checkCanaries());
  damageOf(() => block.free());
});
