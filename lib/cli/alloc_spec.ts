/**
 * What `alloc` is asked to allocate.
 *
 * @module
 */

import { checkBytes, parseSize } from "../sizes.ts";
import { UsageError } from "./usage_error.ts";

/** A number of blocks of one size. */
export interface AllocSpec {
  /** How it was written, such as `64MiB x 100`. */
  text: string;
  /** Bytes of each block. */
  size: number;
  /** Number of blocks. */
  count: number;
}

/** More blocks than this would only test the patience. */
export const MOST_BLOCKS = 10_000_000;

// Unit letters leave out x, which is the sign before the count.
const SPEC = /\s*(\d+(?:\.\d+)?\s*[a-wyz]*)(?:\s*x\s*(\d+))?(?=[\s,]|$),?/iy;

/**
 * Reads specs such as `64MiB`, `1.5 GiB` and `64MiB x 100`, of which an argument may
 * hold several and several may make up one.
 *
 * @throws {UsageError} if there is none, or one can't be read
 */
export function parseAllocSpecs(args: readonly string[]): AllocSpec[] {
  const text = args.join(" ").trimEnd();
  const specs: AllocSpec[] = [];
  let blocks = 0;
  SPEC.lastIndex = 0;
  for (let at = 0; at < text.length; at = SPEC.lastIndex) {
    SPEC.lastIndex = at;
    const match = SPEC.exec(text);
    if (!match) throw unreadable(text.slice(at).trim().split(/[\s,]/)[0]!);
    const count = match[2] === undefined ? 1 : Number(match[2]);
    if (count < 1 || (blocks += count) > MOST_BLOCKS) {
      throw new UsageError(
        `Cannot allocate "${
          match[0].trim()
        }": a run takes 1 to ${MOST_BLOCKS} blocks`,
      );
    }
    const size = match[1]!.trim();
    specs.push({
      text: count === 1 ? size : `${size} x ${count}`,
      size: readSize(size),
      count,
    });
  }
  if (specs.length === 0) {
    throw new UsageError(
      "Cannot allocate nothing: give a size such as 64MiB, or 64MiB x 100 for 100 blocks",
    );
  }
  return specs;
}

function readSize(text: string): number {
  try {
    return checkBytes(parseSize(text), `the size "${text}"`);
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause });
  }
}

function unreadable(text: string): UsageError {
  return new UsageError(
    `Cannot read "${text}": expected a size such as 64MiB, or 64MiB x 100 for 100 blocks`,
  );
}
