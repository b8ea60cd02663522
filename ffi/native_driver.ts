/**
 * A device behind the shim, as the policy sees it.
 *
 * @module
 */

import type {
  Access,
  AddressRange,
  DeviceInfo,
  LaunchGeometry,
  MapTimes,
} from "../lib/driver.ts";
import type {
  PairTimes,
  TimedDriver,
  VmmTimes,
} from "../lib/bench/timed_driver.ts";
import { ClosedError } from "../lib/errors.ts";
import type { Library, ShimSymbols } from "./library.ts";
import { asyncStatusError, statusError } from "./status.ts";
import { AccessFlag, Status } from "./symbols.ts";

const ACCESS: Record<Access, number> = {
  "none": AccessFlag.NONE,
  "read": AccessFlag.READ,
  "read-write": AccessFlag.READ_WRITE,
};

const encoder = new TextEncoder();

/** An open device of a backend of the shim. */
export class NativeDriver implements TimedDriver {
  /** Facts about the device. */
  readonly info: DeviceInfo;
  readonly #library: Library;
  readonly #symbols: ShimSymbols;
  readonly #device: number;
  #closed = false;
  /** Reused by calls that return a number or two. */
  readonly #number = new Float64Array(2);
  readonly #id = new Uint32Array(1);
  readonly #flag = new Int32Array(1);
  #sizes = new Float64Array(64);
  #addresses = new Float64Array(64);
  #ids = new Uint32Array(64);
  /** Buffers that other threads use: must not be garbage-collected meanwhile. */
  readonly #lent = new Set<ArrayBufferView[]>();

  /** Made by {@linkcode openDriver}: takes over a hold on the shim and an open device of it. */
  constructor(library: Library, device: number, info: DeviceInfo) {
    this.#library = library;
    this.#symbols = library.symbols;
    this.#device = device;
    this.info = info;
  }

