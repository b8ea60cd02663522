import { assert, assertEquals, assertThrows } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import { buildFakeCuda } from "./fake/build.ts";
import { asCudaImage, FakeCuda } from "./fake/control.ts";

const SUCCESS = 0;
const INVALID_VALUE = 1;
const OUT_OF_MEMORY = 2;
const NOT_INITIALIZED = 3;
const INVALID_CONTEXT = 201;
const INVALID_PTX = 218;
const INVALID_HANDLE = 400;
const ILLEGAL_STATE = 401;
const NOT_FOUND = 500;
const NOT_READY = 600;
const ILLEGAL_ADDRESS = 700;
const CAPTURE_UNSUPPORTED = 900;
const CAPTURE_INVALIDATED = 901;
const CAPTURE_ISOLATION = 905;
const CAPTURE_IMPLICIT = 906;

const MIB = 1n << 20n;
const GRANULE = 2n * MIB;
const WORD_MASK = 2n ** 64n - 1n;

// b: buffer, p: address or handle, i: 32-bit integer; all return a CUresult.
const SIGNATURES = {
  cuInit: "i",
  cuGetErrorName: "ib",
  cuDeviceGet: "bi",
  cuDeviceGetAttribute: "bii",
  cuDevicePrimaryCtxRetain: "bi",
  cuDevicePrimaryCtxRelease_v2: "i",
  cuCtxSetCurrent: "p",
  cuCtxSynchronize: "",
  cuMemGetInfo_v2: "bb",
  cuMemAddressReserve: "bpppp",
  cuMemAddressFree: "pp",
  cuMemGetAllocationGranularity: "bbi",
  cuMemCreate: "bpbp",
  cuMemRelease: "p",
  cuMemMap: "ppppp",
  cuMemUnmap: "pp",
  cuMemSetAccess: "ppbp",
  cuMemAlloc_v2: "bp",
  cuMemFree_v2: "p",
  cuMemHostAlloc: "bpi",
  cuMemFreeHost: "p",
  cuMemHostGetDevicePointer_v2: "bpi",
  cuMemcpyHtoDAsync_v2: "pppp",
  cuMemcpyDtoHAsync_v2: "pppp",
  cuMemcpyDtoDAsync_v2: "pppp",
  cuMemsetD8Async: "pipp",
  cuMemsetD16Async: "pipp",
  cuMemsetD32Async: "pipp",
  cuStreamCreate: "bi",
  cuStreamDestroy_v2: "p",
  cuStreamSynchronize: "p",
  cuStreamWaitEvent: "ppi",
  cuStreamBeginCapture_v2: "pi",
  cuStreamEndCapture: "pb",
  cuStreamIsCapturing: "pb",
  cuGraphInstantiateWithFlags: "bpp",
  cuGraphInstantiate_v2: "bpppp",
  cuGraphLaunch: "pp",
  cuGraphExecDestroy: "p",
  cuGraphDestroy: "p",
  cuEventCreate: "bi",
  cuEventDestroy_v2: "p",
  cuEventRecord: "pp",
  cuEventQuery: "p",
  cuEventSynchronize: "p",
  cuEventElapsedTime: "bpp",
  cuModuleLoadData: "bb",
  cuModuleUnload: "p",
  cuModuleGetFunction: "bpb",
  cuLaunchKernel: "piiiiiiippb",
  cuMemPoolCreate: "bb",
  cuMemPoolSetAttribute: "pib",
  cuMemPoolDestroy: "p",
  cuMemPoolTrimTo: "pp",
  cuMemAllocFromPoolAsync: "bppp",
  cuMemFreeAsync: "pp",
} as const;

type Call = keyof typeof SIGNATURES;
type Value = bigint | number | Words | Bytes;
type Words = BigUint64Array<ArrayBuffer>;
type Bytes = Uint8Array<ArrayBuffer>;
type Functions = Record<Call, (...args: Value[]) => number>;

/** Pinned memory on device 0. */
const PROPERTIES = new Uint8Array(32);
new DataView(PROPERTIES.buffer).setInt32(0, 1, true);
new DataView(PROPERTIES.buffer).setInt32(8, 1, true);

function accessOf(flags: number): Bytes {
  return new Uint8Array(new Int32Array([1, 0, flags]).buffer);
}

/** The driver API of one private copy of the fake library. */
class Driver {
  readonly #library;
  readonly #functions: Functions;

  constructor(path: string) {
    const types = { b: "buffer", p: "u64", i: "i32" } as const;
    const symbols: Record<string, Deno.ForeignFunction> = {};
    for (const [name, signature] of Object.entries(SIGNATURES)) {
      const parameters = [...signature].map((c) =>
        types[c as keyof typeof types]
      );
      symbols[name] = { parameters, result: "i32" };
    }
    this.#library = Deno.dlopen(path, symbols);
    this.#functions = this.#library.symbols as Functions;
  }

  close(): void {
    this.#library.close();
  }

  call(name: Call, ...args: Value[]): number {
    return this.#functions[name](...args);
  }

