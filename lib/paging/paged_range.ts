/**
 * A range of virtual pages, as its owner holds it.
 *
 * @module
 */

import type { Piece } from "./frame_run.ts";
import type { PagedSpace, PagedView } from "./paged_space.ts";
import { InvalidBlockError } from "../errors.ts";
import type { Stream } from "../stream.ts";

/** Where in a range to read or write, and in which stream. */
export interface PagedAccess {
  /** First byte within the range; 0 if left out. */
  offset?: number;
  /** The stream to do it in; the range's own if left out. */
  stream?: Stream;
}

/** How to fork a range. */
export interface ForkOptions {
  /** The stream that the fork follows; the range's own if left out. */
  stream?: Stream;
  /** Pages that the fork may grow to; as many as the range may if left out. */
  maxPages?: number;
}

/** What the space keeps of a range. */
export interface RangeState {
  /** First virtual page. */
  readonly first: number;
  /** Virtual pages set aside for it. */
  readonly most: number;
  /** Pages that have frames. */
  pages: number;
  /** Their frames. */
  pieces: Piece[];
  /** The stream it was made for. */
  readonly owner: Stream;
  /** Number of the stream it follows. */
  stream: number;
  /** Other streams that used it, if any. */
  users: Set<number> | undefined;
  /** Grows with every change of its entries. */
  version: number;
  /** Whether writing was forbidden. */
  readOnly: boolean;
  /** Whether a captured graph may rewrite its entries: nothing of it is used again. */
  captured: boolean;
  live: boolean;
}

/**
 * Pages of a {@linkcode PagedSpace} that lie side by side in its table. Freed by
 * `free()` or at the end of a `using` scope.
 */
export class PagedRange {
  readonly #space: PagedSpace;
  readonly #state: RangeState;

  /** Made by {@linkcode PagedSpace.alloc} and {@linkcode PagedRange.fork}. */
  constructor(space: PagedSpace, state: RangeState) {
    this.#space = space;
    this.#state = state;
  }

  /** First virtual page: where the range begins in the table. */
  get firstPage(): number {
    return this.#check("read the first page").first;
  }

  /** Pages that have frames. */
  get pages(): number {
    return this.#check("read the pages").pages;
  }

  /** Pages that it may grow to. */
  get maxPages(): number {
    return this.#check("read the pages").most;
  }

  /** Bytes of its pages. */
  get size(): number {
    return this.pages * this.#space.pageSize;
  }

  /** What a kernel needs to translate offsets within the range. */
  get view(): PagedView {
    const { first, pages } = this.#check("read the view");
    return {
      ...this.#space.view,
      table: this.#space.table + 8 * first,
      pages,
    };
  }

  /** Grows with every change of its entries; in the `moonbright` format also in the entries. */
  get version(): number {
    return this.#check("read the version").version;
  }

  /** Whether the range is still live. */
  get live(): boolean {
    return this.#state.live && !this.#space.closed;
  }

  /**
   * Adds pages at the end.
   *
   * @throws {RangeError} if it may not have so many
   * @throws {OutOfMemoryError} if there is no memory for them; nothing has changed then
   */
  grow(pages = 1): void {
    this.#space.growRange(this.#check("grow"), pages);
  }

  /** Takes pages off the end. */
  shrink(pages = 1): void {
    this.#space.shrinkRange(this.#check("shrink"), pages);
  }

  /**
   * A range with the same contents that shares the frames: reading either reads the
   * same memory, and the first write to a page of either (see `writable`) copies it.
   */
  fork(options: ForkOptions = {}): PagedRange {
    return this.#space.forkRange(this.#check("fork"), options);
  }

  /** Makes pages writable before a kernel writes them: copies those that are shared. */
  writable(first = 0, count: number = this.pages - first): void {
    this.#space.makeWritable(this.#check("make writable"), first, count);
  }

  /** Forbids or allows writing all of the range; kernels that check will notice. */
  protect(readOnly: boolean): void {
    this.#space.protectRange(this.#check("protect"), readOnly);
  }

  /** Copies host bytes into the range, in stream order; shared pages are copied first. */
  write(source: ArrayBufferView | ArrayBuffer, access: PagedAccess = {}): void {
    this.#space.writeRange(this.#check("write"), source, access);
  }

  /** Copies from the range to host bytes, in stream order; returns when they are there. */
  read(
    destination: ArrayBufferView | ArrayBuffer | number = this.size,
    access: PagedAccess = {},
  ): Uint8Array {
    return this.#space.readRange(this.#check("read"), destination, access);
  }

  /**
   * Notes that kernels of another stream read the range, and makes that stream wait for
   * the range's own first. Its entries are not rewritten before those kernels are done.
   */
  useOn(stream: Stream): void {
    this.#space.useRange(this.#check("use"), stream);
  }

  /**
   * Frees the range: its frames can serve the stream's next request at once.
   *
   * @throws {InvalidBlockError} if it was already freed
   */
  free(): void {
    this.#space.freeRange(this.#check("free"));
  }

  /** Frees the range if it is live; otherwise does nothing. */
  [Symbol.dispose](): void {
    if (this.live) this.free();
  }

  #check(operation: string): RangeState {
    this.#space.assertOpen(operation);
    if (!this.#state.live) {
      throw new InvalidBlockError(
        operation,
        `Cannot ${operation}: the range of pages is not live; it was already freed`,
      );
    }
    this.#space.followOpenStream(this.#state);
    return this.#state;
  }
}
