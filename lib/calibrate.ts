/**
 * Measures what the driver's calls cost on this device, through the same code that
 * will make them: which also has that code compiled before the first real request.
 *
 * @module
 */

import type { Allocator } from "./allocator.ts";
import type { CostModel, OperationCost } from "./cost_model.ts";
import type { CallKind } from "./mapper.ts";
import { releaseCached } from "./trim.ts";

/** Rounds of allocating and giving back; takes about 4 ms on an H200. */
const ROUNDS = 24;

/**
 * Replaces the cost of each extent in the allocator's cost model by the measured one;
 * what grows with size stays as stored. The allocator must be unused. If the device
 * has no room for it, or can't map memory, the stored costs stay.
 */
export function calibrate(a: Allocator): void {
  if (a.plain) return;
  const { granularity } = a.driver.info;
  const samples: Record<CallKind, number[]> = {
    create: [],
    map: [],
    setAccess: [],
    unmap: [],
    release: [],
  };
  const { observer } = a.mapper;
  a.mapper.observer = ({ kind, ns }) => samples[kind].push(ns);
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const id = a.allocate(granularity, granularity, 0);
      a.free(id, a.blocks.generation[id]!);
      releaseCached(a, true);
    }
  } catch {
    // A device without room, or one that is lost, says so at the first real request.
    return;
  } finally {
    a.mapper.observer = observer;
    a.forgetCounts();
  }
  const stored = a.costs;
  const measured = (cost: OperationCost, ns: number): OperationCost => ({
    ...cost,
    perExtentNs: ns,
  });
  const costs: CostModel = {
    create: measured(stored.create, median(samples.create)),
    map: measured(
      stored.map,
      median(samples.map) + median(samples.setAccess),
    ),
    unmap: a.profile.unmapWaits
      ? stored.unmap
      : measured(stored.unmap, median(samples.unmap)),
    release: measured(stored.release, median(samples.release)),
  };
  a.costs = costs;
}

function median(samples: number[]): number {
  return samples.toSorted((x, y) => x - y)[samples.length >> 1]!;
}
