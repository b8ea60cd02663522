import { openDriver } from "../../ffi/devices.ts";
import { kernelImage, type KernelSet } from "../../ffi/kernels.ts";
import type { Driver, LaunchGeometry } from "../../lib/driver.ts";
import { mapNew, readBack } from "../contract/harness.ts";

const SETS: readonly KernelSet[] = [
  "paging_entries",
  "paging_copy",
  "paging_read",
];

/** A device with the paging kernels and one piece of memory to try them on. */
export class KernelBench {
  readonly driver: Driver;
  /** Address of the memory. */
  readonly memory: number;
  readonly #modules: number[];
  readonly #size: number;

  constructor(device: string, bytes: number) {
    this.driver = openDriver({ device });
    const { granularity } = this.driver.info;
    const extent = Math.ceil(bytes / granularity) * granularity;
    const { address, size } = mapNew(this.driver, [extent]);
    this.memory = address;
    this.#size = size;
    this.#modules = SETS.map((set) =>
      this.driver.loadModule(kernelImage(set, this.driver.info))
    );
  }

  /** Fills all of the memory with one byte. */
  wipe(byte: number): void {
    this.driver.fill(this.memory, byte, 1, this.#size, 0);
  }

  launch(name: string, args: Uint8Array, geometry: LaunchGeometry): void {
    this.driver.launch(this.#find(name), geometry, args, 0);
  }

  /** Words of the memory, from a byte offset on. */
  words(offset: number, count: number): BigUint64Array {
    return new BigUint64Array(this.bytes(offset, 8 * count).buffer);
  }

  /** Bytes of the memory. */
  bytes(offset: number, count: number): Uint8Array<ArrayBuffer> {
    return readBack(this.driver, this.memory + offset, count).slice();
  }

  /** Writes bytes to the memory. */
  put(offset: number, data: ArrayBufferView): void {
    const bytes = new Uint8Array(
      data.buffer,
      data.byteOffset,
      data.byteLength,
    );
    if (bytes.length > 0) this.driver.copyIn(this.memory + offset, bytes, 0);
  }

  [Symbol.dispose](): void {
    this.driver.close();
  }

  #find(name: string): number {
    for (const module of this.#modules) {
      try {
        return this.driver.getFunction(module, name);
      } catch {
        // In another module.
      }
    }
    throw new Error(`Cannot launch: no module has "${name}"`);
  }
}

/** Devices to run the kernels on: the host, and a GPU where one is to be tested. */
export const DEVICES: readonly string[] =
  Deno.env.get("MOONBRIGHT_TEST_GPU") === "1" ? ["host", "cuda:0"] : ["host"];

/** Grids and blocks, as a launcher would choose them and as none would. */
export const GEOMETRIES: readonly LaunchGeometry[] = [
  { grid: [1], block: [64] },
  { grid: [3], block: [64] },
  { grid: [40], block: [256] },
];
