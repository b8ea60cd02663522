import type { Driver } from "../driver.ts";

/**
 * A little device memory from the driver itself, not from the allocator: so that the
 * allocator's figures are those of the blocks alone, and a budget that they use up
 * leaves room for the results of checking them.
 */
export class ResultArea implements Disposable {
  /** Device address of its first byte. */
  readonly address: number;
  readonly #driver: Driver;
  readonly #extent: number;
  readonly #size: number;

  /** Maps one extent of the device's granularity. */
  constructor(driver: Driver) {
    this.#driver = driver;
    this.#size = driver.info.granularity;
    this.address = driver.reserve(this.#size);
    let extent: number | undefined;
    try {
      [extent] = driver.createExtents([this.#size]);
      driver.map(this.address, [extent!]);
    } catch (error) {
      if (extent !== undefined) driver.releaseExtents([extent]);
      driver.unreserve(this.address);
      throw error;
    }
    this.#extent = extent!;
  }

  /** Copies bytes to its beginning, in the default stream's order. */
  write(bytes: Uint8Array): void {
    this.#driver.copyIn(this.address, bytes, 0);
  }

  /** Reads bytes from its beginning after the default stream's work. */
  read(bytes: Uint8Array): void {
    this.#driver.copyOut(bytes, this.address, 0);
  }

  /** Gives everything back. */
  [Symbol.dispose](): void {
    this.#driver.synchronizeStream(0);
    this.#driver.unmap([{ address: this.address, size: this.#size }]);
    this.#driver.releaseExtents([this.#extent]);
    this.#driver.unreserve(this.address);
  }
}
