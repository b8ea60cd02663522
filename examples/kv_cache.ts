/**
 * A key/value cache of a language model's decoder, in four ways, compared.
 *
 * `deno run -A examples/kv_cache.ts --help` says what can be set.
 *
 * @module
 */

import { MoonBright, MoonBrightError } from "@moonbright/moonbright";
import { decode } from "./kv_cache/decoding.ts";
import { DOUBLING_WAY } from "./kv_cache/doubling_way.ts";
import { GROWABLE_WAY } from "./kv_cache/growable_way.ts";
import { LONGEST_WAY } from "./kv_cache/longest_way.ts";
import {
  type ExampleOptions,
  parseOptions,
  tokenBytesOf,
  USAGE,
  UsageError,
} from "./kv_cache/options.ts";
import { PAGED_WAY } from "./kv_cache/paged_way.ts";
import { replay, type ReplayResult } from "./kv_cache/replay.ts";
import {
  percentile,
  renderReport,
  type Report,
  type WayReport,
} from "./kv_cache/report.ts";
import type { SequenceStore, Way } from "./kv_cache/sequence_store.ts";
import { WrongDataError } from "./kv_cache/token_bytes.ts";

/** The ways that are compared. */
export const WAYS: readonly Way[] = [
  PAGED_WAY,
  GROWABLE_WAY,
  LONGEST_WAY,
  DOUBLING_WAY,
];

/** Steps done beforehand and not counted, to have the code compiled. */
const WARM_UP_STEPS = 30;

/** Where the example's text goes. */
export interface Output {
  /** The report. */
  print(text: string): void;
  /** What went wrong. */
  printError(text: string): void;
}

/** Runs the example; returns the exit code. */
export function runExample(
  args: readonly string[],
  { print, printError }: Output,
  ways: readonly Way[] = WAYS,
): number {
  try {
    const options = parseOptions(args);
    if (options === undefined) {
      print(USAGE);
      return 0;
    }
    const report = compare(options, ways);
    print(
      options.json
        ? `${JSON.stringify(report, null, 2)}\n`
        : renderReport(report),
    );
    return 0;
  } catch (error) {
    if (error instanceof WrongDataError) {
      printError(`${error.message}\n`);
      return 1;
    }
    if (error instanceof UsageError) {
      printError(`${error.message}; --help says what there is\n`);
      return 2;
    }
    if (!(error instanceof MoonBrightError)) throw error;
    printError(`${error.message}\n`);
    return 3;
  }
}

function compare(options: ExampleOptions, ways: readonly Way[]): Report {
  const warmUpSteps = Math.min(WARM_UP_STEPS, options.steps);
  let device = "";
  const reports = ways.map((way) => {
    measure(way, { ...options, steps: warmUpSteps });
    const measured = measure(way, options);
    device = measured.device;
    return measured.report;
  });
  const tokenBytes = tokenBytesOf(options);
  return { schemaVersion: 1, device, tokenBytes, options, ways: reports };
}

function measure(
  way: Way,
  options: ExampleOptions,
): { device: string; report: WayReport } {
  // One instance for each way: no way gets memory that another left.
  using mb = openDevice(options.device);
  const tokenBytes = tokenBytesOf(options);
  const callsBefore = driverCalls(mb);
  const store = way.open(mb, { ...options, tokenBytes });
  const result = replayNamed(way, store, options, mb);
  const peakMappedBytes = mb.stats().peak.mapped;
  const peakLiveBytes = tokenBytes * result.peakLiveTokens;
  return {
    device: mb.device.name,
    report: {
      way: way.name,
      explanation: way.explanation,
      peakMappedBytes,
      peakLiveBytes,
      waste: 1 - peakLiveBytes / peakMappedBytes,
      stepNs: {
        p50: percentile(result.stepNs, 0.5),
        p99: percentile(result.stepNs, 0.99),
      },
      driverCalls: driverCalls(mb) - callsBefore,
      launches: store.launches,
      verifiedBytes: result.verifiedBytes,
    },
  };
}

/** Does the work; wrong data is reported with the way's name. */
function replayNamed(
  way: Way,
  store: SequenceStore,
  options: ExampleOptions,
  mb: MoonBright,
): ReplayResult {
  try {
    return replay(decode(options), store, tokenBytesOf(options), () => {
      mb.synchronize();
    });
  } catch (error) {
    if (!(error instanceof WrongDataError)) throw error;
    throw new WrongDataError(`The way "${way.name}" failed: ${error.message}`, {
      cause: error,
    });
  }
}

function openDevice(device: string): MoonBright {
  try {
    return MoonBright.open({ device });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}

function driverCalls(mb: MoonBright): number {
  return Object.values(mb.stats().driver)
    .reduce((sum, { calls }) => sum + calls, 0);
}

if (import.meta.main) {
  const encoder = new TextEncoder();
  Deno.exitCode = runExample(Deno.args, {
    print: (text) => {
      Deno.stdout.writeSync(encoder.encode(text));
    },
    printError: (text) => {
      Deno.stderr.writeSync(encoder.encode(text));
    },
  });
}
