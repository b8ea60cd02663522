/**
 * Choosing a program to look at.
 *
 * @module
 */

import { MoonBrightError } from "../errors.ts";
import { listPublished, type Published } from "../live/ask.ts";
import { UsageError } from "./usage_error.ts";

const HOW_TO_PUBLISH =
  "a program publishes its memory with MoonBright.open({ publish: true }) or mb.publish()";

/**
 * The number of a process, as given on the command line.
 *
 * @throws {UsageError} if it is none
 */
export function parsePid(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new UsageError(
    `Cannot find process "${text}": expected the number of a process`,
  );
}

/**
 * What publishes: all of it, or all instances of one process.
 *
 * @throws {MoonBrightError} code `no-answer` if there is none
 */
export async function findPublished(pid?: number): Promise<Published[]> {
  const found = await listPublished(pid);
  if (found.length > 0) return found;
  throw new MoonBrightError(
    "no-answer",
    "look",
    pid === undefined
      ? `Cannot find a process of yours to look at: ${HOW_TO_PUBLISH}`
      : `Cannot look at process ${pid}: it publishes nothing, or is another user's; ${HOW_TO_PUBLISH}`,
  );
}
