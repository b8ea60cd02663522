/**
 * Names of devices, what there is, and opening one.
 *
 * @module
 */

import { profileOf } from "../lib/device_profile.ts";
import type { DeviceInfo } from "../lib/driver.ts";
import { MoonBrightError } from "../lib/errors.ts";
import {
  type Library,
  type LibraryOrigin,
  openLibrary,
  type ShimSymbols,
} from "./library.ts";
import { NativeDriver } from "./native_driver.ts";
import { lastErrorText, statusError } from "./status.ts";
import { Backend, Property, Status } from "./symbols.ts";
import { assertTrusted } from "./trust.ts";

/** Name of a backend. */
export type BackendName = "host" | "cuda" | "hip";

/** Backends by name. */
const BACKENDS: Readonly<Record<BackendName, number>> = {
  host: Backend.HOST,
  cuda: Backend.CUDA,
  hip: Backend.HIP,
};

/** Backends of GPUs, in the order in which `auto` looks. */
const GPUS = ["cuda", "hip"] as const;

/** Which device to open, and with what. */
export interface DeviceOptions {
  /** `auto` (the first GPU, else the host), `host`, `cuda`, `cuda:1`, `hip:0`. */
  device?: string;
  /** The shim's file; found by itself if left out. */
  library?: string;
  /** File or name of the vendor's library; found by itself if left out. */
  vendorLibrary?: string;
}

/** The shim that was found. */
export interface FoundLibrary {
  /** Its file. */
  path: string;
  /** How it was found. */
  origin: LibraryOrigin;
}

/** A device that was found. */
export interface FoundDevice {
  /** What `device` takes, such as `cuda:0`. */
  id: string;
  /** Facts about it. */
  info: DeviceInfo;
}

/** A backend, usable or not. */
export interface FoundBackend {
  /** Its name. */
  name: BackendName;
  /** Its devices. */
  devices: FoundDevice[];
  /** Why there are none, and what to do about it; `null` if there are. */
  problem: string | null;
}

/** Sizes of extents are multiples of this where they can't be mapped. */
const PLAIN_GRANULARITY = 2 * 1024 ** 2;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Opens a device.
 *
 * @throws {RangeError} if the device's name is malformed
 * @throws {MoonBrightError} if the shim, the vendor's library or the device is missing
 */
export function openDriver(options: DeviceOptions = {}): NativeDriver {
  const wanted = options.device ?? "auto";
  const parsed = wanted === "auto" ? undefined : parseDevice(wanted);
  const library = openLibrary(options.library);
  const vendor = options.vendorLibrary ?? "";
  try {
    // A bare name is the system's to find.
    if (vendor.includes("/")) assertTrusted(vendor);
    if (parsed) return open(library, parsed.backend, parsed.ordinal, vendor);
    for (const name of GPUS) {
      // One after another: loading a vendor's library takes a while.
      const [first] = probe(library.symbols, name, vendor).devices;
      if (first) return open(library, name, first.info.ordinal, vendor);
    }
    return open(library, "host", 0, "");
  } catch (error) {
    library[Symbol.dispose]();
    throw error;
  }
}

/**
 * Looks for the devices of every backend.
 *
 * @throws {MoonBrightError} if the shim itself can't be opened
 */
export function probeBackends(
  options: DeviceOptions = {},
): { library: FoundLibrary; backends: FoundBackend[] } {
  using library = openLibrary(options.library);
  const { path, origin } = library;
  return {
    library: { path, origin },
    backends: [...GPUS, "host" as const].map((name) =>
      probe(library.symbols, name, options.vendorLibrary ?? "")
    ),
  };
}

/** Splits `cuda:1` into backend and number. */
export function parseDevice(
  device: string,
): { backend: BackendName; ordinal: number } {
  const match = /^(host|cuda|hip)(?::(\d{1,4}))?$/.exec(device);
  if (!match) {
    throw new RangeError(
      `Cannot open the device "${device}": expected auto, host, cuda:0 or hip:0`,
    );
  }
  return {
    backend: match[1] as BackendName,
    ordinal: Number(match[2] ?? 0),
  };
}

function open(
  library: Library,
  backend: BackendName,
  ordinal: number,
  vendorLibrary: string,
): NativeDriver {
  const { symbols } = library;
  const info = describe(symbols, backend, ordinal, vendorLibrary);
  const vendor = encoder.encode(vendorLibrary);
  const device = new Uint32Array(1);
  const status = symbols.mb_open(
    BACKENDS[backend],
    vendor,
    vendor.length,
    ordinal,
    device,
  );
  if (status !== Status.OK) {
    throw statusError(
      symbols,
      status,
      `open the device "${backend}:${ordinal}"`,
    );
  }
  return new NativeDriver(library, device[0]!, info);
}

function probe(
  symbols: ShimSymbols,
  name: BackendName,
  vendorLibrary: string,
): FoundBackend {
  const vendor = encoder.encode(vendorLibrary);
  const count = new Uint32Array(1);
  const status = symbols.mb_device_count(
    BACKENDS[name],
    vendor,
    vendor.length,
    count,
  );
  if (status !== Status.OK) {
    return { name, devices: [], problem: lastErrorText(symbols) };
  }
  const devices: FoundDevice[] = [];
  let problem: string | null = count[0] === 0 ? "there is no device" : null;
  for (let ordinal = 0; ordinal < count[0]!; ordinal++) {
    try {
      const info = describe(symbols, name, ordinal, vendorLibrary);
      devices.push({ id: `${name}:${ordinal}`, info });
    } catch (error) {
      if (!(error instanceof MoonBrightError)) throw error;
      problem = error.message;
    }
  }
  return { name, devices, problem };
}

function describe(
  symbols: ShimSymbols,
  backend: BackendName,
  ordinal: number,
  vendorLibrary: string,
): DeviceInfo {
  const vendor = encoder.encode(vendorLibrary);
  const properties = new Float64Array(Property.COUNT);
  const text = new Uint8Array(1024);
  const status = symbols.mb_device_properties(
    BACKENDS[backend],
    vendor,
    vendor.length,
    ordinal,
    properties,
    text,
    text.length,
  );
  const id = `${backend}:${ordinal}`;
  if (status !== Status.OK) {
    throw statusError(symbols, status, `open the device "${id}"`);
  }
  const [name = "", architecture = "", limits = ""] = decoder.decode(
    text.subarray(0, text.indexOf(0)),
  ).split("\n");
  const mapsMemory = properties[Property.VMM] === 1;
  if (!mapsMemory && !profileOf(backend).plainExtents) {
    throw new MoonBrightError(
      "unsupported",
      "open",
      `Cannot use the device "${id}" (${name}): its driver can't map memory at chosen addresses; update the driver, or use the device "host"`,
    );
  }
  return {
    backend,
    ordinal,
    name,
    architecture,
    totalMemory: properties[Property.TOTAL_MEMORY]!,
    granularity: mapsMemory
      ? Math.max(
        properties[Property.GRANULARITY]!,
        properties[Property.GRANULARITY_ADVISED]!,
      )
      : PLAIN_GRANULARITY,
    processors: properties[Property.PROCESSORS]!,
    driverVersion: properties[Property.DRIVER_VERSION]!,
    pools: properties[Property.POOLS] === 1,
    extentLimit: properties[Property.EXTENT_LIMIT]!,
    ...(mapsMemory ? {} : { plainReason: limits }),
  };
}
