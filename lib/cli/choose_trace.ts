/**
 * Choosing one device of a recording.
 *
 * @module
 */

import type { Trace } from "../replay/trace.ts";
import type { Flag } from "./command.ts";
import type { CommandContext } from "./context.ts";
import { UsageError } from "./usage_error.ts";

/** The flag that chooses. */
export const TRACE_DEVICE_FLAG: Flag = {
  name: "trace-device",
  value: "NUMBER",
  summary: "which device of the recording",
  default: "the busiest",
};

/**
 * The trace of the device that the flag names, else of the one with most events.
 *
 * @param verb what is to be done with it, for errors: `replay`
 * @throws {UsageError} if there is none
 */
export function chooseTrace(
  context: CommandContext,
  traces: readonly Trace[],
  verb: string,
): Trace {
  const { name } = TRACE_DEVICE_FLAG;
  const wanted = context.flags.integer(name, 0, 1e6);
  const busiest = traces.toSorted((a, b) => b.events.count - a.events.count);
  const found = wanted === undefined
    ? busiest[0]
    : traces.find(({ device }) => device === wanted);
  if (!found) {
    throw new UsageError(
      wanted === undefined
        ? `Cannot ${verb}: the file records no allocations`
        : `Cannot use --${name}: the file records device ${
          traces.map(({ device }) => device).join(", ")
        }`,
    );
  }
  if (wanted === undefined && traces.length > 1) {
    context.warn(
      `${verb}ing device ${found.device} of the ${traces.length} in the file, which has most events; choose with --${name}`,
    );
  }
  return found;
}
