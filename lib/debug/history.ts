/**
 * What is known of blocks, live and freed: for reports of a watched instance.
 *
 * @module
 */

import { formatSize } from "../sizes.ts";

/** Freed blocks that are remembered; the oldest are forgotten first. */
const MOST_FREED = 65_536;

/** Calls that a stack goes back. */
const MOST_FRAMES = 24;

/** Where MoonBright's own code is: its calls at a stack's beginning are left out. */
const OWN_CODE = new URL("../", import.meta.url).href;

/** A moment in a block's life. */
export interface Moment {
  /** Milliseconds since the process began, as `performance.now()` tells. */
  readonly atMs: number;
  /** The JavaScript stack, if stacks are kept. */
  readonly stack?: string;
}

/** A block, live or freed, as it is remembered. Sizes in bytes. */
export interface BlockStory {
  /** First byte. */
  readonly address: number;
  /** Bytes asked for. */
  readonly size: number;
  /** Bytes set aside. */
  readonly capacity: number;
  /** Its name, if it had one. */
  readonly name?: string;
  /** Number of the stream whose order it followed. */
  readonly stream: number;
  /** When, and where in the program, it was allocated, if the instance watches. */
  readonly allocated?: Moment;
  /** When, and where in the program, it was freed; left out while it is live. */
  readonly freed?: Moment;
}

/** A stack that is made into text only when someone reads it. */
interface Trace {
  stack?: string;
}

interface Entry {
  id: number;
  generation: number;
  address: number;
  size: number;
  capacity: number;
  reach: { start: number; end: number };
  name: string | undefined;
  stream: number;
  allocatedMs: number;
  allocatedAt: Trace | undefined;
  freedMs: number;
  freedAt: Trace | undefined;
}

/** Where a block lies, as the table of blocks has it. */
export interface BlockPlace {
  /** Its record. */
  id: number;
  /** Generation of the record. */
  generation: number;
  /** First byte. */
  address: number;
  /** Bytes asked for. */
  size: number;
  /** Bytes set aside. */
  capacity: number;
  /** All its addresses: with a guard, more than those of the bytes set aside. */
  reach: { start: number; end: number };
  /** Number of its stream. */
  stream: number;
}

/** Remembers live blocks and the last of the freed ones. */
export class BlockHistory {
  readonly #stacks: boolean;
  readonly #live = new Map<number, Entry>();
  /** In the order in which they were freed, by a running number. */
  readonly #freed = new Map<number, Entry>();
  #frees = 0;

  /** Remembers nothing yet; with `stacks` it will keep stacks too. */
  constructor(stacks: boolean) {
    this.#stacks = stacks;
  }

  /** Notes a block that was just allocated. */
  allocated(place: BlockPlace, name: string | undefined): void {
    this.#live.set(place.id, {
      ...place,
      name,
      allocatedMs: performance.now(),
      allocatedAt: this.#trace(),
      freedMs: 0,
      freedAt: undefined,
    });
  }

  /** Notes another size of a live block. */
  resized(id: number, place: BlockPlace): void {
    const entry = this.#live.get(id);
    if (entry) Object.assign(entry, place);
  }

  /** Notes that a live block was freed. */
  freed(id: number): void {
    const entry = this.#live.get(id);
    if (!entry) return;
    this.#live.delete(id);
    entry.freedMs = performance.now();
    entry.freedAt = this.#trace();
    this.#freed.set(this.#frees++, entry);
    if (this.#freed.size > MOST_FREED) {
      this.#freed.delete(this.#frees - MOST_FREED - 1);
    }
  }

  /** The story of a live block, if it was noted. */
  ofLive(id: number): BlockStory | undefined {
    const entry = this.#live.get(id);
    return entry && storyOf(entry);
  }

  /** The story of the freed block that an owner held, if it is remembered. */
  ofOwner(id: number, generation: number): BlockStory | undefined {
    for (const entry of this.#newestFirst()) {
      if (entry.id === id && entry.generation === generation) {
        return storyOf(entry);
      }
    }
    return undefined;
  }

  /** The story of the live block to whose addresses, guards included, one belongs. */
  ofLiveAround(address: number): BlockStory | undefined {
    for (const entry of this.#live.values()) {
      if (reaches(entry, address)) return storyOf(entry);
    }
    return undefined;
  }

  /** As `ofLiveAround`, of the block freed last of those that are remembered. */
  ofFreedAround(address: number): BlockStory | undefined {
    for (const entry of this.#newestFirst()) {
      if (reaches(entry, address)) return storyOf(entry);
    }
    return undefined;
  }

  /** Freed blocks that are remembered, the oldest first. */
  *freedBlocks(): Generator<BlockStory> {
    for (const entry of this.#freed.values()) yield storyOf(entry);
  }

  #newestFirst(): Entry[] {
    return [...this.#freed.values()].reverse();
  }

  #trace(): Trace | undefined {
    if (!this.#stacks) return undefined;
    const trace: Trace = {};
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = MOST_FRAMES;
    Error.captureStackTrace(trace, this.#trace);
    Error.stackTraceLimit = limit;
    return trace;
  }
}

/** Tells of a block in words: its name, size, and where it was allocated and freed. */
export function tellStory(story: BlockStory): string {
  const { address, size, name, stream, allocated, freed } = story;
  const called = name === undefined ? "" : ` "${name}"`;
  const lines = [
    `block${called} of ${formatSize(size)} at 0x${
      address.toString(16)
    } on stream ${stream}`,
    ...tellMoment("allocated", allocated),
    ...tellMoment("freed", freed),
  ];
  return lines.join("\n");
}

function reaches({ reach }: Entry, address: number): boolean {
  return address >= reach.start && address < reach.end;
}

function tellMoment(what: string, moment: Moment | undefined): string[] {
  if (moment === undefined) return [];
  const { atMs, stack } = moment;
  const when = `  ${what} ${(atMs / 1000).toFixed(3)} s after the start`;
  return stack === undefined ? [when] : [`${when}, by`, stack];
}

function storyOf(entry: Entry): BlockStory {
  const { address, size, capacity, name, stream } = entry;
  return {
    address,
    size,
    capacity,
    ...(name === undefined ? {} : { name }),
    stream,
    allocated: momentOf(entry.allocatedMs, entry.allocatedAt),
    ...(entry.freedMs === 0
      ? {}
      : { freed: momentOf(entry.freedMs, entry.freedAt) }),
  };
}

function momentOf(atMs: number, trace: Trace | undefined): Moment {
  if (trace === undefined) return { atMs };
  // The first line repeats the name of an error that there is none of.
  const calls = (trace.stack ?? "").split("\n").slice(1);
  const first = calls.findIndex((call) => !call.includes(OWN_CODE));
  return { atMs, stack: calls.slice(Math.max(first, 0)).join("\n") };
}
