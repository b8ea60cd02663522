import { MoonBright, type MoonBrightOptions } from "../../lib/moonbright.ts";
import type { Snapshot } from "../../lib/snapshot.ts";
import { ModelDriver, type ModelOptions } from "../model/model_driver.ts";

/** The granularity of the model device in these tests. */
export const GRANULE = 4096;

/** An instance over a model device of its own. Growth comes in single granules. */
export function openModel(
  options: MoonBrightOptions = {},
  device: ModelOptions = {},
): { mb: MoonBright; model: ModelDriver } {
  const model = new ModelDriver({ granularity: GRANULE, ...device });
  const mb = new MoonBright(model, {
    addressSpace: 2 ** 30,
    ...options,
    growth: { extentSize: GRANULE, mostExtents: 1024, ...options.growth },
  });
  return { mb, model };
}

/** What a snapshot says about memory: all of it but clocks and counters of calls. */
export function memoryOf(mb: MoonBright): unknown {
  const { stats, extents, blocks, retired, arena }: Snapshot = mb.snapshot();
  const { driver: _calls, ways: _ways, peak: _peak, flushes: _flushes, ...rest } =
    stats;
  return { stats: rest, extents, blocks, retired, arena };
}
