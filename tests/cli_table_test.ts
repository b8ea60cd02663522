import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { openDriver } from "../ffi/devices.ts";
import { kernelImage } from "../ffi/kernels.ts";
import type { KernelImageName } from "../lib/cli/host.ts";
import type { TableReport } from "../lib/cli/table_report.ts";
import type { DeviceInfo, Driver } from "../lib/driver.ts";
import { decode, FORMATS } from "../lib/paging/formats.ts";
import { FakeHost } from "./cli/fake_host.ts";

/** The host backend, which runs the paging kernels. */
class TableHost extends FakeHost {
  /** What is done differently than the backend does it. */
  changes: (driver: Driver) => Partial<Driver> = () => ({});

  override makeDriver = (): Driver => {
    const driver = openDriver({ device: "host" });
    const changes = this.changes(driver);
    return new Proxy<Driver>(driver, {
      get(target, key) {
        const value = changes[key as keyof Driver] ??
          Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };

  override kernelImage(name: KernelImageName, device: DeviceInfo): Uint8Array {
    return kernelImage(name, device);
  }

  async report(...args: string[]): Promise<[number, TableReport]> {
    const { code, stdout, stderr } = await this.run("table", "--json", ...args);
    assert(stdout.startsWith("{"), stderr);
    assertEquals(this.opened.map(({ closed }) => closed), [true]);
    return [code, JSON.parse(stdout)];
  }
}

// Opened before any test: the library stays open for the life of the process.
openDriver({ device: "host" }).close();

Deno.test("table shows ranges that grew, were forked and protected", async () => {
  const [code, report] = await new TableHost().report("--pages", "16");
  assertEquals([code, report.sound], [0, true]);
  assertEquals([report.format, report.pageSize], ["moonbright", 65536]);
  assertEquals(report.checksum.device, report.checksum.host);
  const said = report.entries.map((entry) =>
    entry.valid
      ? `${entry.range} ${entry.frame} ${
        entry.readOnly ? "r" : "rw"
      } v${entry.version}`
      : `${entry.range} ${entry.entry}`
  );
  assertEquals(said, [
    ...["grown 0 r v3", "grown 1 r v3", "grown 2 r v3", "null 0x0"],
    ...["fork 3 rw v2", "fork 1 r v1", "fork 2 r v1", "null 0x0"],
    ...["4", "5", "6", "7"].map((frame) => `protected ${frame} r v2`),
    ...Array(4).fill("null 0x0"),
  ]);
  for (const { entry, address, frame } of report.entries) {
    if (frame === null) continue;
    const frames = BigInt(report.frames);
    assertEquals(BigInt(address!), frames + BigInt(frame) * 65536n);
    assertEquals(
      decode(FORMATS.moonbright, BigInt(entry)).address,
      BigInt(address!),
    );
  }
});

Deno.test("table is sound in every layout and page size", async () => {
  for (const format of Object.values(FORMATS)) {
    for (const pageSize of format.flags.keys()) {
      const host = new TableHost();
      const args = ["--format", format.name, "--page-size", `${pageSize}`];
      const [code, { sound, entries }] = await host.report(...args);
      assertEquals([code, sound], [0, true], args.join(" "));
      assertEquals(entries.length, 32);
      assertEquals(entries.filter(({ valid }) => valid).length, 18);
    }
  }
});

Deno.test("table of any number of pages is sound", async () => {
  for (const pages of [8, 9, 11, 13, 100, 1001]) {
    const args = ["--page-size", "4KiB", "--pages", `${pages}`];
    const [code, { sound, entries }] = await new TableHost().report(...args);
    assertEquals([code, sound, entries.length], [0, true, pages]);
  }
});

Deno.test("table shows a line for each entry", async () => {
  const { code, stdout, stderr } = await new TableHost().run(
    ...["table", "--pages", "8"],
  );
  assertEquals([code, stderr], [0, ""]);
  const row = (page: number, rest: string) =>
    new RegExp(`^ +${page} +0x[0-9a-f]+ +${rest}$`, "m");
  for (
    const pattern of [
      row(0, "yes +0 +0x[0-9a-f]+ +read +3 +grown"),
      row(2, "yes +2 +0x[0-9a-f]+ +read, write +2 +fork"),
      row(4, "yes +3 +0x[0-9a-f]+ +read +2 +protected"),
      row(7, "no +- +- +- +-"),
      /^verified 8 entries: all as encoded, checksum 0x[0-9a-f]+$/m,
    ]
  ) assert(pattern.test(stdout), `${pattern} in\n${stdout}`);
});

/** Has every launch whose block is of this length get another block. */
function alterBlocks(
  bytes: number,
  alter: (block: BigUint64Array) => void,
): TableHost {
  const host = new TableHost();
  host.changes = (driver) => ({
    launch(func, geometry, args, stream) {
      const block = args.slice();
      if (block.length === bytes) alter(new BigUint64Array(block.buffer));
      driver.launch(func, geometry, block, stream);
    },
  });
  return host;
}

/** Bytes of the block of `mb_materialize`. */
const MATERIALIZE = 560;
/** Bytes of the block of `mb_checksum`. */
const CHECKSUM = 32;

Deno.test("table finds entries with other flags", async () => {
  // Launches: the range, its growth, its fork, the fork's own page, the last range.
  let launches = 0;
  const host = alterBlocks(MATERIALIZE, (block) => {
    if (++launches === 4) block[3]! |= 1n << 10n;
  });
  const [code, { entries, sound, checksum }] = await host.report();
  assertEquals([code, sound], [5, false]);
  assertEquals(
    entries.filter(({ problem }) => problem !== null).map(({ page }) => page),
    [8],
  );
  const { entry, problem } = entries[8]!;
  assertEquals(
    problem,
    `it should be 0x${(BigInt(entry) & ~(1n << 10n)).toString(16)}`,
  );
  assertEquals(checksum.device, checksum.host);
});

Deno.test("table finds entries that lead to another frame", async () => {
  let launches = 0;
  const host = alterBlocks(MATERIALIZE, (block) => {
    // The frame of the first run is its upper half.
    if (++launches === 4) block[6]! ^= 1n << 32n;
  });
  const { code, stdout } = await host.run("table");
  assertEquals(code, 5);
  assert(
    /^MISMATCH: page 8 .*: frame \d+ holds something else than the page$/m.test(
      stdout,
    ),
    stdout,
  );
});

Deno.test("table finds entries that lead nowhere", async () => {
  const host = alterBlocks(MATERIALIZE, (block) => block[1]! += 1n << 40n);
  const [code, { entries }] = await host.report("--pages", "8");
  assertEquals(code, 5);
  for (const { valid, frame, problem } of entries.slice(0, 6)) {
    assertEquals([valid, frame], [true, null]);
    assertEquals(problem, "it names no frame of the space");
  }
});

Deno.test("table finds entries that were never written", async () => {
  const host = new TableHost();
  const functions = new Map<number, string>();
  host.changes = (driver) => ({
    getFunction(module, name) {
      const id = driver.getFunction(module, name);
      functions.set(id, name);
      return id;
    },
    launch(func, geometry, args, stream) {
      if (functions.get(func) === "mb_protect") return;
      driver.launch(func, geometry, args, stream);
    },
  });
  const [code, { entries }] = await host.report("--pages", "8");
  assertEquals(code, 5);
  // Forked and protected pages of which the entries still allow writing.
  assertEquals(
    entries.map(({ problem }) => problem !== null),
    [true, true, false, false, true, true, false, false],
  );
});

Deno.test("table finds a checksum that differs", async () => {
  const host = alterBlocks(CHECKSUM, (block) => block[2]! += 1n);
  const { code, stdout } = await host.run("table");
  assertEquals(code, 5);
  assert(/^MISMATCH: the checksum is 0x\w+ on the device/m.test(stdout));
  assertEquals(stdout.includes("MISMATCH: page"), false);
});

Deno.test("table finds an entry that should be invalid", async () => {
  const host = new TableHost();
  host.changes = (driver) => ({
    copyOut(destination, address, stream) {
      driver.copyOut(destination, address, stream);
      if (destination.length === 32 * 8) destination[31 * 8 + 3] = 1;
    },
  });
  const [code, { entries, checksum }] = await host.report();
  assertEquals(code, 5);
  assertEquals(entries[31]!.problem, "it should be 0x0");
  assert(checksum.device !== checksum.host);
});

for (
  const [args, part] of [
    [["--pages", "7"], `"7" is not a whole number between 8 and`],
    [["--page-size", "3KiB"], `"moonbright" has no pages of 3 KiB`],
    [["--format", "nvidia-v3", "--page-size", "8KiB"], "4 KiB, 64 KiB, 2 MiB"],
    [["--format", "moonbrigt"], `did you mean "moonbright"?`],
    [["--format", "toString"], `"toString" is none of moonbright, nvidia-v2`],
    [["extra"], "takes only flags"],
  ] as [string[], string][]
) {
  Deno.test(`table ${args.join(" ")} is wrong usage`, async () => {
    const host = new TableHost();
    const { code, stderr } = await host.run("table", ...args);
    assertEquals(code, 2);
    assertStringIncludes(stderr, part);
    assertEquals(host.opened.length, 0);
  });
}
