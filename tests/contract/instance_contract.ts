import {
  Bench,
  type InstanceBackend,
  type InstanceCase,
} from "./instance_harness.ts";
import { graphCases } from "./instance_graph_cases.ts";
import { lifeCases } from "./instance_life_cases.ts";
import { lifetimeCases } from "./instance_lifetime_cases.ts";
import { pressureCases } from "./instance_pressure_cases.ts";
import { recyclingCases } from "./instance_recycling_cases.ts";
import { resizeCases } from "./instance_resize_cases.ts";
import { seamCases } from "./instance_seam_cases.ts";
import { streamOrderCases } from "./instance_stream_cases.ts";

/** Cases that are about what only mapping memory makes possible. */
function ofMapping(cases: readonly InstanceCase[]): InstanceCase[] {
  return cases.map((one) => ({
    ...one,
    skipOn: (backend) => backend.plain || one.skipOn?.(backend) || false,
  }));
}

const cases = [
  ...lifetimeCases,
  ...lifeCases,
  ...ofMapping(seamCases),
  ...ofMapping(resizeCases),
  ...streamOrderCases,
  ...pressureCases,
  ...recyclingCases,
  ...graphCases,
];

/**
 * Registers the tests of everything that an instance must hold to over any driver.
 *
 * @param name Shown before each case.
 */
export function instanceContract(name: string, backend: InstanceBackend): void {
  for (const one of cases) {
    const skip = backend.skip ??
      (one.skipOn?.(backend) ? "means nothing here" : undefined);
    Deno.test({
      name: `${name}: ${one.name}${skip ? ` (skipped: ${skip})` : ""}`,
      ignore: skip !== undefined,
      async fn() {
        using bench = new Bench(backend);
        await one.check(bench);
        bench.finish();
      },
    });
  }
}
