/**
 * Canaries: a pattern in what a block's capacity has before and behind the block itself.
 * Who overruns the block kills one.
 *
 * @module
 */

import type { Allocator } from "../allocator.ts";
import { BlockFlag } from "../blocks.ts";
import type { CanaryDamage } from "../errors.ts";
import { hasFlag } from "../heap.ts";

/** Bytes that a block's capacity has behind the block at least, so that there is a canary. */
export const LEAST_CANARY = 32;

/** What canaries consist of: not 0, all ones, ASCII, or the high byte of small floats. */
const PATTERN = 0xc5;

/** Bytes read at a time. */
const CHUNK = 1024 ** 2;

/** Writes and checks the canaries of an allocator's blocks. */
export class Canaries {
  readonly #allocator: Allocator;
  /** Of blocks with canaries: bytes mapped before the block. */
  readonly #before = new Map<number, number>();
  /** Reused: reading canaries must not leave as much garbage. */
  readonly #chunk = new Uint8Array(CHUNK);

  /** No block has canaries yet. */
  constructor(allocator: Allocator) {
    this.#allocator = allocator;
  }

  /**
   * Whether a live block can be given canaries now: a stream that is capturing would note
   * them for its graph instead of writing them, and a graph writes as far as the block
   * reached when it was captured.
   */
  canArm(id: number): boolean {
    const { blocks, streams } = this.#allocator;
    return !streams.clocks[blocks.stream[id]!]!.capturing &&
      !hasFlag(blocks, id, BlockFlag.CAPTURED);
  }

  /**
   * Writes the canaries of a live block in its stream's order, if they can be, with one in
   * the `before` bytes before it too.
   */
  arm(id: number, before: number): void {
    const { blocks, streams, driver } = this.#allocator;
    this.#before.delete(id);
    if (!this.canArm(id)) return;
    const { driverId } = streams.clocks[blocks.stream[id]!]!;
    for (const { address, size } of this.#parts(id, before)) {
      driver.fill(address, PATTERN, 1, size, driverId);
    }
    this.#before.set(id, before);
  }

  /** Forgets a block's canaries. */
  disarm(id: number): void {
    this.#before.delete(id);
  }

  /** Blocks with canaries. */
  armed(): number[] {
    return [...this.#before.keys()];
  }

  /**
   * Looks for what has overwritten a live block's canaries, after all work so far that
   * uses the block, the last of it in `stream`; undefined if nothing has, and while a
   * stream involved is capturing.
   */
  check(id: number, stream: number): CanaryDamage | undefined {
    const before = this.#before.get(id);
    if (before === undefined) return undefined;
    const { blocks, streams, pending } = this.#allocator;
    const clock = streams.clocks[stream]!;
    if (clock.capturing) return undefined;
    for (const user of [blocks.stream[id]!, ...pending.usersOf(id)]) {
      if (user === stream) continue;
      const { recorded } = streams.clocks[user]!;
      streams.waitPassed(user, recorded);
      if (!streams.isPassed(user, recorded)) return undefined;
    }
    const start = blocks.address[id]!;
    let offset: number | undefined;
    let bytes = 0;
    for (const { address, size } of this.#parts(id, before)) {
      const found = this.#overwritten(address, size, clock.driverId);
      if (found.bytes > 0) offset ??= address + found.first - start;
      bytes += found.bytes;
    }
    if (offset === undefined) return undefined;
    return { address: start, size: blocks.requested[id]!, offset, bytes };
  }

  /** Where a block's canaries are. */
  #parts(id: number, before: number): { address: number; size: number }[] {
    const { blocks } = this.#allocator;
    const address = blocks.address[id]!;
    const requested = blocks.requested[id]!;
    return [
      { address: address - before, size: before },
      { address: address + requested, size: blocks.size[id]! - requested },
    ].filter(({ size }) => size > 0);
  }

  /** Bytes of a range that are not the pattern's, and the first of them. */
  #overwritten(
    address: number,
    size: number,
    driverStream: number,
  ): { first: number; bytes: number } {
    let first = 0;
    let bytes = 0;
    for (let at = 0; at < size; at += CHUNK) {
      const chunk = this.#chunk.subarray(0, Math.min(CHUNK, size - at));
      this.#allocator.driver.copyOut(chunk, address + at, driverStream);
      for (let i = 0; i < chunk.length; i++) {
        if (chunk[i] === PATTERN) continue;
        if (bytes++ === 0) first = at + i;
      }
    }
    return { first, bytes };
  }
}
