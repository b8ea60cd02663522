/**
 * Which tokens live sequences have: a tree, since continuations of a prompt share it.
 *
 * @module
 */

/** A token in its place: with those before it, a sequence. */
export interface Token {
  /** A number that no other token has; what is cached for it depends only on that. */
  readonly id: number;
  /** Tokens of the sequence up to this one. */
  readonly length: number;
  /** The token before it. */
  readonly parent: Token | undefined;
  /** Sequences that end with it, and tokens that follow it. */
  holders: number;
}

/** All tokens that some live sequence has. */
export class TokenTree {
  /** How many there are: one that several sequences share counts once. */
  live = 0;
  #nextId = 1;

  /** Adds a token to a sequence that ends with `last`, or begins one. */
  append(last?: Token): Token {
    this.live++;
    // The sequence held `last`; now the new token does: their number stays.
    return {
      id: this.#nextId++,
      length: (last?.length ?? 0) + 1,
      parent: last,
      holders: 1,
    };
  }

  /** Notes that one more sequence ends with a token. */
  share(last: Token): void {
    last.holders++;
  }

  /** Forgets a sequence that ends with a token, and the tokens that only it had. */
  drop(last: Token): void {
    let token: Token | undefined = last;
    while (token && --token.holders === 0) {
      this.live--;
      token = token.parent;
    }
  }
}

/** All tokens of a sequence, by the last. */
export function tokensUpTo(last: Token): Token[] {
  const tokens = new Array<Token>(last.length);
  for (let t: Token | undefined = last; t; t = t.parent) {
    tokens[t.length - 1] = t;
  }
  return tokens;
}
