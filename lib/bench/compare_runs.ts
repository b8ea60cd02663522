/**
 * Comparing a benchmark run with an earlier one, to notice when something got slower.
 *
 * A machine is not always equally fast. But the peers in a run, such as the driver's own
 * allocator, do not change with MoonBright: by how much all of them together got slower is
 * taken off what the others did.
 *
 * @module
 */

import type { BenchReport } from "./report.ts";
import { quantile, type Series, type Unit } from "./samples.ts";
import { type Shift, shiftOf } from "./shift.ts";

/** Subjects that measure something else than MoonBright. */
const PEERS: ReadonlySet<string> = new Set([
  "plain alloc",
  "plain free",
  "pool alloc, cold",
  "pool pair, warm",
  "raw calls, one extent",
  "raw map and set access",
  "host loop and copy",
  "empty kernel",
  "idle",
  "while computing",
  "while allocating plainly",
  "without a table",
]);

/** Fewer peers than this say little about the machine. */
const LEAST_PEERS = 3;

/** What became of one series. */
export interface SeriesChange {
  /** Group of the measurement. */
  group: string;
  /** What was done. */
  subject: string;
  /** Bytes per request. */
  size: number;
  /** What the samples count. */
  unit: Unit;
  /** Medians of both runs, as measured. */
  medians: { before: number; after: number };
  /** New as a multiple of old, with the machine's part taken off. */
  shift: Shift;
  /**
   * `peer` measures something else; `unclear` has too few samples to tell a difference;
   * `slower` and `faster` by more than is allowed for; `same` else.
   */
  verdict: "peer" | "unclear" | "slower" | "faster" | "same";
}

/** Two runs compared. */
export interface RunComparison {
  /** When the earlier run began, and of which commit it was. */
  before: { time: string; commit: string | null };
  /** By how much the peers got slower: 1.05 if by 5 %. 1 if there are too few of them. */
  machine: number;
  /** What is allowed for: 0.1 is 10 %. */
  allowed: number;
  /** Series that both runs have. */
  changes: SeriesChange[];
  /** Series that only one of them has. */
  unmatched: number;
}

/**
 * Compares a run with an earlier one. A series counts as slower if even the lower end of
 * its interval is beyond what is allowed for.
 *
 * @param allowed how much slower is no regression: 0.1 for 10 %
 */
export function compareRuns(
  before: BenchReport,
  after: BenchReport,
  allowed: number,
): RunComparison {
  const earlier = new Map(before.series.map((one) => [keyOf(one), one]));
  const pairs = after.series.flatMap((now) => {
    const old = earlier.get(keyOf(now));
    return old === undefined ? [] : [{ now, old, shift: changeOf(old, now) }];
  });
  const peers = pairs.filter(({ now }) =>
    PEERS.has(now.subject) && now.unit === "ns"
  ).map(({ shift }) => shift.ratio).sort((a, b) => a - b);
  const machine = peers.length < LEAST_PEERS ? 1 : quantile(peers, 0.5);
  return {
    before: {
      time: before.environment.time,
      commit: before.environment.commit,
    },
    machine,
    allowed,
    changes: pairs.map(({ now, old, shift }) => {
      const { group, subject, size, unit } = now;
      const peer = PEERS.has(subject);
      const own = unit === "ns" && !peer ? scaled(shift, 1 / machine) : shift;
      return {
        group,
        subject,
        size,
        unit,
        medians: { before: medianOf(old), after: medianOf(now) },
        shift: own,
        verdict: peer ? "peer" : verdictOf(own, allowed),
      };
    }),
    unmatched: before.series.length + after.series.length - 2 * pairs.length,
  };
}

/** What got slower than is allowed for. */
export function regressions({ changes }: RunComparison): SeriesChange[] {
  return changes.filter(({ verdict }) => verdict === "slower");
}

function verdictOf(
  { low, high }: Shift,
  allowed: number,
): SeriesChange["verdict"] {
  if (low === 0) return "unclear";
  if (low > 1 + allowed) return "slower";
  return high < 1 / (1 + allowed) ? "faster" : "same";
}

/** Bytes do not vary: the two values are the whole truth. */
function changeOf(old: Series, now: Series): Shift {
  if (now.unit === "ns") return shiftOf(old.samples, now.samples);
  const ratio = medianOf(now) / medianOf(old);
  return { ratio, low: ratio, high: ratio };
}

function scaled({ ratio, low, high }: Shift, factor: number): Shift {
  return { ratio: ratio * factor, low: low * factor, high: high * factor };
}

function medianOf({ samples }: Series): number {
  return quantile(Float64Array.from(samples).sort(), 0.5);
}

function keyOf({ group, subject, size, unit }: Series): string {
  return JSON.stringify([group, subject, size, unit]);
}
