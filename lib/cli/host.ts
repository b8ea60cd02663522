/**
 * What the command line needs of the outside. `cli.ts` gives the real thing, tests
 * give their own, so commands run in process and nothing in `lib/` opens a library.
 *
 * @module
 */

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
}

/** How to open a device. */
export interface CliOpenOptions extends MoonBrightOptions {
  /** The device: `auto`, `host`, `cuda:0`, `hip:0`. */
  device: string;
}

/** The shim library, as found or not. */
export interface LibraryReport {
  /** Its file, `null` if none can be used. */
  path: string | null;
  /** How it was come by, such as `cache` or `built`. */
  origin: string | null;
  /** Version of its binary interface. */
  abiVersion: number | null;
  /** Where built libraries are kept, `null` if there is no such place. */
  cacheFolder: string | null;
  /** Why no library can be used and what to do about it. */
  problem: string | null;
}

/** A device, as found. */
export interface DeviceReport {
  /** What `--device` takes, such as `cuda:0`. */
  id: string;
  /** Facts about it. */
  info: DeviceInfo;
  /** Bytes free now, `null` if it did not say. */
  freeMemory: number | null;
}

/** A backend, as found. */
export interface BackendReport {
  /** `host`, `cuda` or `hip`. */
  name: string;
  /** Its devices that can be used. */
  devices: DeviceReport[];
  /** What is missing and what to do about it, `null` if nothing is. */
  problem: string | null;
}

/** What there is to work with. */
export interface ProbeReport {
  /** The shim library. */
  library: LibraryReport;
  /** All backends, usable or not. */
  backends: BackendReport[];
}

/** A set of kernels that ships with MoonBright. */
export type KernelImageName = "pattern" | "busy";

/** The outside of the command line. */
export interface CliHost {
  /** Version of MoonBright. */
  readonly version: string;
  /** Takes data. */
  readonly stdout: CliStream;
  /** Takes progress, warnings and errors. */
  readonly stderr: CliStream;
  /** Whether the environment asks for no colour. */
  readonly noColor: boolean;
  /** Whether a person can press Enter. */
  readonly interactive: boolean;
  /** Resolves once Enter is pressed or the input ends. */
  enter(): Promise<void>;
  /** Has a function called on Ctrl-C instead of ending; returns what ends that. */
  onInterrupt(handler: () => void): () => void;
  /**
   * Opens a device.
   *
   * @throws {MoonBrightError} if it can't be
   */
  open(options: CliOpenOptions): MoonBright;
  /** Looks for the library and the devices. Problems are reported, not thrown. */
  probe(): ProbeReport;
  /**
   * The image of a set of kernels for a device.
   *
   * @throws {MoonBrightError} if there is none, or no compiler to make it
   */
  kernelImage(name: KernelImageName, device: DeviceInfo): Uint8Array;
}
