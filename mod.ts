/**
 * A GPU memory allocator: memory in less than a microsecond, from scattered extents as
 * from contiguous ones, on the stock drivers.
 *
 * @example
 * ```ts
 * import { MoonBright } from "@moonbright/moonbright";
 *
 * using mb = MoonBright.open({ device: "host" });
 * using block = mb.alloc(64 * 1024 * 1024, { name: "activations" });
 * block.write(new Float32Array([1, 2, 3]));
 * console.log(new Float32Array(block.read(12).buffer)); // 1, 2, 3
 * ```
 *
 * @module
 */

export { MoonBright, type OpenOptions } from "./ffi/moonbright.ts";
export { type BackendName, type DeviceOptions } from "./ffi/devices.ts";
export type { NativeDriver } from "./ffi/native_driver.ts";
export { kernelImage, type KernelSet } from "./ffi/kernels.ts";
export type {
  AllocOptions,
  MoonBright as Instance,
  MoonBrightOptions,
} from "./lib/moonbright.ts";
export { type AccessOptions, Block, type FillOptions } from "./lib/block.ts";
export { WrappedMemory } from "./lib/wrapped_memory.ts";
export {
  type DataMemory,
  type ElementArray,
  type ElementArrays,
  type ElementOptions,
  type ElementReadOptions,
  type ElementType,
  TypedView,
} from "./lib/typed_view.ts";
export { Event, Stream } from "./lib/stream.ts";
export { Graph } from "./lib/graph.ts";
export {
  Kernel,
  type KernelArgument,
  type LaunchOptions,
  Module,
  packArguments,
} from "./lib/kernel.ts";
export type {
  BlockSnapshot,
  ExtentSnapshot,
  Snapshot,
} from "./lib/snapshot.ts";
export type { Stats, WayStats } from "./lib/stats.ts";
export type { Publication } from "./lib/live/publication.ts";
export type { CallCount, CallKind, DriverCall } from "./lib/mapper.ts";
export type { CostModel, OperationCost } from "./lib/cost_model.ts";
export type { GrowthPolicy, Way } from "./lib/planner.ts";
export type { AllocatorOptions } from "./lib/allocator.ts";
export type {
  Access,
  AddressRange,
  DeviceInfo,
  Driver,
  LaunchGeometry,
  MapTimes,
} from "./lib/driver.ts";
export type {
  PairTimes,
  TimedDriver,
  VmmTimes,
} from "./lib/bench/timed_driver.ts";
export type { DebugOptions } from "./lib/debug/options.ts";
export type { AddressReport, AddressState } from "./lib/debug/explain.ts";
export type { BlockStory, Moment } from "./lib/debug/history.ts";
export type { PolicyName } from "./lib/policies.ts";
export {
  type CanaryDamage,
  CanaryError,
  ClosedError,
  DriverError,
  type ErrorCode,
  InvalidBlockError,
  MoonBrightError,
  type OutOfMemoryDetails,
  OutOfMemoryError,
} from "./lib/errors.ts";
export { formatSize, parseSize } from "./lib/sizes.ts";
export {
  type PageAllocOptions,
  PagedSpace,
  type PagedSpaceOptions,
  type PagedStats,
  type PagedView,
} from "./lib/paging/paged_space.ts";
export {
  type ForkOptions,
  type PagedAccess,
  PagedRange,
} from "./lib/paging/paged_range.ts";
export {
  decode,
  type DecodedEntry,
  encode,
  type EntryFormat,
  type FormatName,
  FORMATS,
  type PageKind,
} from "./lib/paging/formats.ts";
export {
  type PagedViewFields,
  viewArguments,
} from "./lib/paging/argument_blocks.ts";
export {
  type BadPage,
  type PageFault,
  readReport,
  REPORT_NONE,
} from "./lib/paging/page_report.ts";
export { recordTrace, type TraceRecording } from "./lib/replay/record_trace.ts";
export {
  exportPyTorch,
  type PyTorchExport,
} from "./lib/replay/write/write_pytorch.ts";
