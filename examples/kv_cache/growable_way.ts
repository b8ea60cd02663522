/**
 * A sequence is a block that grows where it is.
 *
 * @module
 */

import { blockStore } from "./block_sequence.ts";
import type { Way } from "./sequence_store.ts";

/** Blocks with `maxSize`, grown by `resize()`. */
export const GROWABLE_WAY: Way = {
  name: "growable",
  explanation:
    "a block with maxSize, resized in place by whole extents; a fork copies the sequence",
  open(mb, { tokenBytes, maxTokens }) {
    return blockStore(mb, {
      allocate: (bytes) => mb.alloc(bytes, { maxSize: tokenBytes * maxTokens }),
      grow(block, _used, bytes) {
        block.resize(bytes);
        return block;
      },
    });
  },
};