  ok(name: Call, ...args: Value[]): void {
    assertEquals(this.call(name, ...args), SUCCESS, name);
  }

  fails(code: number, name: Call, ...args: Value[]): void {
    assertEquals(this.call(name, ...args), code, name);
  }

  /** Calls a function whose first parameter receives a handle or an address. */
  make(name: Call, ...args: Value[]): bigint {
    const out = new BigUint64Array(1);
    this.ok(name, out, ...args);
    return out[0]!;
  }

  open(): void {
    this.ok("cuInit", 0);
    this.ok("cuCtxSetCurrent", this.make("cuDevicePrimaryCtxRetain", 0));
  }

  /** Reserves, creates and maps memory with read and write access. */
  map(granules: bigint, address?: bigint): { address: bigint; handle: bigint } {
    const size = granules * GRANULE;
    address ??= this.make("cuMemAddressReserve", size, 0n, 0n, 0n);
    const handle = this.make("cuMemCreate", size, PROPERTIES, 0n);
    this.ok("cuMemMap", address, size, 0n, handle, 0n);
    this.ok("cuMemSetAccess", address, size, accessOf(3), 1n);
    return { address, handle };
  }

  read(address: bigint, words: number, stream = 0n): bigint[] {
    const out = new BigUint64Array(words);
    this.ok(
      "cuMemcpyDtoHAsync_v2",
      pointer(out),
      address,
      8n * BigInt(words),
      stream,
    );
    return [...out];
  }

  launch(
    kernel: bigint,
    args: bigint[],
    stream = 0n,
    grid = 2,
    block = 32,
  ): number {
    const words = new BigUint64Array(args);
    const bytes = new BigUint64Array([8n * BigInt(args.length)]);
    // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
    const extra = new BigUint64Array([
      ...[1n, pointer(words), 2n, pointer(bytes), 0n],
    ]);
    const geometry = [grid, 1, 1, block, 1, 1, 0];
    return this.call("cuLaunchKernel", kernel, ...geometry, stream, 0n, extra);
  }
}

function pointer(array: Words | Bytes): bigint {
  return BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(array)));
}

