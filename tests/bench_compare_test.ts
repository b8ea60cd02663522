import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { join } from "@std/path";
import fc from "fast-check";
import { compareRuns, regressions } from "../lib/bench/compare_runs.ts";
import { type BenchReport, makeReport } from "../lib/bench/report.ts";
import { type Series, series } from "../lib/bench/samples.ts";
import { shiftOf } from "../lib/bench/shift.ts";
import { readRun, runsFolder, saveRun } from "../lib/cli/saved_runs.ts";
import { FakeHost } from "./cli/fake_host.ts";
import { BenchHost } from "./cli/bench_host.ts";
import { ModelDriver } from "./model/model_driver.ts";
import { Random } from "./model/random.ts";

const ENVIRONMENT = new FakeHost().environment(new ModelDriver().info);

/** Latencies as they come: a long tail, and now and then an outlier. In nanoseconds. */
function latencies(
  random: Random,
  count: number,
  medianNs: number,
): number[] {
  const uniform = () => (random.below(1e9) + 0.5) / 1e9;
  return Array.from({ length: count }, () => {
    const normal = Math.sqrt(-2 * Math.log(uniform())) *
      Math.cos(2 * Math.PI * uniform());
    const outlier = uniform() < 0.02 ? 10 * uniform() : 0;
    return medianNs * Math.exp(0.15 * normal + outlier);
  });
}

/** A run with MoonBright and peers at several sizes; each factor is on top of the usual. */
function syntheticRun(
  random: Random,
  { ours = 1, machine = 1, count = 60 } = {},
): BenchReport {
  const all: Series[] = [];
  for (const size of [512, 4096, 65536]) {
    const take = (medianNs: number) =>
      latencies(random, count, medianNs * machine);
    all.push(
      series("first allocation", "plain alloc", size, take(40_000)),
      series("first allocation", "raw calls, one extent", size, take(38_000)),
      series("first allocation", "MoonBright", size, take(50_000 * ours)),
    );
  }
  return makeReport(ENVIRONMENT, all);
}

function slower(before: BenchReport, after: BenchReport): string[] {
  return regressions(compareRuns(before, after, 0.1))
    .map(({ subject, size }) => `${subject} ${size}`);
}

Deno.test("the shift is the median of all ratios, its interval their order statistics", () => {
  const samples = fc.array(fc.double({ min: 1, max: 1e9, noNaN: true }), {
    minLength: 1,
    maxLength: 30,
  });
  fc.assert(fc.property(samples, samples, (before, after) => {
    const logs = after.flatMap((y) =>
      before.map((x) => Math.log(y) - Math.log(x))
    ).sort((a, b) => a - b);
    const { length } = logs;
    const at = (k: number) => Math.exp(logs[k - 1]!);
    const middle = (logs[Math.floor((length + 1) / 2) - 1]! +
      logs[Math.floor(length / 2)]!) /
      2;
    const { ratio, low, high } = shiftOf(before, after);
    assertAlmostEquals(ratio / Math.exp(middle), 1, 1e-9);
    const rank = Math.floor(
      length / 2 -
        3.891 * Math.sqrt(length * (before.length + after.length + 1) / 12),
    );
    if (rank < 1) assertEquals([low, high], [0, Infinity]);
    else {
      assertAlmostEquals(low / at(rank), 1, 1e-9);
      assertAlmostEquals(high / at(length + 1 - rank), 1, 1e-9);
    }
    assert(low <= ratio && ratio <= high);
    // The other way round it is the inverse.
    assertAlmostEquals(shiftOf(after, before).ratio * ratio, 1, 1e-9);
  }));
});

Deno.test("a shift of nothing is no number, one of zeros is 1", () => {
  assertEquals(shiftOf([], [1]).ratio, NaN);
  assertEquals(shiftOf([0, 0], [0, 0, 0]).ratio, 1);
});

