/**
 * Blocks that were used on other streams than their own: when freed they wait, in no
 * index, until those streams have passed. So do blocks that graphs use (graph_holds.ts),
 * until the graphs are gone.
 *
 * @module
 */

import { BlockFlag, type Blocks, BlockState } from "./blocks.ts";
import { hasFlag, type Heap } from "./heap.ts";
import type { Counters } from "./stats.ts";
import type { Streams } from "./streams.ts";

interface PendingFree {
  id: number;
  stream: number;
  waits: { stream: number; epoch: number }[];
}

/** What the pending frees need of an allocator. */
export interface PendingContext {
  readonly blocks: Blocks;
  readonly heap: Heap;
  readonly streams: Streams;
  readonly counters: Counters;
}

/** Frees that wait for other streams. */
export class PendingFrees {
  /**
   * Streams, other than its own, on which a live block was used; of each whether it
   * waits for all that the block's memory was used for before.
   */
  readonly #users = new Map<number, Map<number, boolean>>();
  #frees: PendingFree[] = [];
  readonly #context: PendingContext;

  /** No pending frees. */
  constructor(context: PendingContext) {
    this.#context = context;
  }

  /** Number of blocks waiting. */
  get count(): number {
    return this.#frees.length;
  }

  /** Bytes of waiting blocks that graphs may use. */
  get capturedBytes(): number {
    let bytes = 0;
    for (const { id } of this.#frees) {
      if (this.#isCaptured(id)) bytes += this.#context.blocks.size[id]!;
    }
    return bytes;
  }

  /** Notes that work on `stream` uses a live block of another stream. */
  use(id: number, stream: number): void {
    const users = this.#users.get(id);
    if (users) users.set(stream, true);
    else this.#users.set(id, new Map([[stream, true]]));
    this.#context.blocks.flags[id]! |= BlockFlag.SHARED;
  }

  /** Streams noted for a live block. */
  usersOf(id: number): Iterable<number> {
    return this.#users.get(id)?.keys() ?? [];
  }

  /** Whether a stream was noted for a live block that has not grown since. */
  isUser(id: number, stream: number): boolean {
    return this.#users.get(id)?.get(stream) ?? false;
  }

  /** Notes that a use on a stream came to nothing: the next must wait as the first does. */
  useFailed(id: number, stream: number): void {
    const users = this.#users.get(id);
    if (users?.has(stream)) users.set(stream, false);
  }

  /** Notes that a live block got more memory: whoever uses it must wait for that too. */
  grown(id: number): void {
    const users = this.#users.get(id);
    if (users) { for (const stream of users.keys()) users.set(stream, false); }
  }

  /** Notes that blocks, live or freed, were used on streams until the given epochs. */
  usedUntil(
    ids: ReadonlySet<number>,
    epochs: ReadonlyMap<number, number>,
  ): void {
    const { blocks, streams } = this.#context;
    const uses = [...epochs].filter(([stream, epoch]) =>
      !streams.isPassed(stream, epoch)
    );
    if (uses.length === 0) return;
    for (const { id, waits } of this.#frees) {
      if (!ids.has(id)) continue;
      for (const [stream, epoch] of uses) waits.push({ stream, epoch });
    }
    for (const id of ids) {
      if (blocks.state[id] !== BlockState.LIVE) continue;
      for (const [stream] of uses) {
        if (stream === blocks.stream[id]) continue;
        // Nothing says that the stream waits for what the block was used for before.
        const waits = this.isUser(id, stream);
        this.use(id, stream);
        this.#users.get(id)!.set(stream, waits);
      }
    }
  }

  /** Forgets the streams noted for a block. */
  forgetBlock(id: number): void {
    this.#users.delete(id);
  }

  /**
   * Defers the free of a live block, last used on `stream` and on the streams noted.
   *
   * @throws {DriverError} if an event can't be recorded; nothing has changed then
   */
  add(id: number, stream: number): void {
    const { blocks, streams, counters } = this.#context;
    const waits = [];
    const users = this.usersOf(id);
    for (const user of new Set([...users, blocks.stream[id]!])) {
      if (user === stream) continue;
      waits.push({ stream: user, epoch: streams.tick(user) - 1 });
    }
    this.#users.delete(id);
    blocks.state[id] = BlockState.PENDING;
    counters.pending += blocks.size[id]!;
    this.#frees.push({ id, stream, waits });
  }

  /** Frees the blocks whose streams are known to have passed; returns whether any was freed. */
  settle(): boolean {
    if (this.#frees.length === 0) return false;
    const { streams } = this.#context;
    const waiting: PendingFree[] = [];
    const done: PendingFree[] = [];
    for (const free of this.#frees) {
      const passed = !this.#isCaptured(free.id) &&
        free.waits.every(({ stream, epoch }) => {
          // A stream that was capturing then could not record the event.
          streams.ensureTicked(stream, epoch);
          return streams.isPassed(stream, epoch);
        });
      (passed ? done : waiting).push(free);
    }
    this.#frees = waiting;
    for (const { id, stream } of done) this.#free(id, stream);
    return done.length > 0;
  }

  /** Waits on the host for all that is pending, and frees it; returns whether any was freed. */
  wait(): boolean {
    const { streams } = this.#context;
    for (const { id, waits } of this.#frees) {
      if (this.#isCaptured(id)) continue;
      for (const { stream, epoch } of waits) streams.waitPassed(stream, epoch);
    }
    return this.settle();
  }

  /** Forgets that a stream used live blocks: it is about to be destroyed, after its work. */
  forgetStream(stream: number): void {
    for (const users of this.#users.values()) users.delete(stream);
    for (const free of this.#frees) {
      if (free.stream === stream) free.stream = 0;
    }
  }

  #isCaptured(id: number): boolean {
    return hasFlag(this.#context.blocks, id, BlockFlag.CAPTURED);
  }

  #free(id: number, stream: number): void {
    const { blocks, heap, counters } = this.#context;
    counters.pending -= blocks.size[id]!;
    heap.release(id, stream);
  }
}
