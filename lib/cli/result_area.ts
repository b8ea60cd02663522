import type { Driver } from "../driver.ts";
import { isPlain, type PlainDriver } from "../plain_extents.ts";

/**
 * A little device memory from the driver itself, not from the allocator: so that the
 * allocator's figures are those of the blocks alone, and a budget that they use up
 * leaves room for the results of checking them.
 */
export class ResultArea implements Disposable {
  /** Device address of its first byte. */
  readonly address: number;
  readonly #driver: Driver;
  /** The same where the device can't map memory. */
  readonly #plain: PlainDriver | undefined;
  readonly #extent: number = 0;
  readonly #size: number;

  /** Maps one extent of the device's granularity, or allocates as much where that can't be. */
  constructor(driver: Driver) {
    this.#driver = driver;
    this.#size = driver.info.granularity;
    if (isPlain(driver)) {
      this.#plain = driver;
      this.address = driver.plainAlloc(this.#size);
      return;
    }
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
    if (this.#plain) {
      this.#plain.plainFree(this.address);
      return;
    }
    this.#driver.unmap([{ address: this.address, size: this.#size }]);
    this.#driver.releaseExtents([this.#extent]);
    this.#driver.unreserve(this.address);
  }
}
