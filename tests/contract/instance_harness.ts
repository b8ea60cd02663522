import { assert, assertEquals, assertThrows } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import type { DeviceInfo } from "../../lib/driver.ts";
import { type ErrorCode, MoonBrightError } from "../../lib/errors.ts";
import type { MoonBright, MoonBrightOptions } from "../../lib/moonbright.ts";
import type { GrowthPolicy } from "../../lib/planner.ts";
import type { Random } from "../model/random.ts";
import { assertFree } from "./harness.ts";
import { Patterns } from "./patterns.ts";

/** How much a backend can be asked to do in a few seconds. Sizes in bytes. */
export interface Scale {
  /** The largest block of random sizes. */
  largest: number;
  /** Most in live blocks at once. */
  live: number;
  /** Steps of a random course. */
  steps: number;
  /** Milliseconds of a kernel that is still running when the next calls are made. */
  longKernelMs: number;
  /** Each of the 64 blocks of a round after which all memory must come back. */
  roundBlock: number;
}

/** A backend under the contract of a whole instance. */
export interface InstanceBackend {
  /** Opens an instance, on the same device each time where there is one. */
  open(options?: MoonBrightOptions): MoonBright;
  /** Gives the image made of a file of `kernels/`. */
  kernelImage(file: "pattern" | "busy", device: DeviceInfo): Uint8Array;
  /** How much to do. */
  scale: Scale;
  /** Whether threads of a kernel run at once, so that more of them are quicker. */
  parallel?: boolean;
  /** Whether two instances are on one device. */
  sharesDevice?: boolean;
  /** Whether a new instance finds as much memory free as the one before it found. */
  memoryComesBack?: boolean;
  /** Whether one extent stays mapped. */
  anchored?: boolean;
  /** Whether the device can't map memory, and extents come from its plain allocator. */
  plain?: boolean;
  /** Bytes that the driver's free memory may be off by. */
  memorySlack: number;
  /** Why the cases can't run here; shown in their names. */
  skip?: string;
  /** Checks an instance that a case is done with, before it is closed. */
  afterwards?(mb: MoonBright): void;
  /** Checks the device once a case has closed all instances. */
  closed?(): void;
}

/** One case of the contract. */
export interface InstanceCase {
  /** What must hold. */
  name: string;
  /** Whether it makes no sense on a backend. */
  skipOn?(backend: InstanceBackend): boolean;
  /** Checks it; what the bench opened is closed behind it. */
  check(bench: Bench): void | Promise<void>;
}

/** What a case works with: instances of one backend, and their kernels. */
export class Bench implements Disposable {
  /** The backend. */
  readonly backend: InstanceBackend;
  readonly #opened: MoonBright[] = [];

  /** Nothing is opened yet. */
  constructor(backend: InstanceBackend) {
    this.backend = backend;
  }

  /** How much to do. */
  get scale(): Scale {
    return this.backend.scale;
  }

  /** Opens an instance. */
  open(options: MoonBrightOptions = {}): MoonBright {
    const mb = this.backend.open(options);
    this.#opened.push(mb);
    return mb;
  }

  /**
   * Opens an instance that grows in extents of one granule, and only where stitching
   * does not suffice. What at least doubles the heap still comes in one piece: see
   * {@linkcode preload}.
   */
  openGranular(options: MoonBrightOptions = {}): MoonBright {
    const mb = this.open(options);
    Object.assign<GrowthPolicy, Partial<GrowthPolicy>>(mb.allocator.growth, {
      // Known only now.
      least: mb.device.granularity,
      extentSize: mb.device.granularity,
      mostExtents: 2 ** 20,
      growthPriceNs: 1e12,
    });
    return mb;
  }

  /** Loads the kernels that fill, check and keep busy. */
  patterns(mb: MoonBright): Patterns {
    return new Patterns(mb, this.backend);
  }

  /** Asserts how much memory the device has free, as far as the backend can tell. */
  assertFree(mb: MoonBright, expected: number): void {
    const { memorySlack } = this.backend;
    assertFree({ memorySlack }, mb.driver, expected);
  }

  /** Ends a case whose assertions all held. */
  finish(): void {
    for (const mb of this.#opened) {
      if (!mb.closed) {
        mb.synchronize();
        mb.allocator.assertInvariants();
      }
      this.backend.afterwards?.(mb);
    }
    this[Symbol.dispose]();
    this.backend.closed?.();
  }

  /** Closes all instances. */
  [Symbol.dispose](): void {
    for (const mb of this.#opened) mb.close();
  }
}

/** Maps one large extent, so that the next ones are cut to size. */
export function preload(mb: MoonBright, granules: number): Block {
  return mb.alloc(granules * mb.device.granularity, { name: "preload" });
}

/** A size from 1 to `largest`, any order of magnitude as likely as any other. */
export function randomSize(random: Random, largest: number): number {
  const exponent = random.below(2 ** 24) / 2 ** 24 * Math.log2(largest + 1);
  return Math.max(1, Math.floor(2 ** exponent));
}

/** Asserts that a call fails with an error of this code. */
export function assertFailsWith(
  code: ErrorCode,
  body: () => unknown,
  includes = "",
): MoonBrightError {
  const error = assertThrows(body, MoonBrightError, includes);
  assertEquals(error.code, code, error.message);
  assert(error.message.startsWith("Cannot "), error.message);
  return error;
}

/** Counts the calls in which the host waits for the device, from now on. */
export function countHostWaits(mb: MoonBright): () => number {
  const { driver } = mb;
  let waits = 0;
  const counting = <Args extends unknown[]>(call: (...args: Args) => void) => {
    const bound = call.bind(driver);
    return (...args: Args) => {
      waits++;
      bound(...args);
    };
  };
  driver.synchronize = counting(driver.synchronize);
  driver.synchronizeStream = counting(driver.synchronizeStream);
  driver.synchronizeEvent = counting(driver.synchronizeEvent);
  return () => waits;
}

/**
 * Watches every range that is mapped: none may be mapped where another still is, which
 * means that it was unmapped, and so flushed, before.
 *
 * @returns how many granules were mapped that had been mapped before
 */
export function watchMappings(mb: MoonBright): () => number {
  const { driver } = mb;
  const { granularity } = mb.device;
  const mapped = new Set<number>();
  const ever = new Set<number>();
  let again = 0;
  const { createExtents, map, unmap } = driver;
  const sizes = new Map<number, number>();
  driver.createExtents = (wanted) => {
    const ids = createExtents.call(driver, wanted);
    ids.forEach((id, at) => sizes.set(id, wanted[at]!));
    return ids;
  };
  driver.map = (address, extents, access) => {
    const times = map.call(driver, address, extents, access);
    const bytes = extents.reduce((sum, id) => sum + sizes.get(id)!, 0);
    for (let at = address; at < address + bytes; at += granularity) {
      assert(!mapped.has(at), "mapped over an address that was not flushed");
      mapped.add(at);
      if (ever.has(at)) again++;
      ever.add(at);
    }
    return times;
  };
  driver.unmap = (ranges) => {
    unmap.call(driver, ranges);
    for (const { address, size } of ranges) {
      for (let at = address; at < address + size; at += granularity) {
        assert(mapped.delete(at), "unmapped what was not mapped");
      }
    }
  };
  return () => again;
}
