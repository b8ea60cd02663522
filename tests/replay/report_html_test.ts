import { assert, assertEquals, assertMatch, assertNotMatch } from "@std/assert";
import fc from "fast-check";
import { htmlReport } from "../../lib/replay/report/html_report.ts";
import { scriptText } from "../../lib/replay/report/markup.ts";
import { formatSize } from "../../lib/sizes.ts";
import { checkMarkup, withoutScripts } from "./markup_check.ts";
import { emptyReport, sampleReport } from "./sample_report.ts";

/** The content of the script elements that run. */
function scripts(html: string): string[] {
  return [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, script]) =>
    script!
  );
}

function jsonOf(html: string): string {
  return /id="report-data">([\s\S]*?)<\/script>/.exec(html)![1]!;
}

Deno.test("the page is well-formed and says all figures", async () => {
  const report = sampleReport();
  const html = await htmlReport(report);
  checkMarkup(html, "html");
  const text = withoutScripts(html);
  const { workload, runs } = report;
  for (
    const figure of [
      workload.name,
      "PyTorch memory snapshot",
      "20,000",
      formatSize(workload.bytesAllocated),
      formatSize(workload.livePeak),
      formatSize(workload.reservedPeak!),
      formatSize(runs[0]!.mappedPeak!),
      "MoonBright, stitch",
      "Recorded segments",
      "Driver, plain",
      "cuda:0, at most 12 GiB",
      "9.40 s",
      "412 ms",
      ">143<",
      "143 requests, the first 3",
      "the driver has no memory left",
      "setAccess",
    ]
  ) assert(text.includes(figure), figure);
  for (
    const id of [
      "chart-memory",
      "chart-latency",
      "chart-ways",
      "chart-calls",
      "chart-fragmentation",
      "map-canvas",
      "map-slider",
    ]
  ) assertEquals(text.split(`id="${id}"`).length, 2, id);
});

Deno.test("the page can be read without seeing it", async () => {
  const text = withoutScripts(await htmlReport(sampleReport()));
  assertMatch(text, /<html lang="en"/);
  for (const landmark of ["header", "main", "footer"]) {
    assertEquals(text.match(new RegExp(`<${landmark}[ >]`, "g"))?.length, 1);
  }
  assertEquals(text.match(/<h1>/g)!.length, 1);
  for (const [heading] of text.matchAll(/<th\b[^>]*>/g)) {
    assertMatch(heading, /scope="(col|row|colgroup|rowgroup)"/);
  }
  for (const [, id] of text.matchAll(/aria-labelledby="([^"]+)"/g)) {
    assert(text.includes(`id="${id}"`), id);
  }
  assertMatch(
    text,
    /<canvas id="map-canvas" role="img" tabindex="0" aria-label="/,
  );
});

Deno.test("the page loads nothing and runs only its own scripts", async () => {
  const html = await htmlReport(sampleReport());
  const text = withoutScripts(html);
  assertNotMatch(text, /\bsrc=/);
  assertNotMatch(text, /href="(?!#)/);
  assertNotMatch(text, /https?:/);
  assertNotMatch(/<style>([\s\S]*?)<\/style>/.exec(html)![1]!, /url\(|@import/);
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(text)![1]!;
  assertMatch(policy, /^default-src 'none'; /);
  const running = scripts(html);
  assertEquals(running.length, 2);
  const hashes = await Promise.all(running.map(async (script) => {
    const hash = await crypto.subtle.digest(
      "SHA-256",
      new TextEncoder().encode(script),
    );
    return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(hash)))}'`;
  }));
  assert(policy.includes(`script-src ${hashes.join(" ")};`), policy);
});

Deno.test("the chart library keeps its licence", async () => {
  const [library] = scripts(await htmlReport(emptyReport()));
  assertMatch(
    library!.slice(0, 1000),
    /Licensed to the Apache Software Foundation/,
  );
  assertMatch(library!.slice(0, 1000), /Apache License, Version 2\.0/);
});

