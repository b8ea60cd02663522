import { assert, assertEquals } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { buildHostKernels, buildShim, cacheFolder } from "../ffi/build.ts";
import { kernelImage } from "../ffi/kernels.ts";
import { MoonBright as NativeMoonBright } from "../ffi/moonbright.ts";
import { calibrate } from "../lib/calibrate.ts";
import { MoonBright } from "../lib/moonbright.ts";
import { instanceContract } from "./contract/instance_contract.ts";
import { instanceFaults } from "./contract/instance_faults.ts";
import { buildFakeHip } from "./fake/build.ts";
import { asHipImage, FakeHip } from "./fake/control.ts";
import { fakeVendors } from "./fake/vendors.ts";
import { modelImage } from "./model/kernels.ts";
import { ModelDriver } from "./model/model_driver.ts";

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

const modelGranule = 4 * KIB;

instanceContract("model", {
  open(options = {}) {
    const device = new ModelDriver({
      granularity: modelGranule,
      totalMemory: 4 * GIB,
      tlb: "keeps-invalid",
      maxPending: 10_000,
      seed: 7,
    });
    const mb = new MoonBright(device, options);
    if (options.costs === undefined) calibrate(mb.allocator);
    return mb;
  },
  kernelImage: () => modelImage,
  scale: {
    largest: 16 * modelGranule,
    live: 256 * modelGranule,
    steps: 6000,
    longKernelMs: 5,
    roundBlock: 32 * modelGranule,
  },
  memorySlack: 0,
  afterwards(mb) {
    const model = mb.driver as ModelDriver;
    assertEquals([model.hazards, model.lostReason], [[], undefined]);
  },
});

const { vendors, skip } = await fakeVendors();
const plainLibrary = skip === undefined ? await buildFakeHip(5) : "";

/** What fits into a few seconds where kernels run on the host's processors. */
const hostScale = {
  largest: 4 * MIB,
  live: 48 * MIB,
  steps: 10_000,
  longKernelMs: 2,
  roundBlock: 4 * MIB,
};

instanceContract("host", {
  open: (options) => NativeMoonBright.open({ ...options, device: "host" }),
  kernelImage,
  scale: hostScale,
  sharesDevice: true,
  memorySlack: 0,
  skip,
});

for (const vendor of vendors) {
  instanceContract(`fake ${vendor.backend}`, {
    open(options) {
      using fake = vendor.control();
      // The order of work must not depend on the tests before.
      fake.seed(1);
      return NativeMoonBright.open({ ...options, ...vendor.device });
    },
    kernelImage: (file) => vendor.kernelImage(file),
    scale: hostScale,
    sharesDevice: true,
    memoryComesBack: true,
    anchored: vendor.anchored,
    memorySlack: 0,
    skip,
    closed() {
      using fake = vendor.control();
      assertEquals(fake.leftovers(), {});
    },
  });
}

instanceContract("fake hip of ROCm 5", {
  open(options) {
    using fake = new FakeHip(plainLibrary);
    fake.seed(1);
    return NativeMoonBright.open({
      ...options,
      device: "hip:0",
      vendorLibrary: plainLibrary,
    });
  },
  kernelImage: (file) => asHipImage(Deno.readFileSync(buildHostKernels(file))),
  scale: hostScale,
  sharesDevice: true,
  memoryComesBack: true,
  plain: true,
  memorySlack: 0,
  skip,
  closed() {
    using fake = new FakeHip(plainLibrary);
    assertEquals(fake.leftovers(), {});
  },
});

instanceContract("gpu", {
  open: (options) => NativeMoonBright.open({ ...options, device: "cuda:0" }),
  kernelImage,
  scale: {
    largest: 256 * MIB,
    live: 4 * GIB,
    steps: 4000,
    longKernelMs: 10,
    roundBlock: 64 * MIB,
  },
  parallel: true,
  sharesDevice: true,
  memoryComesBack: true,
  anchored: true,
  // The driver takes some for itself now and then.
  memorySlack: 64 * MIB,
  skip: Deno.env.get("MOONBRIGHT_TEST_GPU") === "1"
    ? undefined
    : "MOONBRIGHT_TEST_GPU is not 1",
});

Deno.test({
  name: "a whole instance works with scoped permissions alone",
  ignore: skip !== undefined,
  async fn() {
    const shim = buildShim();
    buildHostKernels("pattern");
    const read = [fromFileUrl(new URL("../", import.meta.url)), cacheFolder()];
    const { success, stdout, stderr } = await new Deno.Command(
      Deno.execPath(),
      {
        args: [
          ...["run", "--no-prompt", "--no-check"],
          `--allow-ffi=${shim}`,
          `--allow-read=${read.join()}`,
          "--allow-env=CC,HOME,MOONBRIGHT_LIB,MOONBRIGHT_CACHE,XDG_CACHE_HOME",
          fromFileUrl(new URL("ffi/instance_work.ts", import.meta.url)),
        ],
        stdin: "null",
      },
    ).output();
    assert(success, new TextDecoder().decode(stderr));
    assertEquals(new TextDecoder().decode(stdout), "5 granules mapped\n");
  },
});

for (const vendor of vendors) instanceFaults(vendor, skip);
