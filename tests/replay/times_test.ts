import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { combineRounds, RequestLog } from "../../lib/replay/timed_run.ts";
import {
  clockNs,
  histogramOf,
  mediansOf,
  quantilesOf,
} from "../../lib/replay/times.ts";

/** What only an allocator knows, of one that knows nothing. */
const NO_FACTS = {
  allocator: "moonbright" as const,
  policy: "default",
  device: "test",
  budget: undefined,
  mappedPeak: 200,
  driverNs: 0,
  calls: {},
  timeline: {
    step: [],
    timeUs: [],
    live: [],
    mapped: [],
    reserved: [],
    largestFree: [],
  },
  map: undefined,
};

const times = fc.array(fc.double({ min: 0, max: 1e9, noNaN: true }), {
  maxLength: 50,
}).map((list) => Float64Array.from(list));

Deno.test("quantiles of times", () => {
  const hundred = Float64Array.from({ length: 101 }, (_, i) => 100 - i);
  const { count, p50, p99, p999, max, sum } = quantilesOf(hundred);
  assertEquals([count, p50, p99, max, sum], [101, 50, 99, 100, 5050]);
  assertAlmostEquals(p999, 99.9);
  assertEquals(hundred[0], 100, "the times are left as they were");
  assertEquals(quantilesOf(new Float64Array(0)).max, 0);
});

Deno.test("a histogram has every time in the bin that its edges say", () => {
  fc.assert(fc.property(times, (ns) => {
    const { fromNs, counts } = histogramOf(ns);
    assertEquals(counts.length, fromNs.length);
    assertEquals(counts.reduce((sum, one) => sum + one, 0), ns.length);
    counts.forEach((count, bin) => {
      const from = bin === 0 ? 0 : fromNs[bin]! * (1 - 1e-9);
      const to = (fromNs[bin + 1] ?? Infinity) * (1 + 1e-9);
      const inside = ns.filter((one) => one >= from && one <= to).length;
      assert(inside >= count, `bin ${bin}: ${count} of ${inside}`);
    });
    if (ns.length > 0) assert(counts[0]! > 0 && counts.at(-1)! > 0);
  }));
});

Deno.test("medians are taken request by request", () => {
  const runs = [[1, 9, 5], [2, 7, NaN], [30, 8, NaN]].map((run) =>
    Float64Array.from(run)
  );
  assertEquals([...mediansOf(runs)].slice(0, 2), [2, 8]);
  assertEquals(mediansOf(runs.slice(0, 2))[0], 1);
});

Deno.test("rounds become one run: times by request, the rest of the median round", () => {
  const workload = { blocks: 2, steps: 3 };
  const rounds = [3, 1, 2].map((factor) => {
    const log = new RequestLog(workload, 0);
    log.allocated(0, 100, 10 * factor, "grow");
    log.allocated(1, 50, 1000 - factor, "reuse");
    log.freed(100, factor);
    return log.finish({ ...NO_FACTS, driverNs: factor });
  });
  const { run, allocNs } = combineRounds(rounds);
  assertEquals([...allocNs], [20, 998]);
  assertEquals(run.driverNs, 2);
  assertEquals([run.alloc.sum, run.free.sum, run.totalNs], [1018, 2, 1020]);
  assertEquals([run.livePeak, run.completed], [150, true]);
  assertEquals(run.ways, {
    grow: { count: 1, ns: 20 },
    reuse: { count: 1, ns: 998 },
  });
});

Deno.test("what reading the clock takes is no part of a request's time", () => {
  const log = new RequestLog({ blocks: 2, steps: 3 }, 50);
  log.allocated(0, 1, 70, "reuse");
  log.allocated(1, 1, 30, "reuse");
  log.freed(1, 51);
  const { run } = log.finish(NO_FACTS);
  assertEquals([run.alloc.max, run.alloc.sum, run.free.sum], [20, 20, 1]);
  const cost = clockNs();
  assert(cost > 0 && cost < 1e6);
});

Deno.test("requests that are refused are counted, the first of them told", () => {
  const log = new RequestLog({ blocks: 200, steps: 200 });
  for (let step = 0; step < 150; step++) log.refused(step, 5, "full");
  assertEquals([log.unserved.length, log.unservedCount], [100, 150]);
  assertEquals(log.unserved[0], { step: 0, bytes: 5, reason: "full" });
});