/** A test with a driver and its controls that share no state with other tests. */
function fakeTest(
  name: string,
  body: (driver: Driver, fake: FakeCuda) => void | Promise<void>,
): void {
  Deno.test(`the fake driver ${name}`, async () => {
    const dir = await Deno.makeTempDir({ prefix: "moonbright-fake-" });
    try {
      const path = join(dir, "libfakecuda.so");
      await Deno.copyFile(await buildFakeCuda(), path);
      using fake = new FakeCuda(path);
      const driver = new Driver(path);
      try {
        await body(driver, fake);
      } finally {
        driver.close();
      }
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  });
}

async function hostKernels(file: string): Promise<Bytes> {
  const source = fromFileUrl(new URL(`../kernels/${file}`, import.meta.url));
  const path = await Deno.makeTempFile({ suffix: ".so" });
  const args = ["-O2", "-std=c11", "-fPIC", "-shared", "-o", path, source];
  const { success } = await new Deno.Command("cc", { args }).output();
  assert(success);
  const image = await Deno.readFile(path);
  await Deno.remove(path);
  return image;
}

function cString(text: string): Bytes {
  return new TextEncoder().encode(`${text}\0`);
}

fakeTest("wants cuInit, then a current context", (driver) => {
  const out = new BigUint64Array(1);
  driver.fails(NOT_INITIALIZED, "cuDeviceGet", out, 0);
  driver.fails(
    NOT_INITIALIZED,
    "cuMemAddressReserve",
    ...[out, GRANULE, 0n, 0n, 0n],
  );
  driver.ok("cuInit", 0);
  driver.ok("cuDeviceGet", out, 0);
  driver.fails(INVALID_CONTEXT, "cuStreamCreate", out, 1);
  driver.fails(INVALID_CONTEXT, "cuCtxSynchronize");
  const context = driver.make("cuDevicePrimaryCtxRetain", 0);
  driver.fails(INVALID_CONTEXT, "cuMemAlloc_v2", out, 8n);
  driver.ok("cuCtxSetCurrent", context);
  driver.ok("cuStreamCreate", out, 1);
  driver.ok("cuCtxSetCurrent", 0n);
  driver.fails(INVALID_CONTEXT, "cuStreamSynchronize", out[0]!);
  // Physical memory and addresses belong to the device, not to a context.
  driver.ok("cuMemAddressReserve", out, GRANULE, 0n, 0n, 0n);
});

fakeTest("ends a context with its last release", (driver, fake) => {
  driver.open();
  const context = driver.make("cuDevicePrimaryCtxRetain", 0);
  const stream = driver.make("cuStreamCreate", 1);
  driver.ok("cuDevicePrimaryCtxRelease_v2", 0);
  driver.ok("cuStreamSynchronize", stream);
  driver.ok("cuDevicePrimaryCtxRelease_v2", 0);
  driver.fails(INVALID_CONTEXT, "cuStreamSynchronize", stream);
  driver.fails(INVALID_CONTEXT, "cuDevicePrimaryCtxRelease_v2", 0);
  assertEquals(fake.leftovers(), { leaked: 1 });
  const again = driver.make("cuDevicePrimaryCtxRetain", 0);
  driver.fails(INVALID_CONTEXT, "cuCtxSetCurrent", context);
  driver.ok("cuCtxSetCurrent", again);
  driver.fails(INVALID_HANDLE, "cuStreamSynchronize", stream);
});

fakeTest("names the errors it returns", (driver) => {
  const name = new BigUint64Array(1);
  driver.ok("cuGetErrorName", 700, name);
  assertEquals(
    Deno.UnsafePointerView.getCString(Deno.UnsafePointer.create(name[0]!)!),
    "CUDA_ERROR_ILLEGAL_ADDRESS",
  );
  driver.fails(INVALID_VALUE, "cuGetErrorName", 12345, name);
});

fakeTest("maps only whole handles at granular addresses", (driver) => {
  driver.open();
  const bad = (name: Call, ...args: Value[]) =>
    driver.fails(INVALID_VALUE, name, ...args);
  const out = new BigUint64Array(1);
  bad("cuMemAddressReserve", out, GRANULE + 4096n, 0n, 0n, 0n);
  bad("cuMemAddressReserve", out, 0n, 0n, 0n, 0n);
  bad("cuMemCreate", out, MIB, PROPERTIES, 0n);
  bad("cuMemCreate", out, GRANULE, new Uint8Array(32), 0n);

  const base = driver.make("cuMemAddressReserve", 8n * GRANULE, 0n, 0n, 0n);
  assertEquals(base % GRANULE, 0n);
  const size = 2n * GRANULE;
  const handle = driver.make("cuMemCreate", size, PROPERTIES, 0n);
  bad("cuMemMap", base, GRANULE, 0n, handle, 0n);
  bad("cuMemMap", base, GRANULE, GRANULE, handle, 0n);
  bad("cuMemMap", base + MIB, size, 0n, handle, 0n);
  bad("cuMemMap", base - GRANULE, size, 0n, handle, 0n);
  bad("cuMemMap", base + 7n * GRANULE, size, 0n, handle, 0n);
  bad("cuMemMap", base, size, 0n, handle + 16n, 0n);
  driver.ok("cuMemMap", base, size, 0n, handle, 0n);
  bad("cuMemMap", base + GRANULE, size, 0n, handle, 0n);
  bad("cuMemSetAccess", base, GRANULE, accessOf(3), 1n);
  bad("cuMemSetAccess", base, size + GRANULE, accessOf(3), 1n);
  bad("cuMemSetAccess", base, size, accessOf(2), 1n);
  bad("cuMemUnmap", base, GRANULE);
  bad("cuMemUnmap", base, size + GRANULE);
  bad("cuMemUnmap", base, 0n);
  bad("cuMemAddressFree", base, 8n * GRANULE);
  // A range of whole mappings can go at once, also from the middle.
  driver.ok("cuMemMap", base + size, size, 0n, handle, 0n);
  driver.ok("cuMemMap", base + 2n * size, size, 0n, handle, 0n);
  driver.ok("cuMemUnmap", base + size, 2n * size);
  driver.ok("cuMemUnmap", base, size);
  bad("cuMemAddressFree", base, 4n * GRANULE);
  bad("cuMemAddressFree", base + GRANULE, 7n * GRANULE);
  driver.ok("cuMemAddressFree", base, 8n * GRANULE);
  bad("cuMemAddressFree", base, 8n * GRANULE);
});

fakeTest("shows the same memory through two mappings", (driver) => {
  driver.open();
  const { address, handle } = driver.map(1n);
  const other = driver.make("cuMemAddressReserve", GRANULE, 0n, 0n, 0n);
  driver.ok("cuMemMap", other, GRANULE, 0n, handle, 0n);
  driver.ok("cuMemSetAccess", other, GRANULE, accessOf(1), 1n);
  driver.ok("cuMemsetD32Async", address, 0x01020304, GRANULE / 4n, 0n);
  assertEquals(driver.read(other + GRANULE - 8n, 1), [0x0102030401020304n]);
  driver.ok("cuMemUnmap", address, GRANULE);
  assertEquals(driver.read(other, 1), [0x0102030401020304n]);
});

fakeTest(
  "keeps released memory until its last mapping goes",
  (driver, fake) => {
    Deno.env.set("FAKE_MEMORY", String(4n * GRANULE));
    try {
      fake.reset();
    } finally {
      Deno.env.delete("FAKE_MEMORY");
    }
    driver.open();
    const out = new BigUint64Array(1), total = new BigUint64Array(1);
    const { address, handle } = driver.map(3n);
    driver.fails(
      OUT_OF_MEMORY,
      "cuMemCreate",
      out,
      2n * GRANULE,
      PROPERTIES,
      0n,
    );
    driver.ok("cuMemRelease", handle);
    driver.fails(INVALID_VALUE, "cuMemRelease", handle);
    driver.fails(OUT_OF_MEMORY, "cuMemAlloc_v2", out, 2n * GRANULE);
    driver.ok("cuMemGetInfo_v2", out, total);
    assertEquals([out[0], total[0]], [GRANULE, 4n * GRANULE]);
    assertEquals(fake.live("handles"), 0);
    driver.ok("cuMemUnmap", address, 3n * GRANULE);
    assertEquals(fake.used(), 0);
    const plain = driver.make("cuMemAlloc_v2", 4n * GRANULE);
    driver.ok("cuMemFree_v2", plain);
    driver.fails(INVALID_VALUE, "cuMemFree_v2", plain);
    fake.reset();
    assertEquals(fake.leftovers(), { reservations: 1, retains: 1 });
  },
);

fakeTest("does nothing before it must", (driver, fake) => {
  driver.open();
  const { address } = driver.map(1n);
  const stream = driver.make("cuStreamCreate", 1);
  driver.ok("cuMemsetD8Async", address, 7, 8n, stream);
  driver.ok("cuStreamDestroy_v2", stream);
  driver.fails(INVALID_HANDLE, "cuMemsetD8Async", address, 7, 8n, stream);
  assertEquals(fake.live("operations"), 1);
  driver.ok("cuCtxSynchronize");
  assertEquals(fake.live("operations"), 0);
  assertEquals(driver.read(address, 1), [0x0707070707070707n]);
});

fakeTest("keeps the order within a stream for every seed", (driver, fake) => {
  driver.open();
  const { address } = driver.map(1n);
  const streams = [1, 1, 0].map((flags) =>
    driver.make("cuStreamCreate", flags)
  );
  for (let seed = 0; seed < 50; seed++) {
    fake.seed(seed);
    for (let value = 1; value <= 5; value++) {
      streams.forEach((stream, i) =>
        driver.ok(
          "cuMemsetD8Async",
          address + BigInt(8 * i),
          ...[value, 8n, stream],
        )
      );
    }
    driver.ok("cuStreamSynchronize", streams[seed % 3]!);
    const mine = address + BigInt(8 * (seed % 3));
    assertEquals(driver.read(mine, 1), [0x0505050505050505n]);
  }
});

/** Writes on one stream, copies on another; returns how often the copy saw the write. */
function copiesThatSawTheWrite(
  driver: Driver,
  fake: FakeCuda,
  { seeds, flags, order }: {
    seeds: number;
    flags: number;
    order: (writer: bigint, reader: bigint, event: bigint) => void;
  },
): number {
  const { address } = driver.map(1n);
  const [writer, reader] = [flags, 1].map((flag) =>
    driver.make("cuStreamCreate", flag)
  ) as [bigint, bigint];
  const event = driver.make("cuEventCreate", 2);
  let seen = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    fake.seed(seed);
    driver.ok("cuMemsetD8Async", address, seed, 8n, writer);
    order(writer, reader, event);
    driver.ok("cuMemcpyDtoDAsync_v2", address + 8n, address, 8n, reader);
    driver.ok("cuStreamSynchronize", reader);
    const copied = driver.read(address + 8n, 1, reader)[0]!;
    seen += copied === BigInt(seed) * 0x0101010101010101n ? 1 : 0;
    driver.ok("cuCtxSynchronize");
  }
  return seen;
}