Deno.test("samples of one distribution raise no alarm", () => {
  const random = new Random(1);
  for (let round = 0; round < 200; round++) {
    const [before, after] = [syntheticRun(random), syntheticRun(random)];
    assertEquals(slower(before, after), []);
    // The intervals alone, with nothing allowed for, hold too.
    const strict = compareRuns(before, after, 0);
    assertEquals(regressions(strict), []);
  }
});

Deno.test("20 % slower raises an alarm at every size, 20 % faster none", () => {
  const random = new Random(2);
  const expected = [512, 4096, 65536].map((size) => `MoonBright ${size}`);
  for (let round = 0; round < 40; round++) {
    const count = 600;
    const before = syntheticRun(random, { count });
    assertEquals(
      slower(before, syntheticRun(random, { count, ours: 1.2 })),
      expected,
    );
    const faster = syntheticRun(random, { count, ours: 1 / 1.2 });
    assertEquals(slower(before, faster), []);
  }
});

Deno.test("a slower machine is told by the peers, and hides nothing", () => {
  const random = new Random(3);
  const before = syntheticRun(random, { count: 300 });
  const machine = 1.5;
  const same = syntheticRun(random, { count: 300, machine });
  assertEquals(slower(before, same), []);
  assertAlmostEquals(compareRuns(before, same, 0.1).machine, 1.5, 0.05);
  const worse = syntheticRun(random, { count: 300, machine, ours: 1.2 });
  assertEquals(slower(before, worse).length, 3);
});

Deno.test("too few samples are unclear, and bytes are compared as they are", () => {
  const run = (ours: number[], bytes: number) =>
    makeReport(ENVIRONMENT, [
      series("first allocation", "MoonBright", 512, ours),
      {
        group: "bookkeeping",
        subject: "host memory per block",
        size: 0,
        unit: "bytes",
        samples: [bytes],
      },
    ]);
  const before = run([1, 1, 1], 100);
  const verdicts = (after: BenchReport) =>
    compareRuns(before, after, 0.1).changes.map(({ verdict }) => verdict);
  assertEquals(verdicts(run([9, 9, 9], 100)), ["unclear", "same"]);
  assertEquals(verdicts(run([1, 1, 1], 120)), ["unclear", "slower"]);
  assertEquals(verdicts(run([1, 1, 1], 80)), ["unclear", "faster"]);
});

Deno.test("series that only one run has are counted, not compared", () => {
  const random = new Random(4);
  const before = syntheticRun(random);
  const after = syntheticRun(random);
  after.series.splice(0, 2);
  before.series.pop();
  const { changes, unmatched } = compareRuns(before, after, 0.1);
  assertEquals([changes.length, unmatched], [6, 3]);
});

async function withFolder(
  use: (folder: string) => void | Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "moonbright-runs-" });
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("runs are kept by machine and device, the newest is taken", async () => {
  await withFolder((folder) => {
    const at = (time: string, name: string) => ({
      ...ENVIRONMENT,
      processor: "Some CPU @ 2.0",
      commit: "0123456789abcdef",
      time,
      device: { ...ENVIRONMENT.device, name },
    });
    for (
      const [time, name] of [
        ["2026-02-01T00:00:00.000Z", "A/B: 1"],
        ["2026-03-01T00:00:00.000Z", "A/B: 1"],
        ["2026-01-01T00:00:00.000Z", "A/B: 1"],
        ["2026-04-01T00:00:00.000Z", "other"],
      ] as const
    ) saveRun(folder, makeReport(at(time, name), []));
    const here = at("2026-05-01T00:00:00.000Z", "A/B: 1");
    assertEquals(
      readRun(folder, here).environment.time,
      "2026-03-01T00:00:00.000Z",
    );
    assertEquals(
      runsFolder(folder, here),
      join(folder, "test-some-cpu-2.0", "model-a-b-1"),
    );
    assertEquals(
      [...Deno.readDirSync(runsFolder(folder, here))].map(({ name }) => name)
        .sort().at(-1),
      "2026-03-01t00-00-00.000z-0123456789ab.json",
    );
  });
});

