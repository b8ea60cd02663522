/**
 * A host for `bench` in tests, over the host backend.
 *
 * @module
 */

import { kernelImage } from "../../ffi/kernels.ts";
import { MoonBright } from "../../ffi/moonbright.ts";
import type { KernelImageName } from "../../lib/cli/host.ts";
import type { DeviceInfo } from "../../lib/driver.ts";
import { FakeHost } from "./fake_host.ts";

/** The host backend, which has peers to measure beside. */
export class BenchHost extends FakeHost {
  override open(): MoonBright {
    // Small, so that the sizes measured fit any machine.
    const mb = MoonBright.open({ device: "host" });
    this.opened.push(mb);
    return mb;
  }

  override kernelImage(name: KernelImageName, device: DeviceInfo): Uint8Array {
    return kernelImage(name, device);
  }
}