  /** Bytes free and in all, as the vendor's driver sees the device now. */
  memoryInfo(): { free: number; total: number } {
    const s = this.#open("read the memory figures");
    this.#check(
      s.mb_memory_info(this.#device, this.#number),
      "read the memory figures",
    );
    return { free: this.#number[0]!, total: this.#number[1]! };
  }

  /** Waits for all work on the device. */
  synchronize(): void {
    const s = this.#open("synchronize");
    this.#check(s.mb_synchronize(this.#device), "synchronize");
  }

  /** Waits for all work on the device, on another thread. */
  async synchronizeAsync(): Promise<void> {
    const s = this.#open("synchronize");
    await this.#elsewhere("synchronize", s.mb_synchronize_async(this.#device));
  }

  /** Releases everything; does nothing the second time. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#check(this.#symbols.mb_close(this.#device), "close");
    } finally {
      this.#letGo();
    }
  }

  /** Reserves addresses; returns the first. */
  reserve(size: number): number {
    const s = this.#open("reserve");
    this.#check(
      s.mb_reserve(this.#device, size, this.#number),
      "reserve addresses",
    );
    return this.#number[0]!;
  }

  /** Gives back a reservation in which nothing is mapped. */
  unreserve(address: number): void {
    const s = this.#open("unreserve");
    this.#check(s.mb_unreserve(this.#device, address), "unreserve addresses");
  }

  /** Creates one extent per size; returns their ids. */
  createExtents(sizes: readonly number[]): number[] {
    const s = this.#open("create extents");
    const count = sizes.length;
    this.#sizes = filled(this.#sizes, sizes);
    this.#ids = roomFor(this.#ids, count);
    this.#check(
      s.mb_extents_create(this.#device, count, this.#sizes, this.#ids),
      "create extents",
    );
    // A loop, since the built-ins for it cost more than the crossing.
    const ids: number[] = [];
    for (let i = 0; i < count; i++) ids.push(this.#ids[i]!);
    return ids;
  }

  /** Releases extents that are mapped nowhere. */
  releaseExtents(extents: readonly number[]): void {
    const s = this.#open("release extents");
    this.#ids = filledIds(this.#ids, extents, "an extent");
    this.#check(
      s.mb_extents_release(this.#device, extents.length, this.#ids),
      "release extents",
    );
  }

  /** Maps extents side by side with one set-access call. */
  map(
    address: number,
    extents: readonly number[],
    access: Access = "read-write",
  ): MapTimes {
    const s = this.#open("map");
    this.#ids = filledIds(this.#ids, extents, "an extent");
    this.#check(
      s.mb_map(
        this.#device,
        address,
        extents.length,
        this.#ids,
        accessFlag(access),
        this.#number,
      ),
      "map extents",
    );
    return { mapNs: this.#number[0]!, accessNs: this.#number[1]! };
  }

  /** Changes the rights of a range of whole mappings. */
  setAccess(address: number, size: number, access: Access): void {
    const s = this.#open("set access");
    this.#check(
      s.mb_set_access(this.#device, address, size, accessFlag(access)),
      "set access",
    );
  }

  /** Unmaps ranges of whole mappings. */
  unmap(ranges: readonly AddressRange[]): void {
    const s = this.#open("unmap");
    this.#addresses = roomFor(this.#addresses, ranges.length);
    this.#sizes = roomFor(this.#sizes, ranges.length);
    for (let i = 0; i < ranges.length; i++) {
      this.#addresses[i] = ranges[i]!.address;
      this.#sizes[i] = ranges[i]!.size;
    }
    this.#check(
      s.mb_unmap(this.#device, ranges.length, this.#addresses, this.#sizes),
      "unmap",
    );
  }

  /** Makes a stream. */
  createStream(): number {
    const s = this.#open("create a stream");
    this.#check(
      s.mb_stream_create(this.#device, this.#id),
      "create a stream",
    );
    return this.#id[0]!;
  }

  /** Destroys a stream after its work. */
  destroyStream(stream: number): void {
    const s = this.#open("destroy a stream");
    this.#check(
      s.mb_stream_destroy(this.#device, checkId(stream, "a stream")),
      "destroy a stream",
    );
  }

  /** Waits for a stream. */
  synchronizeStream(stream: number): void {
    const s = this.#open("synchronize a stream");
    this.#check(
      s.mb_stream_synchronize(this.#device, checkId(stream, "a stream")),
      "synchronize a stream",
    );
  }

  /** Waits for a stream, on another thread. */
  async synchronizeStreamAsync(stream: number): Promise<void> {
    const s = this.#open("synchronize a stream");
    await this.#elsewhere(
      "synchronize a stream",
      s.mb_stream_synchronize_async(this.#device, checkId(stream, "a stream")),
    );
  }

  /** The vendor's handle of a stream. */
  streamHandle(stream: number): bigint {
    const s = this.#open("read a stream's handle");
    const handle = new BigUint64Array(1);
    this.#check(
      s.mb_stream_handle(this.#device, checkId(stream, "a stream"), handle),
      "read a stream's handle",
    );
    return handle[0]!;
  }

  /** Makes later work of a stream wait for an event. */
  waitEvent(stream: number, event: number): void {
    const s = this.#open("wait for an event");
    this.#check(
      s.mb_stream_wait(
        this.#device,
        checkId(stream, "a stream"),
        checkId(event, "an event"),
      ),
      "wait for an event",
    );
  }

  /** Makes an event. */
  createEvent(timing = false): number {
    const s = this.#open("create an event");
    this.#check(
      s.mb_event_create(this.#device, timing ? 1 : 0, this.#id),
      "create an event",
    );
    return this.#id[0]!;
  }

  /** Destroys an event. */
  destroyEvent(event: number): void {
    const s = this.#open("destroy an event");
    this.#check(
      s.mb_event_destroy(this.#device, checkId(event, "an event")),
      "destroy an event",
    );
  }

  /** Records an event at a stream's tail. */
  recordEvent(event: number, stream: number): void {
    const s = this.#open("record an event");
    this.#check(
      s.mb_event_record(
        this.#device,
        checkId(event, "an event"),
        checkId(stream, "a stream"),
      ),
      "record an event",
    );
  }

  /** Whether all work before the event's last record is done. */
  queryEvent(event: number): boolean {
    const s = this.#open("query an event");
    const status = s.mb_event_query(this.#device, checkId(event, "an event"));
    if (status === Status.NOT_READY) return false;
    this.#check(status, "query an event");
    return true;
  }

  /** Waits for an event. */
  synchronizeEvent(event: number): void {
    const s = this.#open("wait for an event");
    this.#check(
      s.mb_event_synchronize(this.#device, checkId(event, "an event")),
      "wait for an event",
    );
  }

  /** Waits for an event, on another thread. */
  async synchronizeEventAsync(event: number): Promise<void> {
    const s = this.#open("wait for an event");
    await this.#elsewhere(
      "wait for an event",
      s.mb_event_synchronize_async(this.#device, checkId(event, "an event")),
    );
  }

  /** Milliseconds between two timing events that have passed. */
  elapsedMs(start: number, end: number): number {
    const s = this.#open("measure events");
    this.#check(
      s.mb_event_elapsed(
        this.#device,
        checkId(start, "an event"),
        checkId(end, "an event"),
        this.#number,
      ),
      "measure events",
    );
    return this.#number[0]!;
  }

