/**
 * A sequence is a block as long as the longest that may come.
 *
 * @module
 */

import { blockStore } from "./block_sequence.ts";
import type { Way } from "./sequence_store.ts";

/** Blocks of the maximum length. */
export const LONGEST_WAY: Way = {
  name: "longest",
  explanation:
    "a block of the maximum length from the start; a fork copies the sequence",
  open(mb, { tokenBytes, maxTokens }) {
    return blockStore(mb, {
      allocate: () => mb.alloc(tokenBytes * maxTokens),
      grow: (block) => block,
    });
  },
};
