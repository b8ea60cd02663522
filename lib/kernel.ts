/**
 * Modules and kernels of the user's, and how arguments become an argument block.
 *
 * @module
 */

import { Block } from "./block.ts";
import type { LaunchGeometry } from "./driver.ts";
import { ClosedError } from "./errors.ts";
import type { MoonBright } from "./moonbright.ts";
import type { Stream } from "./stream.ts";
import { WrappedMemory } from "./wrapped_memory.ts";

/**
 * One argument of a kernel: a block or wrapped memory (its address), or a value with its C type.
 * `u64` and `i64` also take whole numbers below 2^53.
 */
export type KernelArgument =
  | Block
  | WrappedMemory
  | { u8: number }
  | { i32: number }
  | { u32: number }
  | { i64: bigint | number }
  | { u64: bigint | number }
  | { f32: number }
  | { f64: number };

/** Where and how a kernel runs. */
export interface LaunchOptions extends LaunchGeometry {
  /** The stream to run in; the default stream if left out. */
  stream?: Stream;
}

type Setter = (view: DataView, offset: number, value: never) => void;

const TYPES: Record<string, { bytes: number; set: Setter }> = {
  u8: { bytes: 1, set: (v, o, x: number) => v.setUint8(o, x) },
  i32: { bytes: 4, set: (v, o, x: number) => v.setInt32(o, x, true) },
  u32: { bytes: 4, set: (v, o, x: number) => v.setUint32(o, x, true) },
  i64: {
    bytes: 8,
    set: (v, o, x: bigint | number) => v.setBigInt64(o, BigInt(x), true),
  },
  u64: {
    bytes: 8,
    set: (v, o, x: bigint | number) => v.setBigUint64(o, BigInt(x), true),
  },
  f32: { bytes: 4, set: (v, o, x: number) => v.setFloat32(o, x, true) },
  f64: { bytes: 8, set: (v, o, x: number) => v.setFloat64(o, x, true) },
};

/**
 * Lays arguments out as C lays out a kernel's parameters: each at the next multiple of
 * its own size.
 *
 * @throws {TypeError} if an argument has none of the known types
 */
export function packArguments(args: readonly KernelArgument[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(args.length * 16));
  let offset = 0;
  args.forEach((argument, index) => {
    const isMemory = argument instanceof Block ||
      argument instanceof WrappedMemory;
    const [type, value]: [string, unknown] = isMemory
      ? ["u64", argument.address]
      : Object.entries(argument ?? {})[0] ?? ["nothing", undefined];
    const entry = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
    if (!entry) {
      throw new TypeError(
        `Cannot pack argument ${index}: expected a block or one of ${
          Object.keys(TYPES).join(", ")
        }, got "${type}"`,
      );
    }
    offset = Math.ceil(offset / entry.bytes) * entry.bytes;
    entry.set(view, offset, value as never);
    offset += entry.bytes;
  });
  return new Uint8Array(view.buffer, 0, offset);
}

/** A loaded module image. */
export class Module {
  readonly #owner: MoonBright;
  readonly #id: number;
  readonly #kernels = new Map<string, Kernel>();
  #open = true;

  /** Made by {@linkcode MoonBright.loadModule}. */
  constructor(owner: MoonBright, id: number) {
    this.#owner = owner;
    this.#id = id;
  }

  /**
   * Finds a kernel by name.
   *
   * @throws {DriverError} code `not-found` if the module has no such kernel
   */
  kernel(name: string): Kernel {
    this.assertOpen("find a kernel");
    let kernel = this.#kernels.get(name);
    if (!kernel) {
      const id = this.#owner.driver.getFunction(this.#id, name);
      kernel = new Kernel(this.#owner, this, id, name);
      this.#kernels.set(name, kernel);
    }
    return kernel;
  }

  /**
   * Unloads the module. Its kernels must have finished.
   *
   * @throws {RangeError} if graphs still hold kernels of it, or a stream is capturing
   */
  close(): void {
    if (!this.#open || this.#owner.closed) return;
    this.#owner.driver.unloadModule(this.#id);
    this.#open = false;
  }

  /** Closes the module. */
  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Throws unless the module is open; the message names the operation.
   *
   * @throws {ClosedError} if the module or its instance is closed
   */
  assertOpen(operation: string): void {
    this.#owner.assertOpen(operation);
    if (!this.#open) throw new ClosedError(operation, "the module");
  }
}

/** A kernel of a loaded module. */
export class Kernel {
  readonly #owner: MoonBright;
  readonly #module: Module;
  readonly #id: number;
  /** Its name. */
  readonly name: string;

  /** Made by {@linkcode Module.kernel}. */
  constructor(owner: MoonBright, module: Module, id: number, name: string) {
    this.#owner = owner;
    this.#module = module;
    this.#id = id;
    this.name = name;
  }

  /** The driver's id of the function, for benchmarks. */
  get driverId(): number {
    this.#module.assertOpen("launch");
    return this.#id;
  }

  /**
   * Puts a launch into a stream and returns at once. Blocks among the arguments are
   * noted as used on that stream.
   *
   * @throws {InvalidBlockError} if an argument is the address of a block in quarantine
   */
  launch(options: LaunchOptions, args: readonly KernelArgument[] = []): void {
    const stream = options.stream ?? this.#owner.defaultStream;
    this.#owner.streamNumber(stream, "launch");
    const driverStream = stream.driverId("launch");
    const block = packArguments(args);
    this.#owner.allocator.watch?.beforeLaunch(addressesIn(args));
    for (const argument of args) {
      if (argument instanceof Block) argument.useOn(stream);
    }
    try {
      this.#owner.driver.launch(this.driverId, options, block, driverStream);
    } catch (error) {
      for (const argument of args) {
        if (argument instanceof Block) argument.useFailed(stream);
      }
      throw error;
    }
  }
}

/** Arguments that are whole numbers of 64 bits, with their indices. */
function* addressesIn(
  args: readonly KernelArgument[],
): Generator<[index: number, value: number]> {
  for (const [index, argument] of args.entries()) {
    if ("u64" in argument) yield [index, Number(argument.u64)];
    if ("i64" in argument) yield [index, Number(argument.i64)];
  }
}
