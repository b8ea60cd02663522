/**
 * What a decoder asks of a key/value cache. Each of the four ways implements it.
 *
 * @module
 */

import type { MoonBright } from "@moonbright/moonbright";

/** What of one sequence is cached. */
export interface CachedSequence {
  /** Adds the bytes of one token or more. */
  append(bytes: Uint8Array): void;
  /** Another sequence with the same contents; from now on each grows by itself. */
  fork(): CachedSequence;
  /** All that was appended. */
  read(): Uint8Array;
  /** Gives the memory back. */
  free(): void;
}

/** A cache of many sequences. */
export interface SequenceStore {
  /** Begins a sequence with the bytes of its prompt. */
  start(prompt: Uint8Array): CachedSequence;
  /** Kernels launched so far. */
  readonly launches: number;
}

/** What the cache must have room for. */
export interface CacheShape {
  /** Bytes of a token. */
  tokenBytes: number;
  /** Tokens that a sequence may have. */
  maxTokens: number;
  /** Sequences that may be live at once. */
  sequences: number;
}

/** A way to cache sequences in device memory. */
export interface Way {
  /** Its name in the report. */
  name: string;
  /** How it works and what that costs, in a sentence. */
  explanation: string;
  /** Makes an empty cache; closing the instance closes it. */
  open(mb: MoonBright, shape: CacheShape): SequenceStore;
}
