/**
 * Steers the fake drivers from a test: injected failures, call counts, leak checks.
 *
 * @module
 */

/** What {@linkcode FakeGpu.live} can count. */
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
  violations: 15,
} as const;

/** Names of what a fake driver can count. */
export type FakeCounter = keyof typeof LIVE;

const SYMBOLS = {
  fake_fail: { parameters: ["buffer", "u32", "i32"], result: "u32" },
  fake_armed: { parameters: [], result: "u32" },
  fake_calls: { parameters: ["buffer"], result: "i32" },
  fake_live: { parameters: ["i32"], result: "i32" },
  fake_used: { parameters: [], result: "f64" },
  fake_lose: { parameters: [], result: "void" },
  fake_seed: { parameters: ["u32"], result: "void" },
  fake_reset: { parameters: [], result: "void" },
} as const satisfies Deno.ForeignLibraryInterface;

/** A fake driver of this process; whoever loads the same path shares its state. */
export class FakeGpu implements Disposable {
  readonly #library: Deno.DynamicLibrary<typeof SYMBOLS>;

  /** Opens a library that `buildFakeCuda` or `buildFakeHip` made. */
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
    if (!this.#library.symbols.fake_fail(cString(name), kth, code)) {
      throw new RangeError(`Cannot make "${name}" fail: no such function`);
    }
  }

  /** Failures that were asked for and have not happened yet. */
  armed(): number {
    return this.#library.symbols.fake_armed();
  }

  /**
   * Calls of a driver function, also failed ones, since the last reset.
   *
   * @throws {RangeError} if the fake driver has no such function
   */
  calls(name: string): number {
    const calls = this.#library.symbols.fake_calls(cString(name));
    if (calls < 0) {
      throw new RangeError(`Cannot count "${name}": no such function`);
    }
    return calls;
  }

  /**
   * How many there are of something. `leaked` counts objects that still lived when
   * their context was released; `handles` are those not released, whether mapped or not;
   * `violations` are breaches of rules that the real driver would not have survived.
   */
  live(what: FakeCounter): number {
    return this.#library.symbols.fake_live(LIVE[what]);
  }

  /** Every count that is not 0: `{}` once nothing is left. */
  leftovers(): Partial<Record<FakeCounter, number>> {
    const names = Object.keys(LIVE) as FakeCounter[];
    return Object.fromEntries(
      names.map((name) => [name, this.live(name)]).filter(([, n]) => n !== 0),
    );
  }

  /** Bytes of device memory in use. */
  used(): number {
    return this.#library.symbols.fake_used();
  }

  /** Makes the context lost, as if a kernel had faulted. */
  lose(): void {
    this.#library.symbols.fake_lose();
  }

  /** Seeds the order in which queued work runs. */
  seed(seed: number): void {
    this.#library.symbols.fake_seed(seed);
  }

  /**
   * Forgets counts and failures and reads `FAKE_MEMORY` and `FAKE_SEED` again. While no
   * device is open it also gives back all that was left behind; HIP can't tell whether
   * one is, and so must be reset only then.
   */
  reset(): void {
    this.#library.symbols.fake_reset();
  }

  /** Closes this handle of the library; others stay open. */
  [Symbol.dispose](): void {
    this.#library.close();
  }
}

/** The fake libcuda. */
export class FakeCuda extends FakeGpu {}

/** What the fake libamdhip64 can be told to be like, or to do wrong. */
export interface HipOptions {
  /** Version that the runtime reports, such as 60443483 for 6.4. */
  version: number;
  /** Devices that are there: 1 or 2. */
  devices: number;
  /** 1 if the driver says that the device can map memory. */
  vmm: number;
  /** Bytes that the driver recommends as granularity; its minimum is 4096. */
  recommended: number;
  /** 1: reservations succeed without an address, as before 6.1. */
  nullReservation: number;
  /** Bytes by which reservations miss the alignment asked for. */
  misaligned: number;
  /** 1: access descriptors for reading alone are refused. */
  refusesReadOnly: number;
  /** 1: access to any but the first mapping of a reservation is refused, as by 7.2. */
  refusesSecondAccess: number;
  /** Most handles there can be, 0 for no limit; more are refused as out of memory, as by 7.14. */
  mostHandles: number;
  /** Microseconds after which a new mapping is seen by the device, as on gfx12. */
  lateUs: number;
  /** The n-th map from now on does nothing and reports success, as before 7.0. */
  silentMapFailure: number;
  /** 1: memory stays used until its address range is freed, as by 7.2. */
  memoryStays: number;
  /** Bytes of addresses that can be reserved at once, 0 for no limit. */
  reservable: number;
}

const HIP_SYMBOLS = {
  fakehip_set: { parameters: ["buffer", "f64"], result: "u32" },
  fakehip_set_architecture: { parameters: ["buffer"], result: "void" },
  fakehip_violation: { parameters: ["buffer", "u32"], result: "void" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The fake libamdhip64. */
export class FakeHip extends FakeGpu {
  readonly #hip: Deno.DynamicLibrary<typeof HIP_SYMBOLS>;

  /** Opens a library that `buildFakeHip` made. */
  constructor(path: string) {
    super(path);
    this.#hip = Deno.dlopen(path, HIP_SYMBOLS);
  }

  /** Sets options, until the next reset. */
  set(options: Partial<HipOptions>): void {
    for (const [name, value] of Object.entries(options)) {
      if (!this.#hip.symbols.fakehip_set(cString(name), value)) {
        throw new RangeError(`Cannot set "${name}": no such option`);
      }
    }
  }

  /** Sets the architecture's name, features included, until the next reset. */
  setArchitecture(name: string): void {
    this.#hip.symbols.fakehip_set_architecture(cString(name));
  }

  /** What the last violation was, empty if there was none. */
  violation(): string {
    const text = new Uint8Array(256);
    this.#hip.symbols.fakehip_violation(text, text.length);
    return new TextDecoder().decode(text.subarray(0, text.indexOf(0)));
  }

  /** Closes this handle of the library; others stay open. */
  override [Symbol.dispose](): void {
    this.#hip.close();
    super[Symbol.dispose]();
  }
}

/** ELF's number of NVIDIA's machines. */
const EM_CUDA = 190;
/** ELF's number of AMD's machines. */
const EM_AMDGPU = 224;

/**
 * A copy of a shared object of host kernels that claims to be for a CUDA device: the
 * fake driver loads it, and whoever checks images before loading lets it pass.
 */
export function asCudaImage(
  sharedObject: Uint8Array,
): Uint8Array<ArrayBuffer> {
  return claiming(sharedObject, EM_CUDA);
}

/** The same for an AMD device. */
export function asHipImage(
  sharedObject: Uint8Array,
): Uint8Array<ArrayBuffer> {
  return claiming(sharedObject, EM_AMDGPU);
}

function claiming(
  sharedObject: Uint8Array,
  machine: number,
): Uint8Array<ArrayBuffer> {
  const MACHINE_OFFSET = 18;
  const image = new Uint8Array(sharedObject);
  new DataView(image.buffer).setUint16(MACHINE_OFFSET, machine, true);
  return image;
}

function cString(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${text}\0`);
}
