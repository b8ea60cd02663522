import { assertEquals, assertMatch } from "@std/assert";
import type { FakeHip } from "../fake/control.ts";
import { GRANULE, hipTest, type Runtime } from "./fake_runtime.ts";

const SIZE = BigInt(GRANULE);

// b: buffer, p: address, handle or size, i: 32-bit integer; all return a hipError_t.
const SIGNATURES = {
  hipInit: "i",
  hipMemAddressReserve: "bpppp",
  hipMemAddressFree: "pp",
  hipMemCreate: "bpbp",
  hipMemRelease: "p",
  hipMemMap: "ppppp",
  hipMemUnmap: "pp",
  hipMemSetAccess: "ppbp",
  hipMemGetAccess: "bbp",
  hipModuleLoadData: "bb",
  hipModuleGetFunction: "bpb",
  hipModuleUnload: "p",
} as const;

type Call = keyof typeof SIGNATURES;
type Value = bigint | number | BufferSource;

/** The functions of a fake runtime, as any program may call them. */
class Functions implements Disposable {
  readonly #library;
  readonly fake: FakeHip;

  constructor({ path, fake }: Runtime) {
    const types = { b: "buffer", p: "u64", i: "i32" } as const;
    const symbols = Object.fromEntries(
      Object.entries(SIGNATURES).map(([name, signature]) => [name, {
        parameters: [...signature].map((c) => types[c as keyof typeof types]),
        result: "i32",
      }]),
    ) as Record<string, Deno.ForeignFunction>;
    this.#library = Deno.dlopen(path, symbols);
    this.fake = fake;
    this.ok("hipInit", 0);
  }

  call(name: Call, ...args: Value[]): number {
    const functions = this.#library.symbols as Record<
      string,
      (...args: Value[]) => number
    >;
    return functions[name]!(...args);
  }

  ok(name: Call, ...args: Value[]): void {
    assertEquals(this.call(name, ...args), 0, name);
  }

  /** A call that the real runtime, of some version, would not survive. */
  violates(why: RegExp, name: Call, ...args: Value[]): void {
    const before = this.fake.live("violations");
    assertEquals(this.call(name, ...args), 1, name);
    assertEquals(this.fake.live("violations"), before + 1);
    assertMatch(this.fake.violation(), why);
  }

  make(name: Call, ...args: Value[]): bigint {
    const out = new BigUint64Array(1);
    this.ok(name, out, ...args);
    return out[0]!;
  }

  /** A reservation of three granules with an extent in each of the first two. */
  map(): { address: bigint; handles: bigint[] } {
    const address = this.make("hipMemAddressReserve", 3n * SIZE, SIZE, 0n, 0n);
    const handles = [0n, 1n].map((index) => {
      const handle = this.make("hipMemCreate", SIZE, PROPERTIES, 0n);
      this.ok("hipMemMap", address + index * SIZE, SIZE, 0n, handle, 0n);
      return handle;
    });
    return { address, handles };
  }

  free({ address, handles }: { address: bigint; handles: bigint[] }): void {
    for (const [index, handle] of handles.entries()) {
      this.ok("hipMemUnmap", address + BigInt(index) * SIZE, SIZE);
      this.ok("hipMemRelease", handle);
    }
    this.ok("hipMemAddressFree", address, 3n * SIZE);
  }

  [Symbol.dispose](): void {
    this.#library.close();
  }
}

/** Pinned memory on device 0. */
const PROPERTIES = new Int32Array([1, 0, 1, 0, 0, 0, 0, 0]);

/** Access of devices, in the order given. */
const access = (...devices: number[]) =>
  new Int32Array(devices.flatMap((id) => [1, id, 3]));

hipTest("the fake notices what the runtime does not know", {
  violates: true,
}, (runtime) => {
  using hip = new Functions(runtime);
  hip.violates(/hipMemUnmap of an unknown pointer/, "hipMemUnmap", SIZE, SIZE);
  hip.violates(/hipMemRelease of an unknown handle/, "hipMemRelease", 77n);
  const mapped = hip.map();
  hip.violates(
    /hipMemMap of an unknown handle/,
    "hipMemMap",
    mapped.address + 2n * SIZE,
    SIZE,
    0n,
    77n,
    0n,
  );
  hip.violates(
    /hipMemUnmap of an unknown pointer/,
    "hipMemUnmap",
    mapped.address + 2n * SIZE,
    SIZE,
  );
  hip.free(mapped);
});

hipTest("the fake notices calls for other than one whole mapping", {
  violates: true,
}, (runtime) => {
  using hip = new Functions(runtime);
  const mapped = hip.map();
  const { address } = mapped;
  const all = 2n * SIZE;
  const wide = /of other than one mapping/;
  hip.violates(wide, "hipMemUnmap", address, all);
  hip.violates(wide, "hipMemUnmap", address, SIZE / 2n);
  hip.violates(wide, "hipMemSetAccess", address, all, access(0), 1n);
  hip.violates(wide, "hipMemSetAccess", address, SIZE / 2n, access(0), 1n);
  hip.ok("hipMemSetAccess", address, SIZE, access(0), 1n);
  hip.free(mapped);
});

hipTest("the fake notices a peer after the local device", {
  violates: true,
  devices: 2,
}, (runtime) => {
  using hip = new Functions(runtime);
  const mapped = hip.map();
  const { address } = mapped;
  hip.ok("hipMemSetAccess", address, SIZE, access(1, 0), 2n);
  hip.violates(
    /peer after the local device/,
    "hipMemSetAccess",
    address,
    SIZE,
    access(0, 1),
    2n,
  );
  hip.free(mapped);
});

hipTest(
  "the fake keeps a reservation in which something is mapped",
  {},
  (runtime) => {
    using hip = new Functions(runtime);
    const mapped = hip.map();
    assertEquals(hip.call("hipMemAddressFree", mapped.address, 3n * SIZE), 999);
    hip.free(mapped);
  },
);

hipTest("the fake tells mapped memory from other", {}, (runtime) => {
  using hip = new Functions(runtime);
  const mapped = hip.map();
  const device = new Int32Array([1, 0]);
  const flags = new BigUint64Array([9n]);
  hip.ok("hipMemGetAccess", flags, device, mapped.address);
  assertEquals(flags[0], 0n);
  hip.ok("hipMemSetAccess", mapped.address, SIZE, access(0), 1n);
  hip.ok("hipMemGetAccess", flags, device, mapped.address);
  assertEquals(flags[0], 3n);
  assertEquals(
    hip.call("hipMemGetAccess", flags, device, mapped.address + 2n * SIZE),
    1,
  );
  hip.free(mapped);
});
