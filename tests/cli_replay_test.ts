import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { openDriver } from "../ffi/devices.ts";
import { kernelImage } from "../ffi/kernels.ts";
import type { KernelImageName } from "../lib/cli/host.ts";
import type { DeviceInfo, Driver } from "../lib/driver.ts";
import type { ReplayReport } from "../lib/replay/report_data.ts";
import { writeTrace } from "../lib/replay/write_trace.ts";
import { FakeHost } from "./cli/fake_host.ts";
import { makeTrace, type ShortEvent } from "./replay/make_trace.ts";

const MIB = 1024 ** 2;

/** The host backend, which has allocators to compare with. */
class ReplayHost extends FakeHost {
  override makeDriver = (): Driver => openDriver({ device: "host" });

  override kernelImage(name: KernelImageName, device: DeviceInfo): Uint8Array {
    return kernelImage(name, device);
  }
}

// Opened before any test: the library stays open for the life of the process.
openDriver({ device: "host" }).close();

/** A workload on two streams whose live peak is 9 MiB, in segments of 12 MiB. */
const EVENTS: ShortEvent[] = [
  ["SEGMENT_ALLOC", 0x1000000, 8 * MIB],
  ["ALLOC", 0x1000000, 5 * MIB, 0, 10],
  ["ALLOC", 0x1600000, MIB, 0, 20],
  ["FREE", 0x1000000, 5 * MIB, 0, 30],
  ["SEGMENT_ALLOC", 0x4000000, 4 * MIB],
  ["ALLOC", 0x1000000, 4 * MIB, 1, 40],
  ["ALLOC", 0x4000000, 4 * MIB, 0, 50],
  ["FREE", 0x1600000, MIB, 0, 60],
  ["ALLOC", 0x1600000, 777, 0, 70],
];

