import type { MemoryMap } from "../report_data.ts";

/**
 * The stretches of addresses that anything ever lay at, in order, as pairs of first
 * byte and length. The address space is sparse: maps show these and cut the rest out.
 */
export function stretches({ blocks, extents }: MemoryMap): number[] {
  const pieces = [blocks, extents].flatMap(({ address, bytes }) =>
    Array.from(address, (first, i) => [first, first + bytes[i]!] as const)
  ).sort(([a], [b]) => a - b);
  const pairs: number[] = [];
  let start = 0;
  let end = -1;
  for (const [first, after] of pieces) {
    if (first > end) {
      if (end > start) pairs.push(start, end - start);
      start = first;
      end = after;
    } else if (after > end) end = after;
  }
  if (end > start) pairs.push(start, end - start);
  return pairs;
}