/** Writes a run of which every sample is a multiple of this one's. */
function rewrite(file: string, factor: (one: Series) => number): void {
  const run: BenchReport = JSON.parse(Deno.readTextFileSync(file));
  for (const one of run.series) {
    one.samples = one.samples.map((sample) => sample * factor(one));
  }
  Deno.writeTextFileSync(file, JSON.stringify(run));
}

Deno.test("bench --fail-over ends with 8 when something got slower", async () => {
  await withFolder(async (folder) => {
    const host = new BenchHost();
    const file = join(folder, "run.json");
    const bench = (...args: string[]) =>
      host.run("bench", "reuse", "--quick", ...args);
    assertEquals((await bench("--out", file)).code, 0);
    // As if MoonBright had been a hundred times faster before, and nothing else.
    const ours = ({ subject }: Series) =>
      subject.startsWith("MoonBright") ? 0.01 : 1;
    rewrite(file, ours);
    const told = await bench("--compare", file);
    assertEquals(told.code, 0);
    assertMatch(told.stdout, /reuse +512 B +MoonBright pair .* slower\n/);
    const failed = await bench("--compare", file, "--fail-over", "10%");
    assertEquals(failed.code, 8);
    assertMatch(failed.stdout, /\d+ slower and 0 faster by more than 10 %/);
    const json = await bench(
      ...["--compare", file, "--fail-over", "10", "--json"],
    );
    assertEquals(json.code, 8);
    const { comparison } = JSON.parse(json.stdout);
    assertEquals(comparison.allowed, 0.1);
    assert(comparison.changes.length > 10);
    // As if it had been a hundred times slower: that is no failure.
    rewrite(file, (one) => 1 / ours(one) ** 2);
    const faster = await bench("--compare", file, "--fail-over", "10%");
    assertEquals(faster.code, 0);
    assertMatch(faster.stdout, /^0 slower and [1-9]\d* faster/m);
  });
});

Deno.test("bench --save keeps runs, and --compare finds the last one there", async () => {
  await withFolder(async (folder) => {
    const host = new BenchHost();
    const bench = (...args: string[]) =>
      host.run("bench", "memory", "--quick", ...args);
    const none = await bench("--compare", folder);
    assertEquals(none.code, 2);
    assertStringIncludes(none.stderr, "make one with --save");
    assertEquals((await bench("--save", folder)).code, 0);
    const compared = await bench("--compare", folder, "--save", folder);
    assertEquals(compared.code, 0);
    assertStringIncludes(
      compared.stdout,
      "compared with the run of 2000-01-01",
    );
  });
});

Deno.test("wrong flags and files are told before anything is measured", async () => {
  await withFolder(async (folder) => {
    const host = new BenchHost();
    const damaged = join(folder, "damaged.json");
    await Deno.writeTextFile(damaged, '{"schemaVersion": 1, "series": 7}');
    const other = join(folder, "other.json");
    const elsewhere = {
      ...ENVIRONMENT,
      device: { ...ENVIRONMENT.device, name: "elsewhere" },
    };
    await Deno.writeTextFile(other, JSON.stringify(makeReport(elsewhere, [])));
    for (
      const [args, code, message] of [
        [["--fail-over", "10%"], 2, "without --compare"],
        [["--compare", other, "--fail-over", "much"], 2, '"much" is no'],
        [["--compare", join(folder, "none.json")], 2, "Cannot read"],
        [["--compare", damaged], 6, "it is no benchmark run"],
        [["--compare", other], 2, "it was on elsewhere"],
      ] as const
    ) {
      const run = await host.run("bench", "memory", "--quick", ...args);
      assertEquals([run.code, run.stdout], [code, ""], args.join(" "));
      assertStringIncludes(run.stderr, message);
    }
    await Deno.writeTextFile(damaged, "not JSON");
    const run = await host.run("bench", "memory", "--compare", damaged);
    assertEquals(run.code, 6);
  });
});