  /** Sets elements, in stream order. */
  fill(
    address: number,
    value: number,
    width: 1 | 2 | 4,
    count: number,
    stream: number,
  ): void {
    const s = this.#open("fill");
    this.#check(
      s.mb_memset(
        this.#device,
        address,
        checkId(value, "a value"),
        checkId(width, "a width"),
        count,
        checkId(stream, "a stream"),
      ),
      "fill memory",
    );
  }

  /** Copies host bytes to the device; the source may be reused on return. */
  copyIn(address: number, source: Uint8Array, stream: number): void {
    const s = this.#open("copy");
    this.#check(
      s.mb_copy_in(
        this.#device,
        address,
        source as Uint8Array<ArrayBuffer>,
        source.byteLength,
        checkId(stream, "a stream"),
      ),
      "copy to the device",
    );
  }

  /**
   * Copies host bytes to the device, on another thread. Until the promise settles the
   * source must be neither changed nor transferred.
   */
  async copyInAsync(
    address: number,
    source: Uint8Array,
    stream: number,
  ): Promise<void> {
    const s = this.#open("copy");
    await this.#elsewhere(
      "copy to the device",
      s.mb_copy_in_async(
        this.#device,
        address,
        source as Uint8Array<ArrayBuffer>,
        source.byteLength,
        checkId(stream, "a stream"),
      ),
      source,
    );
  }

  /** Copies device bytes to the host; returns when they are there. */
  copyOut(destination: Uint8Array, address: number, stream: number): void {
    const s = this.#open("copy");
    this.#check(
      s.mb_copy_out(
        this.#device,
        destination as Uint8Array<ArrayBuffer>,
        address,
        destination.byteLength,
        checkId(stream, "a stream"),
      ),
      "copy from the device",
    );
  }

  /**
   * Copies device bytes to the host, on another thread. Until the promise settles the
   * destination must not be transferred.
   */
  async copyOutAsync(
    destination: Uint8Array,
    address: number,
    stream: number,
  ): Promise<void> {
    const s = this.#open("copy");
    await this.#elsewhere(
      "copy from the device",
      s.mb_copy_out_async(
        this.#device,
        destination as Uint8Array<ArrayBuffer>,
        address,
        destination.byteLength,
        checkId(stream, "a stream"),
      ),
      destination,
    );
  }

  /** Copies between ranges of the device. */
  copy(
    destination: number,
    source: number,
    bytes: number,
    stream: number,
  ): void {
    const s = this.#open("copy");
    this.#check(
      s.mb_copy(
        this.#device,
        destination,
        source,
        bytes,
        checkId(stream, "a stream"),
      ),
      "copy on the device",
    );
  }

  /** Allocates page-locked memory that the device uses at the same address. */
  allocPinned(bytes: number): number {
    const s = this.#open("allocate page-locked memory");
    this.#check(
      s.mb_host_alloc(this.#device, bytes, this.#number),
      "allocate page-locked memory",
    );
    return this.#number[0]!;
  }

  /** Frees page-locked memory after all work of the device. */
  freePinned(address: number): void {
    const s = this.#open("free page-locked memory");
    this.#check(
      s.mb_host_free(this.#device, address),
      "free page-locked memory",
    );
  }

  /** Copies bytes into page-locked memory at once. */
  writePinned(address: number, source: Uint8Array): void {
    const s = this.#open("write page-locked memory");
    this.#check(
      s.mb_host_write(
        this.#device,
        address,
        source as Uint8Array<ArrayBuffer>,
        source.byteLength,
      ),
      "write page-locked memory",
    );
  }

  /** Copies bytes out of page-locked memory at once. */
  readPinned(destination: Uint8Array, address: number): void {
    const s = this.#open("read page-locked memory");
    this.#check(
      s.mb_host_read(
        this.#device,
        destination as Uint8Array<ArrayBuffer>,
        address,
        destination.byteLength,
      ),
      "read page-locked memory",
    );
  }

  /** Lets the data calls use memory that others allocated. */
  wrapMemory(address: number, bytes: number): void {
    const s = this.#open("wrap memory");
    this.#check(s.mb_wrap(this.#device, address, bytes), "wrap memory");
  }

  /** Ends that; waits for nothing. */
  unwrapMemory(address: number): void {
    const s = this.#open("unwrap memory");
    this.#check(s.mb_unwrap(this.#device, address), "unwrap memory");
  }

  /** Makes a stream note its work for a graph. */
  beginCapture(stream: number): void {
    const s = this.#open("capture");
    this.#check(
      s.mb_capture_begin(this.#device, checkId(stream, "a stream")),
      "begin a capture",
    );
  }

  /** Ends a stream's capture; returns the graph. */
  endCapture(stream: number): number {
    const s = this.#open("capture");
    this.#check(
      s.mb_capture_end(this.#device, checkId(stream, "a stream"), this.#id),
      "end a capture",
    );
    return this.#id[0]!;
  }

  /** Whether a stream is capturing. */
  isCapturing(stream: number): boolean {
    const s = this.#open("ask about a capture");
    this.#check(
      s.mb_capture_status(
        this.#device,
        checkId(stream, "a stream"),
        this.#flag,
      ),
      "ask about a capture",
    );
    return this.#flag[0] === 1;
  }

  /** Launches a graph. */
  launchGraph(graph: number, stream: number): void {
    const s = this.#open("launch a graph");
    this.#check(
      s.mb_graph_launch(
        this.#device,
        checkId(graph, "a graph"),
        checkId(stream, "a stream"),
      ),
      "launch a graph",
    );
  }

  /** Destroys a graph. */
  destroyGraph(graph: number): void {
    const s = this.#open("destroy a graph");
    this.#check(
      s.mb_graph_destroy(this.#device, checkId(graph, "a graph")),
      "destroy a graph",
    );
  }

  /** Loads a module image. */
  loadModule(image: Uint8Array): number {
    const s = this.#open("load a module");
    this.#check(
      s.mb_module_load(
        this.#device,
        image as Uint8Array<ArrayBuffer>,
        image.byteLength,
        this.#id,
      ),
      "load a module",
    );
    return this.#id[0]!;
  }

  /** Unloads a module. */
  unloadModule(module: number): void {
    const s = this.#open("unload a module");
    this.#check(
      s.mb_module_unload(this.#device, checkId(module, "a module")),
      "unload a module",
    );
  }

  /** Finds a kernel by name. */
  getFunction(module: number, name: string): number {
    const s = this.#open("find a kernel");
    const bytes = encoder.encode(name);
    this.#check(
      s.mb_function(
        this.#device,
        checkId(module, "a module"),
        bytes,
        bytes.length,
        this.#id,
      ),
      `find the kernel "${name}"`,
    );
    return this.#id[0]!;
  }

  /** Launches a kernel. */
  launch(
    func: number,
    geometry: LaunchGeometry,
    args: Uint8Array,
    stream: number,
  ): void {
    const s = this.#open("launch");
    const [gridX, gridY = 1, gridZ = 1] = geometry.grid;
    const [blockX, blockY = 1, blockZ = 1] = geometry.block;
    this.#check(
      s.mb_launch(
        this.#device,
        checkId(func, "a kernel"),
        checkId(gridX, "the grid"),
        checkId(gridY, "the grid"),
        checkId(gridZ, "the grid"),
        checkId(blockX, "the block"),
        checkId(blockY, "the block"),
        checkId(blockZ, "the block"),
        checkId(geometry.sharedBytes ?? 0, "the shared memory"),
        checkId(stream, "a stream"),
        args as Uint8Array<ArrayBuffer>,
        args.byteLength,
      ),
      "launch a kernel",
    );
  }

  /** Allocates with the vendor's plain allocator. */
  plainAlloc(size: number): number {
    const s = this.#open("allocate plainly");
    this.#check(
      s.mb_plain_alloc(this.#device, size, this.#number),
      "allocate plainly",
    );
    return this.#number[0]!;
  }

  /** Frees what `plainAlloc` gave. */
  plainFree(address: number): void {
    const s = this.#open("free plainly");
    this.#check(s.mb_plain_free(this.#device, address), "free plainly");
  }

  /** Allocates from the vendor's stream-ordered pool. */
  poolAlloc(size: number, stream: number): number {
    const s = this.#open("allocate from the pool");
    this.#check(
      s.mb_pool_alloc(
        this.#device,
        size,
        checkId(stream, "a stream"),
        this.#number,
      ),
      "allocate from the pool",
    );
    return this.#number[0]!;
  }

  /** Frees what `poolAlloc` gave. */
  poolFree(address: number, stream: number): void {
    const s = this.#open("free to the pool");
    this.#check(
      s.mb_pool_free(this.#device, address, checkId(stream, "a stream")),
      "free to the pool",
    );
  }

  /** Gives what the pool keeps back to the device. */
  poolTrim(): void {
    const s = this.#open("trim the pool");
    this.#check(s.mb_pool_trim(this.#device), "trim the pool");
  }

  /** Times plain allocation and free. */
  timePlain(size: number, n: number): PairTimes {
    const s = this.#open("time");
    const times = newPairTimes(n);
    this.#check(
      s.mb_time_plain(this.#device, size, n, times.allocNs, times.freeNs),
      "time plain allocation",
    );
    return times;
  }

  /** Times the pool. */
  timePool(size: number, stream: number, warm: boolean, n: number): PairTimes {
    const s = this.#open("time");
    const times = newPairTimes(n);
    this.#check(
      s.mb_time_pool(
        this.#device,
        size,
        checkId(stream, "a stream"),
        warm ? 1 : 0,
        n,
        times.allocNs,
        times.freeNs,
      ),
      "time the pool",
    );
    return times;
  }

  /** Times the raw calls. */
  timeVmm(size: number, extentSize: number, n: number): VmmTimes {
    const s = this.#open("time");
    const stages = new Float64Array(5 * checkId(n, "the number of rounds"));
    this.#check(
      s.mb_time_vmm(this.#device, size, extentSize, n, stages),
      "time the raw calls",
    );
    const stage = (k: number) =>
      Float64Array.from({ length: n }, (_, i) => stages[5 * i + k]!);
    return {
      createNs: stage(0),
      mapNs: stage(1),
      accessNs: stage(2),
      unmapNs: stage(3),
      releaseNs: stage(4),
    };
  }

  /** Times launches on another thread. */
  async timeLaunch(
    func: number,
    stream: number,
    args: Uint8Array,
    synchronize: boolean,
    n: number,
  ): Promise<Float64Array> {
    const s = this.#open("time");
    const launchNs = new Float64Array(checkId(n, "the number of rounds"));
    await this.#elsewhere(
      "time launches",
      s.mb_time_launch_async(
        this.#device,
        checkId(func, "a kernel"),
        checkId(stream, "a stream"),
        args as Uint8Array<ArrayBuffer>,
        args.byteLength,
        synchronize ? 1 : 0,
        n,
        launchNs,
      ),
      args,
      launchNs,
    );
    return launchNs;
  }

  #open(operation: string): ShimSymbols {
    if (this.#closed) throw new ClosedError(operation, "the device");
    return this.#symbols;
  }

  /** Waits for a call on another thread, keeping the buffers it uses. */
  async #elsewhere(
    operation: string,
    call: Promise<number>,
    ...buffers: ArrayBufferView[]
  ): Promise<void> {
    this.#lent.add(buffers);
    try {
      const status = await call;
      if (status !== Status.OK) throw asyncStatusError(status, operation);
    } finally {
      this.#lent.delete(buffers);
      this.#letGo();
    }
  }

  /** Gives up the shim once no call into it can be on its way. */
  #letGo(): void {
    if (this.#closed && this.#lent.size === 0) this.#library[Symbol.dispose]();
  }

  #check(status: number, operation: string): void {
    if (status !== Status.OK) {
      throw statusError(this.#symbols, status, operation);
    }
  }
}

