/**
 * A block of device memory, as its owner holds it.
 *
 * @module
 */

import { notLive } from "./allocator.ts";
import { bytesOf } from "./bytes.ts";
import { isLive } from "./heap.ts";
import type { MoonBright } from "./moonbright.ts";
import { resizeBlock } from "./resize.ts";
import { checkBytes } from "./sizes.ts";
import type { Stream } from "./stream.ts";

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
  /** Record of the block; 0 of an empty one, -1 once freed through this owner. */
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
   * streams once the work in it has passed. Never waits for the device.
   *
   * @param stream the stream of its last use, if that is not its own; every earlier use
   *   must come before this point of that stream
   * @throws {InvalidBlockError} if the block was already freed
   */
  free(stream?: Stream): void {
    const { owner, id } = this;
    owner.assertOpen("free");
    if (id === 0) this.id = -1;
    else if (id < 0) throw notLive("free");
    else {
      owner.allocator.free(
        id,
        this.generation,
        stream === undefined ? undefined : owner.streamNumber(stream, "free"),
      );
      this.id = -1;
    }
  }

  /** Frees the block if it is live; otherwise does nothing. */
  [Symbol.dispose](): void {
    if (this.live) this.free();
    this.id = -1;
  }

  /**
   * Changes the size in place; the address and what fits of the contents stay. A block that
   * a graph uses keeps its capacity when it shrinks.
   *
   * @throws {MoonBrightError} code `cannot-grow` if other memory lies behind the block
   * @throws {OutOfMemoryError} if there is room but no memory
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
    this.#access("write", bytes.byteLength, options, (address, stream) => {
      driver.copyIn(address, bytes, stream);
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
    const bytes = typeof destination === "number"
      ? new Uint8Array(checkBytes(destination, "the length to read", this.size))
      : bytesOf(destination);
    const { driver } = this.owner;
    this.#access("read", bytes.byteLength, options, (address, stream) => {
      driver.copyOut(bytes, address, stream);
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
    if (width !== 1 && width !== 2 && width !== 4) {
      throw new RangeError(`Cannot fill: width ${width} is not 1, 2 or 4`);
    }
    if (!Number.isInteger(value) || value < 0 || value >= 2 ** (8 * width)) {
      throw new RangeError(
        `Cannot fill: ${value} is not a whole number of ${width} bytes`,
      );
    }
    const offset = options.offset ?? 0;
    const bytes = options.bytes ?? this.size - offset;
    if (bytes % width !== 0 || offset % width !== 0) {
      throw new RangeError(
        `Cannot fill: ${bytes} bytes at offset ${offset} are not whole elements of ${width} bytes`,
      );
    }
    const { driver } = this.owner;
    this.#access("fill", bytes, options, (address, stream) => {
      driver.fill(address, value, width, bytes / width, stream);
    });
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
      throw notLive(operation);
    }
    return id;
  }

  /** Checks a range of the block, notes the use of the stream, and makes a call for both. */
  #access(
    operation: string,
    bytes: number,
    options: AccessOptions = {},
    call: (address: number, driverStream: number) => void,
  ): void {
    this.#record(operation);
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
    if (bytes === 0) return;
    try {
      call(this.address + offset, driverId);
    } catch (error) {
      this.useFailed(stream);
      throw error;
    }
  }
}
