import { DriverError } from "../../lib/errors.ts";

const firstAddress = 2 ** 44;
const endAddress = 2 ** 52;

/** The reservations of the model device: first fit, low addresses first. */
export class AddressSpace {
  /** Ascending by address. */
  readonly #reservations: { address: number; size: number }[] = [];
  readonly #granularity: number;
  readonly #reservable: number;

  /** Makes a space where all reservations together may have `reservable` bytes. */
  constructor(granularity: number, reservable: number) {
    this.#granularity = granularity;
    this.#reservable = reservable;
  }

  /** How many reservations exist. */
  get count(): number {
    return this.#reservations.length;
  }

  /** Reserves a range, with a granule left free behind it to catch overruns. */
  reserve(size: number): number {
    let index = 0;
    let address = Math.ceil(firstAddress / this.#granularity) *
      this.#granularity;
    for (; index < this.#reservations.length; index++) {
      const next = this.#reservations[index]!;
      if (address + size + this.#granularity <= next.address) break;
      address = next.address + next.size + this.#granularity;
    }
    const reserved = this.#reservations.reduce((sum, one) => sum + one.size, 0);
    if (
      reserved + size > this.#reservable || address + size > endAddress
    ) {
      throw new DriverError(
        "out-of-addresses",
        "reserve",
        `Cannot reserve ${size} bytes of addresses: ${reserved} of at most ` +
          `${this.#reservable} are reserved`,
      );
    }
    this.#reservations.splice(index, 0, { address, size });
    return address;
  }

  /** The reservation that starts at `address`. */
  startingAt(address: number): { address: number; size: number } | undefined {
    return this.#reservations.find((one) => one.address === address);
  }

  /** Whether one reservation holds the whole range. */
  holds(address: number, size: number): boolean {
    return this.#reservations.some((one) =>
      address >= one.address && address + size <= one.address + one.size
    );
  }

  /** Gives the reservation that starts at `address` back. */
  unreserve(address: number): void {
    const index = this.#reservations.findIndex((one) =>
      one.address === address
    );
    if (index >= 0) this.#reservations.splice(index, 1);
  }

  /** Gives all reservations back. */
  clear(): void {
    this.#reservations.length = 0;
  }
}
