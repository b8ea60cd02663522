/**
 * Device memory as elements of a type.
 *
 * @module
 */

import type { AccessOptions } from "./block.ts";
import { checkBytes } from "./sizes.ts";
import type { Stream } from "./stream.ts";

const ARRAYS = {
  u8: Uint8Array,
  i8: Int8Array,
  u16: Uint16Array,
  i16: Int16Array,
  f16: Float16Array,
  u32: Uint32Array,
  i32: Int32Array,
  f32: Float32Array,
  u64: BigUint64Array,
  i64: BigInt64Array,
  f64: Float64Array,
} as const;

/** The typed arrays by types of elements. */
export interface ElementArrays {
  /** Whole numbers of 8 bits, from 0 on. */
  u8: Uint8Array;
  /** Whole numbers of 8 bits. */
  i8: Int8Array;
  /** Whole numbers of 16 bits, from 0 on. */
  u16: Uint16Array;
  /** Whole numbers of 16 bits. */
  i16: Int16Array;
  /** Floating-point numbers of 16 bits. */
  f16: Float16Array;
  /** Whole numbers of 32 bits, from 0 on. */
  u32: Uint32Array;
  /** Whole numbers of 32 bits. */
  i32: Int32Array;
  /** Floating-point numbers of 32 bits. */
  f32: Float32Array;
  /** Whole numbers of 64 bits, from 0 on. */
  u64: BigUint64Array;
  /** Whole numbers of 64 bits. */
  i64: BigInt64Array;
  /** Floating-point numbers of 64 bits. */
  f64: Float64Array;
}

/** Name of a type of elements. */
export type ElementType = keyof ElementArrays;

/** The typed array of a type of elements. */
export type ElementArray<T extends ElementType> = ElementArrays[T];

/** Memory that can be read and written: a block, or wrapped memory. */
export interface DataMemory {
  /** Bytes. */
  readonly size: number;
  /** Copies host bytes in. */
  write(source: ArrayBufferView | ArrayBuffer, options?: AccessOptions): void;
  /** Copies bytes out. */
  read(
    destination: ArrayBufferView | ArrayBuffer | number,
    options?: AccessOptions,
  ): Uint8Array;
  /** Copies host bytes in, on another thread. */
  writeAsync(
    source: ArrayBufferView | ArrayBuffer,
    options?: AccessOptions,
  ): Promise<void>;
  /** Copies bytes out, on another thread. */
  readAsync(
    destination: ArrayBufferView | ArrayBuffer | number,
    options?: AccessOptions,
  ): Promise<Uint8Array>;
}

/** Where to read or write, in elements. */
export interface ElementOptions {
  /** First element; 0 if left out. */
  start?: number;
  /** The stream to do it in; the memory's own if left out. */
  stream?: Stream;
}

/** What to read, in elements. */
export interface ElementReadOptions extends ElementOptions {
  /** How many; up to the end if left out. */
  count?: number;
}

/**
 * Memory seen as elements of a type, in the byte order of the device, which is little
 * endian everywhere. Copies nothing by itself and owns nothing.
 */
export class TypedView<T extends ElementType> {
  /** Name of the elements' type. */
  readonly type: T;
  readonly #memory: DataMemory;

  /** Made by `as` of a block or of wrapped memory. */
  constructor(memory: DataMemory, type: T) {
    if (!Object.hasOwn(ARRAYS, type)) {
      throw new TypeError(
        `Cannot view memory as "${type}": expected one of ${
          Object.keys(ARRAYS).join(", ")
        }`,
      );
    }
    this.#memory = memory;
    this.type = type;
  }

  /** Bytes of an element. */
  get bytesPerElement(): number {
    return ARRAYS[this.type].BYTES_PER_ELEMENT;
  }

  /** Whole elements that the memory holds. */
  get length(): number {
    return Math.floor(this.#memory.size / this.bytesPerElement);
  }

  /**
   * Copies elements to the host, in stream order; returns when they are there.
   *
   * @throws {RangeError} if there are not so many
   */
  read(options: ElementReadOptions = {}): ElementArray<T> {
    const { array, access } = this.#range(options);
    this.#memory.read(array, access);
    return array;
  }

  /** `read` on another thread. */
  async readAsync(options: ElementReadOptions = {}): Promise<ElementArray<T>> {
    const { array, access } = this.#range(options);
    await this.#memory.readAsync(array, access);
    return array;
  }

  /**
   * Copies elements to the device, in stream order. A plain array is converted first.
   *
   * @throws {RangeError} if they do not fit
   * @throws {TypeError} if they are of another type
   */
  write(
    values: ElementArray<T> | readonly ElementArray<T>[number][],
    options: ElementOptions = {},
  ): void {
    this.#memory.write(this.#arrayOf(values), this.#access(options));
  }

  /** `write` on another thread; the values must stay as they are until it has ended. */
  async writeAsync(
    values: ElementArray<T> | readonly ElementArray<T>[number][],
    options: ElementOptions = {},
  ): Promise<void> {
    await this.#memory.writeAsync(this.#arrayOf(values), this.#access(options));
  }

  #range(
    options: ElementReadOptions,
  ): { array: ElementArray<T>; access: AccessOptions } {
    const access = this.#access(options);
    const { length } = this;
    const start = options.start ?? 0;
    const count = options.count ?? Math.max(0, length - start);
    if (!Number.isInteger(count) || count < 0 || start + count > length) {
      throw new RangeError(
        `Cannot read ${count} elements from ${start} on: there are ${length}`,
      );
    }
    return { array: new ARRAYS[this.type](count) as ElementArray<T>, access };
  }

  #access({ start = 0, stream }: ElementOptions): AccessOptions {
    const first = checkBytes(start, "the first element");
    return {
      offset: first * this.bytesPerElement,
      ...(stream === undefined ? {} : { stream }),
    };
  }

  #arrayOf(
    values: ElementArray<T> | readonly ElementArray<T>[number][],
  ): ElementArray<T> {
    const kind = ARRAYS[this.type];
    if (values instanceof kind) return values as ElementArray<T>;
    if (!Array.isArray(values)) {
      throw new TypeError(
        `Cannot write: expected a ${kind.name} or a plain array`,
      );
    }
    return (kind as { from(values: unknown): unknown })
      .from(values) as ElementArray<T>;
  }
}
