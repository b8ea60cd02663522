/**
 * What the command line needs of the outside. `cli.ts` gives the real thing, tests
 * give their own, so commands run in process and nothing in `lib/` opens a library.
 *
 * @module
 */

import type { BenchEnvironment } from "../bench/report.ts";
import type { DeviceInfo } from "../driver.ts";
import type { MoonBright, MoonBrightOptions } from "../moonbright.ts";

/** An output of the process. */
export interface CliStream {
  /** Writes all of a text before it returns. */
  write(text: string): void;
  /** Whether a person watches it. */
  readonly isTerminal: boolean;
  /** Columns of the terminal; 80 where there is none. */
  columns(): number;
  /** Lines of the terminal; 24 where there is none. */
  rows(): number;
}

/** How to open a device. */
export interface CliOpenOptions extends MoonBrightOptions {
  /** The device: `auto`, `host`, `cuda:0`, `hip:0`. */
  device: string;
}

/** A device, as found. */
export interface FoundDevice {
  /** What `--device` takes, such as `cuda:0`. */
  id: string;
  /** Facts about it. */
  info: DeviceInfo;
}

/** A backend, as found. */
export interface FoundBackend {
  /** `host`, `cuda` or `hip`. */
  name: string;
  /** Its devices that can be used. */
  devices: FoundDevice[];
  /** What is missing and what to do about it, `null` if nothing is. */
  problem: string | null;
}

/** What there is to work with. */
export interface Found {
  /** The shim library: its file, and how it was come by. */
  library: { path: string; origin: string };
  /** All backends, usable or not. */
  backends: FoundBackend[];
}

/** A set of kernels that ships with MoonBright. */
export type KernelImageName =
  | "pattern"
  | "busy"
  | "paging_entries"
  | "paging_copy"
  | "paging_read";

/** What the command line needs of the native library. */
export interface NativeSide {
  /** Version of the binary interface that the library must have. */
  readonly abiVersion: number;
  /**
   * Opens a device.
   *
   * @throws {MoonBrightError} if it can't be
   */
  open(options: CliOpenOptions): MoonBright;
  /**
   * Looks for the library and the devices.
   *
   * @throws {MoonBrightError} if no library can be used
   */
  probe(): Found;
  /** The folder of libraries that were built, `undefined` if there is no such place. */
  cacheFolder(): string | undefined;
  /**
   * The image of a set of kernels for a device.
   *
   * @throws {MoonBrightError} if there is none, or no compiler to make it
   */
  kernelImage(name: KernelImageName, device: DeviceInfo): Uint8Array;
}

/** The outside of the command line. */
export interface CliHost extends NativeSide {
  /** Version of MoonBright. */
  readonly version: string;
  /** Takes data. */
  readonly stdout: CliStream;
  /** Takes progress, warnings and errors. */
  readonly stderr: CliStream;
  /** Whether the environment asks for no colour. */
  readonly noColor: boolean;
  /** Whether text may have letters beyond ASCII. */
  readonly unicode: boolean;
  /** Whether a person can press Enter. */
  readonly interactive: boolean;
  /** Resolves once Enter is pressed or the input ends. */
  enter(): Promise<void>;
  /** Has a function called on Ctrl-C instead of ending; returns what ends that. */
  onInterrupt(handler: () => void): () => void;
  /** The process and its machine. */
  machine(): Omit<BenchEnvironment, "device">;
  /** Where results with a device come from. */
  environment(device: DeviceInfo): BenchEnvironment;
}