fakeTest("orders streams by events, and only by them", (driver, fake) => {
  driver.open();
  const seeds = 100;
  const ordered = copiesThatSawTheWrite(driver, fake, {
    seeds,
    flags: 1,
    order(writer, reader, event) {
      driver.ok("cuEventRecord", event, writer);
      driver.ok("cuStreamWaitEvent", reader, event, 0);
    },
  });
  assertEquals(ordered, seeds);
  const racing = copiesThatSawTheWrite(
    driver,
    fake,
    { seeds, flags: 1, order() {} },
  );
  assert(racing > 0 && racing < seeds, `${racing} of ${seeds} saw the write`);
});

fakeTest("orders blocking streams with the default one", (driver, fake) => {
  driver.open();
  const { address } = driver.map(1n);
  const blocking = driver.make("cuStreamCreate", 0);
  for (let seed = 0; seed < 50; seed++) {
    fake.seed(seed);
    driver.ok("cuMemsetD8Async", address, 1, 8n, blocking);
    driver.ok("cuMemsetD8Async", address, 2, 8n, 0n);
    driver.ok("cuMemsetD8Async", address, 3, 4n, blocking);
    driver.ok("cuStreamSynchronize", blocking);
    assertEquals(driver.read(address, 1, blocking), [0x0202020203030303n]);
  }
});

