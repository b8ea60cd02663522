// Pickles plain data byte for byte as Python's C pickler does, in protocols 2 to 5: what it
// memoizes, how it batches items, where it begins frames. So tests need no Python.

/** A string that is an object of its own, even if there is an equal one. */
export class Str {
  constructor(readonly text: string) {}
}

/** A tuple. */
export class Tuple {
  readonly items: PickleValue[];
  constructor(...items: PickleValue[]) {
    this.items = items;
  }
}

/** A float, also where a number would be written as an integer. */
export class Float {
  constructor(readonly value: number) {}
}

/** Numbers are ints if they are whole; equal strings are one object; objects are dicts. */
export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Str
  | Tuple
  | Float
  | Uint8Array
  | PickleValue[]
  | { [key: string]: PickleValue }
  | Map<PickleValue, PickleValue>;

export type Protocol = 2 | 3 | 4 | 5;

const BATCH = 1000;
const FRAME_TARGET = 64 * 1024;
const FRAME_HEADER = 9;
const FRAME_MIN = 4;

/** Pickles a value. */
export function pickled(value: PickleValue, protocol: Protocol): Uint8Array {
  const writer = new PickleWriter(protocol);
  writer.dump(value);
  return writer.bytes;
}

class PickleWriter {
  #protocol: Protocol;
  #out = new Uint8Array(1 << 16);
  #view = new DataView(this.#out.buffer);
  #length = 0;
  #framing = false;
  /** Where the frame being written begins, -1 if there is none. */
  #frame = -1;
  readonly #memo = new Map<unknown, number>();

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  get bytes(): Uint8Array {
    return this.#out.subarray(0, this.#length);
  }

  dump(value: PickleValue): void {
    this.#op(0x80, this.#protocol);
    this.#framing = this.#protocol >= 4;
    this.#save(value);
    this.#op(0x2e);
    this.#endFrame();
  }

  #save(value: PickleValue): void {
    if (this.#frameBytes() >= FRAME_TARGET) this.#endFrame();
    if (value === null) return this.#op(0x4e);
    if (typeof value === "boolean") return this.#op(value ? 0x88 : 0x89);
    if (typeof value === "bigint") return this.#int(value);
    if (typeof value === "number") {
      return Number.isInteger(value) ? this.#int(value) : this.#float(value);
    }
    if (value instanceof Float) return this.#float(value.value);
    const known = this.#memo.get(value);
    if (known !== undefined) return this.#get(known);
    if (typeof value === "string") this.#string(value);
    else if (value instanceof Str) this.#string(value.text);
    else if (value instanceof Uint8Array) this.#binary(value);
    else if (value instanceof Tuple) return this.#tuple(value);
    else if (Array.isArray(value)) return this.#list(value);
    else return this.#dict(value);
    this.#put(value);
  }

