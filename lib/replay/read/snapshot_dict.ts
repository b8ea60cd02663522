/**
 * The dicts of a PyTorch memory snapshot.
 *
 * @module
 */

import { HugeInteger, PickleDict, type Value } from "./pickle_values.ts";
import { type Key, KEY_COUNT, SNAPSHOT_WORDS } from "./snapshot_words.ts";
import type { Word } from "./words.ts";

/** A dict, of which the items with keys of interest are kept. */
export class SnapshotDict extends PickleDict {
  #items: (Value | undefined)[] | undefined;

  override set(key: Word, value: Value): void {
    if (key.index >= KEY_COUNT) return;
    this.#items ??= new Array<Value | undefined>(KEY_COUNT).fill(undefined);
    this.#items[key.index] = value;
  }

  /** The value of a key, undefined if there is none. */
  get(key: Key): Value | undefined {
    return this.#items?.[key];
  }

  /**
   * The value of a key that is to be an address, a number of bytes or the like; `missing`
   * if there is none, undefined if it is anything but an integer from 0 to 2^53 - 1.
   */
  count(key: Key, missing?: number): number | undefined {
    const value = this.get(key);
    if (value === undefined) return missing;
    return typeof value === "number" && value >= 0 &&
        Number.isSafeInteger(value)
      ? value
      : undefined;
  }

  /** Says why `count` gave undefined. */
  miscount(key: Key): string {
    const name = SNAPSHOT_WORDS.words[key]!.text;
    const value = this.get(key);
    if (value instanceof HugeInteger) {
      return `its "${name}" at byte ${value.offset} is not below 2^53`;
    }
    const got = value === undefined
      ? "missing"
      : typeof value === "number"
      ? `${value}`
      : "something else";
    return `its "${name}" should be an integer from 0 on, but is ${got}`;
  }
}
