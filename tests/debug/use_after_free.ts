/**
 * Run as a script by the tests, in a process that may die of it: frees a block, asks what
 * its address was, and then has a kernel write through it all the same.
 *
 *     use_after_free.ts DEVICE [VENDOR_LIBRARY [KERNELS]]
 *
 * Prints one line of JSON before the kernel runs, another if the process survives it.
 *
 * @module
 */

import { kernelImage, MoonBright, MoonBrightError } from "../../mod.ts";
import { argumentWords } from "../contract/harness.ts";

/** What the script prints before the kernel runs. */
export interface Freed {
  /** Address that the block had. */
  address: number;
  /** What `explain` says of a byte within it. */
  state: string;
  /** The same in words. */
  text: string;
}

/** What the script prints if it survives the kernel. */
export interface Survived {
  /** Code of the error that the device gave, `null` if it gave none. */
  code: string | null;
  /** What `explain` says of the address afterwards. */
  state: string;
}

function useAfterFree(device: string, library?: string, kernels?: string) {
  const mb = MoonBright.open({
    device,
    ...(library ? { vendorLibrary: library } : {}),
    debug: "quarantine",
    stacks: true,
  });
  const image = kernels ? Deno.readFileSync(kernels) : undefined;
  const fill = mb.loadModule(image ?? kernelImage("pattern", mb.device))
    .kernel("mb_pattern_fill");
  const words = 1024;
  const block = mb.alloc(8 * words, { name: "scores" });
  const { address } = block;
  const geometry = { grid: [1], block: [32] } as const;
  fill.launch(geometry, [block, { u64: words }, { u64: 1 }]);
  block.free();
  mb.synchronize();
  const { state, text } = mb.explain(address + 8);
  const freed: Freed = { address, state, text };
  console.log(JSON.stringify(freed));
  let code: string | null = null;
  try {
    // Past MoonBright's own check of arguments, as another library would launch it.
    const stale = argumentWords(address, words, 2);
    mb.driver.launch(fill.driverId, geometry, stale, 0);
    mb.driver.synchronize();
  } catch (error) {
    if (!(error instanceof MoonBrightError)) throw error;
    code = error.code;
  }
  const survived: Survived = { code, state: mb.explain(address).state };
  console.log(JSON.stringify(survived));
  mb.close();
}

if (import.meta.main) {
  const [device = "host", library, kernels] = Deno.args;
  useAfterFree(device, library, kernels);
}
