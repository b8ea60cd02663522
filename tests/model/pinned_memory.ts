import { DriverError } from "../../lib/errors.ts";

/** Below everything that the address space of the device gives. */
const firstAddress = 2 ** 36;
const pageBytes = 4096;
const most = 2 ** 30;

interface PinnedBlock {
  address: number;
  bytes: Uint8Array;
}

/** Page-locked memory of the host, which the model device uses at the same address. */
export class PinnedMemory {
  readonly #blocks = new Map<number, PinnedBlock>();
  #nextAddress = firstAddress;

  /** How many allocations there are. */
  get count(): number {
    return this.#blocks.size;
  }

  /** Allocates; returns the address, which is never given twice. */
  allocate(size: number): number {
    if (size > most) {
      throw new DriverError(
        "out-of-memory",
        "allocPinned",
        `Cannot allocPinned: ${size} bytes are more than ${most}`,
      );
    }
    const address = this.#nextAddress;
    // A page is left free behind it to catch overruns.
    this.#nextAddress += Math.ceil(size / pageBytes + 1) * pageBytes;
    // Not zeros: what it holds at first is left open.
    const bytes = new Uint8Array(size).fill(0xa5);
    this.#blocks.set(address, { address, bytes });
    return address;
  }

  /** Frees the allocation that starts at `address`; false if there is none. */
  free(address: number): boolean {
    return this.#blocks.delete(address);
  }

  /** Whether an allocation starts at `address`. */
  startsAt(address: number): boolean {
    return this.#blocks.has(address);
  }

  /** The bytes of a range that lies inside one allocation. */
  find(address: number, size: number): Uint8Array | undefined {
    for (const block of this.#blocks.values()) {
      const offset = address - block.address;
      if (offset >= 0 && offset + size <= block.bytes.length) {
        return block.bytes.subarray(offset, offset + size);
      }
    }
    return undefined;
  }

  /** Frees everything. */
  clear(): void {
    this.#blocks.clear();
  }
}
