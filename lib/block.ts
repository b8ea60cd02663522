/**
 * A block of device memory, as its owner holds it.
 *
 * @module
 */

import { notLive } from "./allocator.ts";
import { bytesOf } from "./bytes.ts";
import {
  checkFillValue,
  copyInAsync,
  copyOutAsync,
  type DataRange,
  destinationOf,
  fillRange,
} from "./data_access.ts";
import { isLive } from "./heap.ts";
import type { InvalidBlockError } from "./errors.ts";
import type { MoonBright } from "./moonbright.ts";
import { resizeBlock } from "./resize.ts";
import { checkBytes } from "./sizes.ts";
import type { Stream } from "./stream.ts";
import { type ElementType, TypedView } from "./typed_view.ts";

/** Record of a freed empty block: of no other, and a small integer for the engine. */
const FREED_EMPTY = -(2 ** 30) + 1;

/** Where in a block to read, write or fill, and in which stream. */
export interface AccessOptions {
  /** First byte within the block; 0 if left out. */
  offset?: number;
  /** The stream to do it in; the block's own if left out. */
  stream?: Stream;
}

/** What to fill. */
export interface FillOptions extends AccessOptions {
  /** Bytes to fill, a multiple of the width; to the block's end if left out. */
  bytes?: number;
  /** Bytes of the value: 1, 2 or 4; 1 if left out. */
  width?: 1 | 2 | 4;
}

/**
 * A block of device memory. Freed by `free()` or at the end of a `using` scope. An
 * owner that is garbage-collected does not free its block.
 */
export class Block {
  // Not #private: reading those costs a brand check on the hot path.
  private readonly owner: MoonBright;
  /** Record of the block, 0 of an empty one; negative once freed through this owner. */
  private id: number;
  private readonly generation: number;

  /** Made by {@linkcode MoonBright.alloc}. */
  constructor(owner: MoonBright, id: number, generation: number) {
    this.owner = owner;
    this.id = id;
    this.generation = generation;
  }

  /** The device address of the first byte, a multiple of 512; 0 of an empty block. */
  get address(): number {
    const id = this.#record("read the address");
    return id === 0 ? 0 : this.owner.allocator.blocks.address[id]!;
  }

  /**
   * The device address as a pointer for functions of other libraries, `null` of an empty
   * block. Valid until the block is freed, which such a library doesn't notice. Needs
   * `--allow-ffi`.
   */
  get pointer(): Deno.PointerValue {
    return Deno.UnsafePointer.create(BigInt(this.address));
  }

  /** Bytes asked for. */
  get size(): number {
    const id = this.#record("read the size");
    return id === 0 ? 0 : this.owner.allocator.blocks.requested[id]!;
  }

  /** Bytes set aside for the block: the size rounded up. */
  get capacity(): number {
    const id = this.#record("read the capacity");
    return id === 0 ? 0 : this.owner.allocator.blocks.size[id]!;
  }

