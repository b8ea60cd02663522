/**
 * What the policy in `lib/` needs of a device. The shim implements it in
 * `ffi/native_driver.ts`, the model MMU in `tests/model/`.
 *
 * Addresses and sizes are numbers holding whole bytes below 2^53. A method that fails
 * has changed nothing; it throws a `DriverError`, a `RangeError` for arguments that
 * make no sense, a `ClosedError` once the driver is closed.
 *
 * @module
 */

/** Facts about a device that the policy and the reports use. */
export interface DeviceInfo {
  /** `host`, `cuda`, `hip` or `model`. */
  backend: string;
  /** Number of the device within its backend. */
  ordinal: number;
  /** The vendor's name of the device. */
  name: string;
  /** Architecture, such as `sm_90` or `x86_64`. */
  architecture: string;
  /** Bytes of memory. */
  totalMemory: number;
  /** Extents' sizes and addresses are multiples of this many bytes. */
  granularity: number;
  /** Multiprocessors, compute units or cores. */
  processors: number;
  /** The driver's version as it reports it, 0 where there is none. */
  driverVersion: number;
  /** Whether the driver has a stream-ordered pool (for baselines). */
  pools: boolean;
  /** Most extents that there may be at once; 0, or left out, for no limit. */
  extentLimit?: number;
  /**
   * Why the device can't map memory at chosen addresses, and what to do about it; left out
   * if it can. Extents then come from the driver's plain allocator, see
   * `plain_extents.ts`.
   */
  plainReason?: string;
}

/** A range of addresses. */
export interface AddressRange {
  /** First byte. */
  address: number;
  /** Length in bytes. */
  size: number;
}

/** Access rights of a mapping. */
export type Access = "none" | "read" | "read-write";

/** How long the two halves of a map call took. */
export interface MapTimes {
  /** Nanoseconds in the map calls. */
  mapNs: number;
  /** Nanoseconds in the set-access call. */
  accessNs: number;
}

/** Grid and block of a kernel launch; missing dimensions are 1. */
export interface LaunchGeometry {
  /** Blocks in x, y, z. */
  grid: readonly [number, number?, number?];
  /** Threads per block in x, y, z. */
  block: readonly [number, number?, number?];
  /** Dynamic shared memory per block in bytes, 0 by default. */
  sharedBytes?: number;
}

/** A device, as the policy sees it. Ids are small integers given by the driver. */
export interface Driver {
  /** Facts about the device. */
  readonly info: DeviceInfo;

  /** Bytes free and in all, as the driver sees the device now. */
  memoryInfo(): { free: number; total: number };
  /** Waits for all work on the device; refused while a stream is capturing. */
  synchronize(): void;
  /** Releases everything the driver still holds for this instance. Never throws twice. */
  close(): void;

  /** Reserves addresses; returns the first, a multiple of the granularity. */
  reserve(size: number): number;
  /** Gives back a reservation in which nothing is mapped. */
  unreserve(address: number): void;
  /** Creates one extent per size; returns their ids. */
  createExtents(sizes: readonly number[]): number[];
  /** Releases extents that are mapped nowhere. */
  releaseExtents(extents: readonly number[]): void;
  /** Maps extents side by side from `address` on, with one set-access call. */
  map(address: number, extents: readonly number[], access?: Access): MapTimes;
  /** Changes the rights of a range of whole mappings. */
  setAccess(address: number, size: number, access: Access): void;
  /**
   * Unmaps ranges of whole mappings, and so flushes their translations. HIP waits for all
   * work on the device for it, the others don't wait.
   */
  unmap(ranges: readonly AddressRange[]): void;

