import { assertEquals } from "@std/assert";
import { openDriver } from "../ffi/devices.ts";
import { kernelImage } from "../ffi/kernels.ts";
import { driverContract } from "./contract/driver_contract.ts";
import { fakeVendors } from "./fake/vendors.ts";
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

const { vendors, skip } = await fakeVendors();

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

for (const vendor of vendors) {
  driverContract(
    `fake ${vendor.backend}`,
    () => {
      // An order of work that no earlier test has a part in.
      using fake = vendor.control();
      fake.seed(QUERIES_PASS_LATE);
      return openDriver(vendor.device);
    },
    {
      skip,
      kernelImage: (file) => vendor.kernelImage(file),
      memorySlack: 0,
      memoryComesBack: true,
      unmapWaits: vendor.unmapWaits,
    },
  );

  Deno.test({
    name: `fake ${vendor.backend}: the whole contract leaves nothing behind`,
    ignore: skip !== undefined,
    fn() {
      using fake = vendor.control();
      assertEquals(fake.leftovers(), {});
    },
  });
}

driverContract("gpu", () => openDriver({ device: "cuda:0" }), {
  skip: Deno.env.get("MOONBRIGHT_TEST_GPU") === "1"
    ? undefined
    : "MOONBRIGHT_TEST_GPU is not 1",
  kernelImage: (file, driver) => kernelImage(file, driver.info),
  // The driver takes some for itself now and then.
  memorySlack: 64 * 2 ** 20,
  memoryComesBack: true,
});