async function withTrace(
  events: readonly ShortEvent[],
  body: (file: string, folder: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const file = `${folder}/run.trace`;
    await Deno.writeFile(file, writeTrace(makeTrace(events, [], ["0", "7"])));
    await body(file, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function reportOf(
  host: FakeHost,
  ...args: string[]
): Promise<[number, ReplayReport]> {
  const { code, stdout, stderr } = await host.run("replay", "--json", ...args);
  assert(stdout.startsWith("{"), stderr);
  assert(host.opened.every(({ closed }) => closed));
  return [code, JSON.parse(stdout)];
}

Deno.test("replay says what a workload needs, beside the device's allocators and the segments", async () => {
  await withTrace(EVENTS, async (file) => {
    const host = new ReplayHost();
    const [code, report] = await reportOf(host, file, "--rounds", "2");
    assertEquals(code, 0);
    assertEquals(report.workload.name, "run.trace");
    assertEquals(report.workload.livePeak, 9 * MIB);
    assertEquals(report.workload.reservedPeak, 12 * MIB);
    assertEquals(report.runs.map(({ allocator }) => allocator), [
      "moonbright",
      "plain",
      "pool",
      "segments",
    ]);
    for (const run of report.runs) {
      assert(run.completed, run.allocator);
      assertEquals(run.device, "host");
      assertEquals(run.livePeak, 9 * MIB);
    }
    const [mine, , , segments] = report.runs;
    assert(mine!.mappedPeak! >= 9 * MIB && mine!.mappedPeak! < 14 * MIB);
    assertEquals(segments!.mappedPeak, 12 * MIB);
    assertEquals(mine!.alloc.count, 5);
    assert(mine!.againstPlain!.worst > 0);
    assertEquals(mine!.map, undefined);
    // Two rounds, of each allocator an instance of its own.
    assertEquals(host.opened.length, 8);
  });
});

Deno.test("replay tells people the same in tables", async () => {
  await withTrace(EVENTS, async (file) => {
    const { code, stdout } = await new ReplayHost().run("replay", file);
    assertEquals(code, 0);
    assertStringIncludes(stdout, "run.trace: 5 allocations");
    assertStringIncludes(stdout, "live peak 9 MiB");
    assertStringIncludes(stdout, "MoonBright (default)");
    assertStringIncludes(stdout, "plain driver allocation");
    assertStringIncludes(stdout, "driver: create");
    assertStringIncludes(stdout, "beside the same one allocated plainly");
  });
});

Deno.test("replay needs no device to count costs, and finds the smallest budget", async () => {
  await withTrace(EVENTS, async (file) => {
    const host = new FakeHost();
    const [code, report] = await reportOf(
      host,
      file,
      "--model",
      "--min-budget",
    );
    assertEquals([code, host.opened.length], [0, 0]);
    assertEquals(report.runs.map(({ budget }) => budget ?? null), [
      null,
      10 * MIB,
    ]);
    const [free, tight] = report.runs;
    assert(free!.driverNs > 0);
    assertEquals(tight!.completed, true);
    assertEquals(tight!.device, "model");
  });
});

Deno.test("a budget too small is an exit code of its own, with what could not be served", async () => {
  await withTrace(EVENTS, async (file) => {
    const args = ["--budget", "7MiB", "--baselines", "none"];
    const host = new ReplayHost();
    const [code, report] = await reportOf(host, file, ...args);
    assertEquals(code, 4);
    assertEquals(report.runs.length, 1);
    assertEquals(report.runs[0]!.completed, false);
    assertEquals(report.runs[0]!.budget, 7 * MIB);
    const { stdout } = await new ReplayHost().run("replay", file, ...args);
    assertStringIncludes(stdout, "could not serve");
    assertStringIncludes(stdout, "budget 7 MiB");
  });
});

for (const how of ["kernel", "host"]) {
  Deno.test(`replay verifies every block by ${how}`, async () => {
    await withTrace(EVENTS, async (file) => {
      const args = ["--verify", how, "--baselines", "none"];
      assertEquals((await reportOf(new ReplayHost(), file, ...args))[0], 0);
      // A device that loses the second byte of whatever is copied to it.
      const host = new ReplayHost();
      host.makeDriver = () => {
        const driver = openDriver({ device: "host" });
        const { launch, fill } = driver;
        driver.launch = (...given) => {
          launch.apply(driver, given);
          const address = Number(
            new BigUint64Array(
              given[2].slice(0, 8).buffer,
            )[0],
          );
          fill.call(driver, address + 1, 99, 1, 1, given[3]);
        };
        const { copyIn } = driver;
        driver.copyIn = (address, source, stream) => {
          const wrong = source.slice();
          wrong[1]! ^= 1;
          copyIn.call(driver, address, wrong, stream);
        };
        return driver;
      };
      const { code, stderr } = await host.run("replay", file, ...args);
      assertEquals(code, 5, stderr);
      assertStringIncludes(stderr, "MISMATCH: block 0");
    });
  });
}

Deno.test("replay writes a report and a picture", async () => {
  await withTrace(EVENTS, async (file, folder) => {
    const args = ["--html", `${folder}/r.html`, "--svg", `${folder}/r.svg`];
    const [code, report] = await reportOf(new ReplayHost(), file, ...args);
    assertEquals(code, 0);
    assertEquals("map" in report.runs[0]!, false);
    const html = await Deno.readTextFile(`${folder}/r.html`);
    assertStringIncludes(html, "run.trace");
    assertStringIncludes(await Deno.readTextFile(`${folder}/r.svg`), "<svg");
  });
});

Deno.test("the policy and how growth is cut can be chosen", async () => {
  await withTrace(EVENTS, async (file) => {
    const [, latency] = await reportOf(
      new FakeHost(),
      file,
      "--model",
      "--policy",
      "latency",
    );
    assertEquals(latency.runs[0]!.policy, "latency");
    assert(latency.runs[0]!.mappedPeak! >= 64 * MIB);
    const [, cut] = await reportOf(
      new FakeHost(),
      file,
      "--model",
      "--extent-size",
      "2MiB",
      "--most-extents",
      "100",
    );
    assertEquals(cut.runs[0]!.policy, "default, 2 MiB extents, 100 a request");
  });
});

Deno.test("files that are no recordings, and command lines that make no sense", async () => {
  await withTrace([], async (file, folder) => {
    const damaged = `${folder}/damaged`;
    await Deno.writeTextFile(damaged, "PK\x03\x04 no trace");
    const cases: [code: number, includes: string, args: string[]][] = [
      [6, "damaged", [damaged]],
      [6, "run.trace", [file]],
      [2, "Cannot read", [`${folder}/missing`]],
      [2, "a folder", [folder]],
      [2, "name one file", []],
      [2, "name one file", [file, file]],
      [2, "--model", [file, "--model", "--device", "host"]],
      [2, "--baselines", [file, "--baselines", "plain,fast"]],
      [2, "--baselines", [file, "--model", "--baselines", "plain"]],
      [2, "--policy", [file, "--policy", "fast"]],
      [2, "--rounds", [file, "--rounds", "0"]],
    ];
    for (const [code, includes, args] of cases) {
      const outcome = await new FakeHost().run("replay", ...args);
      assertEquals([code, outcome.stdout], [outcome.code, ""], includes);
      assertStringIncludes(outcome.stderr, includes);
    }
  });
});

Deno.test("the busiest device is replayed, or the one that is asked for", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const file = `${folder}/rmm.csv`;
    await Deno.writeTextFile(
      file,
      "Thread,Time,Action,Pointer,Size,Stream\n" +
        "1,10:00:00:000001,allocate,0x100,1000,0x0\n",
    );
    const [code, { workload }] = await reportOf(
      new FakeHost(),
      file,
      "--model",
    );
    assertEquals([code, workload.source, workload.livePeak], [0, "rmm", 1000]);
    const none = await new FakeHost().run(
      "replay",
      file,
      "--model",
      "--trace-device",
      "3",
    );
    assertEquals(none.code, 2);
    assertStringIncludes(none.stderr, "records device 0");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
