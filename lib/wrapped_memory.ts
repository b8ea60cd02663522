/**
 * Memory that somebody else allocated.
 *
 * @module
 */

import type { AccessOptions, FillOptions } from "./block.ts";
import { bytesOf } from "./bytes.ts";
import {
  checkFillValue,
  copyInAsync,
  copyOutAsync,
  type DataRange,
  destinationOf,
  fillRange,
} from "./data_access.ts";
import { ClosedError, DriverError } from "./errors.ts";
import type { MoonBright } from "./moonbright.ts";
import { checkBytes } from "./sizes.ts";
import { type ElementType, TypedView } from "./typed_view.ts";

/**
 * Memory of another library that blocks' operations can be done on: read, write, fill, and
 * pass to kernels. It is never freed, counted, or ordered among streams: whoever allocated
 * it must keep it until the work that uses it has passed, and order that work. Closing
 * only ends the use.
 */
export class WrappedMemory implements Disposable {
  readonly #owner: MoonBright;
  readonly #address: number;
  readonly #size: number;
  #open = true;

  /** Made by {@linkcode MoonBright.wrap}. */
  constructor(owner: MoonBright, address: number, size: number) {
    const { driver } = owner;
    if (!driver.wrapMemory) {
      throw new DriverError(
        "unsupported",
        "wrap",
        `Cannot wrap memory: ${driver.info.backend} shares none with others`,
      );
    }
    driver.wrapMemory(address, size);
    this.#owner = owner;
    this.#address = address;
    this.#size = size;
  }

  /** The device address of the first byte. */
  get address(): number {
    this.#assertOpen("read the address");
    return this.#address;
  }

  /** Bytes. */
  get size(): number {
    return this.#size;
  }

  /** Copies host bytes in, in stream order; the default stream if none is given. */
  write(source: ArrayBufferView | ArrayBuffer, options?: AccessOptions): void {
    const bytes = bytesOf(source);
    const at = this.#range("write", bytes.byteLength, options);
    if (bytes.byteLength === 0) return;
    this.#owner.driver.copyIn(at.address, bytes, at.driverId);
  }

  /** Copies to host bytes, in stream order; returns when they are there. */
  read(
    destination: ArrayBufferView | ArrayBuffer | number = this.size,
    options?: AccessOptions,
  ): Uint8Array {
    const bytes = destinationOf(destination, this.size);
    const at = this.#range("read", bytes.byteLength, options);
    if (bytes.byteLength > 0) {
      this.#owner.driver.copyOut(bytes, at.address, at.driverId);
    }
    return bytes;
  }

  /** `write` on another thread; the source must stay as it is until the promise settles. */
  async writeAsync(
    source: ArrayBufferView | ArrayBuffer,
    options?: AccessOptions,
  ): Promise<void> {
    const bytes = bytesOf(source);
    const at = this.#range("write", bytes.byteLength, options);
    await copyInAsync(this.#owner.driver, at, bytes);
  }

  /** `read` on another thread; the destination must not be used until the promise settles. */
  async readAsync(
    destination: ArrayBufferView | ArrayBuffer | number = this.size,
    options?: AccessOptions,
  ): Promise<Uint8Array> {
    const bytes = destinationOf(destination, this.size);
    const at = this.#range("read", bytes.byteLength, options);
    await copyOutAsync(this.#owner.driver, at, bytes);
    return bytes;
  }

  /** Fills bytes with a value, in stream order. */
  fill(value: number, options: FillOptions = {}): void {
    const width = options.width ?? 1;
    checkFillValue(value, width);
    const offset = options.offset ?? 0;
    const bytes = options.bytes ?? this.size - offset;
    const at = this.#range("fill", bytes, options);
    fillRange(this.#owner.driver, at, value, width, bytes, offset);
  }

  /** The memory as elements of a type, such as `f32`. */
  as<T extends ElementType>(type: T): TypedView<T> {
    return new TypedView(this, type);
  }

  /** Ends the use and frees nothing. Does nothing the second time. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    if (!this.#owner.closed) this.#owner.driver.unwrapMemory!(this.#address);
  }

  /** Ends the use. */
  [Symbol.dispose](): void {
    this.close();
  }

  #range(
    operation: string,
    bytes: number,
    options: AccessOptions = {},
  ): DataRange {
    this.#assertOpen(operation);
    const offset = checkBytes(options.offset ?? 0, "the offset");
    if (
      !(Number.isInteger(bytes) && bytes >= 0 && offset + bytes <= this.#size)
    ) {
      throw new RangeError(
        `Cannot ${operation} ${bytes} bytes at offset ${offset}: the memory has ${this.#size}`,
      );
    }
    const stream = options.stream ?? this.#owner.defaultStream;
    this.#owner.streamNumber(stream, operation);
    return {
      address: this.#address + offset,
      driverId: stream.driverId(operation),
    };
  }

  #assertOpen(operation: string): void {
    this.#owner.assertOpen(operation);
    if (!this.#open) throw new ClosedError(operation, "the wrapped memory");
  }
}
