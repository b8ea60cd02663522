/**
 * What is cached for a token. Keys and values of a model would be computed; here they
 * follow from the token's number, so that anything read back can be checked.
 *
 * @module
 */

import { mixBits } from "./random.ts";
import { type Token, tokensUpTo } from "./token_tree.ts";

/** Writes the words of a token: no two tokens agree in any word at the same place. */
function fillWords(words: Uint32Array, token: Token): void {
  const base = mixBits(token.id);
  for (let i = 0; i < words.length; i++) {
    words[i] = base ^ Math.imul(i, 0x9e3779b1);
  }
}

/** The bytes of tokens, one after another. */
export function bytesOfTokens(
  tokens: readonly Token[],
  tokenBytes: number,
): Uint8Array {
  const words = new Uint32Array(tokens.length * tokenBytes / 4);
  const step = tokenBytes / 4;
  tokens.forEach((token, i) =>
    fillWords(words.subarray(i * step, (i + 1) * step), token)
  );
  return new Uint8Array(words.buffer);
}

/** Thrown when a cache holds something else than what was written to it. */
export class WrongDataError extends Error {
  override name = "WrongDataError";
}

/**
 * Checks what was read of a sequence that ends with the token `last`.
 *
 * @throws {WrongDataError} naming the first byte that is wrong
 */
export function checkSequence(
  actual: Uint8Array,
  last: Token,
  tokenBytes: number,
): void {
  if (actual.length !== last.length * tokenBytes) {
    throw new WrongDataError(
      `The cache has ${actual.length} bytes of a sequence of ${last.length} tokens, not ${
        last.length * tokenBytes
      }`,
    );
  }
  const words = new Uint32Array(
    actual.buffer,
    actual.byteOffset,
    actual.length / 4,
  );
  const expected = new Uint32Array(tokenBytes / 4);
  for (const token of tokensUpTo(last)) {
    fillWords(expected, token);
    const start = (token.length - 1) * expected.length;
    for (let i = 0; i < expected.length; i++) {
      if (words[start + i] !== expected[i]) {
        throw new WrongDataError(
          `Token ${token.length} of a sequence of ${last.length} is wrong from byte ${
            4 * i
          } on: 0x${words[start + i]!.toString(16)} instead of 0x${
            expected[i]!.toString(16)
          }`,
        );
      }
    }
  }
}
