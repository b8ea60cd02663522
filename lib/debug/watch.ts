/**
 * What an allocator that looks for memory bugs does besides allocating: see options.ts.
 * An allocator that doesn't has none of this.
 *
 * @module
 */

import type { Allocator } from "../allocator.ts";
import { BlockFlag } from "../blocks.ts";
import {
  type CanaryDamage,
  CanaryError,
  InvalidBlockError,
} from "../errors.ts";
import { BLOCK_ALIGNMENT, roundUp } from "../sizes.ts";
import { Canaries, LEAST_CANARY } from "./canaries.ts";
import { BlockHistory, type BlockPlace, tellStory } from "./history.ts";
import type { WatchSettings } from "./options.ts";
import { Quarantine } from "./quarantine.ts";

/** Watches over an allocator's blocks. */
export class Watch {
  /** What is known of blocks. */
  readonly history: BlockHistory;
  /** The quarantine, if there is one. */
  readonly quarantine: Quarantine | undefined;
  readonly #allocator: Allocator;
  readonly #canaries: Canaries | undefined;

  /** Watches over an allocator as its settings say. */
  constructor(allocator: Allocator, settings: WatchSettings) {
    this.#allocator = allocator;
    this.history = new BlockHistory(settings.stacks);
    this.#canaries = settings.canaries ? new Canaries(allocator) : undefined;
    this.quarantine = settings.quarantine
      ? new Quarantine(allocator, settings.guard)
      : undefined;
  }

  /** Bytes that a block which can't grow needs; one that lies among others has a canary. */
  capacityFor(requested: number): number {
    const canary = this.#canaries && !this.quarantine ? LEAST_CANARY : 0;
    return roundUp(requested + canary, BLOCK_ALIGNMENT);
  }

  /** Whether a resize of a live block is to write canaries anew. */
  marks(id: number): boolean {
    return this.#canaries?.canArm(id) ?? false;
  }

  /**
   * Takes a block that was just allocated under watch.
   *
   * @throws {DriverError} if its canaries can't be written
   */
  allocated(id: number, name: string | undefined): void {
    this.#canaries?.arm(id, this.#paddingOf(id));
    this.#allocator.blocks.flags[id]! |= BlockFlag.WATCHED;
    this.history.allocated(this.#placeOf(id), name);
  }

  /**
   * Comes before a live block that is watched is freed, last used on `stream`. A block
   * whose canaries were overwritten can be freed after that was reported.
   *
   * @throws {CanaryError} if its canaries were overwritten, once
   */
  beforeFree(id: number, stream: number): void {
    this.#reportOnce("free", id, stream);
  }

  /** Comes once a live block that is watched is sure to be freed. */
  freed(id: number): void {
    this.#canaries?.disarm(id);
    this.history.freed(id);
  }

  /**
   * Comes before a live block is resized.
   *
   * @throws {CanaryError} if its canaries were overwritten, once
   */
  beforeResize(id: number): void {
    this.#reportOnce("resize", id, this.#allocator.blocks.stream[id]!);
  }

  /**
   * Comes after a live block was resized, or was not after all.
   *
   * @throws {DriverError} if its canaries can't be written
   */
  resized(id: number): void {
    this.history.resized(id, this.#placeOf(id));
    this.#canaries?.arm(id, this.#paddingOf(id));
  }

  /**
   * Comes before a kernel is launched: what was freed before is unmapped first, so that
   * the kernel can't use it. Waits for the work that used it, but for a capture's.
   *
   * @param numbers arguments of the kernel that may be addresses
   * @throws {InvalidBlockError} if one of them is the address of a block in quarantine
   */
  beforeLaunch(numbers: Iterable<[index: number, value: number]> = []): void {
    if (!this.quarantine) return;
    this.quarantine.settle(true);
    for (const [index, value] of numbers) this.#checkArgument(index, value);
  }

  /**
   * Checks the canaries of all live blocks, after all work so far of streams that are not
   * capturing: who overruns a block may have been given another one.
   *
   * @throws {CanaryError} if any were overwritten
   */
  checkCanaries(): void {
    if (!this.#canaries) return;
    const { blocks, streams } = this.#allocator;
    for (const [stream, { open, capturing }] of streams.clocks.entries()) {
      if (open && !capturing) streams.synchronize(stream);
    }
    const damaged: CanaryDamage[] = [];
    for (const id of this.#canaries.armed()) {
      const damage = this.#canaries.check(id, blocks.stream[id]!);
      if (damage) damaged.push(this.#named(id, damage));
    }
    if (damaged.length > 0) throw new CanaryError("check canaries", damaged);
  }

  #reportOnce(operation: string, id: number, stream: number): void {
    const damage = this.#canaries?.check(id, stream);
    if (!damage) return;
    this.#canaries?.disarm(id);
    throw new CanaryError(operation, [this.#named(id, damage)]);
  }

  #checkArgument(index: number, value: number): void {
    const { arena, extents } = this.#allocator;
    if (!(value >= arena.base && value < arena.frontier)) return;
    if (extents.at(value) !== 0) return;
    const story = this.history.ofFreedAround(value);
    if (!story) return;
    throw new InvalidBlockError(
      "launch",
      `Cannot launch: argument ${index}, 0x${
        value.toString(16)
      }, points into a freed ${tellStory(story)}`,
    );
  }

  #paddingOf(id: number): number {
    return this.quarantine?.paddingOf(id) ?? 0;
  }

  #placeOf(id: number): BlockPlace {
    const { blocks } = this.#allocator;
    const address = blocks.address[id]!;
    const capacity = blocks.size[id]!;
    return {
      id,
      generation: blocks.generation[id]!,
      address,
      size: blocks.requested[id]!,
      capacity,
      reach: this.quarantine?.reachOf(id) ??
        { start: address, end: address + capacity },
      stream: blocks.stream[id]!,
    };
  }

  #named(id: number, damage: CanaryDamage): CanaryDamage {
    const name = this.#allocator.names.get(id);
    const stack = this.history.ofLive(id)?.allocated?.stack;
    return {
      ...damage,
      ...(name === undefined ? {} : { name }),
      ...(stack === undefined ? {} : { allocatedBy: stack }),
    };
  }
}
