/**
 * A machine that carries out the part of Python's pickle format that makes plain data, a
 * chunk at a time. It imports, calls and looks up nothing.
 *
 * Values that the reader has no use for are dropped as soon as they are complete. A
 * snapshot of five million events takes 0.4 GB so, and 2 GB and eight times as long with
 * npm's pickleparser, which keeps all objects (see bench/trace_reader_bench.ts).
 *
 * @module
 */

import { MAX_MEMO, MAX_STACK } from "./limits.ts";
import { PickleMemo } from "./pickle_memo.ts";
import {
  Op,
  OPERAND_BYTES,
  refusalOf,
  REFUSED,
  REWRITE,
} from "./pickle_opcodes.ts";
import {
  HugeInteger,
  PickleDict,
  type PickleFactory,
  PickleList,
  Unkept,
  type Value,
} from "./pickle_values.ts";
import type { TraceFormatError } from "./trace_format_error.ts";
import { type Vocabulary, Word } from "./words.ts";

/** Longer integers are beyond 2^53 in any case. */
const LONGEST_INTEGER = 8;

/** Makes the error for a problem at an offset of the file. */
type FailAt = (problem: string, offset: number) => TraceFormatError;

/** The state of a pickle that is being read. */
export class PickleMachine {
  /** The pickled value, once all of it has been read. */
  result: Value | undefined;
  /** Bytes that the opcode takes at which `run` had to stop. */
  needed = 1;
  readonly #vocabulary: Vocabulary;
  readonly #factory: PickleFactory;
  readonly #fail: FailAt;
  readonly #memo: PickleMemo;
  readonly #stack: Value[] = [];
  #depth = 0;
  /** Depths of the stack at the marks. */
  readonly #marks: number[] = [];
  /** The last of them: what lies below is out of reach until the mark is gone. */
  #floor = 0;
  /** Offset of the opcode that is being carried out, where errors need it. */
  #offset = 0;

  /** Makes a machine whose dicts and lists the factory makes, and whose strings are words. */
  constructor(vocabulary: Vocabulary, factory: PickleFactory, fail: FailAt) {
    this.#vocabulary = vocabulary;
    this.#factory = factory;
    this.#fail = fail;
    this.#memo = new PickleMemo(vocabulary);
  }

