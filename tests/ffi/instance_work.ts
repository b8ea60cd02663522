/**
 * Run as a script by the tests, with few permissions: real work of a whole instance on
 * the host device. Ends with an error if anything but the expected comes back.
 *
 * @module
 */

import { kernelImage, MoonBright, OutOfMemoryError } from "../../mod.ts";

/** The first words that `mb_pattern_fill` writes with the seed 1. */
const FIRST_WORD = 0xe220a8397b1dcdafn;

function main(): void {
  using mb = MoonBright.open({ device: "host" });
  const { granularity } = mb.device;
  mb.budget = 8 * granularity;
  using stream = mb.createStream();
  using module = mb.loadModule(kernelImage("pattern", mb.device));
  const fill = module.kernel("mb_pattern_fill");
  using kept = mb.alloc(granularity, { name: "kept", stream });
  fill.launch({ grid: [4], block: [64], stream }, [
    kept,
    { u64: granularity / 8 },
    { u64: 1 },
  ]);
  using growable = mb.alloc(1, { maxSize: 4 * granularity });
  growable.resize(4 * granularity);
  growable.fill(0x5a);
  mb.alloc(2 * granularity).free();
  if (growable.read().some((byte) => byte !== 0x5a)) {
    throw new Error("Cannot trust the fill");
  }
  const [first] = new BigUint64Array(kept.read(8).buffer);
  if (first !== FIRST_WORD) {
    throw new Error(`Cannot trust the kernel: it left ${first}`);
  }
  try {
    mb.alloc(mb.budget);
    throw new Error("Cannot trust the budget");
  } catch (error) {
    if (!(error instanceof OutOfMemoryError)) throw error;
  }
  mb.trim();
  console.log(`${mb.stats().mapped / granularity} granules mapped`);
}

if (import.meta.main) main();
