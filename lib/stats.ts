/**
 * Counters of an instance and what they look like to users.
 *
 * @module
 */

import type { CallCount, CallKind } from "./mapper.ts";
import type { Way } from "./planner.ts";

/** Requests served in one way. */
export interface WayStats {
  /** Requests served. */
  count: number;
  /** Bytes asked for by them. */
  bytes: number;
  /** Nanoseconds spent on them. Of the reuse way an estimate: one in 1024 is timed. */
  ns: number;
}

/** Figures of an instance. Sizes in bytes. */
export interface Stats {
  /** Version of this layout. */
  schemaVersion: 1;
  /** In live blocks, as handed out (multiples of 512). */
  live: number;
  /** In live blocks, as asked for. */
  requested: number;
  /** Number of live blocks. */
  liveBlocks: number;
  /** Free inside mapped extents. */
  free: number;
  /** The largest free block of any stream. */
  largestFree: number;
  /** In wholly free extents, which can be stitched once the work in them has passed. */
  stitchable: number;
  /** Freed, but still used by work on another stream, or by a graph. */
  pending: number;
  /** Of those, what graphs may use that were not closed yet. */
  captured: number;
  /** Of all extents: what the device has given. */
  mapped: number;
  /** Number of extents. */
  extents: number;
  /** Of the extent that keeps the driver's page tables, apart from all others. */
  anchor: number;
  /** Addresses reserved. */
  reserved: number;
  /** Addresses in retired mappings. */
  retired: number;
  /** Number of retired mappings. */
  retiredMappings: number;
  /** Addresses that were flushed and can be used again. */
  recyclable: number;
  /** Most that `mapped` may become, `null` for no limit. */
  budget: number | null;
  /** Highest values so far. */
  peak: { live: number; mapped: number };
  /** Requests by the way they were served. */
  ways: Record<Way, WayStats>;
  /** Plans made for requests that reuse could not serve, and the time it took. */
  planning: { count: number; ns: number };
  /** Frees so far. */
  frees: number;
  /** Coherence points at which mappings were flushed. */
  flushes: number;
  /** Driver calls for memory. */
  driver: Record<CallKind, CallCount>;
}

/** Counters that the allocator keeps. */
export class Counters {
  /** Bytes in live blocks. */
  live = 0;
  /** Bytes asked for in live blocks. */
  requested = 0;
  /** Live blocks. */
  liveBlocks = 0;
  /** Bytes in pending blocks. */
  pending = 0;
  /** Highest `live`. */
  peakLive = 0;
  /** Highest bytes of extents. */
  peakMapped = 0;
  /** Frees so far. */
  frees = 0;
  /** Plans made. */
  readonly planning: { count: number; ns: number } = { count: 0, ns: 0 };
  /** Requests served by reuse; kept apart from the others because it is hot. */
  reuses = 0;
  /** Bytes asked for by them. */
  reuseBytes = 0;
  /** Nanoseconds of those that were timed. */
  reuseTimedNs = 0;
  /** How many were timed. */
  reuseTimed = 0;
  /** The other ways. */
  readonly ways: Record<Exclude<Way, "reuse">, WayStats> = {
    extend: { count: 0, bytes: 0, ns: 0 },
    stitch: { count: 0, bytes: 0, ns: 0 },
    grow: { count: 0, bytes: 0, ns: 0 },
  };

  /** All ways, as users see them. */
  wayStats(): Record<Way, WayStats> {
    const perReuse = this.reuseTimed === 0
      ? 0
      : this.reuseTimedNs / this.reuseTimed;
    return {
      reuse: {
        count: this.reuses,
        bytes: this.reuseBytes,
        ns: perReuse * this.reuses,
      },
      extend: { ...this.ways.extend },
      stitch: { ...this.ways.stitch },
      grow: { ...this.ways.grow },
    };
  }
}
