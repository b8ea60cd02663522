/**
 * The one place where the policy touches the driver for memory: it carries out what
 * a plan asks or undoes all of it, and counts and times every call.
 *
 * @module
 */

import type { AddressRange, Driver } from "./driver.ts";

/** Calls of one kind so far. */
export interface CallCount {
  /** Calls made. */
  calls: number;
  /** Extents or ranges handled by them. */
  items: number;
  /** Bytes handled by them. */
  bytes: number;
  /** Nanoseconds spent in them. */
  ns: number;
}

/** Kinds of driver calls that the mapper makes. */
export type CallKind = "create" | "map" | "setAccess" | "unmap" | "release";

/** One driver call, as told to an observer. */
export interface DriverCall {
  /** Which call. */
  kind: CallKind;
  /** Extents or ranges handled. */
  items: number;
  /** Bytes handled. */
  bytes: number;
  /** How long it took in nanoseconds. */
  ns: number;
}

/** Makes and undoes driver calls for extents and mappings. */
export class Mapper {
  /** Calls by kind. */
  calls: Record<CallKind, CallCount> = newCounts();
  /** Told of every call, if set. */
  observer: ((call: DriverCall) => void) | undefined;
  readonly #driver: Driver;

  /** A mapper over a driver. */
  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /**
   * Creates extents of the given sizes and maps them behind existing ones, side by
   * side from `address` on. Returns the new extents' driver ids.
   *
   * @param keep gets new extents that could neither be mapped nor given back
   * @throws {DriverError} after undoing what was done
   */
  install(
    address: number,
    existing: readonly number[],
    existingBytes: number,
    sizes: readonly number[],
    keep: (created: readonly number[]) => void,
  ): number[] {
    const created = sizes.length === 0 ? [] : this.#create(sizes);
    const extents = created.length === 0
      ? existing
      : existing.length === 0
      ? created
      : [...existing, ...created];
    try {
      const { mapNs, accessNs } = this.#driver.map(address, extents);
      const bytes = existingBytes + sum(sizes);
      this.note("map", extents.length, bytes, mapNs);
      this.note("setAccess", 1, bytes, accessNs);
    } catch (error) {
      if (created.length > 0 && !this.#undoCreate(created, sizes)) {
        keep(created);
      }
      throw error;
    }
    return created;
  }

  /** Unmaps ranges in one call. */
  unmap(ranges: readonly AddressRange[]): void {
    const start = performance.now();
    this.#driver.unmap(ranges);
    const ns = (performance.now() - start) * 1e6;
    let bytes = 0;
    for (const range of ranges) bytes += range.size;
    this.note("unmap", ranges.length, bytes, ns);
  }

  /** Releases extents that are mapped nowhere. */
  release(extents: readonly number[], bytes: number): void {
    const start = performance.now();
    this.#driver.releaseExtents(extents);
    const ns = (performance.now() - start) * 1e6;
    this.note("release", extents.length, bytes, ns);
  }

  /** Starts all counts anew. */
  forgetCounts(): void {
    this.calls = newCounts();
  }

  #create(sizes: readonly number[]): number[] {
    const start = performance.now();
    const created = this.#driver.createExtents(sizes);
    const ns = (performance.now() - start) * 1e6;
    this.note("create", sizes.length, sum(sizes), ns);
    return created;
  }

  /** Whether new extents could be given back; the error that made it necessary says more. */
  #undoCreate(created: readonly number[], sizes: readonly number[]): boolean {
    try {
      this.release(created, sum(sizes));
      return true;
    } catch {
      return false;
    }
  }

  /** Counts a call and tells the observer. */
  protected note(
    kind: CallKind,
    items: number,
    bytes: number,
    ns: number,
  ): void {
    const count = this.calls[kind];
    count.calls++;
    count.items += items;
    count.bytes += bytes;
    count.ns += ns;
    this.observer?.({ kind, items, bytes, ns });
  }
}

function newCounts(): Record<CallKind, CallCount> {
  const none = { calls: 0, items: 0, bytes: 0, ns: 0 };
  return {
    create: { ...none },
    map: { ...none },
    setAccess: { ...none },
    unmap: { ...none },
    release: { ...none },
  };
}

function sum(values: readonly number[]): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
