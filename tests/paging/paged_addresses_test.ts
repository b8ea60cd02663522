import { assert, assertEquals } from "@std/assert";
import { MoonBrightError } from "../../lib/errors.ts";
import { testOnAll } from "./paged_bench.ts";

/** The code of what a call throws. */
function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof MoonBrightError) return error.code;
    throw error;
  }
  return "none";
}

testOnAll(
  "a layout too narrow for device addresses is refused, and holds the store's",
  (bench) => {
    const { mb } = bench;
    const before = mb.stats().live;
    const options = { pages: 16, format: "nvidia-v2" } as const;
    assertEquals(codeOf(() => bench.space(options)), "unsupported");
    assertEquals(mb.stats().live, before);
    using space = bench.space({ ...options, addresses: "store" });
    assertEquals(space.entryOrigin, space.store);
    using range = space.alloc(3);
    const bytes = new Uint8Array(range.size).map((_, i) => i % 251);
    range.write(bytes);
    assertEquals(range.read(), bytes);
    for (const [page, entry] of bench.decoded(space, range).entries()) {
      assert(entry.valid && entry.address < 16n * 4096n);
      const memory = entry.address + BigInt(space.entryOrigin);
      assertEquals(
        bench.memory(memory, 4096),
        bytes.slice(page * 4096, (page + 1) * 4096),
      );
    }
    // A copy-on-write copies real frames, whatever the entries call them.
    using fork = range.fork();
    fork.write(new Uint8Array([255]));
    assertEquals(range.read(1)[0], 0);
    assertEquals(fork.read(2), new Uint8Array([255, 1]));
    assertEquals(codeOf(() => space.view), "unsupported");
    assertEquals(codeOf(() => range.view), "unsupported");
  },
);

testOnAll("entries hold device addresses unless told otherwise", (bench) => {
  using space = bench.space({ pages: 4, format: "nvidia-v3" });
  using range = space.alloc(1);
  assertEquals(space.entryOrigin, 0);
  assertEquals(
    bench.decoded(space, range)[0]!.address,
    BigInt(space.store),
  );
});
