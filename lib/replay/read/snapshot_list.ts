/**
 * The lists of a PyTorch memory snapshot. A pickle makes inner values first, so what a
 * list is good for shows in its first item. A list with an item that does not fit only
 * takes note of it, since nobody may ask for that list: most are stacks of calls.
 *
 * @module
 */

import { PickleList, Unkept, type Value } from "./pickle_values.ts";

/** What a list keeps of its items. */
export interface ListContent {
  /** Takes an item in; returns what is wrong with it, undefined if nothing is. */
  add(item: Value, index: number, offset: number): string | undefined;
}

/** What keeps a list from being used. */
export interface ListProblem {
  /** Index of the item that does not fit. */
  index: number;
  /** What is wrong with it. */
  what: string;
  /** Where in the file it was appended. */
  offset: number;
}

/** Chooses what a list with that first item keeps, undefined if it is of no interest. */
export type ChooseContent = (
  first: Value,
  offset: number,
) => ListContent | undefined;

/** A list, of which the content is kept. */
export class SnapshotList extends PickleList {
  /** Number of items. */
  length = 0;
  /** What is kept of them; undefined if there are none or they are of no interest. */
  content: ListContent | undefined;
  /** The first item that does not fit. */
  problem: ListProblem | undefined;
  readonly #choose: ChooseContent;

  /** Makes an empty list. */
  constructor(choose: ChooseContent) {
    super();
    this.#choose = choose;
  }

  override push(item: Value, offset: number): void {
    const index = this.length++;
    if (this.problem) return;
    if (index === 0) this.content = this.#choose(item, offset);
    const what = this.content
      ? this.content.add(item, index, offset)
      : whatIs(item);
    if (what !== undefined) this.problem = { index, what, offset };
  }
}

/** Says that an item is of no interest. */
export function whatIs(item: Value): string {
  return item instanceof Unkept ? `it is ${item.what}` : "it is something else";
}
