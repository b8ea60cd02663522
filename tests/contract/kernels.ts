import type { Driver } from "../../lib/driver.ts";
import { argumentWords, type ContractOptions, readBack } from "./harness.ts";

const geometry = { grid: [8], block: [128] } as const;
const noBadWord = 2n ** 64n - 1n;

/** The kernels of `kernels/pattern.c` and `kernels/busy.c`. */
export class Kernels {
  readonly #driver: Driver;
  readonly #fill: number;
  readonly #verify: number;
  readonly #spin: number;

  private constructor(driver: Driver, pattern: number, busy: number) {
    this.#driver = driver;
    this.#fill = driver.getFunction(pattern, "mb_pattern_fill");
    this.#verify = driver.getFunction(pattern, "mb_pattern_verify");
    this.#spin = driver.getFunction(busy, "mb_spin");
  }

  /** Loads them. */
  static async load(driver: Driver, options: ContractOptions) {
    const pattern = await options.kernelImage!("pattern", driver);
    const busy = await options.kernelImage!("busy", driver);
    return new Kernels(
      driver,
      driver.loadModule(pattern),
      driver.loadModule(busy),
    );
  }

  /** Writes words that depend on their index and the seed. */
  fill(address: number, words: number, seed: number, stream: number) {
    const args = argumentWords(address, words, seed);
    this.#driver.launch(this.#fill, geometry, args, stream);
    args.fill(0xff);
  }

  /** Compares such words. */
  verify(
    address: number,
    words: number,
    seed: number,
    result: number,
    stream: number,
  ) {
    const args = argumentWords(address, words, seed, result);
    this.#driver.launch(this.#verify, geometry, args, stream);
    args.fill(0xff);
  }

  /** Keeps a stream busy. */
  spin(durationMs: number, stream: number) {
    this.#driver.launch(
      this.#spin,
      { grid: [1], block: [1] },
      argumentWords(BigInt(Math.round(durationMs * 1e6))),
      stream,
    );
  }
}

/** Readies a result that a verify launch adds to. */
export function clearResult(driver: Driver, result: number, stream: number) {
  driver.copyIn(
    result,
    argumentWords(0n, noBadWord),
    stream,
  );
}

/** The result that verify launches added to. */
export function readResult(driver: Driver, result: number, stream: number) {
  const words = new BigUint64Array(readBack(driver, result, 16, stream).buffer);
  return { mismatches: words[0]!, firstBad: words[1]! };
}

/** The result where every word was right. */
export const clean = { mismatches: 0n, firstBad: noBadWord };
