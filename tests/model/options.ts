import type { CostTable } from "./costs.ts";
import type { TlbMode } from "./mmu.ts";

/** What may be chosen about a model device. */
export interface ModelOptions {
  /** Bytes of memory; 64 MiB by default. */
  totalMemory?: number;
  /** Bytes of a granule; 4096 by default. */
  granularity?: number;
  /** Bytes that all reservations together may have; all there are by default. */
  reservable?: number;
  /** Whether the TLB caches walks that found nothing; `keeps` (no) by default. */
  tlb?: TlbMode;
  /** False makes `unmap` leave stale translations behind, as a broken driver would. */
  unmapFlushes?: boolean;
  /** Undone operations that the device holds before a call has to wait; 1024 by default. */
  maxPending?: number;
  /** Decides the order in which streams advance; 1 by default. */
  seed?: number;
  /** What calls cost in simulated time; an H200's figures by default. */
  costs?: CostTable;
}
