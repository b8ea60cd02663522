import { checkMultiple, checkWhole } from "./argument_checks.ts";
import type { Context } from "./context.ts";
import type { DeviceMemory } from "./device_memory.ts";
import type { DeviceStreams } from "./device_streams.ts";
import { hex } from "./mmu.ts";

/** Fills and copies. */
export class DeviceData {
  readonly #context: Context;
  readonly #memory: DeviceMemory;
  readonly #work: DeviceStreams;

  /** Makes the calls for a memory and its streams. */
  constructor(context: Context, memory: DeviceMemory, work: DeviceStreams) {
    this.#context = context;
    this.#memory = memory;
    this.#work = work;
  }

  fill(
    address: number,
    value: number,
    width: 1 | 2 | 4,
    count: number,
    stream: number,
  ): void {
    this.#context.enter("fill");
    if (![1, 2, 4].includes(width)) {
      throw new RangeError(
        `Cannot fill: the width must be 1, 2 or 4, got ${width}`,
      );
    }
    checkWhole("fill", "the count", count, 1);
    checkWhole("fill", "the value", value);
    if (value >= 2 ** (8 * width)) {
      throw new RangeError(
        `Cannot fill: ${value} does not fit into ${width} bytes`,
      );
    }
    checkMultiple("fill", "the address", address, width);
    const bytes = width * count;
    const target = this.#work.stream(stream, "fill");
    this.#memory.checkUsable("fill", address, bytes, "write");
    const pattern = width === 4
      ? value >>> 0
      : width === 2
      ? Math.imul(value, 0x10001) >>> 0
      : Math.imul(value, 0x1010101) >>> 0;
    this.#work.enqueue(
      "fill",
      target,
      `fill of ${bytes} bytes at ${hex(address)}`,
      {
        ranges: [{ address, size: bytes }],
        run: () => this.#memory.mmu.fill(address, pattern, bytes),
      },
    );
  }

  copyIn(address: number, source: Uint8Array, stream: number): void {
    this.#context.enter("copyIn");
    const target = this.#work.stream(stream, "copyIn");
    this.#work.captures.refuse("copyIn", target);
    this.#memory.checkUsable("copyIn", address, source.length, "write");
    const bytes = source.slice();
    this.#work.enqueue(
      "copyIn",
      target,
      `copy of ${bytes.length} host bytes to ${hex(address)}`,
      {
        ranges: [{ address, size: bytes.length }],
        run: () => this.#memory.mmu.write(address, bytes),
      },
    );
  }

  copyOut(destination: Uint8Array, address: number, stream: number): void {
    this.#context.enter("copyOut");
    const target = this.#work.stream(stream, "copyOut");
    this.#work.captures.refuse("copyOut", target);
    this.#memory.checkUsable("copyOut", address, destination.length, "read");
    this.#work.enqueue(
      "copyOut",
      target,
      `copy of ${destination.length} bytes at ${hex(address)} to the host`,
      {
        ranges: [{ address, size: destination.length }],
        run: () =>
          destination.set(this.#memory.mmu.read(address, destination.length)),
      },
    );
    const { tail } = target;
    this.#context.force(
      "copyOut",
      () => this.#work.scheduler.runUntilPassed(tail),
    );
  }

  copy(
    destination: number,
    source: number,
    bytes: number,
    stream: number,
  ): void {
    this.#context.enter("copy");
    const target = this.#work.stream(stream, "copy");
    this.#memory.checkUsable("copy", destination, bytes, "write");
    this.#memory.checkUsable("copy", source, bytes, "read");
    if (destination < source + bytes && source < destination + bytes) {
      throw new RangeError(
        `Cannot copy: ${bytes} bytes at ${hex(source)} and at ` +
          `${hex(destination)} overlap`,
      );
    }
    this.#work.enqueue(
      "copy",
      target,
      `copy of ${bytes} bytes from ${hex(source)} to ${hex(destination)}`,
      {
        ranges: [
          { address: source, size: bytes },
          { address: destination, size: bytes },
        ],
        run: () =>
          this.#memory.mmu.write(
            destination,
            this.#memory.mmu.read(source, bytes),
          ),
      },
    );
  }
}
