import type { LaunchGeometry } from "../../lib/driver.ts";
import type { KernelMemory } from "./mmu.ts";

/** A kernel of the model device. */
export interface ModelKernel {
  /** Runs a whole launch. */
  run(args: DataView, memory: KernelMemory, geometry: LaunchGeometry): void;
  /** Nanoseconds of simulated device time that a launch takes; 10 000 by default. */
  durationNs?(args: DataView): number;
}

/** A launch occupies its stream for a scheduler step per this much device time. */
export const stepNs = 10_000;

/** An image that the model device loads; its kernels are the registered ones. */
export const modelImage: Uint8Array = new TextEncoder().encode(
  JSON.stringify({ image: "model" }),
);

const wordMask = 2n ** 64n - 1n;

/** The word that `mb_pattern_fill` writes at an index, as in `kernels/pattern.c`. */
export function patternWord(seed: bigint, index: bigint): bigint {
  let x = ((seed + index) * 0x9e3779b97f4a7c15n) & wordMask;
  x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & wordMask;
  x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & wordMask;
  return x ^ (x >> 31n);
}

function patternWords(count: number, seed: bigint): BigUint64Array {
  return BigUint64Array.from(
    { length: count },
    (_, index) => patternWord(seed, BigInt(index)),
  );
}

/** Fills words: address, count, seed, 8 bytes each. */
const patternFill: ModelKernel = {
  run(args, memory) {
    const words = patternWords(
      Number(args.getBigUint64(8, true)),
      args.getBigUint64(16, true),
    );
    memory.write(
      Number(args.getBigUint64(0, true)),
      new Uint8Array(words.buffer),
    );
  },
};

/** Compares words: address, count, seed, address of {mismatches, first bad index}. */
const patternVerify: ModelKernel = {
  run(args, memory) {
    const count = Number(args.getBigUint64(8, true));
    const expected = patternWords(count, args.getBigUint64(16, true));
    const bytes = memory.read(Number(args.getBigUint64(0, true)), count * 8);
    const found = new BigUint64Array(bytes.buffer);
    const resultAddress = Number(args.getBigUint64(24, true));
    const result = new BigUint64Array(memory.read(resultAddress, 16).buffer);
    found.forEach((word, index) => {
      if (word === expected[index]) return;
      result[0]!++;
      if (BigInt(index) < result[1]!) result[1] = BigInt(index);
    });
    // Hardware doesn't touch the result of a range without mismatches.
    if (found.some((word, index) => word !== expected[index])) {
      memory.write(resultAddress, new Uint8Array(result.buffer));
    }
  },
};

/** Takes as many nanoseconds as its one argument says. */
const spin: ModelKernel = {
  run() {},
  durationNs: (args) => Number(args.getBigUint64(0, true)),
};

/** What every model device has registered: the counterparts of `kernels/*.c`. */
export const standardKernels: Readonly<Record<string, ModelKernel>> = {
  mb_pattern_fill: patternFill,
  mb_pattern_verify: patternVerify,
  mb_spin: spin,
  mb_empty: { run() {} },
};
