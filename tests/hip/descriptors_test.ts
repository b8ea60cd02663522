import { assert, assertEquals, assertMatch } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { growthOn } from "../../lib/device_profile.ts";
import type { DeviceInfo } from "../../lib/driver.ts";
import { growthOf } from "../../lib/policies.ts";
import type { FewDescriptors } from "./few_descriptors_work.ts";
import { GRANULE, hipTest } from "./fake_runtime.ts";

const GIB = 2 ** 30;
const MIB = 2 ** 20;

hipTest("a process of few file descriptors holds few extents", {}, async ({
  path,
}) => {
  const script = fromFileUrl(
    new URL("few_descriptors_work.ts", import.meta.url),
  );
  const { success, stdout, stderr } = await new Deno.Command("sh", {
    args: [
      "-c",
      'ulimit -n 256 && exec "$@"',
      "sh",
      ...[Deno.execPath(), "run", "-A", "--no-check", script, path],
    ],
  }).output();
  const decoder = new TextDecoder();
  assert(success, decoder.decode(stderr));
  const found: FewDescriptors = JSON.parse(decoder.decode(stdout));
  assertEquals([found.extentLimit, found.created], [192, 192]);
  const [code, message] = found.refusal;
  assertEquals(code, "out-of-memory");
  assertMatch(message, /192 extents .* file descriptors.*ulimit -n/);
  assertEquals(found.shared, 192);
  assertEquals(found.exhausted[0], "out-of-memory");
  assertMatch(found.exhausted[1], /can open no more files.*ulimit -n/);
});

function info(facts: Partial<DeviceInfo>): DeviceInfo {
  return {
    backend: "hip",
    ordinal: 0,
    name: "",
    architecture: "",
    totalMemory: 192 * GIB,
    granularity: GRANULE,
    processors: 1,
    driverVersion: 0,
    pools: true,
    ...facts,
  };
}

const policy = growthOf("default", GRANULE);

Deno.test("on HIP growth comes in few, large extents", () => {
  const growth = growthOn(info({}), policy);
  assertEquals(growth.least, 32 * MIB);
  assertEquals(growth.extentSize, 32 * MIB);
  assertEquals(growth.mostExtents, 8);
  assertEquals(growth.leastStitched, policy.leastStitched);
});

Deno.test("where there may be few extents half of them hold all memory", () => {
  for (const extentLimit of [16, 192, 896, 3584, 100_000]) {
    const { least, extentSize } = growthOn(info({ extentLimit }), policy);
    assertEquals(least, extentSize);
    assertEquals(extentSize % GRANULE, 0);
    assert(extentSize >= 32 * MIB);
    assert(extentSize * extentLimit / 2 >= 192 * GIB || extentLimit > 12_000);
  }
});

Deno.test("a policy of larger extents keeps them", () => {
  const latency = growthOf("latency", GRANULE);
  const growth = growthOn(info({ extentLimit: 3584 }), latency);
  assertEquals(growth.extentSize, Infinity);
  assert(growth.least >= latency.least);
  assertEquals(growth.ahead, latency.ahead);
});

Deno.test("growth on CUDA and the host is what the policy says", () => {
  for (const backend of ["cuda", "host", "model"]) {
    assertEquals(growthOn(info({ backend }), policy), policy);
  }
});
