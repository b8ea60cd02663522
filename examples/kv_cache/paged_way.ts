/**
 * A sequence is a range of pages: forks share them.
 *
 * @module
 */

import type {
  MoonBright,
  PagedRange,
  PagedSpace,
} from "@moonbright/moonbright";
import { PagedReader } from "./paged_reader.ts";
import type {
  CachedSequence,
  CacheShape,
  SequenceStore,
  Way,
} from "./sequence_store.ts";

const PAGE_BYTES = 64 * 1024;

class PagedSequence implements CachedSequence {
  readonly #range: PagedRange;
  readonly #reader: PagedReader;
  #used: number;

  constructor(range: PagedRange, reader: PagedReader, used: number) {
    this.#range = range;
    this.#reader = reader;
    this.#used = used;
  }

  append(bytes: Uint8Array): void {
    const end = this.#used + bytes.length;
    const missing = Math.ceil(end / PAGE_BYTES) - this.#range.pages;
    if (missing > 0) this.#range.grow(missing);
    // Copies the last page first if a fork shares it.
    this.#range.write(bytes, { offset: this.#used });
    this.#used = end;
  }

  fork(): CachedSequence {
    return new PagedSequence(this.#range.fork(), this.#reader, this.#used);
  }

  read(): Uint8Array {
    return this.#reader.read(this.#range, this.#used);
  }

  free(): void {
    this.#range.free();
  }
}

class PagedStore implements SequenceStore {
  readonly #space: PagedSpace;
  readonly #reader: PagedReader;
  readonly #maxPages: number;

  constructor(mb: MoonBright, shape: CacheShape) {
    const { tokenBytes, maxTokens, sequences } = shape;
    this.#maxPages = Math.ceil(tokenBytes * maxTokens / PAGE_BYTES);
    const livePages = sequences * this.#maxPages;
    this.#space = mb.pagedSpace({
      // Entries of freed ranges are cleared in batches: twice the table leaves room.
      pages: 2 * livePages,
      pageSize: PAGE_BYTES,
      maxFrames: Math.min(
        livePages,
        Math.floor(mb.device.totalMemory / PAGE_BYTES),
      ),
      frames: 1,
      name: "kv cache",
    });
    this.#reader = new PagedReader(mb);
  }

  get launches(): number {
    return this.#space.stats().launches;
  }

  start(prompt: Uint8Array): CachedSequence {
    const pages = Math.ceil(prompt.length / PAGE_BYTES);
    const range = this.#space.alloc(pages, { maxPages: this.#maxPages });
    const sequence = new PagedSequence(range, this.#reader, 0);
    sequence.append(prompt);
    return sequence;
  }
}

/** Ranges of a paged space. */
export const PAGED_WAY: Way = {
  name: "paged",
  explanation:
    "pages of a PagedSpace; a fork shares all pages and copies one when it writes there",
  open: (mb, shape) => new PagedStore(mb, shape),
};
