import { DriverError } from "../../lib/errors.ts";
import { checkRange, checkWhole } from "./argument_checks.ts";
import type { Context } from "./context.ts";
import type { DeviceStreams } from "./device_streams.ts";
import { hex } from "./mmu.ts";
import type { PinnedMemory } from "./pinned_memory.ts";

/** The calls on page-locked memory. */
export class DevicePinned {
  readonly #context: Context;
  readonly #pinned: PinnedMemory;
  readonly #work: DeviceStreams;

  /** Makes the calls for a memory that the work of the streams may use. */
  constructor(context: Context, pinned: PinnedMemory, work: DeviceStreams) {
    this.#context = context;
    this.#pinned = pinned;
    this.#work = work;
  }

  allocPinned(bytes: number): number {
    this.#context.enter("allocPinned");
    checkWhole("allocPinned", "the size", bytes, 1);
    return this.#pinned.allocate(bytes);
  }

  freePinned(address: number): void {
    this.#context.enter("freePinned");
    checkWhole("freePinned", "the address", address);
    this.#work.captures.refuseAny("freePinned");
    if (!this.#pinned.startsAt(address)) {
      throw new RangeError(
        `Cannot freePinned: no allocation starts at ${hex(address)}`,
      );
    }
    this.#context.force("freePinned", () => this.#work.scheduler.runAll());
    this.#pinned.free(address);
  }

  writePinned(address: number, source: Uint8Array): void {
    this.#context.enter("writePinned");
    this.#find("writePinned", address, source.length).set(source);
  }

  readPinned(destination: Uint8Array, address: number): void {
    this.#context.enter("readPinned");
    destination.set(this.#find("readPinned", address, destination.length));
  }

  #find(operation: string, address: number, size: number): Uint8Array {
    checkRange(operation, address, size);
    checkWhole(operation, "the size", size, 1);
    const bytes = this.#pinned.find(address, size);
    if (bytes) return bytes;
    throw new DriverError(
      "not-mapped",
      operation,
      `Cannot ${operation}: ${size} bytes at ${hex(address)} lie inside no ` +
        "page-locked allocation",
    );
  }
}
