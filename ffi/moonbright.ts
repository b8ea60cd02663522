/**
 * MoonBright on a real device: finds and opens the native library.
 *
 * @module
 */

import {
  MoonBright as Instance,
  type MoonBrightOptions,
} from "../lib/moonbright.ts";
import { calibrate } from "../lib/calibrate.ts";
import { rehearse } from "../lib/rehearsal.ts";
import {
  PagedSpace,
  type PagedSpaceOptions,
} from "../lib/paging/paged_space.ts";
import { type DeviceOptions, openDriver } from "./devices.ts";
import { kernelImage } from "./kernels.ts";
import type { NativeDriver } from "./native_driver.ts";

/** Which device to open and how to allocate on it. */
export interface OpenOptions extends DeviceOptions, MoonBrightOptions {}

/**
 * A GPU memory allocator on one device.
 *
 * @example
 * ```ts
 * import { MoonBright } from "@moonbright/moonbright";
 *
 * using mb = MoonBright.open({ device: "host", budget: 1024 ** 3 });
 * using block = mb.alloc(1024 ** 2);
 * block.fill(7);
 * ```
 */
export class MoonBright extends Instance {
  /** The driver, through the shim. Using it directly bypasses every check of lifetimes. */
  declare readonly driver: NativeDriver;

  /**
   * Opens a device: by default the first GPU or, if there is none, the host backend.
   * Builds the native library on first use. Takes some 30 ms to have its code
   * compiled and the driver's calls measured, unless `costs` are given.
   *
   * @throws {RangeError} if an option is out of range
   * @throws {MoonBrightError} if library or device are missing; the message says what to do
   */
  static open(options: OpenOptions = {}): MoonBright {
    const driver = openDriver(options);
    try {
      const mb = new MoonBright(driver, options);
      if (options.costs === undefined) {
        rehearse();
        calibrate(mb.allocator);
      }
      return mb;
    } catch (error) {
      driver.close();
      throw error;
    }
  }

  /**
   * Makes a paged space: device memory behind a page table that kernels write and read.
   *
   * @example
   * ```ts
   * import { MoonBright } from "@moonbright/moonbright";
   *
   * using mb = MoonBright.open({ device: "host" });
   * using space = mb.pagedSpace({ pages: 1024, pageSize: 4096 });
   * using prompt = space.alloc(2, { maxPages: 16 });
   * prompt.write(new Uint8Array([1, 2, 3]));
   * using answer = prompt.fork(); // shares the frames until one of them writes
   * answer.grow();
   * ```
   *
   * @throws {RangeError} if an option is out of range
   * @throws {OutOfMemoryError} if there is no memory for the table or the first frames
   */
  pagedSpace(options: PagedSpaceOptions): PagedSpace {
    this.assertOpen("make a paged space");
    const images = {
      entries: kernelImage("paging_entries", this.device),
      copy: kernelImage("paging_copy", this.device),
    };
    return new PagedSpace(this, images, options);
  }
}