fakeTest("answers polls after a few queries", (driver, fake) => {
  driver.open();
  const { address } = driver.map(1n);
  const stream = driver.make("cuStreamCreate", 1);
  const event = driver.make("cuEventCreate", 2);
  driver.ok("cuEventQuery", event);
  const counts = new Set<number>();
  for (let seed = 0; seed < 50; seed++) {
    fake.seed(seed);
    for (let i = 0; i < 20; i++) {
      driver.ok("cuMemsetD8Async", address, i, 8n, stream);
    }
    driver.ok("cuEventRecord", event, stream);
    let queries = 1;
    for (let code; (code = driver.call("cuEventQuery", event)) !== SUCCESS;) {
      assertEquals(code, NOT_READY);
      queries++;
    }
    counts.add(queries);
  }
  assert(Math.max(...counts) <= 7 && counts.size > 2, [...counts].join());
});

fakeTest("times events", (driver) => {
  driver.open();
  const [start, end, untimed] = [0, 0, 2].map((flags) =>
    driver.make("cuEventCreate", flags)
  ) as [bigint, bigint, bigint];
  const elapsed = new Uint8Array(4);
  driver.fails(INVALID_HANDLE, "cuEventElapsedTime", elapsed, start, end);
  for (const event of [start, end, untimed]) {
    driver.ok("cuEventRecord", event, 0n);
  }
  driver.fails(NOT_READY, "cuEventElapsedTime", elapsed, start, end);
  driver.ok("cuEventSynchronize", untimed);
  driver.ok("cuEventElapsedTime", elapsed, start, end);
  const elapsedMs = new DataView(elapsed.buffer).getFloat32(0, true);
  assert(elapsedMs >= 0 && elapsedMs < 1000);
  driver.fails(INVALID_HANDLE, "cuEventElapsedTime", elapsed, start, untimed);
  driver.ok("cuEventDestroy_v2", end);
  driver.fails(INVALID_HANDLE, "cuEventRecord", end, 0n);
});

fakeTest("reads pinned memory late and other memory at once", (driver) => {
  driver.open();
  const { address } = driver.map(1n);
  const stream = driver.make("cuStreamCreate", 1);
  const pageable = new BigUint64Array([1n]);
  const pinned = driver.make("cuMemHostAlloc", 8n, 0);
  const memory = new BigUint64Array(
    Deno.UnsafePointerView.getArrayBuffer(
      Deno.UnsafePointer.create(pinned)!,
      8,
    ),
  );
  memory[0] = 1n;
  const copyIn = (to: bigint, from: bigint) =>
    driver.ok("cuMemcpyHtoDAsync_v2", to, from, 8n, stream);
  copyIn(address, pointer(pageable));
  copyIn(address + 8n, pinned);
  pageable[0] = memory[0] = 2n;
  assertEquals(driver.read(address, 2, stream), [1n, 2n]);

  driver.ok("cuMemcpyDtoHAsync_v2", pinned, address, 8n, stream);
  assertEquals(memory[0], 2n);
  driver.ok("cuStreamSynchronize", stream);
  assertEquals(memory[0], 1n);

  copyIn(address, pinned);
  driver.ok("cuMemFreeHost", pinned);
  driver.fails(ILLEGAL_ADDRESS, "cuStreamSynchronize", stream);
});

for (
  const [what, spoil] of Object.entries({
    "was unmapped meanwhile": (driver: Driver, address: bigint) =>
      driver.ok("cuMemUnmap", address, GRANULE),
    "became read-only meanwhile": (driver: Driver, address: bigint) =>
      driver.ok("cuMemSetAccess", address, GRANULE, accessOf(1), 1n),
  })
) {
  fakeTest(`loses the context over memory that ${what}`, (driver, fake) => {
    driver.open();
    const { address } = driver.map(1n);
    const stream = driver.make("cuStreamCreate", 1);
    driver.ok("cuMemsetD8Async", address, 1, 8n, stream);
    spoil(driver, address);
    driver.fails(ILLEGAL_ADDRESS, "cuStreamSynchronize", stream);
    const out = new BigUint64Array(1);
    driver.fails(ILLEGAL_ADDRESS, "cuStreamCreate", out, 1);
    driver.fails(ILLEGAL_ADDRESS, "cuMemCreate", out, GRANULE, PROPERTIES, 0n);
    driver.fails(ILLEGAL_ADDRESS, "cuDevicePrimaryCtxRelease_v2", 0);
    // The next context starts clean.
    assertEquals(fake.leftovers(), {});
    assertEquals(fake.used(), 0);
    driver.open();
    driver.map(1n);
  });
}

fakeTest("checks the whole range of a copy", (driver) => {
  driver.open();
  const plain = driver.make("cuMemAlloc_v2", 100n);
  const overlapping = [plain + 8n, plain, 16n, 0n];
  driver.fails(INVALID_VALUE, "cuMemcpyDtoDAsync_v2", ...overlapping);
  driver.fails(INVALID_VALUE, "cuMemsetD32Async", plain + 2n, 0, 1n, 0n);
  driver.ok("cuMemsetD8Async", plain, 1, 100n, 0n);
  driver.ok("cuCtxSynchronize");
  driver.ok("cuMemsetD16Async", plain, 1, 51n, 0n);
  driver.fails(ILLEGAL_ADDRESS, "cuCtxSynchronize");
});

