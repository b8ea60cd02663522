import { assert, assertEquals } from "@std/assert";
import type { AllocReport } from "../lib/cli/alloc_report.ts";
import type { Driver } from "../lib/driver.ts";
import { MoonBrightError } from "../lib/errors.ts";
import { FakeHost } from "./cli/fake_host.ts";
import { ModelDriver } from "./model/model_driver.ts";

const KIB = 1024;
const MIB = 2 ** 20;

/** A driver that does something else than another in some of its calls. */
function altered(driver: Driver, changes: Partial<Driver>): Driver {
  return new Proxy(driver, {
    get(target, key) {
      const changed = changes[key as keyof Driver];
      const value = changed ?? Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function report(host: FakeHost, ...args: string[]): Promise<AllocReport> {
  const { stdout, stderr } = await host.run("alloc", "--json", ...args);
  assert(stdout.startsWith("{"), stderr);
  return JSON.parse(stdout);
}

Deno.test("alloc reports what it did and gives everything back", async () => {
  const host = new FakeHost();
  const driver = new ModelDriver();
  host.makeDriver = () => driver;
  const { specs, verification, release, device, budget } = await report(
    host,
    "256KiB x 8",
    "512x64",
    "100",
  );
  assertEquals(device, driver.info);
  assertEquals(budget, null);
  assertEquals(
    specs.map(({ text, size, count, bytes }) => ({ text, size, count, bytes })),
    [
      { text: "256KiB x 8", size: 256 * KIB, count: 8, bytes: 2 * MIB },
      { text: "512 x 64", size: 512, count: 64, bytes: 32 * KIB },
      { text: "100", size: 100, count: 1, bytes: 100 },
    ],
  );
  for (const { ways, count, allocNs, driverCalls } of specs) {
    const served = ways.reuse + ways.extend + ways.stitch + ways.grow;
    assertEquals(served, count);
    assert(allocNs.p50 > 0 && allocNs.p50 <= allocNs.max);
    const created = driverCalls.find(({ kind }) => kind === "create");
    const mapped = driverCalls.find(({ kind }) => kind === "map");
    assertEquals(created?.items, mapped?.items);
  }
  const created = specs.flatMap(({ driverCalls }) => driverCalls)
    .filter(({ kind }) => kind === "create")
    .reduce((sum, { bytes }) => sum + bytes, 0);
  assertEquals(created, release.allocated.mapped);
  assertEquals(verification.mode, "kernel");
  assertEquals(verification.blocks, 73);
  assertEquals(verification.bytes, 2 * MIB + 32 * KIB + 100);
  assertEquals(verification.mismatches, []);
  // 256 KiB × 8 + 512 × 64 + 100 rounded up to 512.
  assertEquals(release.allocated.live, 2 * MIB + 32 * KIB + 512);
  assertEquals(release.before.live, 0);
  assertEquals(release.after, release.before);
  assertEquals(release.complete, true);
  const released = release.driverCalls.find(({ kind }) => kind === "release");
  assertEquals(released?.bytes, created);
  assertEquals(driver.hazards, []);
  assertEquals(driver.live(), {
    extents: 0,
    mappings: 0,
    reservations: 0,
    streams: 0,
    events: 0,
    modules: 0,
    graphs: 0,
    pinned: 0,
  });
});

Deno.test("alloc's text says the same", async () => {
  const host = new FakeHost();
  const { code, stdout, stderr } = await host.run("alloc", "256KiB x 8", "512");
  assertEquals(code, 0);
  assertEquals(stderr, "");
  assert(/^256KiB x 8 +8 +2 MiB/m.test(stdout), stdout);
  assert(/^256KiB x 8 +create +\d+ +\d+ +2 MiB/m.test(stdout), stdout);
  assert(/^free and trim +unmap/m.test(stdout), stdout);
  assert(
    /^verified .* in 9 blocks by kernels.*: all as written$/m.test(stdout),
  );
  assert(/^live 0 B → 2\.00 MiB → 0 B, mapped 0 B/m.test(stdout), stdout);
});

for (const verify of ["kernel", "host"]) {
  for (const order of ["fifo", "lifo", "random"]) {
    Deno.test(`alloc verifies by ${verify} and frees in ${order} order`, async () => {
      const host = new FakeHost();
      const driver = new ModelDriver();
      host.makeDriver = () => driver;
      const { verification, release } = await report(
        host,
        ...["--verify", verify, "--order", order, "--seed", "3"],
        ...["1", "7", "8", "9", "4097", "100KiB", "0 x 2"],
      );
      assertEquals(verification.mode, verify);
      assertEquals(verification.blocks, 8);
      assertEquals(verification.mismatches, []);
      assertEquals([release.order, release.seed], [order, 3]);
      assertEquals(release.complete, true);
      assertEquals(driver.hazards, []);
    });
  }
}

Deno.test("alloc finds a byte that changed after a kernel filled it", async () => {
  const host = new FakeHost();
  const driver = new ModelDriver();
  let launches = 0;
  host.makeDriver = () =>
    altered(driver, {
      launch(func, geometry, args, stream) {
        driver.launch(func, geometry, args, stream);
        if (++launches !== 2) return;
        const address = new DataView(args.buffer, args.byteOffset)
          .getBigUint64(0, true);
        const place = Number(address) + 20_003;
        const byte = new Uint8Array(1);
        driver.copyOut(byte, place, stream);
        driver.copyIn(place, byte.map((x) => x ^ 1), stream);
      },
    });
  const json = await host.run("alloc", "64KiB x 3", "512", "--json");
  assertEquals(json.code, 5);
  const { verification, release } = JSON.parse(json.stdout) as AllocReport;
  assertEquals(verification.mismatches, [
    { index: 1, words: 1, firstByte: 20_000, spec: "64KiB x 3" },
  ]);
  assertEquals(release.complete, true);
});

for (const size of ["5", "64KiB", "64005"]) {
  Deno.test(`alloc finds a changed last byte of ${size} bytes by copies`, async () => {
    const host = new FakeHost();
    const driver = new ModelDriver();
    host.makeDriver = () =>
      altered(driver, {
        copyIn(address, source, stream) {
          const bytes = source.slice();
          bytes[bytes.length - 1]! ^= 0x80;
          driver.copyIn(address, bytes, stream);
        },
      });
    const { code, stdout } = await host.run("alloc", size, "--verify", "host");
    assertEquals(code, 5);
    assert(/^MISMATCH: block 0 \(\w+\): 1 words differ/m.test(stdout), stdout);
  });
}

for (const verify of ["kernel", "host"]) {
  Deno.test(`alloc finds blocks that share memory, by ${verify}`, async () => {
    const host = new FakeHost();
    const driver = new ModelDriver();
    // From the second mapping on, one extent serves all.
    const extentsOf = new Map<number, number[]>();
    let shared: number[] | undefined;
    host.makeDriver = () =>
      altered(driver, {
        map(address, extents, access) {
          // The verifier's own memory comes first where kernels verify.
          const own = verify === "kernel" && extentsOf.size === 0;
          const mapped = own ? [...extents] : shared ??= [...extents];
          extentsOf.set(address, mapped);
          return driver.map(address, mapped, access);
        },
      });
    const { code, stdout } = await host.run(
      ...["alloc", "16MiB", "16MiB", "--verify", verify, "--json"],
    );
    assertEquals(code, 5);
    const { mismatches } = (JSON.parse(stdout) as AllocReport).verification;
    // The block that was filled first has lost all of its pattern.
    assertEquals(mismatches.map(({ index }) => index), [0]);
    assert(mismatches[0]!.words > (16 * MIB / 8) * 0.99);
    assertEquals(mismatches[0]!.firstByte, 0);
  });
}

Deno.test("alloc says so if memory is not given back", async () => {
  const host = new FakeHost();
  const open = host.open.bind(host);
  host.open = (options) => {
    const mb = open(options);
    mb.trim = () => 0;
    return mb;
  };
  const { code, stdout } = await host.run("alloc", "1MiB", "--json");
  assertEquals(code, 5);
  const { release } = JSON.parse(stdout) as AllocReport;
  assertEquals(release.complete, false);
  assertEquals(release.after.live, 0);
  assertEquals(release.after.mapped, MIB);
});

Deno.test("alloc takes host copies where there are no kernels, and says why", async () => {
  const host = new FakeHost();
  host.kernelImage = () => {
    throw new MoonBrightError("no-compiler", "build", "Cannot find a compiler");
  };
  const fallback = await host.run("alloc", "64KiB", "--json");
  assertEquals(fallback.code, 0);
  assertEquals(JSON.parse(fallback.stdout).verification.mode, "host");
  assert(fallback.stderr.includes("warning: checking by copies to the host"));
  assert(fallback.stderr.includes("Cannot find a compiler"));

  const demanded = await host.run("alloc", "64KiB", "--verify", "kernel");
  assertEquals(demanded.code, 3);
  assertEquals(demanded.stderr, "moonbright: Cannot find a compiler\n");

  const none = await host.run("alloc", "64KiB", "--verify", "none", "--json");
  assertEquals(none.code, 0);
  assertEquals(none.stderr, "");
  assertEquals(JSON.parse(none.stdout).verification.mode, "none");
});

for (
  const [args, part] of [
    [["100MiB"], "100 MiB on model:0"],
    [["1MiB x 3", "--budget", "2MiB"], "budget 2 MiB"],
  ] as [string[], string][]
) {
  Deno.test(`alloc ${args.join(" ")} ends with the figures of out of memory`, async () => {
    const host = new FakeHost();
    const { code, stdout, stderr } = await host.run("alloc", ...args, "--json");
    assertEquals(code, 4);
    assert(stderr.startsWith("moonbright: Cannot alloc"), stderr);
    assert(stderr.includes(part), stderr);
    const { schemaVersion, error } = JSON.parse(stdout);
    assertEquals(schemaVersion, 1);
    assertEquals(error.code, "out-of-memory");
    assertEquals(error.exitCode, 4);
    assertEquals(typeof error.details.requested, "number");
    assertEquals(
      error.details.budget,
      args.includes("--budget") ? 2 * MIB : null,
    );
    assertEquals(host.opened[0]!.closed, true);
  });
}

Deno.test("the results of checking take nothing of the budget", async () => {
  const { verification, release } = await report(
    new FakeHost(),
    ...["1MiB x 2", "--budget", "2MiB"],
  );
  assertEquals(verification.mode, "kernel");
  assertEquals(verification.mismatches, []);
  assertEquals(release.allocated.mapped, 2 * MIB);
});

Deno.test("alloc opens the device that is asked for, under the budget", async () => {
  const host = new FakeHost();
  await host.run("alloc", "512", "--device", "cuda:3", "--budget", "1GiB");
  await host.run("--device", "hip:1", "alloc", "512");
  await host.run("alloc", "512");
  assertEquals(
    host.openedWith.map(({ device, budget }) => [device, budget]),
    [["cuda:3", 2 ** 30], ["hip:1", undefined], ["auto", undefined]],
  );
  assert(host.opened.every(({ closed }) => closed));
});

Deno.test("Ctrl-C ends alloc between two blocks and closes the device", async () => {
  const host = new FakeHost();
  const driver = new ModelDriver();
  host.makeDriver = () => driver;
  const run = host.run("alloc", "512 x 100000", "--verify", "host");
  setTimeout(() => host.interrupt?.(), 20);
  const { code, stdout, stderr } = await run;
  assertEquals([code, stdout, stderr], [130, "", "moonbright: interrupted\n"]);
  assertEquals(host.interrupt, undefined);
  assertEquals(host.opened[0]!.closed, true);
  assertEquals(driver.live().extents, 0);
});

Deno.test("alloc holds the blocks until Enter", async () => {
  const host = new FakeHost();
  host.interactive = true;
  const pressed = Promise.withResolvers<void>();
  let held = -1;
  host.enter = () => {
    held = host.opened[0]!.stats().liveBlocks;
    return pressed.promise;
  };
  setTimeout(() => pressed.resolve(), 20);
  const { code, stderr } = await host.run("alloc", "512 x 3", "--hold");
  assertEquals([code, held], [0, 3]);
  assert(stderr.includes("press Enter"));
});

Deno.test("Ctrl-C ends holding", async () => {
  const host = new FakeHost();
  host.interactive = true;
  host.enter = () => {
    setTimeout(() => host.interrupt?.(), 20);
    return new Promise(() => {});
  };
  const { code } = await host.run("alloc", "512", "--hold");
  assertEquals(code, 130);
  assertEquals(host.opened[0]!.closed, true);
});

Deno.test("alloc refuses to hold where nobody can press Enter", async () => {
  const host = new FakeHost();
  const { code, stderr } = await host.run("alloc", "512", "--hold");
  assertEquals(code, 2);
  assert(stderr.includes("Cannot hold the blocks"));
  assertEquals(host.opened.length, 0);
});

Deno.test("a lost device ends alloc with its own error", async () => {
  const host = new FakeHost();
  const driver = new ModelDriver();
  host.makeDriver = () => driver;
  const kernelImage = host.kernelImage.bind(host);
  host.kernelImage = (name, device) => {
    driver.failNext("createExtents", 2, "lost");
    return kernelImage(name, device);
  };
  const { code, stderr } = await host.run("alloc", "64KiB");
  assertEquals(code, 1);
  assert(stderr.startsWith("moonbright: "), stderr);
  assertEquals(host.opened[0]!.closed, true);
});
