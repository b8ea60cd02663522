/**
 * Does the work of a decoder with one cache: times every step, and checks the contents
 * now and then.
 *
 * @module
 */

import type { DecodingStep, Operation } from "./decoding.ts";
import type { CachedSequence, SequenceStore } from "./sequence_store.ts";
import { bytesOfTokens, checkSequence } from "./token_bytes.ts";
import { type Token, tokensUpTo } from "./token_tree.ts";

/** What came of it. */
export interface ReplayResult {
  /** Nanoseconds of every step, until the device was done. */
  stepNs: number[];
  /** Most tokens that live sequences had, shared ones counted once. */
  peakLiveTokens: number;
  /** Bytes that were read back and found right. */
  verifiedBytes: number;
}

/** Steps between two times that every sequence is read back. */
const VERIFY_EVERY = 50;

interface LiveSequence {
  cached: CachedSequence;
  last: Token;
}

/**
 * Does all steps, checks once more, then frees what is left.
 *
 * @param synchronize waits for the device
 * @throws {WrongDataError} if the cache does not hold what was written
 */
export function replay(
  steps: Iterable<DecodingStep>,
  store: SequenceStore,
  tokenBytes: number,
  synchronize: () => void,
): ReplayResult {
  const live = new Map<number, LiveSequence>();
  const result: ReplayResult = {
    stepNs: [],
    peakLiveTokens: 0,
    verifiedBytes: 0,
  };
  for (const { operations, liveTokens } of steps) {
    // The model would have left them in device memory: making them is no part of the step.
    const bytes = operations.map((op) => bytesFor(op, tokenBytes));
    const start = performance.now();
    operations.forEach((op, i) => carryOut(op, bytes[i], store, live));
    synchronize();
    result.stepNs.push((performance.now() - start) * 1e6);
    result.peakLiveTokens = Math.max(result.peakLiveTokens, liveTokens);
    if (result.stepNs.length % VERIFY_EVERY === 0) {
      result.verifiedBytes += verify(live, tokenBytes);
    }
  }
  result.verifiedBytes += verify(live, tokenBytes);
  for (const { cached } of live.values()) cached.free();
  return result;
}

/** What an operation writes: the tokens of a prompt, or one token. */
function bytesFor(op: Operation, tokenBytes: number): Uint8Array | undefined {
  switch (op.kind) {
    case "start":
      return bytesOfTokens(tokensUpTo(op.prompt), tokenBytes);
    case "append":
      return bytesOfTokens([op.token], tokenBytes);
    default:
      return undefined;
  }
}

function carryOut(
  op: Operation,
  bytes: Uint8Array | undefined,
  store: SequenceStore,
  live: Map<number, LiveSequence>,
): void {
  switch (op.kind) {
    case "start":
      live.set(op.sequence, { cached: store.start(bytes!), last: op.prompt });
      break;
    case "fork": {
      const { cached, last } = live.get(op.from)!;
      live.set(op.sequence, { cached: cached.fork(), last });
      break;
    }
    case "append": {
      const sequence = live.get(op.sequence)!;
      sequence.cached.append(bytes!);
      sequence.last = op.token;
      break;
    }
    case "free":
      live.get(op.sequence)!.cached.free();
      live.delete(op.sequence);
      break;
  }
}

function verify(
  live: ReadonlyMap<number, LiveSequence>,
  tokenBytes: number,
): number {
  let bytes = 0;
  for (const { cached, last } of live.values()) {
    const actual = cached.read();
    checkSequence(actual, last, tokenBytes);
    bytes += actual.length;
  }
  return bytes;
}