fakeTest("waits for all work before it frees", (driver, fake) => {
  driver.open();
  const { address } = driver.map(1n);
  const plain = driver.make("cuMemAlloc_v2", 8n);
  const stream = driver.make("cuStreamCreate", 1);
  driver.ok("cuMemsetD8Async", plain, 1, 8n, stream);
  driver.ok("cuMemsetD8Async", address, 1, 8n, 0n);
  driver.ok("cuMemFree_v2", plain);
  assertEquals(fake.live("operations"), 0);
});

fakeTest("runs kernels of shared objects, and no others", async (driver) => {
  const image = await hostKernels("pattern.c");
  driver.open();
  const out = new BigUint64Array(1);
  const ptx = cString(".version 6.0\n.target sm_70\n");
  driver.fails(INVALID_PTX, "cuModuleLoadData", out, ptx);
  const modules = [image, asCudaImage(image)].map((image) =>
    driver.make("cuModuleLoadData", image)
  ) as [bigint, bigint];
  assert(modules[0] !== modules[1]);
  const nameless = [out, modules[0], cString("nameless")] as const;
  driver.fails(NOT_FOUND, "cuModuleGetFunction", ...nameless);
  const [fill, verify] = ["mb_pattern_fill", "mb_pattern_verify"].map((name) =>
    driver.make("cuModuleGetFunction", modules[0], cString(name))
  ) as [bigint, bigint];

  const { address } = driver.map(2n);
  const result = address + GRANULE;
  const start = new BigUint64Array([0n, WORD_MASK]);
  driver.ok("cuMemcpyHtoDAsync_v2", result, pointer(start), 16n, 0n);
  assertEquals(driver.launch(fill, [address, 1000n, 3n]), SUCCESS);
  driver.ok("cuMemsetD8Async", address + 80n, 0, 8n, 0n);
  assertEquals(driver.launch(verify, [address, 1000n, 3n, result]), SUCCESS);
  assertEquals(driver.read(result, 2), [1n, 10n]);

  assertEquals(driver.launch(fill, [address], 0n, 0), INVALID_VALUE);
  assertEquals(driver.launch(fill, [address], 0n, 1, 1025), INVALID_VALUE);
  driver.ok("cuModuleUnload", modules[0]);
  assertEquals(driver.launch(fill, [address, 1n, 1n]), INVALID_HANDLE);
  driver.make("cuModuleGetFunction", modules[1], cString("mb_pattern_fill"));
  driver.ok("cuModuleUnload", modules[1]);
});

fakeTest("survives a kernel that faults", async (driver) => {
  const image = await hostKernels("pattern.c");
  driver.open();
  const module = driver.make("cuModuleLoadData", image);
  const name = cString("mb_pattern_fill");
  const fill = driver.make("cuModuleGetFunction", module, name);
  const { address } = driver.map(1n);
  const words = GRANULE / 8n;
  assertEquals(driver.launch(fill, [address, words, 1n]), SUCCESS);
  driver.ok("cuCtxSynchronize");
  assertEquals(driver.launch(fill, [address, words, 1n]), SUCCESS);
  driver.ok("cuMemUnmap", address, GRANULE);
  driver.fails(ILLEGAL_ADDRESS, "cuCtxSynchronize");
});

/** A device with two ranges of a granule and a stream for captures. */
function captureSetup(driver: Driver) {
  driver.open();
  const { address } = driver.map(2n);
  const stream = driver.make("cuStreamCreate", 1);
  return { a: address, b: address + GRANULE, stream };
}

function captureState(driver: Driver, stream: bigint): number {
  const state = new Uint8Array(4);
  driver.ok("cuStreamIsCapturing", stream, state);
  return state[0]!;
}

/** Ends a capture; returns the executable graph. */
function endCapture(driver: Driver, stream: bigint): bigint {
  const out = new BigUint64Array(1);
  driver.ok("cuStreamEndCapture", stream, out);
  const exec = driver.make("cuGraphInstantiateWithFlags", out[0]!, 0n);
  driver.ok("cuGraphDestroy", out[0]!);
  return exec;
}

const RELAXED = 2;

