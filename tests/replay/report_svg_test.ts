import {
  assert,
  assertMatch,
  assertNotEquals,
  assertNotMatch,
} from "@std/assert";
import { svgReport } from "../../lib/replay/report/svg_report.ts";
import { formatSize } from "../../lib/sizes.ts";
import { checkMarkup } from "./markup_check.ts";
import { emptyReport, oneStepReport, sampleReport } from "./sample_report.ts";

Deno.test("the picture is well-formed and says the key figures", async () => {
  const report = sampleReport();
  const svg = await svgReport(report);
  checkMarkup(svg, "xml");
  for (
    const text of [
      "Memory replay of gpt2-xl-train.pickle",
      `needs ${formatSize(report.workload.livePeak)} at its live peak`,
      `MoonBright held ${formatSize(report.runs[0]!.mappedPeak!)} (`,
      "MoonBright, stitch: mapped, peak",
      "Recorded allocator: reserved, peak",
      "Driver, plain, median",
      "2 GiB",
      "100 µs",
    ]
  ) assert(svg.includes(text), text);
});

Deno.test("the picture needs nothing else and has a background of its own", async () => {
  const light = await svgReport(sampleReport());
  const dark = await svgReport(sampleReport(), { theme: "dark" });
  assertNotMatch(light, /<script|<image|href=|@import|url\((?!#)/);
  assertMatch(light, /<rect width="100%" height="100%" rx="8" fill="#ffffff"/);
  assertMatch(dark, /<rect width="100%" height="100%" rx="8" fill="#182028"/);
  assertNotEquals(light, dark);
});

Deno.test("pictures of odd replays are well-formed too", async () => {
  const evil = `</svg><script>"&'\0 a name without end ${"x".repeat(200)}`;
  const named = sampleReport({ blocks: 300, name: evil });
  named.runs[0]!.policy = evil;
  named.runs[0]!.completed = false;
  named.runs[0]!.unservedCount = 1;
  const none = emptyReport();
  none.runs = [];
  for (const report of [named, emptyReport(), oneStepReport(), none]) {
    const svg = await svgReport(report);
    checkMarkup(svg, "xml");
    assertNotMatch(svg, /NaN|undefined|Infinity|<script/);
  }
  assertMatch(
    await svgReport(named),
    />MoonBright could not serve 1 request\.</,
  );
});