  /** Makes a stream; 0 is the default stream and always exists. */
  createStream(): number;
  /** Destroys a stream after its work; a capture of its own ends without a graph. */
  destroyStream(stream: number): void;
  /** Waits for a stream. */
  synchronizeStream(stream: number): void;
  /** The vendor's handle of a stream, for other libraries. */
  streamHandle(stream: number): bigint;
  /** Makes later work of a stream wait for an event's last record. */
  waitEvent(stream: number, event: number): void;
  /** Makes an event; `timing` if elapsed time will be asked. */
  createEvent(timing?: boolean): number;
  /** Destroys an event. */
  destroyEvent(event: number): void;
  /** Records an event at the stream's tail. */
  recordEvent(event: number, stream: number): void;
  /** Whether all work before the event's last record is done. */
  queryEvent(event: number): boolean;
  /** Waits for an event. */
  synchronizeEvent(event: number): void;
  /** Milliseconds between two timing events that have passed. */
  elapsedMs(start: number, end: number): number;

  /** Sets `count` elements of `width` bytes, in stream order. */
  fill(
    address: number,
    value: number,
    width: 1 | 2 | 4,
    count: number,
    stream: number,
  ): void;
  /** Copies host bytes to the device in stream order; the source may be reused on return. */
  copyIn(address: number, source: Uint8Array, stream: number): void;
  /** Copies device bytes to the host in stream order; returns when they are there. */
  copyOut(destination: Uint8Array, address: number, stream: number): void;
  /**
   * `copyIn` on another thread; the source must stay as it is until the promise settles.
   * Drivers without another thread leave it out.
   */
  copyInAsync?(
    address: number,
    source: Uint8Array,
    stream: number,
  ): Promise<void>;
  /** `copyOut` on another thread; the destination must not be used until the promise settles. */
  copyOutAsync?(
    destination: Uint8Array,
    address: number,
    stream: number,
  ): Promise<void>;
  /** Copies between ranges of the device that don't overlap, in stream order. */
  copy(
    destination: number,
    source: number,
    bytes: number,
    stream: number,
  ): void;

  /**
   * Allocates page-locked memory of the host that kernels, fills and copies use at the same
   * address as device memory; what it holds at first is left open.
   */
  allocPinned(bytes: number): number;
  /** Frees page-locked memory after all work of the device; refused during a capture. */
  freePinned(address: number): void;
  /**
   * Copies bytes into page-locked memory at once, in no stream's order: the caller knows
   * that no work is using the range.
   */
  writePinned(address: number, source: Uint8Array): void;
  /** Copies bytes out of page-locked memory at once, in no stream's order. */
  readPinned(destination: Uint8Array, address: number): void;

  /**
   * Lets data calls use memory that others allocated and the device can reach, which is
   * not checked. Refused with a `RangeError` if it overlaps memory of the driver's own.
   * Drivers that share no memory with others leave it out.
   */
  wrapMemory?(address: number, bytes: number): void;
  /** Ends that. Does not wait for queued work that uses the range. */
  unwrapMemory?(address: number): void;

  /**
   * Makes a stream note fills, copies on the device and launches for a graph instead of
   * doing them. Whatever else uses the stream meanwhile, or waits for the whole device, is
   * refused with a `RangeError`, and the capture goes on. The default stream can't capture.
   */
  beginCapture(stream: number): void;
  /**
   * Ends a stream's capture; returns the graph of what was noted. Where it fails, the capture
   * has ended all the same unless `isCapturing` says otherwise.
   */
  endCapture(stream: number): number;
  /** Whether a stream is capturing. */
  isCapturing(stream: number): boolean;
  /**
   * Does what a graph holds, in the stream's order and after the graph's launches so far.
   * All memory that it uses must be there as when it was captured.
   */
  launchGraph(graph: number, stream: number): void;
  /**
   * Destroys a graph; launches under way go on. Until then no module whose kernels it holds
   * can be unloaded.
   */
  destroyGraph(graph: number): void;

  /** Loads a module image: PTX, a code object, or a shared object for the host. */
  loadModule(image: Uint8Array): number;
  /** Unloads a module. */
  unloadModule(module: number): void;
  /** Finds a kernel by name. */
  getFunction(module: number, name: string): number;
  /** Launches a kernel with its argument block. */
  launch(
    func: number,
    geometry: LaunchGeometry,
    args: Uint8Array,
    stream: number,
  ): void;
}
