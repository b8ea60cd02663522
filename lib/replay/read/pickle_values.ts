/**
 * What the pickle machine has on its stack. Only what a reader asks for is kept: numbers,
 * words of its vocabulary, and the dicts and lists that it makes itself.
 *
 * @module
 */

import type { Word } from "./words.ts";

/** A value of a pickle. */
export type Value =
  | number
  | Word
  | PickleDict
  | PickleList
  | Unkept
  | HugeInteger;

/** A value that is not kept; what it is, in words. */
export class Unkept {
  /** A string that is no word, a tuple, a set, bytes, a boolean or None. */
  static readonly OTHER: Unkept = new Unkept("something else");
  /** An object that the pickle has named before and refers to again. */
  static readonly RECALLED: Unkept = new Unkept(
    "a second mention of an earlier object, which is not kept",
  );

  /** Says what it is. */
  readonly what: string;

  private constructor(what: string) {
    this.what = what;
  }
}

/** An integer that a double does not hold exactly. */
export class HugeInteger {
  /** Where in the file it is. */
  readonly offset: number;

  /** Makes one. */
  constructor(offset: number) {
    this.offset = offset;
  }
}

/** A dict in the making. */
export abstract class PickleDict {
  /** Sets an item; those whose key is no word are left out. */
  abstract set(key: Word, value: Value): void;
}

/** A list in the making. */
export abstract class PickleList {
  /** Appends a value, which is complete; `offset` says about where in the file it is. */
  abstract push(value: Value, offset: number): void;
}

/** Makes the dicts and lists of a pickle. */
export interface PickleFactory {
  /** An empty dict. */
  dict(): PickleDict;
  /** An empty list. */
  list(): PickleList;
}