fakeTest("captures work and runs it at each launch", async (driver, fake) => {
  const image = await hostKernels("pattern.c");
  const { a, b, stream } = captureSetup(driver);
  const module = driver.make("cuModuleLoadData", image);
  const name = cString("mb_pattern_fill");
  const fill = driver.make("cuModuleGetFunction", module, name);
  const other = driver.make("cuStreamCreate", 1);
  driver.ok("cuStreamBeginCapture_v2", stream, RELAXED);
  assertEquals(captureState(driver, stream), 1);
  assertEquals(driver.launch(fill, [a, 4n, 7n], stream), SUCCESS);
  driver.ok("cuMemcpyDtoDAsync_v2", b, a, 32n, stream);
  driver.ok("cuMemsetD8Async", a, 9, 32n, stream);
  assertEquals(fake.live("operations"), 0);
  const exec = endCapture(driver, stream);
  assertEquals([fake.live("graphs"), fake.live("executables")], [0, 1]);
  assertEquals(driver.launch(fill, [a, 4n, 7n], stream), SUCCESS);
  const pattern = driver.read(a, 4, stream);
  for (let seed = 0; seed < 20; seed++) {
    fake.seed(seed);
    driver.ok("cuMemsetD8Async", b, 0, 64n, stream);
    driver.ok("cuGraphLaunch", exec, stream);
    // Behind the launch before it, though on another stream.
    driver.ok("cuGraphLaunch", exec, other);
    assertEquals(driver.read(b, 4, other), pattern);
    assertEquals(driver.read(a, 1, other), [0x0909090909090909n]);
    driver.ok("cuCtxSynchronize");
  }
  driver.ok("cuGraphLaunch", exec, stream);
  driver.ok("cuGraphExecDestroy", exec);
  driver.fails(INVALID_VALUE, "cuGraphLaunch", exec, stream);
  driver.fails(INVALID_VALUE, "cuGraphExecDestroy", exec);
  driver.ok("cuCtxSynchronize");
  assertEquals(fake.live("executables"), 0);
});

for (
  const [what, code, use] of [
    [
      "a wait for the stream",
      CAPTURE_UNSUPPORTED,
      (driver, { stream }) => driver.call("cuStreamSynchronize", stream),
    ],
    [
      "a wait for the context",
      CAPTURE_UNSUPPORTED,
      (driver) => driver.call("cuCtxSynchronize"),
    ],
    [
      "the record of an event",
      CAPTURE_UNSUPPORTED,
      (driver, { stream }) =>
        driver.call("cuEventRecord", driver.make("cuEventCreate", 2), stream),
    ],
    [
      "a wait for an event outside of it",
      CAPTURE_ISOLATION,
      (driver, { stream }) =>
        driver.call(
          "cuStreamWaitEvent",
          stream,
          driver.make("cuEventCreate", 2),
          0,
        ),
    ],
    [
      "a copy from memory that is not page-locked",
      CAPTURE_UNSUPPORTED,
      (driver, { a, stream }) =>
        driver.call(
          "cuMemcpyHtoDAsync_v2",
          a,
          pointer(new BigUint64Array(1)),
          8n,
          stream,
        ),
    ],
    [
      "the stream's destruction",
      CAPTURE_UNSUPPORTED,
      (driver, { stream }) => driver.call("cuStreamDestroy_v2", stream),
    ],
  ] as [
    string,
    number,
    (driver: Driver, setup: ReturnType<typeof captureSetup>) => number,
  ][]
) {
  fakeTest(`has captures that ${what} invalidates`, (driver, fake) => {
    const setup = captureSetup(driver);
    const { a, stream } = setup;
    const out = new BigUint64Array(1);
    driver.ok("cuStreamBeginCapture_v2", stream, RELAXED);
    driver.ok("cuMemsetD8Async", a, 1, 8n, stream);
    assertEquals(use(driver, setup), code);
    assertEquals(captureState(driver, stream), 2);
    driver.fails(
      CAPTURE_INVALIDATED,
      "cuMemsetD8Async",
      ...[a, 1, 8n, stream],
    );
    driver.fails(CAPTURE_INVALIDATED, "cuStreamEndCapture", stream, out);
    assertEquals([captureState(driver, stream), out[0]], [0, 0n]);
    driver.ok("cuStreamSynchronize", stream);
    assertEquals(fake.live("graphs"), 0);
  });
}

fakeTest("captures neither default nor capturing streams", (driver) => {
  const { stream } = captureSetup(driver);
  const out = new BigUint64Array(1);
  const begin = "cuStreamBeginCapture_v2";
  driver.fails(CAPTURE_UNSUPPORTED, begin, 0n, RELAXED);
  driver.fails(CAPTURE_UNSUPPORTED, begin, 1n, RELAXED);
  driver.fails(ILLEGAL_STATE, "cuStreamEndCapture", stream, out);
  driver.ok(begin, stream, RELAXED);
  driver.fails(ILLEGAL_STATE, begin, stream, RELAXED);
  driver.ok("cuStreamEndCapture", stream, out);
  driver.make("cuGraphInstantiate_v2", out[0]!, 0n, 0n, 0n);
  driver.ok("cuGraphDestroy", out[0]!);
  driver.fails(INVALID_VALUE, "cuGraphDestroy", out[0]!);
});

