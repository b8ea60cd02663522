/**
 * A sequence in one block: what the ways that keep it contiguous have in common.
 *
 * @module
 */

import type { Block, MoonBright } from "@moonbright/moonbright";
import type { CachedSequence, SequenceStore } from "./sequence_store.ts";

/** How a way gets blocks with room. */
export interface RoomPolicy {
  /** A new block for a sequence of so many bytes. */
  allocate(bytes: number): Block;
  /** The block to go on with, which has the same `used` bytes and room for `bytes`. */
  grow(block: Block, used: number, bytes: number): Block;
}

/** Copies the first bytes of a block to another, in the order of the default stream. */
export function copyBytes(
  mb: MoonBright,
  from: Block,
  to: Block,
  bytes: number,
): void {
  const stream = mb.defaultStream.driverId("copy");
  mb.driver.copy(to.address, from.address, bytes, stream);
}

class BlockSequence implements CachedSequence {
  readonly #mb: MoonBright;
  readonly #policy: RoomPolicy;
  #block: Block;
  #used = 0;

  constructor(mb: MoonBright, policy: RoomPolicy, bytes: number) {
    this.#mb = mb;
    this.#policy = policy;
    this.#block = policy.allocate(bytes);
  }

  append(bytes: Uint8Array): void {
    const end = this.#used + bytes.length;
    this.#block = this.#policy.grow(this.#block, this.#used, end);
    this.#block.write(bytes, { offset: this.#used });
    this.#used = end;
  }

  fork(): CachedSequence {
    const copy = new BlockSequence(this.#mb, this.#policy, this.#used);
    copyBytes(this.#mb, this.#block, copy.#block, this.#used);
    copy.#used = this.#used;
    return copy;
  }

  read(): Uint8Array {
    return this.#block.read(this.#used);
  }

  free(): void {
    this.#block.free();
  }
}

/** A cache that keeps each sequence in a block of its own. */
export function blockStore(mb: MoonBright, policy: RoomPolicy): SequenceStore {
  return {
    launches: 0,
    start(prompt) {
      const sequence = new BlockSequence(mb, policy, prompt.length);
      sequence.append(prompt);
      return sequence;
    },
  };
}