/** Refuses what would wrap silently on its way into a 32-bit integer. */
function checkId(value: number, what: string): number {
  if (!(Number.isInteger(value) && value >= 0 && value <= 0xffffffff)) {
    throw new RangeError(
      `Cannot pass ${what}: ${value} is not a whole number of 32 bits`,
    );
  }
  return value;
}

function accessFlag(access: Access): number {
  const flag = ACCESS[access];
  if (flag === undefined) {
    throw new RangeError(`Cannot set access: unknown access "${access}"`);
  }
  return flag;
}

function roomFor<T extends Float64Array | Uint32Array>(
  array: T,
  count: number,
): T {
  if (array.length >= count) return array;
  return new (array.constructor as new (n: number) => T)(count * 2);
}

function filled(
  array: Float64Array<ArrayBuffer>,
  values: readonly number[],
): Float64Array<ArrayBuffer> {
  const room = roomFor(array, values.length);
  for (let i = 0; i < values.length; i++) room[i] = values[i]!;
  return room;
}

function filledIds(
  array: Uint32Array<ArrayBuffer>,
  values: readonly number[],
  what: string,
): Uint32Array<ArrayBuffer> {
  const room = roomFor(array, values.length);
  for (let i = 0; i < values.length; i++) room[i] = checkId(values[i]!, what);
  return room;
}

function newPairTimes(n: number): {
  allocNs: Float64Array<ArrayBuffer>;
  freeNs: Float64Array<ArrayBuffer>;
} {
  checkId(n, "the number of rounds");
  return { allocNs: new Float64Array(n), freeNs: new Float64Array(n) };
}
