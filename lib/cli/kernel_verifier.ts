import type { Block } from "../block.ts";
import type { DeviceInfo, LaunchGeometry } from "../driver.ts";
import type { Kernel, LaunchOptions, Module } from "../kernel.ts";
import type { MoonBright } from "../moonbright.ts";
import { HostVerifier } from "./host_verifier.ts";
import { ResultArea } from "./result_area.ts";
import type { Mismatch, Verifier } from "./verifier.ts";

/** No block has as many words, so no two words of a run are expected to be equal. */
const SEEDS_PER_BLOCK = 2n ** 38n;

const NO_MISMATCH = new BigUint64Array([0n, 2n ** 64n - 1n]);

/** Fills and checks blocks with the kernels of `kernels/pattern.c`. */
export class KernelVerifier implements Verifier {
  /** The device does the work. */
  readonly mode = "kernel";
  readonly #module: Module;
  readonly #fill: Kernel;
  readonly #verify: Kernel;
  readonly #results: ResultArea;
  readonly #tails = new HostVerifier();
  readonly #checked: { block: Block; index: number }[] = [];
  readonly #mb: MoonBright;

  /**
   * Loads the kernels.
   *
   * @throws {MoonBrightError} if the image does not suit the device, or no memory is left
   */
  constructor(mb: MoonBright, image: Uint8Array) {
    this.#module = mb.loadModule(image);
    try {
      this.#fill = this.#module.kernel("mb_pattern_fill");
      this.#verify = this.#module.kernel("mb_pattern_verify");
      this.#results = new ResultArea(mb.driver);
    } catch (error) {
      this.#module.close();
      throw error;
    }
    this.#mb = mb;
    this.#clear();
  }

  /** Launches the kernel that fills a block, on the block's stream. */
  fill(block: Block, index: number): void {
    const words = wholeWords(block);
    if (words > 0) {
      this.#fill.launch(this.#launch(block), [
        block,
        { u64: words },
        { u64: seedOf(index) },
      ]);
    }
    this.#tails.fill(block, index, words * 8);
  }

  /** Launches the kernel that checks a block, on the block's stream. All checks share one result. */
  check(block: Block, index: number): void {
    const words = wholeWords(block);
    if (words > 0) {
      this.#checked.push({ block, index });
      this.#launchCheck(block, index);
    }
    this.#tails.check(block, index, words * 8);
  }

  /** Reads the result; if anything differs, checks again block by block to find it. */
  finish(): Mismatch[] {
    const mismatches = this.#tails.finish();
    const all = this.#read();
    if (all.words > 0) {
      for (const { block, index } of this.#checked) {
        this.#clear();
        this.#launchCheck(block, index);
        const { words, first } = this.#read();
        if (words > 0) mismatches.push({ index, words, firstByte: first * 8 });
      }
      // Gone when looked at again, and still no proof that the memory is sound.
      if (mismatches.length === 0) {
        mismatches.push({
          index: -1,
          words: all.words,
          firstByte: all.first * 8,
        });
      }
    }
    this.#checked.length = 0;
    this.#clear();
    return mismatches;
  }

  /** Gives the results' memory back and unloads the kernels. Never throws. */
  [Symbol.dispose](): void {
    try {
      this.#results[Symbol.dispose]();
      this.#module.close();
    } catch {
      // Only a lost device refuses; closing the instance then drops the rest, and the
      // error that lost it must not be hidden by this one.
    }
  }

  #launch(block: Block): LaunchOptions {
    const geometry = geometryFor(this.#mb.device, wholeWords(block));
    return { ...geometry, stream: block.stream };
  }

  #launchCheck(block: Block, index: number): void {
    const words = wholeWords(block);
    this.#verify.launch(this.#launch(block), [
      block,
      { u64: words },
      { u64: seedOf(index) },
      { u64: this.#results.address },
    ]);
  }

  #clear(): void {
    this.#results.write(new Uint8Array(NO_MISMATCH.buffer));
    // The results are in the default stream's order, checks in their blocks'.
    this.#mb.driver.synchronize();
  }

  #read(): { words: number; first: number } {
    const result = new BigUint64Array(2);
    this.#mb.driver.synchronize();
    this.#results.read(new Uint8Array(result.buffer));
    return { words: Number(result[0]), first: Number(result[1]) };
  }
}

function wholeWords(block: Block): number {
  return Math.floor(block.size / 8);
}

function seedOf(index: number): bigint {
  return BigInt(index + 1) * SEEDS_PER_BLOCK;
}

/** Enough threads to fill the device, no more than there are words to share. */
function geometryFor(device: DeviceInfo, words: number): LaunchGeometry {
  // On the host, threads run one after another: more of them gain nothing.
  if (device.backend === "host") return { grid: [1], block: [1] };
  const threads = 256;
  const blocks = Math.ceil(words / (2 * threads));
  return {
    grid: [Math.min(blocks, 16 * device.processors)],
    block: [threads],
  };
}
