import { assert, assertEquals } from "@std/assert";
import type { ProbeReport } from "../lib/cli/host.ts";
import { FakeHost } from "./cli/fake_host.ts";

const GIB = 2 ** 30;

function device(backend: string, ordinal: number, name: string) {
  return {
    id: `${backend}:${ordinal}`,
    freeMemory: 70 * GIB as number | null,
    info: {
      backend,
      ordinal,
      name,
      architecture: "sm_90",
      totalMemory: 80 * GIB,
      granularity: 2 * 2 ** 20,
      processors: 132,
      driverVersion: 13000,
      pools: true,
    },
  };
}

function found(): ProbeReport {
  return {
    library: {
      path: "/cache/libmoonbright.so",
      origin: "built",
      abiVersion: 1,
      cacheFolder: "/cache",
      problem: null,
    },
    backends: [
      {
        name: "cuda",
        devices: [device("cuda", 0, "First"), device("cuda", 1, "Second")],
        problem: null,
      },
      {
        name: "hip",
        devices: [],
        problem: "libamdhip64.so was not found; install ROCm 6.1 or later",
      },
    ],
  };
}

function hostWith(report: ProbeReport): FakeHost {
  const host = new FakeHost();
  host.found = report;
  return host;
}

Deno.test("info shows the library, devices, and what is missing", async () => {
  const { code, stdout, stderr } = await hostWith(found()).run("info");
  assertEquals([code, stderr], [0, ""]);
  for (
    const pattern of [
      /^ +moonbright +1\.2\.3-test$/m,
      /^ +library +\/cache\/libmoonbright\.so$/m,
      /^ +found +built$/m,
      /^ +ABI version +1$/m,
      /^ +cache folder +\/cache$/m,
      /^cuda:0 +First +sm_90 +80 GiB +70 GiB +2 MiB +13000$/m,
      /^cuda:1 +Second/m,
      /^ +hip +libamdhip64\.so was not found; install ROCm 6\.1 or later$/m,
    ]
  ) assert(pattern.test(stdout), `${pattern} in\n${stdout}`);
});

Deno.test("info --json holds all of it", async () => {
  const { code, stdout } = await hostWith(found()).run("info", "--json");
  assertEquals(code, 0);
  assertEquals(JSON.parse(stdout), {
    schemaVersion: 1,
    command: "info",
    version: "1.2.3-test",
    ...found(),
  });
});

Deno.test("info --device shows one device", async () => {
  const host = hostWith(found());
  const { code, stdout } = await host.run("info", "--device=cuda:1", "--json");
  assertEquals(code, 0);
  const { backends } = JSON.parse(stdout) as ProbeReport;
  assertEquals(
    backends.map(({ devices }) => devices.map(({ id }) => id)),
    [["cuda:1"]],
  );
});

Deno.test("info ends with 3 if the device or any library is missing", async () => {
  const host = hostWith(found());
  const absent = await host.run("info", "--device", "cuda:7");
  assertEquals(absent.code, 3);
  assert(absent.stdout.includes("there is no cuda:7"), absent.stdout);
  const unusable = await host.run("info", "--device", "hip:0");
  assertEquals(unusable.code, 3);
  assert(unusable.stdout.includes("install ROCm"), unusable.stdout);

  host.found = {
    library: {
      path: null,
      origin: null,
      abiVersion: null,
      cacheFolder: "/cache",
      problem: "no C compiler was found; install gcc or clang",
    },
    backends: [],
  };
  const bare = await host.run("info");
  assertEquals(bare.code, 3);
  assert(bare.stdout.includes("No library can be used"), bare.stdout);
  assert(bare.stdout.includes("install gcc or clang"), bare.stdout);
});

Deno.test("info says unknown where a device does not tell its free memory", async () => {
  const report = found();
  report.backends[0]!.devices[0]!.freeMemory = null;
  const { stdout } = await hostWith(report).run("info");
  assert(/^cuda:0 +First +sm_90 +80 GiB +unknown/m.test(stdout), stdout);
});
