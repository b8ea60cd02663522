import { assertEquals } from "@std/assert";
import { buildHostKernels } from "../ffi/build.ts";
import { openDriver } from "../ffi/devices.ts";
import { kernelImage } from "../ffi/kernels.ts";
import { driverContract } from "./contract/driver_contract.ts";
import { buildFakeCuda } from "./fake/build.ts";
import { FakeCuda } from "./fake/control.ts";
import { modelImage } from "./model/kernels.ts";
import { ModelDriver } from "./model/model_driver.ts";

for (const granularity of [4096, 2 ** 21]) {
  driverContract(
    `model, granules of ${granularity} bytes`,
    () => new ModelDriver({ granularity, totalMemory: 2 ** 28, seed: 7 }),
    {
      kernelImage: () => modelImage,
      memorySlack: 0,
    },
  );
}

/** Builds what native drivers need; tells why where that can't be done. */
async function prepare(): Promise<{ fakeCuda: string; skip?: string }> {
  try {
    openDriver({ device: "host" }).close();
    return { fakeCuda: await buildFakeCuda() };
  } catch (error) {
    return { fakeCuda: "", skip: (error as Error).message };
  }
}

const { fakeCuda, skip } = await prepare();

/**
 * A seed of the fake device with which the first query of an event does not run the
 * work before it: cases that watch a kernel run would otherwise see it end at once.
 */
const QUERIES_PASS_LATE = 0;

driverContract("host", () => openDriver({ device: "host" }), {
  skip,
  kernelImage: (file, driver) => kernelImage(file, driver.info),
  memorySlack: 0,
});

/** The fake device, with an order of work that no earlier test has a part in. */
function openFake() {
  using fake = new FakeCuda(fakeCuda);
  fake.seed(QUERIES_PASS_LATE);
  return openDriver({ device: "cuda:0", vendorLibrary: fakeCuda });
}

driverContract(
  "fake cuda",
  openFake,
  {
    skip,
    // Its kernels are built for the host.
    kernelImage: (file) => Deno.readFileSync(buildHostKernels(file)),
    memorySlack: 0,
    memoryComesBack: true,
  },
);

Deno.test({
  name: "fake cuda: the whole contract leaves nothing behind",
  ignore: skip !== undefined,
  fn() {
    using fake = new FakeCuda(fakeCuda);
    assertEquals(fake.leftovers(), {});
  },
});

driverContract("gpu", () => openDriver({ device: "cuda:0" }), {
  skip: Deno.env.get("MOONBRIGHT_TEST_GPU") === "1"
    ? undefined
    : "MOONBRIGHT_TEST_GPU is not 1",
  kernelImage: (file, driver) => kernelImage(file, driver.info),
  // The driver takes some for itself now and then.
  memorySlack: 64 * 2 ** 20,
  memoryComesBack: true,
});