Deno.test("missing values are dashes, never words of the language", async () => {
  const bare = sampleReport({ blocks: 300 });
  bare.workload.reservedPeak = undefined;
  for (const run of bare.runs) {
    run.mappedPeak = undefined;
    run.map = undefined;
    run.timeline.reserved = [];
    run.timeline.largestFree = [];
  }
  const none = emptyReport();
  none.runs = [];
  for (const report of [sampleReport(), bare, emptyReport(), none]) {
    const html = await htmlReport(report);
    checkMarkup(html, "html");
    for (const text of [withoutScripts(html), jsonOf(html)]) {
      assertNotMatch(text, /\bNaN\b|undefined|Infinity|\[object/);
    }
  }
  const text = withoutScripts(await htmlReport(bare));
  assertNotMatch(text, /map-canvas/);
  assertMatch(text, /<td class="number">–<\/td>/);
});

Deno.test("a map comes with every run that has one", async () => {
  const report = sampleReport({ blocks: 300 });
  report.runs[1]!.map = report.runs[0]!.map;
  const html = await htmlReport(report);
  for (
    const id of [
      "map-0-blocks",
      "map-0-extents",
      "map-1-blocks",
      "map-1-extents",
    ]
  ) {
    assertMatch(
      html,
      new RegExp(
        `<script type="text/plain" id="${id}">[A-Za-z0-9+/]+=*</script>`,
      ),
    );
  }
  assertMatch(
    html,
    /<select id="map-run"><option value="0">MoonBright, stitch<\/option><option value="1">Recorded segments</,
  );
});

Deno.test("the first hundred requests not served are listed", async () => {
  const report = sampleReport({ blocks: 300 });
  for (const run of report.runs) {
    run.unservedCount = 1234;
    run.unserved = Array.from({ length: 100 }, (_, i) => ({
      step: 7000 + i,
      bytes: (i + 1) * 2 ** 20,
      reason: `reason ${i} of ${run.allocator}`,
    }));
  }
  const html = withoutScripts(await htmlReport(report));
  checkMarkup(html, "html");
  const lists = html.split("<details").slice(1).filter((list) =>
    list.includes("1,234 requests, the first 100")
  );
  assertEquals(lists.length, 3);
  lists.forEach((list, index) => {
    const { allocator } = report.runs[index]!;
    for (let i = 0; i < 100; i++) {
      const row = `>${
        (7000 + i).toLocaleString("en-US")
      }</th><td class="number">${
        i + 1
      } MiB</td><td>reason ${i} of ${allocator}</td>`;
      assert(list.includes(row), row);
    }
  });
  // Only the first is open: three hundred rows would hide what follows.
  assertEquals(lists.map((list) => list.startsWith(" open")), [
    true,
    false,
    false,
  ]);
});

Deno.test("text from files never becomes markup", async () => {
  const evil = `</script><img src=x onerror="alert(1)">&'<!--\0\ud800`;
  const report = sampleReport({ blocks: 300, name: evil, reason: evil });
  report.runs[0]!.policy = evil;
  report.runs[1]!.device = evil;
  report.runs[0]!.ways[evil] = { count: 1, ns: 1 };
  report.runs[0]!.calls[evil] = { calls: 1, items: 1, bytes: 1, ns: 1 };
  const html = await htmlReport(report);
  checkMarkup(html, "html");
  assertNotMatch(withoutScripts(html), /<img|<!--/);
  assertNotMatch(jsonOf(html), /</);
  assertEquals(scripts(html).length, 2);
  assert(
    JSON.parse(jsonOf(html)).charts.light.memory.series[1].name.includes(
      "<img",
    ),
  );
});

Deno.test("scripts keep their meaning within a page", () => {
  const source =
    "const s = '</script><!-- <SCRIPT';\r\nreturn s + /<script/.source;";
  const text = scriptText(source);
  assertNotMatch(text, /<\/?script|<!--|\r/i);
  assertEquals(
    new Function(text)(),
    "</script><!-- <SCRIPT\\x3cscript",
  );
});

Deno.test("any name makes a well-formed page", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary" }), async (name) => {
      const report = emptyReport();
      report.workload.name = name;
      checkMarkup(await htmlReport(report), "html");
    }),
    { numRuns: 20 },
  );
});
