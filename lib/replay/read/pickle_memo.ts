/**
 * The objects that a pickle has named for later use. Python names nearly every object of
 * a snapshot, and refers again to its strings only, so a byte tells what each was.
 *
 * @module
 */

import { grown } from "../../growable.ts";
import { Unkept, type Value } from "./pickle_values.ts";
import { type Vocabulary, Word } from "./words.ts";

const EMPTY = 0;
const UNKEPT = 1;
const FIRST_WORD = 2;

/** What is known of the objects by number. */
export class PickleMemo {
  /** Number of objects, which is the number of the next one. */
  count = 0;
  readonly #values: readonly Value[];
  #codes = new Uint8Array(4096);

  /** Makes an empty memo that can hold the words of a vocabulary of up to 254. */
  constructor({ words }: Vocabulary) {
    this.#values = [Unkept.RECALLED, Unkept.RECALLED, ...words];
  }

  /** Names an object. */
  store(index: number, value: Value): void {
    if (index >= this.#codes.length) {
      this.#codes = grown(this.#codes, index + 1);
    }
    if (this.#codes[index] === EMPTY) this.count++;
    this.#codes[index] = value instanceof Word
      ? FIRST_WORD + value.index
      : UNKEPT;
  }

  /** The object of that name, or what stands for it; undefined if there is none. */
  recall(index: number): Value | undefined {
    const code = this.#codes[index];
    return code === undefined || code === EMPTY
      ? undefined
      : this.#values[code];
  }
}
