/**
 * Where blocks and extents lie in the course of a replay.
 *
 * @module
 */

import type { Allocator } from "../allocator.ts";
import { grown } from "../growable.ts";
import type { MemoryMap, Placements } from "./report_data.ts";

/** Gathers a memory map step by step. */
export class MapRecorder {
  readonly #allocator: Allocator;
  readonly #blocks = new PlacementTable();
  readonly #extents = new PlacementTable();
  /** Row of each extent's placement under way, and its address, by slot. */
  readonly #placed = new Map<number, { row: number; address: number }>();

  /** A map of what an allocator does from now on. */
  constructor(allocator: Allocator) {
    this.#allocator = allocator;
  }

  /** Notes a new block; returns its row. */
  blockCame(step: number, address: number, bytes: number): number {
    return this.#blocks.add(address - this.#allocator.arena.base, bytes, step);
  }

  /** Notes that a block is gone. */
  blockWent(step: number, row: number): void {
    this.#blocks.end(row, step);
  }

  /** Notes what has happened to the extents; to be called when a step did more than reuse. */
  extentsChanged(step: number): void {
    const { extents, arena } = this.#allocator;
    for (const [slot, { row, address }] of this.#placed) {
      if (extents.size[slot]! > 0 && extents.address[slot] === address) {
        continue;
      }
      this.#extents.end(row, step);
      this.#placed.delete(slot);
    }
    for (const slot of extents.slots()) {
      const address = extents.address[slot]!;
      if (address < 0 || this.#placed.has(slot)) continue;
      const row = this.#extents.add(
        address - arena.base,
        extents.size[slot]!,
        step,
      );
      this.#placed.set(slot, { row, address });
    }
  }

  /** The map of a replay of so many steps. */
  finish(steps: number): MemoryMap {
    return {
      steps,
      blocks: this.#blocks.finish(steps),
      extents: this.#extents.finish(steps),
    };
  }
}

/** Placements in columns that grow. */
class PlacementTable {
  #count = 0;
  #address: Float64Array = new Float64Array(0);
  #bytes: Float64Array = new Float64Array(0);
  #from: Uint32Array = new Uint32Array(0);
  /** One more than the step of the end; 0 while there is none. */
  #to: Uint32Array = new Uint32Array(0);

  add(address: number, bytes: number, from: number): number {
    const row = this.#count++;
    this.#address = grown(this.#address, this.#count);
    this.#bytes = grown(this.#bytes, this.#count);
    this.#from = grown(this.#from, this.#count);
    this.#to = grown(this.#to, this.#count);
    this.#address[row] = address;
    this.#bytes[row] = bytes;
    this.#from[row] = from;
    return row;
  }

  end(row: number, step: number): void {
    this.#to[row] = step + 1;
  }

  finish(steps: number): Placements {
    const count = this.#count;
    return {
      address: this.#address.slice(0, count),
      bytes: this.#bytes.slice(0, count),
      from: this.#from.slice(0, count),
      to: this.#to.slice(0, count).map((to) => to === 0 ? steps : to - 1),
    };
  }
}
