/**
 * The GPU backends over their fake vendor libraries, for suites that run on each alike.
 *
 * @module
 */

import { buildHostKernels } from "../../ffi/build.ts";
import { type DeviceOptions, openDriver } from "../../ffi/devices.ts";
import type { KernelSet } from "../../ffi/kernels.ts";
import { buildFakeCuda, buildFakeHip } from "./build.ts";
import {
  asCudaImage,
  asHipImage,
  FakeCuda,
  type FakeGpu,
  FakeHip,
} from "./control.ts";

/** A backend and its fake. */
export interface FakeVendor {
  /** Name of the backend. */
  backend: "cuda" | "hip";
  /** Opens its device. */
  device: DeviceOptions;
  /** Opens the fake's controls; whoever does so shares its state. */
  control(): FakeGpu;
  /** An image of a kernel file that the fake loads: kernels are built for the host. */
  kernelImage(file: KernelSet): Uint8Array;
  /** Whether one extent stays mapped. */
  anchored: boolean;
  /** Whether unmapping waits for all work on the device. */
  unmapWaits: boolean;
  /** The vendor's names of what the suites make fail. */
  calls: VendorCalls;
}

/** Names of functions of a vendor's library. */
export interface VendorCalls {
  create: string;
  release: string;
  map: string;
  unmap: string;
  setAccess: string;
  reserve: string;
  unreserve: string;
  streamSynchronize: string;
  streamCreate: string;
  streamDestroy: string;
  streamWait: string;
  eventCreate: string;
  eventDestroy: string;
  eventRecord: string;
  eventQuery: string;
  eventSynchronize: string;
  /** Only on HIP, which is asked before each unmap. */
  getAccess?: string;
}

const CUDA_CALLS: VendorCalls = {
  create: "cuMemCreate",
  release: "cuMemRelease",
  map: "cuMemMap",
  unmap: "cuMemUnmap",
  setAccess: "cuMemSetAccess",
  reserve: "cuMemAddressReserve",
  unreserve: "cuMemAddressFree",
  streamSynchronize: "cuStreamSynchronize",
  streamCreate: "cuStreamCreate",
  streamDestroy: "cuStreamDestroy_v2",
  streamWait: "cuStreamWaitEvent",
  eventCreate: "cuEventCreate",
  eventDestroy: "cuEventDestroy_v2",
  eventRecord: "cuEventRecord",
  eventQuery: "cuEventQuery",
  eventSynchronize: "cuEventSynchronize",
};

const HIP_CALLS: VendorCalls = {
  create: "hipMemCreate",
  release: "hipMemRelease",
  map: "hipMemMap",
  unmap: "hipMemUnmap",
  setAccess: "hipMemSetAccess",
  reserve: "hipMemAddressReserve",
  unreserve: "hipMemAddressFree",
  streamSynchronize: "hipStreamSynchronize",
  streamCreate: "hipStreamCreateWithFlags",
  streamDestroy: "hipStreamDestroy",
  streamWait: "hipStreamWaitEvent",
  eventCreate: "hipEventCreateWithFlags",
  eventDestroy: "hipEventDestroy",
  eventRecord: "hipEventRecord",
  eventQuery: "hipEventQuery",
  eventSynchronize: "hipEventSynchronize",
  getAccess: "hipMemGetAccess",
};

const hostImage = (file: KernelSet) =>
  Deno.readFileSync(buildHostKernels(file));

/**
 * Builds the fakes, and the shim with what kernels need; `skip` says why where that can't
 * be done.
 */
export async function fakeVendors(): Promise<
  { vendors: FakeVendor[]; skip?: string }
> {
  let skip: string | undefined;
  let [cuda, hip] = ["", ""];
  try {
    openDriver({ device: "host" }).close();
    [cuda, hip] = await Promise.all([buildFakeCuda(), buildFakeHip()]);
  } catch (error) {
    skip = (error as Error).message;
  }
  return {
    vendors: [
      {
        backend: "cuda",
        device: { device: "cuda:0", vendorLibrary: cuda },
        control: () => new FakeCuda(cuda),
        kernelImage: (file) => asCudaImage(hostImage(file)),
        anchored: true,
        unmapWaits: false,
        calls: CUDA_CALLS,
      },
      {
        backend: "hip",
        device: { device: "hip:0", vendorLibrary: hip },
        control: () => new FakeHip(hip),
        kernelImage: (file) => asHipImage(hostImage(file)),
        anchored: false,
        unmapWaits: true,
        calls: HIP_CALLS,
      },
    ],
    ...(skip === undefined ? {} : { skip }),
  };
}
