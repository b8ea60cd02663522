import type { ReplayReport, ReplayRun } from "../report_data.ts";
import { amountText, percentText, sizeText } from "./numbers.ts";

/** The outcome in one or two sentences: what the workload needs, what allocators held for it, and what MoonBright could not serve. */
export function verdict(report: ReplayReport): string[] {
  const { workload } = report;
  const need = `This workload needs ${
    sizeText(workload.livePeak)
  } at its live peak`;
  const run = bestRun(report.runs);
  const held = [
    ...(run?.mappedPeak === undefined ? [] : [
      `MoonBright held ${sizeText(run.mappedPeak)}${
        share(run.mappedPeak, workload.livePeak)
      }`,
    ]),
    ...(workload.reservedPeak === undefined ? [] : [
      `the recorded allocator ${run?.mappedPeak === undefined ? "held " : ""}${
        sizeText(workload.reservedPeak)
      }${share(workload.reservedPeak, workload.livePeak)}`,
    ]),
  ];
  const sentence = held.length === 0
    ? `${need}.`
    : `${need}; ${held.join(", ")}.`;
  return run === undefined || run.completed ? [sentence] : [
    sentence,
    `MoonBright could not serve ${amountText(run.unservedCount, "request")}${
      run.budget === undefined ? "" : ` within ${sizeText(run.budget)}`
    }.`,
  ];
}

/** MoonBright's run that held least; one that served everything goes before those that did not. */
function bestRun(runs: readonly ReplayRun[]): ReplayRun | undefined {
  const held = (run: ReplayRun) => run.mappedPeak ?? Infinity;
  return runs.filter(({ allocator }) => allocator === "moonbright").sort((
    a,
    b,
  ) => Number(b.completed) - Number(a.completed) || held(a) - held(b))[0];
}

function share(part: number, whole: number): string {
  return whole === 0 ? "" : ` (${percentText(part, whole)})`;
}
