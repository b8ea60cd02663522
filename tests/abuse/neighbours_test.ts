import { assertEquals } from "@std/assert";
import { openDriver } from "../../ffi/devices.ts";
import { kernelImage } from "../../ffi/kernels.ts";
import { buildHostKernels } from "../../ffi/build.ts";
import type { NativeDriver } from "../../ffi/native_driver.ts";
import { mapNew, readBack } from "../contract/harness.ts";
import { buildFakeCuda } from "../fake/build.ts";
import { FakeCuda } from "../fake/control.ts";

interface Place {
  name: string;
  open(): NativeDriver;
  image(driver: NativeDriver): Uint8Array;
  /** Checks what is left once all is closed. */
  closed(): void;
  skip?: string;
}

const fakeCuda = await buildFakeCuda();
const gpu = Deno.env.get("MOONBRIGHT_TEST_GPU") === "1";

const places: Place[] = [
  {
    name: "host",
    open: () => openDriver({ device: "host" }),
    image: (driver) => kernelImage("busy", driver.info),
    closed() {},
  },
  {
    name: "fake cuda",
    open: () => openDriver({ device: "cuda:0", vendorLibrary: fakeCuda }),
    image: () => Deno.readFileSync(buildHostKernels("busy")),
    closed() {
      using fake = new FakeCuda(fakeCuda);
      assertEquals(fake.leftovers(), {});
    },
  },
  {
    name: "gpu",
    open: () => openDriver({ device: "cuda:0" }),
    image: (driver) => kernelImage("busy", driver.info),
    closed() {},
    ...(gpu ? {} : { skip: "MOONBRIGHT_TEST_GPU is not 1" }),
  },
];

for (const { name, open, image, closed, skip } of places) {
  Deno.test({
    name:
      `${name}: what waits for all streams of one device spoils no capture of another${
        skip ? ` (skipped: ${skip})` : ""
      }`,
    ignore: skip !== undefined,
    fn() {
      const capturing = open();
      const { granularity } = capturing.info;
      const { address } = mapNew(capturing, [granularity]);
      const stream = capturing.createStream();
      capturing.beginCapture(stream);
      capturing.fill(address, 1, 1, 100, stream);

      const other = open();
      const own = mapNew(other, [granularity]).address;
      const busy = other.createStream();
      const module = other.loadModule(image(other));
      const spin = other.getFunction(module, "mb_spin");
      const work = () => {
        const args = new Uint8Array(BigUint64Array.of(2_000_000n).buffer);
        other.launch(spin, { grid: [1], block: [1] }, args, busy);
        other.fill(own, 2, 1, granularity, busy);
      };
      work();
      other.synchronize();
      assertEquals(readBack(other, own, 1)[0], 2);
      const pinned = other.allocPinned(4096);
      work();
      other.freePinned(pinned);
      work();
      other.unloadModule(module);
      other.fill(own, 3, 1, granularity, busy);
      other.close();

      capturing.fill(address + 100, 2, 1, 100, stream);
      const graph = capturing.endCapture(stream);
      capturing.fill(address, 0, 1, 201, 0);
      capturing.synchronize();
      capturing.launchGraph(graph, stream);
      capturing.synchronize();
      const found = readBack(capturing, address, 201);
      assertEquals([found[0], found[99], found[100], found[200]], [1, 1, 2, 0]);
      capturing.close();
      closed();
    },
  });
}
