import { assert, assertEquals } from "@std/assert";
import type { Found, FoundDevice } from "../lib/cli/host.ts";
import type { DeviceInfo } from "../lib/driver.ts";
import type { InfoReport } from "../lib/cli/info_report.ts";
import { MoonBrightError } from "../lib/errors.ts";
import { FakeHost } from "./cli/fake_host.ts";

const GIB = 2 ** 30;
/** What a model device of 64 MiB reports while an instance reserves addresses on it. */
const MODEL_FREE = 64 * 2 ** 20;

function device(backend: string, ordinal: number, name: string): FoundDevice {
  return {
    id: `${backend}:${ordinal}`,
    info: {
      backend,
      ordinal,
      name,
      architecture: "sm_90",
      totalMemory: 80 * GIB,
      granularity: 2 * 2 ** 20,
      processors: 132,
      driverVersion: 12090,
      pools: true,
    },
  };
}

function found(): Found {
  return {
    library: { path: "/cache/libmoonbright.so", origin: "cache" },
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

function hostWith(report: Found): FakeHost {
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
      /^ +found +cache$/m,
      /^ +ABI version +7$/m,
      /^ +cache folder +\/cache$/m,
      /^cuda:0 +First +sm_90 +80 GiB +64 MiB +2 MiB +12\.9$/m,
      /^cuda:1 +Second/m,
      /^ +hip +libamdhip64\.so was not found; install ROCm 6\.1 or later$/m,
    ]
  ) assert(pattern.test(stdout), `${pattern} in\n${stdout}`);
});

Deno.test("info shows which devices can't map memory and why, and HIP's version as AMD prints it", async () => {
  const report = found();
  const amd = (ordinal: number, facts: Partial<DeviceInfo>): FoundDevice => {
    const { id, info } = device("hip", ordinal, "AMD");
    return { id, info: { ...info, driverVersion: 60443483, ...facts } };
  };
  report.backends[1] = {
    name: "hip",
    devices: [
      amd(0, { architecture: "gfx90a" }),
      amd(1, { driverVersion: 50221153, plainReason: "update ROCm" }),
      amd(2, { driverVersion: 71460850 }),
    ],
    problem: null,
  };
  const { code, stdout } = await hostWith(report).run("info");
  assertEquals(code, 0);
  for (
    const pattern of [
      /^hip:0 +AMD +gfx90a .* 6\.4\.43483$/m,
      /^hip:1 .* 5\.2\.21153$/m,
      /^hip:2 .* 7\.14\.60850$/m,
      /^can't map memory\n +hip:1 +update ROCm$/m,
    ]
  ) assert(pattern.test(stdout), `${pattern} in\n${stdout}`);
  const { stdout: without } = await hostWith(found()).run("info");
  assert(!without.includes("can't map"), without);
});

Deno.test("info --json holds all of it", async () => {
  const { code, stdout } = await hostWith(found()).run("info", "--json");
  assertEquals(code, 0);
  const { backends, ...rest } = JSON.parse(stdout);
  assertEquals(rest, {
    schemaVersion: 1,
    command: "info",
    version: "1.2.3-test",
    library: {
      path: "/cache/libmoonbright.so",
      origin: "cache",
      abiVersion: 7,
      cacheFolder: "/cache",
      problem: null,
    },
  });
  const [cuda, hip] = found().backends;
  assertEquals(backends, [
    {
      ...cuda,
      devices: cuda!.devices.map((one) => ({
        ...one,
        freeMemory: MODEL_FREE,
      })),
    },
    hip,
  ]);
});

Deno.test("info --device shows one device", async () => {
  const host = hostWith(found());
  const { code, stdout } = await host.run("info", "--device=cuda:1", "--json");
  assertEquals(code, 0);
  const { backends } = JSON.parse(stdout) as InfoReport;
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

  host.probe = () => {
    throw new MoonBrightError(
      "no-compiler",
      "open",
      "Cannot build: no C compiler; install gcc or clang",
    );
  };
  const bare = await host.run("info");
  assertEquals(bare.code, 3);
  assert(bare.stdout.includes("no library can be used"), bare.stdout);
  assert(bare.stdout.includes("install gcc or clang"), bare.stdout);
  const json = JSON.parse((await host.run("info", "--json")).stdout);
  assertEquals(json.library.path, null);
  assertEquals(json.library.abiVersion, null);
  assertEquals(json.library.cacheFolder, "/cache");
  assert(json.library.problem.includes("install gcc or clang"));
});

Deno.test("info tells of a device that is there but can't be opened", async () => {
  const host = hostWith(found());
  const open = host.open.bind(host);
  host.open = (options) => {
    if (options.device !== "cuda:0") return open(options);
    throw new MoonBrightError("no-device", "open", "cuda:0 is in use");
  };
  const all = await host.run("info");
  assertEquals(all.code, 0);
  assert(/^cuda:0 +First +sm_90 +80 GiB +unknown/m.test(all.stdout));
  assert(/^cuda:1 +Second +sm_90 +80 GiB +64 MiB/m.test(all.stdout));
  assert(/^ +cuda +cuda:0 is in use$/m.test(all.stdout), all.stdout);
  assertEquals((await host.run("info", "--device", "cuda:0")).code, 3);
});

Deno.test("info --report is Markdown, with the home folder hidden", async () => {
  const home = Deno.env.get("HOME")!;
  const report = found();
  report.library.path = `${home}/cache/libmoonbright.so`;
  report.backends[0]!.devices[0]!.info.name = "Odd | name\nof two lines";
  const host = hostWith(report);
  const { code, stdout, stderr } = await host.run("info", "--report");
  assertEquals([code, stderr], [0, ""]);
  for (
    const pattern of [
      /^### Environment\n\n- MoonBright: 1\.2\.3-test\n/,
      /^- Library: ~\/cache\/libmoonbright\.so$/m,
      /^\| cuda:0 \| Odd \\\| name of two lines \| sm_90 \| 80 GiB \|/m,
      /^- hip: libamdhip64\.so was not found; install ROCm 6\.1 or later$/m,
      /^- LD_LIBRARY_PATH: /m,
      /^### What happened$/m,
    ]
  ) assert(pattern.test(stdout), `${pattern} in ${stdout}`);
  const table = stdout.split("\n").filter((line) => line.startsWith("|"));
  assertEquals(table.length, 4);
  const none = await hostWith({ ...report, backends: [] }).run(
    "info",
    "--report",
  );
  assertEquals(none.code, 3);
  assert(none.stdout.includes("None can be used."));
});
