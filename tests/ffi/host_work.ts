/**
 * Run as a script by the tests, with few permissions: does one of everything on the
 * host device. Ends with an error if anything but the expected comes back.
 *
 * @module
 */

import { openDriver } from "../../ffi/devices.ts";
import { kernelImage } from "../../ffi/kernels.ts";
import { argumentWords, mapNew, readBack } from "../contract/harness.ts";

/** The first word that `mb_pattern_fill` writes with the seed 1. */
const SPLITMIX64_OF_1 = 0xe220a8397b1dcdafn;

function main(): void {
  const driver = openDriver({ device: "host" });
  const { granularity } = driver.info;
  const { address } = mapNew(driver, [granularity, granularity]);
  driver.fill(address, 0x5a, 1, 2 * granularity, 0);
  for (const byte of readBack(driver, address, 2 * granularity)) {
    if (byte !== 0x5a) throw new Error(`Cannot trust the fill: found ${byte}`);
  }
  const module = driver.loadModule(kernelImage("pattern", driver.info));
  const fill = driver.getFunction(module, "mb_pattern_fill");
  const args = argumentWords(address, granularity / 8, 1);
  driver.launch(fill, { grid: [4], block: [64] }, args, 0);
  const [first] = new BigUint64Array(readBack(driver, address, 8).buffer);
  if (first !== SPLITMIX64_OF_1) {
    throw new Error(`Cannot trust the kernel: it left ${first}`);
  }
  driver.close();
  console.log("done");
}

if (import.meta.main) main();
