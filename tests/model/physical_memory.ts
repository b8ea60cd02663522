import { DriverError } from "../../lib/errors.ts";

/**
 * Contents are kept by chunk, and only of what was written: bytes, or the one
 * 32-bit pattern that fills the whole chunk.
 */
const chunkBytes = 4096;
type Chunk = Uint8Array | number;

/** One physical allocation of the model device. */
export interface Extent {
  /** The driver's id; never given twice. */
  readonly id: number;
  /** Bytes. */
  readonly size: number;
  /** How often it is mapped now. */
  mappings: number;
  /** Whether it was given back. */
  released: boolean;
  /** What was written, by number of chunk. */
  readonly chunks: Map<number, Chunk>;
}

/** Byte `offset` of memory that holds a 32-bit little-endian pattern. */
function patternByte(pattern: number, offset: number): number {
  return (pattern >>> (8 * (offset & 3))) & 0xff;
}

/**
 * What a fresh extent holds. It depends on the extent and the place, so that a
 * read of unwritten memory is never mistaken for zeros or for someone's data.
 */
function garbageByte(extentId: number, offset: number): number {
  const word = Math.imul(extentId ^ 0x5bd1e995, 0x9e3779b1) ^
    Math.imul((offset >>> 2) + 1, 0x85ebca6b);
  return patternByte(word ^ (word >>> 15), offset) | 1;
}

function chunkContents(extent: Extent, index: number): Uint8Array {
  const chunk = extent.chunks.get(index);
  if (chunk instanceof Uint8Array) return chunk;
  const bytes = new Uint8Array(chunkBytes);
  const start = index * chunkBytes;
  for (let at = 0; at < chunkBytes; at++) {
    bytes[at] = chunk === undefined
      ? garbageByte(extent.id, start + at)
      : patternByte(chunk, at);
  }
  return bytes;
}

/** The memory of the model device: extents, their contents and the limit. */
export class PhysicalMemory {
  readonly #extents = new Map<number, Extent>();
  readonly #total: number;
  #used = 0;
  #nextId = 1;

  /** Makes a memory of `total` bytes. */
  constructor(total: number) {
    this.#total = total;
  }

  /** Bytes in no extent. */
  get free(): number {
    return this.#total - this.#used;
  }

  /** Bytes of the device. */
  get total(): number {
    return this.#total;
  }

  /** How many extents exist. */
  get count(): number {
    return this.#extents.size;
  }

  /** The extent of that id, if it exists. */
  get(id: number): Extent | undefined {
    return this.#extents.get(id);
  }

  /** Creates all the extents or none; throws when memory is out. */
  create(sizes: readonly number[]): Extent[] {
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    if (bytes > this.free) {
      throw new DriverError(
        "out-of-memory",
        "createExtents",
        `Cannot create ${sizes.length} extents of ${bytes} bytes in all: ` +
          `${this.free} of ${this.#total} bytes are free`,
      );
    }
    return sizes.map((size) => {
      const extent: Extent = {
        id: this.#nextId++,
        size,
        mappings: 0,
        released: false,
        chunks: new Map(),
      };
      this.#extents.set(extent.id, extent);
      this.#used += size;
      return extent;
    });
  }

  /** Gives an extent's memory back; what it held is gone. */
  release(extent: Extent): void {
    extent.released = true;
    extent.chunks.clear();
    this.#extents.delete(extent.id);
    this.#used -= extent.size;
  }

  /** Releases every extent. */
  clear(): void {
    for (const extent of [...this.#extents.values()]) this.release(extent);
  }
}

/** Copies an extent's bytes from `offset` on into `target`. */
export function readExtent(
  extent: Extent,
  offset: number,
  target: Uint8Array,
): void {
  for (let done = 0; done < target.length;) {
    const index = Math.floor((offset + done) / chunkBytes);
    const within = (offset + done) % chunkBytes;
    const length = Math.min(chunkBytes - within, target.length - done);
    target.set(
      chunkContents(extent, index).subarray(within, within + length),
      done,
    );
    done += length;
  }
}

/** Writes `source` into an extent from `offset` on. */
export function writeExtent(
  extent: Extent,
  offset: number,
  source: Uint8Array,
): void {
  for (let done = 0; done < source.length;) {
    const index = Math.floor((offset + done) / chunkBytes);
    const within = (offset + done) % chunkBytes;
    const length = Math.min(chunkBytes - within, source.length - done);
    const bytes = length === chunkBytes
      ? new Uint8Array(chunkBytes)
      : chunkContents(extent, index);
    bytes.set(source.subarray(done, done + length), within);
    extent.chunks.set(index, bytes);
    done += length;
  }
}

/** Fills `bytes` of an extent with a 32-bit pattern whose phase is the offset's. */
export function fillExtent(
  extent: Extent,
  offset: number,
  pattern: number,
  bytes: number,
): void {
  for (let done = 0; done < bytes;) {
    const index = Math.floor((offset + done) / chunkBytes);
    const within = (offset + done) % chunkBytes;
    const length = Math.min(chunkBytes - within, bytes - done);
    if (length === chunkBytes) {
      extent.chunks.set(index, pattern);
    } else {
      const contents = chunkContents(extent, index);
      for (let at = within; at < within + length; at++) {
        contents[at] = patternByte(pattern, at);
      }
      extent.chunks.set(index, contents);
    }
    done += length;
  }
}
