import { assertEquals, assertThrows } from "@std/assert";
import type {
  Access,
  AddressRange,
  Driver,
  MapTimes,
} from "../../lib/driver.ts";
import { type ErrorCode, MoonBrightError } from "../../lib/errors.ts";
import { MoonBright, type MoonBrightOptions } from "../../lib/moonbright.ts";
import type { Snapshot } from "../../lib/snapshot.ts";
import { ModelDriver, type ModelOptions } from "../model/model_driver.ts";

/** The granularity of the model device in these tests. */
export const GRANULE = 4096;

/** Growth in single granules, and only where stitching does not suffice. */
export const SINGLE_GRANULES = {
  extentSize: GRANULE,
  mostExtents: 1024,
  growthPriceNs: 1e12,
};

/** An instance over a model device of its own, with `SINGLE_GRANULES`. */
export function openModel(
  options: MoonBrightOptions = {},
  device: ModelOptions = {},
): { mb: MoonBright; model: ModelDriver } {
  const model = new ModelDriver({ granularity: GRANULE, ...device });
  return { mb: openOver(model, options), model };
}

/** Makes the heap large enough that what grows next does not come in one extent. */
export function preloaded(
  options: MoonBrightOptions = {},
  granules = 16,
): ReturnType<typeof openModel> {
  const { mb, model } = openModel(options);
  mb.alloc(granules * GRANULE);
  return { mb, model };
}

/** An instance over a device whose events pass only when told. */
export function openGated(
  options: MoonBrightOptions = {},
): { mb: MoonBright; gated: GatedDriver } {
  const gated = new GatedDriver();
  return { mb: openOver(gated, options), gated };
}

/** An instance over a driver, with `SINGLE_GRANULES`. */
export function openOver(
  driver: Driver,
  options: MoonBrightOptions,
): MoonBright {
  return new MoonBright(driver, {
    addressSpace: 2 ** 30,
    ...options,
    growth: { ...SINGLE_GRANULES, ...options.growth },
  });
}

/** Asserts that a call fails with an error of this code, and returns it. */
export function assertCode(
  code: ErrorCode,
  body: () => unknown,
  includes = "",
): MoonBrightError {
  const error = assertThrows(body, MoonBrightError, includes);
  assertEquals(error.code, code);
  return error;
}

/** What a snapshot says about memory: all of it but clocks and counters of calls. */
export function memoryOf(mb: MoonBright): unknown {
  const { stats, extents, blocks, retired, arena }: Snapshot = mb.snapshot();
  const {
    driver: _calls,
    ways: _ways,
    planning: _planning,
    peak: _peak,
    flushes: _flushes,
    ...rest
  } = stats;
  retired.sort((a, b) => a.address - b.address);
  return { stats: rest, extents, blocks, retired, arena };
}

/** What a snapshot says about live blocks. */
export function liveOf(mb: MoonBright): unknown {
  const { stats, blocks } = mb.snapshot();
  const { live, requested, liveBlocks } = stats;
  return {
    live,
    requested,
    liveBlocks,
    blocks: blocks.filter(({ state }) => state === "live"),
  };
}

/** A model device whose events pass only when a test says so, and that notes some calls. */
export class GatedDriver extends ModelDriver {
  /** Calls so far: `unmap`, `map`, `record` and `synchronize event`, with what they got. */
  readonly log: string[] = [];
  /** Told of every range before it is unmapped. */
  onUnmap: ((range: AddressRange) => void) | undefined;
  /** Events by stream that were recorded and have not passed, oldest first. */
  readonly #waiting = new Map<number, number[]>();

  constructor() {
    super({ granularity: GRANULE });
  }

  /** Lets the oldest `count` events of a stream pass. */
  pass(stream: number, count = Infinity): void {
    this.#waiting.get(stream)?.splice(0, count);
  }

  override recordEvent(event: number, stream: number): void {
    super.recordEvent(event, stream);
    const waiting = this.#waiting.get(stream) ?? [];
    waiting.push(event);
    this.#waiting.set(stream, waiting);
    this.log.push(`record ${event} on ${stream}`);
  }

  override queryEvent(event: number): boolean {
    return !this.#isWaiting(event);
  }

  override synchronizeEvent(event: number): void {
    this.log.push(`synchronize event ${event}`);
    for (const waiting of this.#waiting.values()) {
      const at = waiting.indexOf(event);
      if (at >= 0) waiting.splice(0, at + 1);
    }
    super.synchronizeEvent(event);
  }

  override synchronizeStream(stream: number): void {
    this.pass(stream);
    super.synchronizeStream(stream);
  }

  override map(
    address: number,
    extents: readonly number[],
    access?: Access,
  ): MapTimes {
    this.log.push(`map ${extents.length}`);
    return super.map(address, extents, access);
  }

  override unmap(ranges: readonly AddressRange[]): void {
    this.log.push(`unmap ${ranges.length}`);
    for (const range of ranges) this.onUnmap?.(range);
    super.unmap(ranges);
  }

  #isWaiting(event: number): boolean {
    for (const waiting of this.#waiting.values()) {
      if (waiting.includes(event)) return true;
    }
    return false;
  }
}