  /**
   * Carries out the opcodes from `bytes[at]` on, where `bytes[0]` is at offset `base` of
   * the file. Returns where it stopped: because `result` is there, or because that opcode
   * needs `needed` bytes. That may be beyond the end, if bytes are to be skipped.
   */
  run(bytes: Uint8Array, at: number, base: number): number {
    const end = bytes.length;
    while (at < end) {
      const opcode = bytes[at]!;
      const next = at + 1 + OPERAND_BYTES[opcode]!;
      this.#offset = base + at;
      if (next > end) {
        if (OPERAND_BYTES[opcode] === REFUSED) throw this.#refusal(opcode);
        this.needed = next - at;
        return at;
      }
      let length = 0;
      switch (opcode) {
        case Op.LONG_BINGET:
          this.#recall(uint32(bytes, at + 1));
          break;
        case Op.BINGET:
          this.#recall(bytes[at + 1]!);
          break;
        case Op.MEMOIZE:
          this.#memoize(this.#memo.count);
          break;
        case Op.BININT1:
          this.#push(bytes[at + 1]!);
          break;
        case Op.BININT2:
          this.#push(bytes[at + 1]! | bytes[at + 2]! << 8);
          break;
        case Op.BININT:
          this.#push(uint32(bytes, at + 1) | 0);
          break;
        case Op.LONG1:
        case Op.LONG4:
          length = opcode === Op.LONG1
            ? bytes[at + 1]!
            : this.#signedLength(bytes, at);
          if (length <= LONGEST_INTEGER && next + length > end) {
            this.needed = next + length - at;
            return at;
          }
          this.#push(this.#integer(bytes, next, length));
          break;
        case Op.SHORT_BINUNICODE:
        case Op.SHORT_BINSTRING:
        case Op.BINUNICODE:
        case Op.BINSTRING:
        case Op.BINUNICODE8:
          length = this.#length(bytes, at, next);
          if (length <= this.#vocabulary.longest && next + length > end) {
            this.needed = next + length - at;
            return at;
          }
          this.#push(
            this.#vocabulary.find(bytes, next, length) ?? Unkept.OTHER,
          );
          break;
        case Op.SHORT_BINBYTES:
        case Op.BINBYTES:
        case Op.BINBYTES8:
        case Op.BYTEARRAY8:
          length = this.#length(bytes, at, next);
          this.#push(Unkept.OTHER);
          break;
        case Op.BINFLOAT:
          this.#push(float64(bytes, at + 1));
          break;
        case Op.PROTO:
          this.#checkProtocol(bytes[at + 1]!);
          break;
        case Op.BINPUT:
          this.#memoize(bytes[at + 1]!);
          break;
        case Op.LONG_BINPUT:
          this.#memoize(uint32(bytes, at + 1));
          break;
        case Op.FRAME:
          // Says how much to read ahead, which the stream decides here.
          break;
        case Op.STOP:
          this.#stop();
          return next;
        default:
          this.#structure(opcode);
      }
      at = next + length;
    }
    this.needed = 1;
    return at;
  }

  /** Opcodes without an operand that make, fill and drop values. */
  #structure(opcode: number): void {
    switch (opcode) {
      case Op.MARK:
        this.#mark();
        break;
      case Op.EMPTY_DICT:
        this.#push(this.#factory.dict());
        break;
      case Op.SETITEMS:
        this.#fillDict(this.#popMark());
        break;
      case Op.SETITEM:
        this.#fillDict(this.#below(2));
        break;
      case Op.EMPTY_LIST:
        this.#push(this.#factory.list());
        break;
      case Op.APPENDS:
        this.#fillList(this.#popMark());
        break;
      case Op.APPEND:
        this.#fillList(this.#below(1));
        break;
      case Op.DICT:
        this.#makeDict(this.#popMark());
        break;
      case Op.LIST:
        this.#makeList(this.#popMark());
        break;
      case Op.NONE:
      case Op.NEWTRUE:
      case Op.NEWFALSE:
      case Op.EMPTY_TUPLE:
      case Op.EMPTY_SET:
        this.#push(Unkept.OTHER);
        break;
      case Op.TUPLE1:
        this.#combine(this.#below(1));
        break;
      case Op.TUPLE2:
        this.#combine(this.#below(2));
        break;
      case Op.TUPLE3:
        this.#combine(this.#below(3));
        break;
      case Op.TUPLE:
      case Op.FROZENSET:
        this.#combine(this.#popMark());
        break;
      case Op.ADDITEMS:
      case Op.POP_MARK:
        this.#depth = this.#popMark();
        break;
      case Op.POP:
        this.#pop();
        break;
      default:
        throw this.#refusal(opcode);
    }
  }

  #push(value: Value): void {
    if (this.#depth === MAX_STACK) throw this.#tooDeep();
    this.#stack[this.#depth++] = value;
  }

  #mark(): void {
    if (this.#marks.length === MAX_STACK) throw this.#tooDeep();
    this.#marks.push(this.#depth);
    this.#floor = this.#depth;
  }

  /** Takes the last mark away; returns the depth at which it was. */
  #popMark(): number {
    const depth = this.#marks.pop();
    if (depth === undefined) throw this.#damaged("a mark is missing");
    this.#floor = this.#marks.at(-1) ?? 0;
    return depth;
  }

  /** The depth below the uppermost `count` values, of which the last mark hides none. */
  #below(count: number): number {
    const depth = this.#depth - count;
    if (depth < this.#floor) throw this.#damaged("a value is missing");
    return depth;
  }

  /** Takes the uppermost value away, or a mark if that is on top. */
  #pop(): void {
    if (this.#depth > this.#floor) this.#depth--;
    else this.#popMark();
  }

  /** Replaces the values from depth `from` on by a tuple or set, which is not kept. */
  #combine(from: number): void {
    this.#depth = from;
    this.#push(Unkept.OTHER);
  }

  /** Moves the values from depth `from` on into the dict that lies below them. */
  #fillDict(from: number): void {
    const target = this.#target(from);
    if (target instanceof PickleDict) this.#setItems(target, from);
    else throw this.#damaged("there is no dict to set items of");
    this.#depth = from;
  }

  /** Moves the values from depth `from` on into the list that lies below them. */
  #fillList(from: number): void {
    const target = this.#target(from);
    if (target instanceof PickleList) this.#append(target, from);
    else throw this.#damaged("there is no list to append to");
    this.#depth = from;
  }

  #makeDict(from: number): void {
    const dict = this.#factory.dict();
    this.#setItems(dict, from);
    this.#depth = from;
    this.#push(dict);
  }

  #makeList(from: number): void {
    const list = this.#factory.list();
    this.#append(list, from);
    this.#depth = from;
    this.#push(list);
  }

  /** The value just below depth `from`. */
  #target(from: number): Value {
    if (from <= this.#floor) throw this.#damaged("a value is missing");
    return this.#stack[from - 1]!;
  }

  #setItems(dict: PickleDict, from: number): void {
    if ((this.#depth - from) % 2 !== 0) {
      throw this.#damaged("a key has no value");
    }
    for (let i = from; i < this.#depth; i += 2) {
      const key = this.#stack[i]!;
      if (key instanceof Word) dict.set(key, this.#stack[i + 1]!);
    }
  }

  #append(list: PickleList, from: number): void {
    for (let i = from; i < this.#depth; i++) {
      list.push(this.#stack[i]!, this.#offset);
    }
  }

  /** Names the uppermost value. */
  #memoize(index: number): void {
    const value = this.#stack[this.#below(1)]!;
    // Writers number objects in order, so a number beyond the bytes so far is nonsense.
    if (index > this.#offset) {
      throw this.#damaged(`object number ${index} is out of order`);
    }
    if (index >= MAX_MEMO) {
      throw this.#fail(
        `it names more than ${MAX_MEMO} objects; record fewer events`,
        this.#offset,
      );
    }
    this.#memo.store(index, value);
  }

  #recall(index: number): void {
    const value = this.#memo.recall(index);
    if (value === undefined) {
      throw this.#damaged(`there is no object number ${index}`);
    }
    this.#push(value);
  }

  #checkProtocol(protocol: number): void {
    if (protocol >= 2 && protocol <= 5) return;
    throw this.#fail(
      `expected pickle protocol 2 to 5, got ${protocol}; ${REWRITE}`,
      this.#offset,
    );
  }

  #stop(): void {
    if (this.#depth !== 1 || this.#marks.length > 0) {
      throw this.#damaged(`it ends with ${this.#depth} values, not one`);
    }
    this.result = this.#stack[0]!;
  }

  /** The length that the operand of a string at `at` gives; the string begins at `next`. */
  #length(bytes: Uint8Array, at: number, next: number): number {
    switch (next - at - 1) {
      case 1:
        return bytes[at + 1]!;
      case 4:
        // Python reads the length of BINSTRING as signed, and refuses what is not positive.
        return bytes[at] === Op.BINSTRING
          ? this.#signedLength(bytes, at)
          : uint32(bytes, at + 1);
      default:
        return uint32(bytes, at + 1) + uint32(bytes, at + 5) * 2 ** 32;
    }
  }

  #signedLength(bytes: Uint8Array, at: number): number {
    const length = uint32(bytes, at + 1) | 0;
    if (length < 0) throw this.#damaged(`a length is ${length}`);
    return length;
  }

  /** A little-endian integer in two's complement; 0 if it has no bytes. */
  #integer(bytes: Uint8Array, at: number, length: number): Value {
    if (length === 0) return 0;
    if (length > LONGEST_INTEGER) return new HugeInteger(this.#offset);
    let value = 0;
    // The highest byte has the sign.
    for (let i = length - 1; i >= 0; i--) {
      const byte = bytes[at + i]!;
      value = value * 256 + (i === length - 1 ? byte << 24 >> 24 : byte);
    }
    return Number.isSafeInteger(value) ? value : new HugeInteger(this.#offset);
  }

  #refusal(opcode: number): TraceFormatError {
    return this.#fail(refusalOf(opcode), this.#offset);
  }

  #tooDeep(): TraceFormatError {
    return this.#fail(
      `it has more than ${MAX_STACK} values pending; no memory snapshot is nested like that`,
      this.#offset,
    );
  }

  #damaged(what: string): TraceFormatError {
    return this.#fail(
      `the pickle is damaged (${what}); copy or record the file again`,
      this.#offset,
    );
  }
}

function uint32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 |
    bytes[at + 3]! << 24) >>> 0;
}

/** Floats are big-endian, unlike all else. */
function float64(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getFloat64(at);
}
