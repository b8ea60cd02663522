/**
 * Steers the fake libcuda from a test: injected failures, call counts, leak checks.
 *
 * @module
 */

/** What {@linkcode FakeCuda.live} can count. */
const LIVE = {
  handles: 0,
  mappings: 1,
  reservations: 2,
  streams: 3,
  events: 4,
  plain: 5,
  pooled: 6,
  pinned: 7,
  modules: 8,
  pools: 9,
  retains: 10,
  operations: 11,
  leaked: 12,
  graphs: 13,
  executables: 14,
} as const;

/** Names of what the fake driver can count. */
export type FakeCudaCounter = keyof typeof LIVE;

const SYMBOLS = {
  fakecuda_fail: { parameters: ["buffer", "u32", "i32"], result: "u32" },
  fakecuda_armed: { parameters: [], result: "u32" },
  fakecuda_calls: { parameters: ["buffer"], result: "i32" },
  fakecuda_live: { parameters: ["i32"], result: "i32" },
  fakecuda_used: { parameters: [], result: "f64" },
  fakecuda_lose: { parameters: [], result: "void" },
  fakecuda_seed: { parameters: ["u32"], result: "void" },
  fakecuda_reset: { parameters: [], result: "void" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The fake driver of this process; whoever loads the same path shares its state. */
export class FakeCuda implements Disposable {
  readonly #library: Deno.DynamicLibrary<typeof SYMBOLS>;

  /** Opens the library that `buildFakeCuda` made. */
  constructor(path: string) {
    this.#library = Deno.dlopen(path, SYMBOLS);
  }

  /**
   * Makes the `kth` next call of a driver function fail with `code`, once. The name
   * `"*"` stands for any function but those that report errors; `kth` 0 disarms.
   *
   * @throws {RangeError} if the fake driver has no such function
   */
  fail(name: string, kth: number, code: number): void {
    if (!this.#library.symbols.fakecuda_fail(cString(name), kth, code)) {
      throw new RangeError(`Cannot make "${name}" fail: no such function`);
    }
  }

  /** Failures that were asked for and have not happened yet. */
  armed(): number {
    return this.#library.symbols.fakecuda_armed();
  }

  /**
   * Calls of a driver function, also failed ones, since the last reset.
   *
   * @throws {RangeError} if the fake driver has no such function
   */
  calls(name: string): number {
    const calls = this.#library.symbols.fakecuda_calls(cString(name));
    if (calls < 0) {
      throw new RangeError(`Cannot count "${name}": no such function`);
    }
    return calls;
  }

  /**
   * How many there are of something. `leaked` counts objects that still lived when
   * their context was released; `handles` are those not released, whether mapped or not.
   */
  live(what: FakeCudaCounter): number {
    return this.#library.symbols.fakecuda_live(LIVE[what]);
  }

  /** Every count that is not 0: `{}` once nothing is left. */
  leftovers(): Partial<Record<FakeCudaCounter, number>> {
    const names = Object.keys(LIVE) as FakeCudaCounter[];
    return Object.fromEntries(
      names.map((name) => [name, this.live(name)]).filter(([, n]) => n !== 0),
    );
  }

  /** Bytes of device memory in use. */
  used(): number {
    return this.#library.symbols.fakecuda_used();
  }

  /** Makes the context lost, as if a kernel had faulted. */
  lose(): void {
    this.#library.symbols.fakecuda_lose();
  }

  /** Seeds the order in which queued work runs. */
  seed(seed: number): void {
    this.#library.symbols.fakecuda_seed(seed);
  }

  /**
   * Forgets counts and failures and reads `FAKECUDA_MEMORY` and `FAKECUDA_SEED` again.
   * While no device is open it also gives back all that was left behind.
   */
  reset(): void {
    this.#library.symbols.fakecuda_reset();
  }

  /** Closes this handle of the library; others stay open. */
  [Symbol.dispose](): void {
    this.#library.close();
  }
}

/**
 * A copy of a shared object of host kernels that claims to be for a CUDA device: the
 * fake driver loads it, and whoever checks images before loading lets it pass.
 */
export function asCudaImage(
  sharedObject: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const EM_CUDA = 190;
  const MACHINE_OFFSET = 18;
  const image = new Uint8Array(sharedObject);
  new DataView(image.buffer).setUint16(MACHINE_OFFSET, EM_CUDA, true);
  return image;
}

function cString(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${text}\0`);
}