fakeTest("maps memory during relaxed captures alone", (driver) => {
  const { a, stream } = captureSetup(driver);
  const out = new BigUint64Array(1);
  driver.ok("cuStreamBeginCapture_v2", stream, RELAXED);
  const { address } = driver.map(1n);
  driver.ok("cuMemsetD8Async", address, 1, 8n, stream);
  driver.ok("cuMemsetD8Async", a, 1, 8n, 0n);
  endCapture(driver, stream);
  for (const strict of [0, 1]) {
    driver.ok("cuStreamBeginCapture_v2", stream, strict);
    driver.fails(CAPTURE_UNSUPPORTED, "cuMemUnmap", address, GRANULE);
    driver.fails(CAPTURE_INVALIDATED, "cuStreamEndCapture", stream, out);
  }
  // The default stream would have to wait for what is not there yet.
  const blocking = driver.make("cuStreamCreate", 0);
  driver.ok("cuStreamBeginCapture_v2", blocking, RELAXED);
  driver.fails(CAPTURE_IMPLICIT, "cuMemsetD8Async", a, 1, 8n, 0n);
  driver.fails(CAPTURE_INVALIDATED, "cuStreamEndCapture", blocking, out);
});

fakeTest("maps page-locked memory for the device if asked", (driver) => {
  const { a, stream } = captureSetup(driver);
  const [mapped, unmapped] = [2, 1].map((flags) =>
    driver.make("cuMemHostAlloc", 64n, flags)
  ) as [bigint, bigint];
  const out = new BigUint64Array(1);
  assertEquals(driver.make("cuMemHostGetDevicePointer_v2", mapped, 0), mapped);
  driver.fails(INVALID_VALUE, "cuMemHostGetDevicePointer_v2", out, unmapped, 0);
  driver.ok("cuMemsetD8Async", mapped, 5, 64n, stream);
  driver.ok("cuMemcpyDtoDAsync_v2", a, mapped, 64n, stream);
  assertEquals(driver.read(a, 1, stream), [0x0505050505050505n]);
  driver.ok("cuMemsetD8Async", unmapped, 5, 64n, stream);
  driver.fails(ILLEGAL_ADDRESS, "cuStreamSynchronize", stream);
});

fakeTest("has pools whose blocks come back in stream order", (driver, fake) => {
  driver.open();
  const properties = new Uint8Array(88);
  properties.set(PROPERTIES.subarray(0, 16));
  const pool = driver.make("cuMemPoolCreate", properties);
  const keepAll = new BigUint64Array([WORD_MASK]);
  driver.ok("cuMemPoolSetAttribute", pool, 4, keepAll);
  const streams = [1, 1].map((flags) => driver.make("cuStreamCreate", flags));
  const [a, b] = streams as [bigint, bigint];
  const alloc = (stream: bigint) =>
    driver.make("cuMemAllocFromPoolAsync", MIB, pool, stream);
  const first = alloc(a);
  driver.ok("cuMemsetD8Async", first, 1, MIB, a);
  driver.ok("cuMemFreeAsync", first, a);
  driver.fails(INVALID_VALUE, "cuMemFreeAsync", first, a);
  const other = alloc(b);
  assert(other !== first, "another stream got a block that is still in use");
  assertEquals(alloc(a), first);
  driver.ok("cuMemsetD8Async", first, 2, MIB, a);
  driver.ok("cuMemFreeAsync", first, a);
  driver.ok("cuStreamSynchronize", a);
  assertEquals(alloc(b), first);
  driver.ok("cuMemFreeAsync", first, b);
  driver.ok("cuMemFreeAsync", other, b);
  driver.ok("cuCtxSynchronize");
  assertEquals(fake.live("pooled"), 0);
  assertEquals(fake.used(), Number(2n * MIB));
  driver.ok("cuMemPoolTrimTo", pool, 0n);
  assertEquals(fake.used(), 0);
  driver.ok("cuMemPoolDestroy", pool);
  driver.ok("cuMemsetD8Async", first, 1, 8n, b);
  driver.fails(ILLEGAL_ADDRESS, "cuStreamSynchronize", b);
});

fakeTest("fails the call it was asked to", (driver, fake) => {
  driver.open();
  fake.reset();
  const out = new BigUint64Array(1);
  fake.fail("cuStreamCreate", 2, 999);
  driver.ok("cuStreamCreate", out, 1);
  driver.fails(999, "cuStreamCreate", out, 1);
  driver.ok("cuStreamCreate", out, 1);
  assertEquals(fake.calls("cuStreamCreate"), 3);
  assertEquals(fake.live("streams"), 2);

  fake.fail("*", 2, 2);
  assertEquals(fake.armed(), 1);
  driver.ok("cuGetErrorName", 0, out);
  driver.ok("cuCtxSynchronize");
  driver.fails(OUT_OF_MEMORY, "cuCtxSynchronize");
  assertEquals(fake.armed(), 0);

  fake.fail("cuMemCreate", 1, 2);
  fake.fail("cuMemCreate", 0, 0);
  driver.make("cuMemCreate", GRANULE, PROPERTIES, 0n);
  assertThrows(() => fake.fail("cuMemcreate", 1, 1), RangeError);
  assertThrows(() => fake.calls("nothing"), RangeError);

  fake.lose();
  driver.fails(ILLEGAL_ADDRESS, "cuCtxSynchronize");
});
