/**
 * The work of a decoder, told as operations on its cache: requests come, their
 * continuations grow token by token, and end.
 *
 * Half of the requests want several continuations of their prompt, of differing lengths;
 * the others want the best by beam search.
 *
 * @module
 */

import { type Beam, nextBeams } from "./beam_search.ts";
import { randomFrom } from "./random.ts";
import { type Token, TokenTree } from "./token_tree.ts";

/** One operation on the cache. Sequences go by numbers. */
export type Operation =
  | { kind: "start"; sequence: number; prompt: Token }
  | { kind: "fork"; sequence: number; from: number }
  | { kind: "append"; sequence: number; token: Token }
  | { kind: "free"; sequence: number };

/** One step: every live sequence gets a token. */
export interface DecodingStep {
  /** What the cache is asked to do, in order. */
  operations: Operation[];
  /** Tokens of live sequences after the step; shared ones count once. */
  liveTokens: number;
}

/** How much work there is. */
export interface DecodingOptions {
  /** Steps. */
  steps: number;
  /** Sequences that may be live at once. */
  sequences: number;
  /** Continuations of a request: beams, or samples. */
  beams: number;
  /** Tokens that a sequence may have, at least 2. */
  maxTokens: number;
  /** What lengths and scores follow from. */
  seed: number;
}

interface Request {
  beamSearch: boolean;
  beams: (Beam & { endLength: number })[];
}

/** Requests that begin in one step: they don't all come at once. */
const MOST_STARTS = 2;

/** The steps one by one. The same options give the same. */
export function* decode(options: DecodingOptions): Generator<DecodingStep> {
  const decoder = new Decoder(options);
  for (let i = 0; i < options.steps; i++) yield decoder.step();
}

class Decoder {
  readonly #options: DecodingOptions;
  readonly #random: () => number;
  readonly #tree = new TokenTree();
  /** Live sequences by number: their last tokens. */
  readonly #last = new Map<number, Token>();
  #requests: Request[] = [];
  #operations: Operation[] = [];
  #nextSequence = 0;

  constructor(options: DecodingOptions) {
    this.#options = options;
    this.#random = randomFrom(options.seed);
  }

  step(): DecodingStep {
    this.#operations = [];
    for (const request of this.#requests) this.#endFinished(request);
    this.#requests = this.#requests.filter(({ beams }) => beams.length > 0);
    const { sequences, beams } = this.#options;
    for (let starts = 0; starts < MOST_STARTS; starts++) {
      if (this.#last.size + beams <= sequences) this.#begin();
    }
    for (const request of this.#requests) {
      if (request.beamSearch) this.#reselect(request);
    }
    for (const [sequence, last] of this.#last) {
      const token = this.#tree.append(last);
      this.#last.set(sequence, token);
      this.#operations.push({ kind: "append", sequence, token });
    }
    return { operations: this.#operations, liveTokens: this.#tree.live };
  }

  #begin(): void {
    const { maxTokens, beams } = this.#options;
    const promptLength = this.#length(1, Math.ceil(maxTokens / 2));
    let prompt = this.#tree.append();
    while (prompt.length < promptLength) prompt = this.#tree.append(prompt);
    const first = this.#nextSequence++;
    this.#last.set(first, prompt);
    this.#operations.push({ kind: "start", sequence: first, prompt });
    const beamSearch = this.#random() < 0.5;
    const commonEnd = this.#length(promptLength + 1, maxTokens);
    this.#requests.push({
      beamSearch,
      beams: Array.from({ length: beams }, (_, i) => ({
        sequence: i === 0 ? first : this.#fork(first),
        score: 0,
        endLength: beamSearch
          ? commonEnd
          : this.#length(promptLength + 1, maxTokens),
      })),
    });
  }

  /** Keeps the best beams: those without a successor are freed before others fork. */
  #reselect(request: Request): void {
    const { endLength } = request.beams[0]!;
    const next = nextBeams(request.beams, this.#random);
    const goOn = new Set(next.map(({ sequence }) => sequence));
    for (const { sequence } of request.beams) {
      if (!goOn.has(sequence)) this.#free(sequence);
    }
    request.beams = next.map(({ sequence, score }) => ({
      // The first successor goes on in place.
      sequence: goOn.delete(sequence) ? sequence : this.#fork(sequence),
      score,
      endLength,
    }));
  }

  #endFinished(request: Request): void {
    request.beams = request.beams.filter(({ sequence, endLength }) => {
      const finished = this.#last.get(sequence)!.length >= endLength;
      if (finished) this.#free(sequence);
      return !finished;
    });
  }

  #fork(from: number): number {
    const sequence = this.#nextSequence++;
    const last = this.#last.get(from)!;
    this.#tree.share(last);
    this.#last.set(sequence, last);
    this.#operations.push({ kind: "fork", sequence, from });
    return sequence;
  }

  #free(sequence: number): void {
    this.#tree.drop(this.#last.get(sequence)!);
    this.#last.delete(sequence);
    this.#operations.push({ kind: "free", sequence });
  }

  /** A length from `least` to `most`; the short ones are more frequent, as in practice. */
  #length(least: number, most: number): number {
    return least + Math.floor(this.#random() ** 2 * (most - least + 1));
  }
}
