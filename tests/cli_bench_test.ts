import {
  assert,
  assertEquals,
  assertGreater,
  assertStringIncludes,
} from "@std/assert";
import type { BenchReport } from "../lib/bench/report.ts";
import { BenchHost } from "./cli/bench_host.ts";
import { FakeHost } from "./cli/fake_host.ts";

// Opened before any test: the library stays open for the life of the process.
new BenchHost().open().close();

Deno.test("bench measures every benchmark, each beside its peer", async () => {
  const host = new BenchHost();
  const { code, stdout, stderr } = await host.run("bench", "--quick", "--json");
  assertEquals([code, stderr], [0, ""]);
  const report = JSON.parse(stdout) as BenchReport;
  assertEquals(report.schemaVersion, 1);
  const groups = new Map<string, Set<string>>();
  for (const { group, subject, samples, summary } of report.series) {
    groups.set(group, (groups.get(group) ?? new Set()).add(subject));
    assertGreater(samples.length, 0);
    assertEquals(summary.count, samples.length);
    assert(samples.every((sample) => Number.isFinite(sample)), subject);
    assertGreater(summary.p50, 0);
  }
  assertEquals([...groups.keys()].length, 14);
  assert(groups.get("first allocation")?.has("plain alloc"));
  assert(groups.get("reuse")?.has("pool pair, warm"));
  assert(groups.get("stitch")?.has("raw map and set access"));
  assert(host.opened.every((mb) => mb.closed));
});

Deno.test("bench shows one table for each benchmark named", async () => {
  const { code, stdout } = await new BenchHost().run(
    "bench",
    "free",
    "memory",
    "--quick",
  );
  assertEquals(code, 0);
  assertStringIncludes(stdout, "free behind a 20 ms kernel");
  assertStringIncludes(stdout, "host memory per block");
  assertEquals(stdout.includes("first allocation"), false);
});

Deno.test("bookkeeping stays within 400 bytes for each live block", async () => {
  const { stdout } = await new BenchHost().run("bench", "memory", "--json");
  const [bytes] = (JSON.parse(stdout) as BenchReport).series[0]!.samples;
  assert(bytes! > 16 && bytes! <= 400, `${bytes} bytes`);
});

Deno.test("bench names the nearest benchmark and writes where it is told", async () => {
  const host = new BenchHost();
  const wrong = await host.run("bench", "reusee");
  assertEquals(wrong.code, 2);
  assertStringIncludes(wrong.stderr, '"reuse"');
  assertEquals(host.opened.length, 0);

  const file = await Deno.makeTempFile();
  try {
    const { code } = await host.run(
      "bench",
      "memory",
      "--quick",
      "--out",
      file,
    );
    assertEquals(code, 0);
    const report = JSON.parse(await Deno.readTextFile(file)) as BenchReport;
    assertEquals(report.series.length, 1);
  } finally {
    await Deno.remove(file);
  }
  const unwritable = await host.run(
    "bench",
    "memory",
    "--quick",
    "--out",
    `${file}/x`,
  );
  assertEquals(unwritable.code, 2);
});

Deno.test("Ctrl-C ends a benchmark between two samples", async () => {
  const host = new BenchHost();
  const running = host.run("bench", "first");
  setTimeout(() => host.interrupt?.(), 100);
  assertEquals((await running).code, 130);
  assert(host.opened.every((mb) => mb.closed));
});

Deno.test("a device without peers can't be benchmarked", async () => {
  const { code, stderr } = await new FakeHost().run("bench", "reuse");
  assertEquals(code, 3);
  assertStringIncludes(stderr, "Cannot benchmark");
});
