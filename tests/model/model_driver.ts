import type {
  Access,
  AddressRange,
  DeviceInfo,
  Driver,
  LaunchGeometry,
  MapTimes,
} from "../../lib/driver.ts";
import type { ErrorCode } from "../../lib/errors.ts";
import type { CallLog, DriverMethod } from "./call_log.ts";
import { Context } from "./context.ts";
import { h200Costs } from "./costs.ts";
import { DeviceData } from "./device_data.ts";
import { DeviceGraphs } from "./device_graphs.ts";
import { DeviceMemory } from "./device_memory.ts";
import { DeviceModules } from "./device_modules.ts";
import { DevicePinned } from "./device_pinned.ts";
import { DeviceStreams } from "./device_streams.ts";
import type { ModelKernel } from "./kernels.ts";
import type { ModelOptions } from "./options.ts";

export type { ModelOptions };

/** What a model device holds. */
export interface LiveObjects {
  /** Extents not released. */
  extents: number;
  /** Installed mappings. */
  mappings: number;
  /** Reservations of addresses. */
  reservations: number;
  /** Streams, without the default stream. */
  streams: number;
  /** Events. */
  events: number;
  /** Modules. */
  modules: number;
  /** Graphs. */
  graphs: number;
  /** Allocations of page-locked memory. */
  pinned: number;
}

/**
 * A device simulated in TypeScript, for tests of the policy. It is as lazy, and as
 * unforgiving about stale translations and missing waits, as a device may be.
 *
 * An access that hardware would let through to the wrong memory is let through
 * here too, and noted in `hazards`. One that hardware would stop loses the
 * context: every later call fails with the code `lost`.
 */
export class ModelDriver implements Driver {
  readonly info: DeviceInfo;
  readonly #context: Context;
  readonly #memory: DeviceMemory;
  readonly #work: DeviceStreams;
  readonly #data: DeviceData;
  readonly #pinned: DevicePinned;
  readonly #graphs: DeviceGraphs;
  readonly #modules: DeviceModules;