  /** The block's name, if it was given one. */
  get name(): string | undefined {
    return this.owner.allocator.names.get(this.#record("read the name"));
  }

  /** The stream whose order the block follows. */
  get stream(): Stream {
    const id = this.#record("read the stream");
    return this.owner.streamByNumber(this.owner.allocator.blocks.stream[id]!);
  }

  /** Whether the block is still live. */
  get live(): boolean {
    return !this.owner.closed &&
      (this.id === 0 ||
        isLive(this.owner.allocator.blocks, this.id, this.generation));
  }

  /**
   * Frees the block: its memory can serve its stream's next request at once, other
   * streams once the work in it has passed. Never waits for the device, but to look at
   * canaries.
   *
   * @param stream the stream of its last use, if that is not its own; every earlier use
   *   must come before this point of that stream
   * @throws {InvalidBlockError} if the block was already freed
   * @throws {CanaryError} if canaries show that the block was overrun; it stays live, and
   *   another call frees it
   */
  free(stream?: Stream): void {
    const { owner, id } = this;
    owner.assertOpen("free");
    if (id === 0) this.id = FREED_EMPTY;
    else if (id < 0) throw this.#notLive("free");
    else {
      owner.allocator.free(
        id,
        this.generation,
        stream === undefined ? undefined : owner.streamNumber(stream, "free"),
      );
      this.id = -id;
    }
  }

  /** Frees the block if it is live; otherwise does nothing. */
  [Symbol.dispose](): void {
    if (this.live) this.free();
    else if (this.id > 0) this.id = -this.id;
  }

  /**
   * Changes the size in place; the address and what fits of the contents stay. A block that
   * a graph uses keeps its capacity when it shrinks.
   *
   * @throws {MoonBrightError} code `cannot-grow` if other memory lies behind the block
   * @throws {OutOfMemoryError} if there is room but no memory
   * @throws {CanaryError} if canaries show that the block was overrun
   */
  resize(bytes: number | bigint): void {
    const id = this.#record("resize");
    const requested = checkBytes(bytes, "the new size");
    if (id === 0 || requested === 0) {
      if (requested === this.size) return;
      throw new RangeError(
        `Cannot resize from ${this.size} to ${requested} bytes: an empty block has no memory; free it and allocate anew`,
      );
    }
    resizeBlock(this.owner.allocator, id, requested);
  }

  /**
   * Notes that work on another stream uses the block, and makes that stream wait for
   * the block's own first. When freed, the block is not handed out before both have
   * passed. While the stream, be it the block's own, is capturing, the graph is noted as
   * a user as well: the block keeps its memory until that is closed.
   */
  useOn(stream: Stream): void {
    const id = this.#record("use");
    const number = this.owner.streamNumber(stream, "use");
    if (id !== 0) this.owner.allocator.useOn(id, number);
  }

  /**
   * Copies host bytes into the block, in stream order. The source may be reused when
   * this returns.
   *
   * @throws {RangeError} if it does not fit
   */
  write(source: ArrayBufferView | ArrayBuffer, options?: AccessOptions): void {
    const bytes = bytesOf(source);
    const { driver } = this.owner;
    this.#access("write", bytes.byteLength, options, (at) => {
      driver.copyIn(at.address, bytes, at.driverId);
    });
  }

  /**
   * Copies from the block to host bytes, in stream order; returns when they are there.
   *
   * @param destination the bytes to fill, or how many to read into new ones
   * @throws {RangeError} if the block is shorter
   */
  read(
    destination: ArrayBufferView | ArrayBuffer | number = this.size,
    options?: AccessOptions,
  ): Uint8Array {
    const bytes = destinationOf(destination, this.size);
    const { driver } = this.owner;
    this.#access("read", bytes.byteLength, options, (at) => {
      driver.copyOut(bytes, at.address, at.driverId);
    });
    return bytes;
  }

  /**
   * Fills bytes of the block with a value, in stream order.
   *
   * @throws {RangeError} if value, width or range are out of bounds
   */
  fill(value: number, options: FillOptions = {}): void {
    const width = options.width ?? 1;
    checkFillValue(value, width);
    const offset = options.offset ?? 0;
    const bytes = options.bytes ?? this.size - offset;
    const { driver } = this.owner;
    this.#access("fill", bytes, options, (at) => {
      fillRange(driver, at, value, width, bytes, offset);
    });
  }

  /**
   * `write` on another thread, so that the event loop goes on. Until the promise settles
   * the source must stay as it is, the block can be neither freed nor resized, and where
   * in the stream's order the copy comes is not known: put nothing into the stream that
   * depends on it.
   *
   * @example
   * ```ts
   * import { MoonBright } from "@moonbright/moonbright";
   *
   * using mb = MoonBright.open({ device: "host" });
   * using block = mb.alloc(1024 ** 2);
   * await block.writeAsync(new Uint8Array(1024 ** 2));
   * const bytes = await block.readAsync();
   * ```
   *
   * @throws {RangeError} if it does not fit
   */
  async writeAsync(
    source: ArrayBufferView | ArrayBuffer,
    options?: AccessOptions,
  ): Promise<void> {
    const bytes = bytesOf(source);
    const at = this.#range("write", bytes.byteLength, options);
    await this.#whileCopying(() => copyInAsync(this.owner.driver, at, bytes));
  }

  /**
   * `read` on another thread, under the same conditions as {@linkcode writeAsync}; the
   * destination must not be used before the promise settles.
   *
   * @throws {RangeError} if the block is shorter
   */
  async readAsync(
    destination: ArrayBufferView | ArrayBuffer | number = this.size,
    options?: AccessOptions,
  ): Promise<Uint8Array> {
    const bytes = destinationOf(destination, this.size);
    const at = this.#range("read", bytes.byteLength, options);
    await this.#whileCopying(() => copyOutAsync(this.owner.driver, at, bytes));
    return bytes;
  }

  /**
   * The block as elements of a type.
   *
   * @example
   * ```ts
   * import { MoonBright } from "@moonbright/moonbright";
   *
   * using mb = MoonBright.open({ device: "host" });
   * using block = mb.alloc(1024);
   * const floats = block.as("f32");
   * floats.write([1, 2, 3]);
   * console.log(floats.read({ count: 3 })); // Float32Array [1, 2, 3]
   * ```
   *
   * @throws {TypeError} if there is no such type
   */
  as<T extends ElementType>(type: T): TypedView<T> {
    return new TypedView(this, type);
  }

  /** Keeps the block from being freed or resized while another thread uses it. */
  async #whileCopying(copy: () => Promise<void>): Promise<void> {
    const { id } = this;
    if (id === 0) return;
    const { blocks, copies } = this.owner.allocator;
    copies.begin(blocks, id);
    try {
      await copy();
    } finally {
      copies.end(blocks, id);
    }
  }

  /** Takes back a `useOn`: the call for which it was made has failed. */
  useFailed(stream: Stream): void {
    if (this.id > 0) {
      this.owner.allocator.pending.useFailed(this.id, stream.number);
    }
  }

  /** The record, after checking that the block is live. */
  #record(operation: string): number {
    this.owner.assertOpen(operation);
    const { id } = this;
    if (id === 0) return 0;
    if (!isLive(this.owner.allocator.blocks, id, this.generation)) {
      throw this.#notLive(operation);
    }
    return id;
  }

  #notLive(operation: string): InvalidBlockError {
    const { watch } = this.owner.allocator;
    const id = Math.abs(this.id);
    return notLive(operation, watch?.history.ofOwner(id, this.generation));
  }

  /** Makes a call for a range of the block; if it fails, the stream has not used the block. */
  #access(
    operation: string,
    bytes: number,
    options: AccessOptions | undefined,
    call: (at: DataRange) => void,
  ): void {
    const at = this.#range(operation, bytes, options);
    if (bytes === 0) return;
    try {
      call(at);
    } catch (error) {
      this.useFailed(options?.stream ?? this.stream);
      throw error;
    }
  }

  /** Checks a range of the block and notes the use of the stream. */
  #range(
    operation: string,
    bytes: number,
    options: AccessOptions = {},
  ): { address: number; driverId: number } {
    const id = this.#record(operation);
    const size = this.size;
    const offset = checkBytes(options.offset ?? 0, "the offset");
    if (!(Number.isInteger(bytes) && bytes >= 0 && offset + bytes <= size)) {
      throw new RangeError(
        `Cannot ${operation} ${bytes} bytes at offset ${offset}: the block has ${size}`,
      );
    }
    const stream = options.stream ?? this.stream;
    const driverId = stream.driverId(operation);
    this.useOn(stream);
    return { address: id === 0 ? 0 : this.address + offset, driverId };
  }
}
