/**
 * What happened between two summaries of an instance, per second.
 *
 * @module
 */

import type { CallKind } from "../mapper.ts";
import type { Way } from "../planner.ts";
import type { Summary } from "./summary.ts";

/** Events per second, and what each took. */
export interface Rate {
  /** How many a second. */
  perSecond: number;
  /** Bytes a second. */
  bytesPerSecond: number;
  /** Nanoseconds each, 0 if there were none. */
  nsEach: number;
}

/** Rates between two summaries. */
export interface Rates {
  /** Seconds between them. */
  seconds: number;
  /** Requests served, by way. */
  ways: Record<Way, Rate>;
  /** Requests served in any way, a second. */
  requests: number;
  /** Frees a second. */
  frees: number;
  /** Driver calls, by kind. */
  driver: Record<CallKind, Rate>;
  /** Driver calls of any kind, a second. */
  calls: number;
}

/** The rates between two summaries of one instance; nothing if no time has passed. */
export function ratesBetween(
  before: Summary,
  after: Summary,
): Rates | undefined {
  const seconds = (after.clockMs - before.clockMs) / 1000;
  if (!(seconds > 0)) return undefined;
  const { stats: from } = before;
  const { stats: to } = after;
  const rate = (
    count: number,
    bytes: number,
    ns: number,
  ): Rate => ({
    perSecond: count / seconds,
    bytesPerSecond: bytes / seconds,
    nsEach: count > 0 ? Math.max(0, ns / count) : 0,
  });
  const ways = mapRecord(to.ways, (way, { count, bytes, ns }) => {
    const old = from.ways[way];
    return rate(count - old.count, bytes - old.bytes, ns - old.ns);
  });
  const driver = mapRecord(to.driver, (kind, { calls, bytes, ns }) => {
    const old = from.driver[kind];
    return rate(calls - old.calls, bytes - old.bytes, ns - old.ns);
  });
  return {
    seconds,
    ways,
    requests: sum(ways),
    frees: (to.frees - from.frees) / seconds,
    driver,
    calls: sum(driver),
  };
}

function mapRecord<K extends string, T, U>(
  record: Record<K, T>,
  change: (key: K, value: T) => U,
): Record<K, U> {
  return Object.fromEntries(
    Object.entries<T>(record).map(([key, value]) => [
      key,
      change(key as K, value),
    ]),
  ) as Record<K, U>;
}

function sum(rates: Record<string, Rate>): number {
  return Object.values(rates).reduce(
    (all, { perSecond }) => all + perSecond,
    0,
  );
}
