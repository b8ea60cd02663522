/**
 * What an address is, or was.
 *
 * @module
 */

import type { Allocator } from "../allocator.ts";
import { BlockState } from "../blocks.ts";
import { formatSize } from "../sizes.ts";
import { type BlockStory, tellStory } from "./history.ts";

/** What lies at an address. */
export type AddressState =
  /** A live block. */
  | "live"
  /** What is set aside for a live block before its start or behind its end. */
  | "slack"
  /** A freed block that other work still uses. */
  | "pending"
  /** Mapped memory of no block. */
  | "free"
  /** A freed block in quarantine: unmapped, and never used again. */
  | "quarantined"
  /** Unmapped addresses around a live block, as a guard or to grow into. */
  | "guard"
  /** A mapping that is no longer wanted, and will be flushed. */
  | "retired"
  /** Handed out before; nothing is mapped there now. */
  | "hole"
  /** Never handed out. */
  | "unused"
  /** Not of this instance. */
  | "foreign";

/** What an address is, or was. */
export interface AddressReport {
  /** The address. */
  address: number;
  /** What lies there now. */
  state: AddressState;
  /**
   * The live block there, or else the one freed last that is remembered: all live ones are
   * while an instance watches, and the last 65 536 freed ones.
   */
  block?: BlockStory;
  /** The address, counted from the block's first byte; negative before it. */
  offset?: number;
  /** All of it in words. */
  text: string;
}

const MEANINGS: Readonly<Record<AddressState, string>> = {
  live: "live",
  slack: "set aside for a block, but not part of it",
  pending: "freed, but still used by other work",
  free: "free, and mapped",
  quarantined: "freed, and unmapped for good",
  guard: "kept unmapped around a block",
  retired: "no longer in use, but mapped until the next flush",
  hole: "unmapped, but was in use before",
  unused: "never in use",
  foreign: "not MoonBright's",
};

/** States of addresses that no block has now, if one had them before. */
const FORMER: readonly AddressState[] = ["free", "retired", "hole"];

/** Tells what an address is, or was. */
export function explainAddress(a: Allocator, address: number): AddressReport {
  const id = recordAround(a, address);
  const state = stateOf(a, id, address);
  const block = storyAt(a, id, state, address);
  const is = `0x${address.toString(16)}: ${MEANINGS[state]}`;
  if (!block) return { address, state, text: is };
  const offset = address - block.address;
  const where = offset < 0
    ? `${formatSize(-offset)} before`
    : offset < block.size
    ? `byte ${offset} of`
    : `${formatSize(offset - block.size)} behind`;
  const last = FORMER.includes(state) ? "last it was " : "";
  const text = `${is}; ${last}${where} the ${tellStory(block)}`;
  return { address, state, block, offset, text };
}

/** Record of the block, padding included, that an address lies in; 0 if there is none. */
function recordAround({ blocks }: Allocator, address: number): number {
  for (let id = 1; id < blocks.end; id++) {
    if (blocks.state[id] === BlockState.NONE) continue;
    const offset = address - blocks.address[id]!;
    if (offset >= 0 && offset < blocks.size[id]!) return id;
  }
  return 0;
}

function stateOf(a: Allocator, id: number, address: number): AddressState {
  const { blocks, arena, heap, flushQueue, watch } = a;
  if (address < arena.base || address >= arena.end) return "foreign";
  if (id !== 0) {
    const state = blocks.state[id]!;
    if (state === BlockState.PADDING) {
      return blocks.state[blocks.next[id]!] === BlockState.LIVE
        ? "slack"
        : "pending";
    }
    if (state === BlockState.LIVE) {
      const inside = address - blocks.address[id]! < blocks.requested[id]!;
      return inside ? "live" : "slack";
    }
    return state === BlockState.FREE || id === heap.recent ? "free" : "pending";
  }
  if (address >= arena.frontier) return "unused";
  if (isRetired(flushQueue.mappings(), address)) return "retired";
  if (watch?.history.ofLiveAround(address) || roomAround(a, address) !== 0) {
    return "guard";
  }
  const quarantined = watch?.quarantine && watch.history.ofFreedAround(address);
  return quarantined ? "quarantined" : "hole";
}

function isRetired(
  mappings: readonly { address: number; size: number }[],
  address: number,
): boolean {
  return mappings.some((one) =>
    address >= one.address && address < one.address + one.size
  );
}

/** Record of the growable block that has room at an address, 0 if there is none. */
function roomAround({ growables, blocks }: Allocator, address: number): number {
  for (const [id, end] of growables.entries()) {
    if (address >= blocks.address[id]! && address < end) return id;
  }
  return 0;
}

function storyAt(
  a: Allocator,
  id: number,
  state: AddressState,
  address: number,
): BlockStory | undefined {
  const { history } = a.watch ?? {};
  if (state === "live" || state === "slack" || state === "guard") {
    const story = history?.ofLiveAround(address);
    return story ?? bareStory(a, id === 0 ? roomAround(a, address) : id);
  }
  return history?.ofFreedAround(address);
}

/** What the tables alone know of a live block. */
function bareStory({ blocks, names }: Allocator, id: number): BlockStory {
  const name = names.get(id);
  return {
    address: blocks.address[id]!,
    size: blocks.requested[id]!,
    capacity: blocks.size[id]!,
    ...(name === undefined ? {} : { name }),
    stream: blocks.stream[id]!,
  };
}
