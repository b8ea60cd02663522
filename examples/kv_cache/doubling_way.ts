/**
 * A sequence is a block that moves to one of double the length when it is full.
 *
 * @module
 */

import { blockStore, copyBytes } from "./block_sequence.ts";
import type { Way } from "./sequence_store.ts";

/** Copy on growth. */
export const DOUBLING_WAY: Way = {
  name: "doubling",
  explanation:
    "a full block is copied to one of double the size; a fork copies the sequence",
  open(mb, { tokenBytes, maxTokens }) {
    const most = tokenBytes * maxTokens;
    const allocate = (bytes: number) => {
      const tokens = Math.ceil(bytes / tokenBytes);
      const size = tokenBytes * 2 ** Math.ceil(Math.log2(tokens));
      return mb.alloc(Math.min(size, most));
    };
    return blockStore(mb, {
      allocate,
      grow(block, used, bytes) {
        if (bytes <= block.size) return block;
        const larger = allocate(bytes);
        copyBytes(mb, block, larger, used);
        block.free();
        return larger;
      },
    });
  },
};
