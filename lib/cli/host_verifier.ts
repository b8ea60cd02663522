import type { Block } from "../block.ts";
import type { Mismatch, Verifier } from "./verifier.ts";

const CHUNK_BYTES = 4 * 1024 ** 2;

/** Fills and checks blocks through copies: slow, but needs no kernels. */
export class HostVerifier implements Verifier {
  /** The host does the work. */
  readonly mode = "host";
  readonly #mismatches: Mismatch[] = [];
  readonly #expected = new Uint32Array(CHUNK_BYTES / 4);
  readonly #found = new Uint32Array(CHUNK_BYTES / 4);

  /** Fills a block, or what of it lies behind `from`, a multiple of 4. */
  fill(block: Block, index: number, from = 0): void {
    this.#eachChunk(block, index, from, (expected, offset) => {
      block.write(expected, { offset });
    });
  }

  /** Checks a block, or what of it lies behind `from`. */
  check(block: Block, index: number, from = 0): void {
    let words = 0;
    let firstByte = 0;
    this.#eachChunk(block, index, from, (expected, offset) => {
      const bytes = expected.byteLength;
      // The last word may be cut: its other bytes must not come from an earlier chunk.
      this.#found[Math.ceil(bytes / 4) - 1] = 0;
      block.read(new Uint8Array(this.#found.buffer, 0, bytes), { offset });
      for (let i = 0; i < Math.ceil(bytes / 4); i++) {
        const cutBits = Math.max(0, 8 * (4 * i + 4 - bytes));
        const wanted = (this.#expected[i]! << cutBits) >>> cutBits;
        if (this.#found[i] === wanted) continue;
        if (words++ === 0) firstByte = offset + 4 * i;
      }
    });
    if (words > 0) this.#mismatches.push({ index, words, firstByte });
  }

  /** Returns the blocks that failed. */
  finish(): Mismatch[] {
    return this.#mismatches.splice(0);
  }

  /** Nothing to give back. */
  [Symbol.dispose](): void {}

  #eachChunk(
    block: Block,
    index: number,
    from: number,
    visit: (expected: Uint8Array, offset: number) => void,
  ): void {
    const { size } = block;
    const seed = mix(index + 1);
    for (let offset = from; offset < size; offset += CHUNK_BYTES) {
      const bytes = Math.min(CHUNK_BYTES, size - offset);
      const first = offset / 4;
      const words = Math.ceil(bytes / 4);
      for (let i = 0; i < words; i++) {
        this.#expected[i] = mix(seed + first + i);
      }
      visit(new Uint8Array(this.#expected.buffer, 0, bytes), offset);
    }
  }
}

/** A bijection of 32-bit words that leaves no pattern (the finalizer of MurmurHash3). */
function mix(word: number): number {
  let x = word | 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}
