/**
 * What to do when memory runs out: drop what can be made again, then do with less.
 *
 *     deno run -A examples/out_of_memory.ts [DEVICE]
 *
 * @module
 */

import {
  type Block,
  formatSize,
  MoonBright,
  OutOfMemoryError,
} from "@moonbright/moonbright";

const MIB = 1024 ** 2;

/** Blocks that can be made again, the oldest first. */
export class Cache {
  readonly #blocks: Block[] = [];

  /** Number of blocks held. */
  get size(): number {
    return this.#blocks.length;
  }

  /** Takes a block over. */
  add(block: Block): void {
    this.#blocks.push(block);
  }

  /** Frees the oldest block; false if there is none. */
  dropOldest(): boolean {
    const block = this.#blocks.shift();
    block?.free();
    return block !== undefined;
  }
}

/**
 * Allocates, dropping cached blocks as long as that may help. Another error than running
 * out of memory is the caller's.
 *
 * @throws {OutOfMemoryError} if it does not fit with an empty cache either
 */
export function allocDropping(
  mb: MoonBright,
  cache: Cache,
  bytes: number,
): Block {
  while (true) {
    try {
      return mb.alloc(bytes);
    } catch (error) {
      if (!(error instanceof OutOfMemoryError)) throw error;
      // Nothing has changed: the request may simply be tried again.
      if (!cache.dropOldest()) throw error;
    }
  }
}

/**
 * The largest batch that there is memory for: half as many items at each failure.
 *
 * @throws {OutOfMemoryError} if there is none even for one item
 */
export function allocBatch(
  mb: MoonBright,
  cache: Cache,
  items: number,
  bytesPerItem: number,
): { block: Block; items: number } {
  for (let count = items;; count = Math.floor(count / 2)) {
    try {
      return {
        block: allocDropping(mb, cache, count * bytesPerItem),
        items: count,
      };
    } catch (error) {
      if (!(error instanceof OutOfMemoryError) || count <= 1) throw error;
    }
  }
}

if (import.meta.main) {
  const device = Deno.args[0] ?? "auto";
  using mb = MoonBright.open({ device, budget: 256 * MIB });
  const cache = new Cache();
  for (let i = 0; i < 10; i++) {
    cache.add(mb.alloc(20 * MIB, { name: `cached ${i}` }));
  }
  const { block, items } = allocBatch(mb, cache, 1000, MIB);
  console.log(
    `asked for 1000 items, got ${items}; ${cache.size} cached blocks are left`,
  );
  try {
    mb.alloc(1024 * MIB);
  } catch (error) {
    if (!(error instanceof OutOfMemoryError)) throw error;
    const { live, largestFree, budget } = error.details;
    console.log(
      `no room for 1 GiB: ${formatSize(live)} live, ${
        formatSize(largestFree)
      } the largest free piece, budget ${formatSize(budget)}`,
    );
  }
  block.free();
}
