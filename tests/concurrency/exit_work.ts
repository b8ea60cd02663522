/**
 * Run as a script by the tests: ends in some way with memory, streams and work still there.
 *
 *   exit_work.ts DEVICE VENDOR_LIBRARY WAY
 *
 * @module
 */

import { buildHostKernels } from "../../ffi/build.ts";
import { kernelImage } from "../../ffi/kernels.ts";
import { MoonBright } from "../../ffi/moonbright.ts";
import { asCudaImage, asHipImage, FakeGpu } from "../fake/control.ts";

const [device, vendor, way] = Deno.args as [string, string, string];
const mb = MoonBright.open({
  device,
  ...(vendor ? { vendorLibrary: vendor } : {}),
});
const stream = mb.createStream();
const block = mb.alloc(3 * mb.device.granularity, { stream, maxSize: 2 ** 26 });
const shared = mb.alloc(1000);
shared.useOn(stream);
shared.free();
const module = mb.loadModule(busyImage());
module.kernel("mb_spin").launch({ grid: [1], block: [1], stream }, [
  { u64: 30_000_000 },
]);
const graph = stream.capture(() => block.fill(1));
graph.launch();
block.free();

switch (way) {
  case "end":
    break;
  case "exit":
    Deno.exit(0);
    break;
  case "throw":
    throw new Error("mine");
  case "close":
    mb.close();
    break;
  case "lost": {
    using fake = new FakeGpu(vendor);
    fake.lose();
    break;
  }
  case "lost, closed": {
    using fake = new FakeGpu(vendor);
    fake.lose();
    mb.close();
    break;
  }
  case "interrupted":
    Deno.kill(Deno.pid, "SIGINT");
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    break;
  default:
    throw new Error(`no such way to end: ${way}`);
}

function busyImage(): Uint8Array {
  const { backend } = mb.device;
  if (backend === "host") return kernelImage("busy", mb.device);
  const image = Deno.readFileSync(buildHostKernels("busy"));
  return backend === "hip" ? asHipImage(image) : asCudaImage(image);
}