  #int(value: number | bigint): void {
    if (value >= -(2 ** 31) && value < 2 ** 31) {
      const small = Number(value);
      if (small >= 0 && small < 256) return this.#op(0x4b, small);
      if (small >= 0 && small < 65536) {
        this.#op(0x4d);
        return this.#number(small, 2);
      }
      this.#op(0x4a);
      return this.#number(small, 4);
    }
    const bytes: number[] = [];
    let rest = BigInt(value);
    do {
      bytes.push(Number(rest & 255n));
      rest >>= 8n;
      // Until the sign of the last byte tells the rest.
    } while (rest !== (bytes.at(-1)! >= 128 ? -1n : 0n));
    if (bytes.length < 256) this.#op(0x8a, bytes.length);
    else {
      this.#op(0x8b);
      this.#number(bytes.length, 4);
    }
    this.#raw(Uint8Array.from(bytes));
  }

  #float(value: number): void {
    this.#op(0x47);
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value);
    this.#length += 8;
  }

  #string(text: string): void {
    const bytes = new TextEncoder().encode(text);
    if (this.#protocol >= 4 && bytes.length < 256) {
      this.#op(0x8c, bytes.length);
      this.#raw(bytes);
    } else this.#payload(0x58, 4, bytes);
  }

  #binary(bytes: Uint8Array): void {
    if (this.#protocol < 3) {
      throw new TypeError("Protocol 2 writes bytes by a call");
    }
    if (bytes.length < 256) {
      this.#op(0x43, bytes.length);
      this.#raw(bytes);
    } else this.#payload(0x42, 4, bytes);
  }

  /** Large strings are written between frames. */
  #payload(opcode: number, lengthBytes: number, bytes: Uint8Array): void {
    const framing = this.#framing;
    if (bytes.length >= FRAME_TARGET) {
      this.#endFrame();
      this.#framing = false;
    }
    this.#op(opcode);
    this.#number(bytes.length, lengthBytes);
    this.#raw(bytes);
    this.#framing = framing;
  }

  #tuple(tuple: Tuple): void {
    const { items } = tuple;
    if (items.length === 0) return this.#op(0x29);
    if (items.length > 3) this.#op(0x28);
    for (const item of items) this.#save(item);
    this.#op(items.length > 3 ? 0x74 : 0x84 + items.length);
    this.#put(tuple);
  }

  #list(list: PickleValue[]): void {
    this.#op(0x5d);
    this.#put(list);
    if (list.length === 1) {
      this.#save(list[0]!);
      return this.#op(0x61);
    }
    for (let at = 0; at < list.length; at += BATCH) {
      this.#op(0x28);
      for (const item of list.slice(at, at + BATCH)) this.#save(item);
      this.#op(0x65);
    }
  }

  #dict(
    dict: { [key: string]: PickleValue } | Map<PickleValue, PickleValue>,
  ): void {
    this.#op(0x7d);
    this.#put(dict);
    const entries = dict instanceof Map ? [...dict] : Object.entries(dict);
    if (entries.length === 1) {
      this.#save(entries[0]![0]);
      this.#save(entries[0]![1]);
      return this.#op(0x73);
    }
    if (entries.length === 0) return;
    // The C pickler ends with an empty batch if the last one was full.
    for (let at = 0; at <= entries.length; at += BATCH) {
      this.#op(0x28);
      for (const [key, value] of entries.slice(at, at + BATCH)) {
        this.#save(key);
        this.#save(value);
      }
      this.#op(0x75);
    }
  }

  #get(index: number): void {
    if (index < 256) return this.#op(0x68, index);
    this.#op(0x6a);
    this.#number(index, 4);
  }

  #put(value: PickleValue): void {
    const index = this.#memo.size;
    this.#memo.set(value, index);
    if (this.#protocol >= 4) return this.#op(0x94);
    if (index < 256) return this.#op(0x71, index);
    this.#op(0x72);
    this.#number(index, 4);
  }

  #op(opcode: number, operand?: number): void {
    this.#reserve(FRAME_HEADER + 2);
    if (this.#framing && this.#frame < 0) {
      this.#frame = this.#length;
      this.#length += FRAME_HEADER;
    }
    this.#out[this.#length++] = opcode;
    if (operand !== undefined) this.#out[this.#length++] = operand;
  }

  #number(value: number, bytes: number): void {
    this.#reserve(bytes);
    for (let i = 0; i < bytes; i++) {
      this.#out[this.#length++] = Math.floor(value / 256 ** i) & 255;
    }
  }

  #raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#out.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #frameBytes(): number {
    return this.#frame < 0 ? 0 : this.#length - this.#frame - FRAME_HEADER;
  }

  #endFrame(): void {
    if (this.#frame < 0) return;
    const bytes = this.#frameBytes();
    if (bytes >= FRAME_MIN) {
      this.#out[this.#frame] = 0x95;
      this.#view.setBigUint64(this.#frame + 1, BigInt(bytes), true);
    } else {
      this.#out.copyWithin(
        this.#frame,
        this.#frame + FRAME_HEADER,
        this.#length,
      );
      this.#length -= FRAME_HEADER;
    }
    this.#frame = -1;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#out.length) return;
    const larger = new Uint8Array(
      Math.max(this.#out.length * 2, this.#length + bytes),
    );
    larger.set(this.bytes);
    this.#out = larger;
    this.#view = new DataView(larger.buffer);
  }
}
