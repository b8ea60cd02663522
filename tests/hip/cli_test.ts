import { assert, assertEquals, assertMatch } from "@std/assert";
import { buildHostKernels } from "../../ffi/build.ts";
import { openDriver } from "../../ffi/devices.ts";
import { FakeHost } from "../cli/fake_host.ts";
import { asHipImage } from "../fake/control.ts";
import { hipTest, type Runtime } from "./fake_runtime.ts";

/** A command line whose only device is a runtime's. */
class HipHost extends FakeHost {
  constructor({ device }: Runtime) {
    super();
    this.makeDriver = () => openDriver(device);
  }

  override kernelImage(name: "pattern" | "busy"): Uint8Array {
    return asHipImage(Deno.readFileSync(buildHostKernels(name)));
  }
}

for (const rocm of [5, 6] as const) {
  hipTest(
    `alloc checks its blocks by kernels on ROCm ${rocm}`,
    { rocm },
    async (
      runtime,
    ) => {
      const host = new HipHost(runtime);
      const { code, stdout, stderr } = await host.run(
        ...["alloc", "3MiB", "x", "10", "--verify", "kernel"],
      );
      assertEquals([code, stderr], [0, ""]);
      assertMatch(stdout, /verified 30 MiB in 10 blocks by kernels/);
      assert(host.opened.every((mb) => mb.closed));
    },
  );
}

hipTest("bench refuses a device that can't map memory", { rocm: 5 }, async (
  runtime,
) => {
  const host = new HipHost(runtime);
  const { code, stderr } = await host.run("bench", "reuse", "--quick");
  assertMatch(
    stderr,
    /Cannot benchmark a device that can't map memory: .*update ROCm/,
  );
  assert(code !== 0);
  assert(host.opened.every((mb) => mb.closed));
});
