import type { Driver } from "../../lib/driver.ts";
import { dataCases } from "./data_cases.ts";
import { graphCases } from "./graph_cases.ts";
import type { ContractCase, ContractOptions } from "./harness.ts";
import { historyCases } from "./history_cases.ts";
import { kernelCases } from "./kernel_cases.ts";
import { lifecycleCases } from "./lifecycle_cases.ts";
import { memoryCases } from "./memory_cases.ts";
import { pinnedCases } from "./pinned_cases.ts";
import { refusalCases } from "./refusal_cases.ts";
import { streamCases } from "./stream_cases.ts";

const cases: readonly ContractCase[] = [
  ...memoryCases,
  ...dataCases,
  ...streamCases,
  ...kernelCases,
  ...pinnedCases,
  ...graphCases,
  ...historyCases,
  ...refusalCases,
  ...lifecycleCases,
];

/**
 * Registers the tests of everything that any driver must hold to.
 *
 * @param name Shown before each case.
 * @param makeDriver Opens a new driver; each case gets one of its own.
 */
export function driverContract(
  name: string,
  makeDriver: () => Driver,
  options: ContractOptions = {},
): void {
  for (const one of cases) {
    const skip = options.skip ??
      (one.needsKernels && !options.kernelImage ? "no kernels" : undefined);
    Deno.test({
      name: `${name}: ${one.name}${skip ? ` (skipped: ${skip})` : ""}`,
      ignore: skip !== undefined,
      async fn() {
        const driver = makeDriver();
        try {
          await one.check(driver, options, makeDriver);
        } finally {
          driver.close();
        }
      },
    });
  }
}
