/**
 * Ranges that show everything a page table can say, and what it should say of them.
 *
 * @module
 */

import type { PagedRange } from "../paging/paged_range.ts";
import type { PagedSpace } from "../paging/paged_space.ts";

/** Pages that the ranges take at least. */
export const LEAST_PAGES = 8;

/** What the table should say of a page, and what the page holds. */
export interface ExpectedPage {
  /** Which of the ranges it is of. */
  range: "grown" | "fork" | "protected";
  /** Whether its entry forbids writing. */
  readOnly: boolean;
  /** Version of its range when the entry was written. */
  version: number;
  /** The first word of its frame. */
  word: bigint;
}

/** "MBpage", so that what memory held before is not taken for a page. */
const WORDS = 0x4D42_7061_6765_0000n;

/**
 * Makes the ranges in an empty space of at least {@linkcode LEAST_PAGES} pages; returns
 * what to expect of its pages, by number. The last quarter stays without frames.
 *
 * @throws {OutOfMemoryError} if there is no memory for them
 */
export function makeRanges(space: PagedSpace): Map<number, ExpectedPage> {
  const quarter = Math.floor(space.pages / 4);
  const expected = new Map<number, ExpectedPage>();
  /** Notes pages whose entries the last call wrote. */
  const note = (
    range: ExpectedPage["range"],
    { firstPage, version }: PagedRange,
    pages: { from: number; to: number; readOnly: boolean },
  ) => {
    for (let page = pages.from; page < pages.to; page++) {
      const word = expected.get(firstPage + page)?.word ?? 0n;
      const { readOnly } = pages;
      expected.set(firstPage + page, { range, readOnly, version, word });
    }
  };
  const write = (range: PagedRange, page: number) => {
    const number = range.firstPage + page;
    const word = WORDS + BigInt(number);
    range.write(BigUint64Array.of(word), { offset: page * space.pageSize });
    expected.get(number)!.word = word;
  };

  const grown = space.alloc(Math.ceil(quarter / 2), { maxPages: quarter });
  const before = grown.pages;
  note("grown", grown, { from: 0, to: before, readOnly: false });
  grown.grow();
  note("grown", grown, { from: before, to: before + 1, readOnly: false });
  for (let page = 0; page < grown.pages; page++) write(grown, page);

  const fork = grown.fork();
  note("grown", grown, { from: 0, to: grown.pages, readOnly: true });
  note("fork", fork, { from: 0, to: fork.pages, readOnly: true });
  for (let page = 0; page < fork.pages; page++) {
    const { word } = expected.get(grown.firstPage + page)!;
    expected.get(fork.firstPage + page)!.word = word;
  }
  // The first page that is written gets a frame of its own.
  fork.writable(0, 1);
  note("fork", fork, { from: 0, to: 1, readOnly: false });
  write(fork, 0);

  const sealed = space.alloc(quarter);
  note("protected", sealed, { from: 0, to: quarter, readOnly: false });
  for (let page = 0; page < quarter; page++) write(sealed, page);
  sealed.protect(true);
  note("protected", sealed, { from: 0, to: quarter, readOnly: true });
  return expected;
}
