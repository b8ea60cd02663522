/**
 * The strings of a file that mean something to its reader; all others are dropped unread.
 *
 * @module
 */

/** A string that means something. There is one object of each. */
export class Word {
  /** The string. */
  readonly text: string;
  /** Its place in the vocabulary. */
  readonly index: number;

  /** Makes a word; only a vocabulary does. */
  constructor(text: string, index: number) {
    this.text = text;
    this.index = index;
  }
}

/** A fixed set of words, which are found by their bytes. */
export class Vocabulary {
  /** The words, in the order in which they were given. */
  readonly words: readonly Word[];
  /** Bytes of the longest word. */
  readonly longest: number;
  readonly #byLength: { bytes: Uint8Array; word: Word }[][];

  /** Makes a vocabulary of different strings. */
  constructor(texts: readonly string[]) {
    this.words = texts.map((text, index) => new Word(text, index));
    const encoder = new TextEncoder();
    const entries = this.words.map((word) => ({
      bytes: encoder.encode(word.text),
      word,
    }));
    this.longest = Math.max(...entries.map(({ bytes }) => bytes.length));
    this.#byLength = Array.from(
      { length: this.longest + 1 },
      (_, length) => entries.filter(({ bytes }) => bytes.length === length),
    );
  }

  /** The word whose UTF-8 bytes are `bytes[at]` to `bytes[at + length - 1]`, if it is one. */
  find(bytes: Uint8Array, at: number, length: number): Word | undefined {
    if (length > this.longest) return undefined;
    next: for (const candidate of this.#byLength[length]!) {
      for (let i = 0; i < length; i++) {
        if (candidate.bytes[i] !== bytes[at + i]) continue next;
      }
      return candidate.word;
    }
    return undefined;
  }
}
