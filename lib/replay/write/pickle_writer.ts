/**
 * Writing Python's pickle format, protocol 4, which Python 3.4 and later read. Only plain
 * values are written, none that Python would import or call something for. No frames: they
 * are optional and would need lengths in advance.
 *
 * @module
 */

import { Op } from "../read/pickle_opcodes.ts";

/** What can be written. Objects become dicts, arrays lists, whole numbers integers. */
export type PickleValue =
  | null
  | boolean
  | number
  | string
  | PickleTuple
  | readonly PickleValue[]
  | { readonly [key: string]: PickleValue };

/** A Python tuple of two. */
export class PickleTuple {
  /** Its values. */
  readonly items: readonly [PickleValue, PickleValue];

  /** A tuple of two values. */
  constructor(first: PickleValue, second: PickleValue) {
    this.items = [first, second];
  }
}

const PROTOCOL = 4;
/** Bytes that are gathered before they are handed on. */
const CHUNK = 64 * 1024;
/** Items of a list that are added to it at a time. */
const BATCH = 1000;

/** Writes one pickle, piece by piece. */
export class PickleWriter {
  readonly #encoder = new TextEncoder();
  #out = new Uint8Array(2 * CHUNK);
  #view = new DataView(this.#out.buffer);
  #length = 0;
  /** Strings by their place in the memo. */
  readonly #memo = new Map<string, number>();

  /** Begins the pickle. */
  begin(): void {
    this.#op(Op.PROTO);
    this.#byte(PROTOCOL);
  }

  /** Begins a dict, whose keys and values follow in turn until `endDict`. */
  beginDict(): void {
    this.#op(Op.EMPTY_DICT);
    this.#op(Op.MARK);
  }

  /** Ends a dict. */
  endDict(): void {
    this.#op(Op.SETITEMS);
  }

  /** Ends the pickle. */
  *end(): Generator<Uint8Array> {
    this.#op(Op.STOP);
    if (this.#length > 0) yield this.#take();
  }

  /** Writes a list whose items are made as they are written; hands on what is gathered. */
  *list(items: Iterable<PickleValue>): Generator<Uint8Array> {
    this.#op(Op.EMPTY_LIST);
    let batch = 0;
    for (const item of items) {
      if (batch === 0) this.#op(Op.MARK);
      this.value(item);
      if (++batch === BATCH) {
        this.#op(Op.APPENDS);
        batch = 0;
      }
      if (this.#length >= CHUNK) yield this.#take();
    }
    if (batch > 0) this.#op(Op.APPENDS);
  }

  /** Writes a list of such lists. */
  *listOfLists(
    lists: readonly Iterable<PickleValue>[],
  ): Generator<Uint8Array> {
    this.#op(Op.EMPTY_LIST);
    if (lists.length === 0) return;
    this.#op(Op.MARK);
    for (const items of lists) yield* this.list(items);
    this.#op(Op.APPENDS);
  }

  /**
   * Writes a value.
   *
   * @throws {RangeError} for numbers that are no integers from 0 to 2^53 - 1
   */
  value(value: PickleValue): void {
    if (value === null) this.#op(Op.NONE);
    else if (typeof value === "boolean") {
      this.#op(value ? Op.NEWTRUE : Op.NEWFALSE);
    } else if (typeof value === "number") this.#integer(value);
    else if (typeof value === "string") this.#string(value);
    else if (value instanceof PickleTuple) {
      for (const item of value.items) this.value(item);
      this.#op(Op.TUPLE2);
    } else if (Array.isArray(value)) {
      this.#op(Op.EMPTY_LIST);
      if (value.length === 0) return;
      this.#op(Op.MARK);
      for (const item of value) this.value(item);
      this.#op(Op.APPENDS);
    } else {
      this.beginDict();
      for (const [key, item] of Object.entries(value)) {
        this.#string(key);
        this.value(item);
      }
      this.endDict();
    }
  }

  #integer(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new RangeError(
        `Cannot write ${value}: it is no integer from 0 to 2^53 - 1`,
      );
    }
    if (value < 2 ** 8) {
      this.#op(Op.BININT1);
      this.#byte(value);
    } else if (value < 2 ** 16) {
      this.#op(Op.BININT2);
      this.#view.setUint16(this.#room(2), value, true);
    } else if (value < 2 ** 31) {
      this.#op(Op.BININT);
      this.#view.setInt32(this.#room(4), value, true);
    } else {
      // The highest bit is the sign, so 2^53 takes 7 bytes.
      this.#op(Op.LONG1);
      this.#byte(7);
      this.#view.setBigUint64(this.#room(8), BigInt(value), true);
      this.#length--;
    }
  }

  /** A string is written once; from then on its place in the memo stands for it. */
  #string(text: string): void {
    const place = this.#memo.get(text);
    if (place === undefined) {
      const bytes = this.#encoder.encode(text);
      if (bytes.length < 2 ** 8) {
        this.#op(Op.SHORT_BINUNICODE);
        this.#byte(bytes.length);
      } else {
        this.#op(Op.BINUNICODE);
        this.#view.setUint32(this.#room(4), bytes.length, true);
      }
      this.#out.set(bytes, this.#room(bytes.length));
      this.#op(Op.MEMOIZE);
      this.#memo.set(text, this.#memo.size);
    } else if (place < 2 ** 8) {
      this.#op(Op.BINGET);
      this.#byte(place);
    } else {
      this.#op(Op.LONG_BINGET);
      this.#view.setUint32(this.#room(4), place, true);
    }
  }

  #op(opcode: number): void {
    this.#byte(opcode);
  }

  #byte(value: number): void {
    this.#out[this.#room(1)] = value;
  }

  /** Makes room for so many bytes and returns where they begin. */
  #room(bytes: number): number {
    const at = this.#length;
    this.#length += bytes;
    if (this.#length > this.#out.length) {
      const larger = new Uint8Array(2 * this.#length);
      larger.set(this.#out);
      this.#out = larger;
      this.#view = new DataView(larger.buffer);
    }
    return at;
  }

  #take(): Uint8Array {
    const chunk = this.#out.slice(0, this.#length);
    this.#length = 0;
    return chunk;
  }
}
