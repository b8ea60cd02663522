/**
 * Lists for kernels in page-locked host memory: written by the host, read in place by a
 * kernel, used again once the kernel's stream has passed.
 *
 * @module
 */

import type { MoonBright } from "../moonbright.ts";

const CHUNK_BYTES = 1024 ** 2;

interface Chunk {
  address: number;
  size: number;
  /** Bytes given out since the chunk was last empty. */
  used: number;
  /** Per stream, the epoch of the last list in the chunk. */
  epochs: Map<number, number>;
  /** Whether a captured graph reads it: never used again. */
  captured: boolean;
}

/** Page-locked lists of a paged space. */
export class PinnedRing {
  readonly #mb: MoonBright;
  readonly #chunks: Chunk[] = [];

  /** No memory yet. */
  constructor(mb: MoonBright) {
    this.#mb = mb;
  }

  /**
   * Copies a list for a kernel that is launched on `stream` next; returns its address.
   * A list written while the stream is captured stays until `close`.
   */
  write(bytes: Uint8Array, stream: number): number {
    const { streams, graphs } = this.#mb.allocator;
    const captured = streams.clocks[stream]!.capturing;
    const chunk = captured
      ? this.#newChunk(bytes.byteLength)
      : this.#chunkFor(bytes.byteLength);
    chunk.captured = captured;
    if (captured) graphs.onFailure(stream, () => chunk.captured = false);
    const address = chunk.address + chunk.used;
    this.#mb.driver.writePinned(address, bytes);
    chunk.used += Math.ceil(bytes.byteLength / 16) * 16;
    chunk.epochs.set(stream, streams.clocks[stream]!.recorded);
    return address;
  }

  /** Frees all lists; the kernels that read them must be done. */
  close(): void {
    while (this.#chunks.length > 0) {
      this.#mb.driver.freePinned(this.#chunks[0]!.address);
      this.#chunks.shift();
    }
  }

  #chunkFor(bytes: number): Chunk {
    const last = this.#chunks[this.#chunks.length - 1];
    if (last && !last.captured && last.used + bytes <= last.size) return last;
    const { streams } = this.#mb.allocator;
    // So that the chunk that is full now can be told to be done later.
    if (last && !last.captured) {
      for (const [stream, epoch] of last.epochs) {
        streams.ensureTicked(stream, epoch);
      }
    }
    streams.pollAll();
    const at = this.#chunks.findIndex((chunk) =>
      !chunk.captured && chunk.size >= bytes &&
      [...chunk.epochs].every(([stream, epoch]) =>
        streams.isPassed(stream, epoch)
      )
    );
    if (at >= 0) {
      const [chunk] = this.#chunks.splice(at, 1);
      chunk!.used = 0;
      chunk!.epochs.clear();
      this.#chunks.push(chunk!);
      return chunk!;
    }
    return this.#newChunk(Math.max(bytes, CHUNK_BYTES));
  }

  #newChunk(bytes: number): Chunk {
    const size = Math.ceil(bytes / 4096) * 4096;
    const chunk = {
      address: this.#mb.driver.allocPinned(size),
      size,
      used: 0,
      epochs: new Map<number, number>(),
      captured: false,
    };
    this.#chunks.push(chunk);
    return chunk;
  }
}