  /** Makes a device with nothing on it. */
  constructor(options: ModelOptions = {}) {
    const totalMemory = options.totalMemory ?? 64 * 2 ** 20;
    const granularity = options.granularity ?? 4096;
    this.#context = new Context(options.costs ?? h200Costs);
    this.#memory = new DeviceMemory(
      this.#context,
      totalMemory,
      granularity,
      options,
    );
    this.#work = new DeviceStreams(
      this.#context,
      this.#memory.table,
      options,
    );
    this.#data = new DeviceData(this.#context, this.#memory, this.#work);
    this.#pinned = new DevicePinned(
      this.#context,
      this.#memory.pinned,
      this.#work,
    );
    this.#graphs = new DeviceGraphs(this.#context, this.#work);
    this.#modules = new DeviceModules(
      this.#context,
      this.#memory,
      this.#work,
      this.#graphs,
    );
    this.info = {
      backend: "model",
      ordinal: 0,
      name: "Model device",
      architecture: "model",
      totalMemory,
      granularity,
      processors: 1,
      driverVersion: 0,
      pools: false,
    };
  }

  /** Accesses that went to other memory than their operation meant. */
  get hazards(): readonly string[] {
    return this.#context.hazards;
  }

  /** Calls of each method so far. */
  get counts(): CallLog["counts"] {
    return this.#context.calls.counts;
  }

  /** Simulated time spent in driver calls, in nanoseconds. */
  get elapsedNs(): number {
    return this.#context.elapsedNs;
  }

  /** Why the context is lost, if it is. */
  get lostReason(): string | undefined {
    return this.#context.lostReason;
  }

  /** Operations that are queued and not done. */
  get pendingOperations(): number {
    return this.#work.scheduler.pending;
  }

  /** Translations in the TLB. */
  get cachedTranslations(): number {
    return this.#memory.mmu.tlb.size;
  }

  /** What exists on the device now. */
  live(): LiveObjects {
    return {
      extents: this.#memory.physical.count,
      mappings: this.#memory.table.count,
      reservations: this.#memory.space.count,
      streams: this.#work.streams.count,
      events: this.#work.events.count,
      modules: this.#modules.modules.count,
      graphs: this.#graphs.graphs.count,
      pinned: this.#memory.pinned.count,
    };
  }

  /** Makes the k-th call of a method (or of any but `close`) fail; 1 is the next. */
  failNext(method: DriverMethod | "any", kth: number, code: ErrorCode): void {
    this.#context.calls.failNext(method, kth, code);
  }

  /** Forgets the failures that have not come yet. */
  clearFailures(): void {
    this.#context.calls.clearFailures();
  }

  /** How many failures asked for have not come yet. */
  get failuresLeft(): number {
    return this.#context.calls.failuresLeft;
  }

  /** Adds a kernel that every module then has. */
  registerKernel(name: string, kernel: ModelKernel): void {
    this.#modules.kernels.set(name, kernel);
  }

  /** Runs up to `count` steps of pending work in random streams; returns how many ran. */
  step(count: number): number {
    return this.#work.step(count);
  }

  /** Walks the table for an address ahead of its use, as hardware may. */
  prefetch(address: number): void {
    this.#memory.mmu.prefetch(address);
  }

  close(): void {
    if (this.#context.closed) return;
    this.#context.closed = true;
    this.counts.close = 1;
    this.#work.clear();
    this.#memory.clear();
    this.#modules.clear();
    this.#graphs.graphs.clear();
  }

  memoryInfo(): { free: number; total: number } {
    return this.#memory.memoryInfo();
  }

  synchronize(): void {
    this.#work.synchronize();
  }

  reserve(size: number): number {
    return this.#memory.reserve(size);
  }

  unreserve(address: number): void {
    this.#memory.unreserve(address);
  }

  createExtents(sizes: readonly number[]): number[] {
    return this.#memory.createExtents(sizes);
  }

  releaseExtents(extents: readonly number[]): void {
    this.#memory.releaseExtents(extents);
  }

  map(address: number, extents: readonly number[], access?: Access): MapTimes {
    return this.#memory.map(address, extents, access);
  }

  setAccess(address: number, size: number, access: Access): void {
    this.#memory.setAccess(address, size, access);
  }

  unmap(ranges: readonly AddressRange[]): void {
    this.#memory.unmap(ranges);
  }

  createStream(): number {
    return this.#work.createStream();
  }

  destroyStream(stream: number): void {
    this.#work.destroyStream(stream);
  }

  synchronizeStream(stream: number): void {
    this.#work.synchronizeStream(stream);
  }

  streamHandle(stream: number): bigint {
    return this.#work.streamHandle(stream);
  }

  waitEvent(stream: number, event: number): void {
    this.#work.waitEvent(stream, event);
  }

  createEvent(timing?: boolean): number {
    return this.#work.createEvent(timing);
  }

  destroyEvent(event: number): void {
    this.#work.destroyEvent(event);
  }

  recordEvent(event: number, stream: number): void {
    this.#work.recordEvent(event, stream);
  }

  queryEvent(event: number): boolean {
    return this.#work.queryEvent(event);
  }

  synchronizeEvent(event: number): void {
    this.#work.synchronizeEvent(event);
  }

  elapsedMs(start: number, end: number): number {
    return this.#work.elapsedMs(start, end);
  }

  fill(
    address: number,
    value: number,
    width: 1 | 2 | 4,
    count: number,
    stream: number,
  ): void {
    this.#data.fill(address, value, width, count, stream);
  }

  copyIn(address: number, source: Uint8Array, stream: number): void {
    this.#data.copyIn(address, source, stream);
  }

  copyOut(destination: Uint8Array, address: number, stream: number): void {
    this.#data.copyOut(destination, address, stream);
  }

  copy(
    destination: number,
    source: number,
    bytes: number,
    stream: number,
  ): void {
    this.#data.copy(destination, source, bytes, stream);
  }

  allocPinned(bytes: number): number {
    return this.#pinned.allocPinned(bytes);
  }

  freePinned(address: number): void {
    this.#pinned.freePinned(address);
  }

  writePinned(address: number, source: Uint8Array): void {
    this.#pinned.writePinned(address, source);
  }

  readPinned(destination: Uint8Array, address: number): void {
    this.#pinned.readPinned(destination, address);
  }

  beginCapture(stream: number): void {
    this.#graphs.beginCapture(stream);
  }

  endCapture(stream: number): number {
    return this.#graphs.endCapture(stream);
  }

  isCapturing(stream: number): boolean {
    return this.#graphs.isCapturing(stream);
  }

  launchGraph(graph: number, stream: number): void {
    this.#graphs.launchGraph(graph, stream);
  }

  destroyGraph(graph: number): void {
    this.#graphs.destroyGraph(graph);
  }

  loadModule(image: Uint8Array): number {
    return this.#modules.loadModule(image);
  }

  unloadModule(module: number): void {
    this.#modules.unloadModule(module);
  }

  getFunction(module: number, name: string): number {
    return this.#modules.getFunction(module, name);
  }

  launch(
    func: number,
    geometry: LaunchGeometry,
    args: Uint8Array,
    stream: number,
  ): void {
    this.#modules.launch(func, geometry, args, stream);
  }
}
