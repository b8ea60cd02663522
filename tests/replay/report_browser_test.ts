import { assert, assertEquals, assertMatch } from "@std/assert";
import { htmlReport } from "../../lib/replay/report/html_report.ts";
import { svgReport } from "../../lib/replay/report/svg_report.ts";
import type { Placements } from "../../lib/replay/report_data.ts";
import { formatSize } from "../../lib/sizes.ts";
import { needChromium, type Page, withPage } from "./chromium.ts";
import {
  emptyReport,
  oneStepReport,
  sampleReport,
  seeded,
} from "./sample_report.ts";

const chromium = needChromium();

function browserTest(name: string, fn: () => Promise<void>): void {
  Deno.test({
    name: `${name}${chromium.reason}`,
    ignore: chromium.ignore,
    fn,
  });
}

async function assertNoErrors(page: Page): Promise<void> {
  assertEquals(await page.data("errors"), undefined);
  assertEquals(page.complaints, []);
}

async function moveSlider(page: Page, step: number): Promise<void> {
  await page.evaluate(`(() => {
    const slider = document.getElementById("map-slider");
    slider.value = "${step}";
    slider.dispatchEvent(new Event("input"));
  })()`);
  await page.until(`document.documentElement.dataset.mapStep === "${step}"`);
}

/** The rows of placements that are there at a step, found the plain way. */
function presentAt({ bytes, from, to }: Placements, step: number) {
  const there = [...bytes].filter((_, i) => from[i]! <= step && to[i]! > step);
  return {
    count: there.length.toLocaleString("en-US"),
    text: formatSize(there.reduce((sum, size) => sum + size, 0)),
    largest: there.sort((a, b) => b - a).slice(0, 10).map(formatSize),
  };
}

/** Checks what the page says of a step against what was packed into it. */
async function assertMapShows(
  page: Page,
  { blocks, extents }: { blocks: Placements; extents: Placements },
  step: number,
): Promise<void> {
  const live = presentAt(blocks, step);
  const mapped = presentAt(extents, step);
  assertMatch(
    await page.text("map-summary"),
    new RegExp(
      `^Step ${
        step.toLocaleString("en-US")
      }: ${live.text} live in ${live.count} blocks?, ${mapped.text} mapped in ${mapped.count} extents?\\.`,
    ),
  );
  assertEquals(
    await page.evaluate(
      `Array.from(document.querySelectorAll("#map-largest td:nth-child(2)"), (cell) => cell.textContent)`,
    ),
    live.largest,
  );
}

browserTest(
  "the page draws its charts and the map at the live peak",
  async () => {
    const report = sampleReport();
    const { map, livePeak, mappedPeak } = report.runs[0]!;
    await withPage(await htmlReport(report), async (page) => {
      await page.until("document.documentElement.dataset.mapStep");
      await assertNoErrors(page);
      assertEquals(await page.data("charts"), "5");
      assertEquals(await page.data("mapBlocks"), "20000");
      const summary = await page.text("map-summary");
      assert(summary.includes(`${formatSize(livePeak)} live`), summary);
      assertEquals(
        await page.evaluate(
          "Number(document.getElementById('map-slider').max)",
        ),
        map!.steps - 1,
      );
      const legend = await page.text("legend-memory");
      assert(
        legend.includes(`mapped, peak ${formatSize(mappedPeak!)}`),
        legend,
      );
      assertMatch(await page.text("chart-memory"), /2 GiB4 GiB/);
      // Something other than the background was painted.
      assert(
        await page.evaluate(`(() => {
        const { width, height } = document.getElementById("map-canvas");
        const { data } = document.getElementById("map-canvas").getContext("2d")
          .getImageData(0, 0, width, height);
        return new Set(new Uint32Array(data.buffer)).size > 20;
      })()`),
      );
    });
  },
);

browserTest("the map shows what was there at the step chosen", async () => {
  const report = sampleReport();
  const map = report.runs[0]!.map!;
  const last = map.steps - 1;
  const random = seeded(11);
  await withPage(await htmlReport(report), async (page) => {
    await page.until("document.documentElement.dataset.mapStep");
    const others = Array.from(
      { length: 10 },
      () => Math.floor(random() * map.steps),
    );
    for (const step of [0, last, ...others]) {
      await moveSlider(page, step);
      await assertMapShows(page, map, step);
    }
    await page.evaluate("document.getElementById('map-slider').focus()");
    await page.press("Home");
    await page.until("document.documentElement.dataset.mapStep === '0'");
    await assertNoErrors(page);
  });
});

browserTest("the map works with more than 100,000 blocks", async () => {
  const random = seeded(5);
  const count = 120_000;
  const steps = 2 * count;
  const from = Uint32Array.from({ length: count }, (_, i) => 2 * i);
  const map = {
    steps,
    blocks: {
      address: from.map(() => 512 * Math.floor(random() * 2 ** 23)),
      bytes: from.map(() => 512 * Math.ceil(random() * 9000)),
      from,
      // Half of them stay for long.
      to: from.map((step) =>
        Math.min(steps, step + 1 + Math.floor(random() * steps))
      ),
    },
    extents: {
      address: Float64Array.from({ length: 512 }, (_, i) => i * 2 ** 23),
      bytes: new Float64Array(512).fill(2 ** 23),
      from: new Uint32Array(512),
      to: new Uint32Array(512).fill(steps),
    },
  };
  const blocks = {
    ...map.blocks,
    address: Float64Array.from(map.blocks.address),
    bytes: Float64Array.from(map.blocks.bytes),
  };
  const report = sampleReport({ blocks: 300 });
  report.runs[0]!.map = { ...map, blocks };
  await withPage(await htmlReport(report), async (page) => {
    await page.until("document.documentElement.dataset.mapStep");
    assertEquals(await page.data("mapBlocks"), "120000");
    for (const step of [1, steps / 2, steps - 1]) {
      await moveSlider(page, step);
      await assertMapShows(page, { blocks, extents: map.extents }, step);
    }
    await page.point("map-canvas", 0.5, 0.02);
    assertMatch(await page.text("map-block"), /^\+0x[0-9a-f]+: /);
    await assertNoErrors(page);
  });
});

browserTest("the run chosen last is the one whose map shows", async () => {
  const report = sampleReport({ blocks: 300 });
  report.runs[1]!.map = sampleReport({ blocks: 500 }).runs[0]!.map!;
  await withPage(await htmlReport(report), async (page) => {
    // What the first choice unpacks comes after all of the second.
    await page.evaluate(`(() => {
      const read = Response.prototype.arrayBuffer;
      let asked = 0;
      window.late = 0;
      Response.prototype.arrayBuffer = async function () {
        const isLate = ++asked <= 2;
        const answer = await read.call(this);
        if (isLate) {
          while (document.documentElement.dataset.mapBlocks !== "500") {
            await new Promise((resolve) => setTimeout(resolve));
          }
          setTimeout(() => window.late++, 50);
        }
        return answer;
      };
      const choice = document.getElementById("map-run");
      for (const run of ["0", "1"]) {
        choice.value = run;
        choice.dispatchEvent(new Event("change"));
      }
    })()`);
    await page.until("window.late === 2");
    assertEquals(await page.data("mapBlocks"), "500");
    await assertNoErrors(page);
  });
});

browserTest("the map of another run can be chosen", async () => {
  const report = sampleReport({ blocks: 300 });
  const other = sampleReport({ blocks: 500 }).runs[0]!.map!;
  report.runs[1]!.map = other;
  await withPage(await htmlReport(report), async (page) => {
    assertEquals(await page.data("mapBlocks"), "300");
    await page.evaluate(`(() => {
      const choice = document.getElementById("map-run");
      choice.value = "1";
      choice.dispatchEvent(new Event("change"));
    })()`);
    await page.until("document.documentElement.dataset.mapBlocks === '500'");
    assertEquals(
      await page.evaluate("Number(document.getElementById('map-slider').max)"),
      other.steps - 1,
    );
    await assertNoErrors(page);
  });
});

browserTest("blocks can be looked at by mouse and by keyboard", async () => {
  await withPage(await htmlReport(sampleReport()), async (page) => {
    await page.until("document.documentElement.dataset.mapStep");
    const described =
      /^\+0x[0-9a-f]+: .*B \([\d,]+ bytes\), live from step [\d,]+ (until step [\d,]+|to the end)$/;
    await page.point("map-canvas", 0.5, 0.02);
    assertMatch(await page.text("map-block"), described);
    await page.evaluate("document.getElementById('map-canvas').focus()");
    await page.point("map-canvas", 0, 0.02);
    assertMatch(await page.text("map-block"), /^Point at a block/);
    await page.press("ArrowRight");
    assertMatch(await page.text("map-block"), /^\+0x0: /);
    await page.press("ArrowRight");
    assertMatch(await page.text("map-block"), described);
    await assertNoErrors(page);
  });
});

browserTest(
  "a click into the chart moves the map, over steps and over time",
  async () => {
    const report = sampleReport();
    const { timeline, map } = report.runs[0]!;
    await withPage(await htmlReport(report), async (page) => {
      await page.until("document.documentElement.dataset.mapStep");
      const stepAfterClick = async (across: number) => {
        const before = await page.data("mapStep");
        await page.point("chart-memory", across, 0.3, true);
        await page.until(
          `document.documentElement.dataset.mapStep !== "${before}"`,
        );
        return Number(await page.data("mapStep"));
      };
      const quarter = await stepAfterClick(0.3);
      assert(quarter > 0.15 * map!.steps && quarter < 0.35 * map!.steps);
      await page.evaluate(
        "document.querySelector('input[name=axis][value=timeUs]').click()",
      );
      assertMatch(await page.text("chart-memory"), /Recorded time/);
      assertMatch(await page.text("chart-fragmentation"), /Recorded time/);
      const later = await stepAfterClick(0.9);
      const last = timeline.step.at(-1)!;
      assert(later > 0.8 * last && later <= last, String(later));
      await assertNoErrors(page);
    });
  },
);

browserTest(
  "charts zoom by keyboard and keep it when the theme changes",
  async () => {
    await withPage(await htmlReport(sampleReport()), async (page) => {
      const end =
        "echarts.getInstanceByDom(document.getElementById('chart-memory')).getOption().dataZoom[0].end";
      await page.evaluate("document.getElementById('chart-memory').focus()");
      await page.press("+");
      assertEquals(await page.evaluate(end), 80);
      await page.evaluate("document.getElementById('theme-button').click()");
      assertEquals(await page.evaluate(end), 80);
      await page.press("0");
      assertEquals(await page.evaluate(end), 100);
      await assertNoErrors(page);
    });
  },
);

browserTest(
  "the page follows the system's theme until told otherwise",
  async () => {
    await withPage(await htmlReport(sampleReport()), async (page) => {
      const paper = () =>
        page.evaluate("getComputedStyle(document.body).backgroundColor");
      assertEquals(await page.data("theme"), "dark");
      assertEquals(await paper(), "rgb(15, 20, 26)");
      await page.evaluate("document.getElementById('theme-button').click()");
      assertEquals(await page.data("theme"), "light");
      assertEquals(await paper(), "rgb(244, 246, 248)");
      // As it is without a script.
      await page.evaluate("delete document.documentElement.dataset.theme");
      assertEquals(await paper(), "rgb(15, 20, 26)");
      await assertNoErrors(page);
    }, { scheme: "dark" });
  },
);

browserTest("printed pages are light and as wide as paper", async () => {
  await withPage(await htmlReport(sampleReport()), async (page) => {
    const width = () =>
      page.evaluate(
        "Number(document.querySelector('#chart-memory svg').getAttribute('width'))",
      );
    const before = await width();
    await page.evaluate("dispatchEvent(new Event('beforeprint'))");
    assertEquals([await page.data("theme"), await width()], ["light", 680]);
    await page.evaluate("dispatchEvent(new Event('afterprint'))");
    assertEquals([await page.data("theme"), await width()], ["dark", before]);
    await assertNoErrors(page);
  }, { scheme: "dark" });
});

browserTest("legends hide and show lines and bars", async () => {
  await withPage(await htmlReport(sampleReport()), async (page) => {
    for (const chart of ["memory", "ways"]) {
      const pressed =
        `document.querySelector('#legend-${chart} button').ariaPressed`;
      const drawn = () =>
        page.evaluate(
          `document.querySelectorAll('#chart-${chart} svg path').length`,
        ) as Promise<number>;
      assertEquals(await page.evaluate(pressed), "true");
      const before = await drawn();
      await page.evaluate(
        `document.querySelector('#legend-${chart} button').click()`,
      );
      assertEquals(await page.evaluate(pressed), "false");
      await page.until(
        `document.querySelectorAll('#chart-${chart} svg path').length < ${before}`,
      );
      await page.evaluate("document.getElementById('theme-button').click()");
      assertEquals(await page.evaluate(pressed), "false");
    }
    await assertNoErrors(page);
  });
});

browserTest("names and reasons that look like markup do nothing", async () => {
  const evil =
    `</script><img src=x onerror="document.title='broken'"><script>document.title='broken'</script><!--`;
  const report = sampleReport({ blocks: 300, name: evil, reason: evil });
  report.runs[0]!.policy = evil;
  report.runs[0]!.ways = { [evil]: { count: 1, ns: 1 } };
  report.runs[0]!.calls[evil] = { calls: 1, items: 1, bytes: 1, ns: 1 };
  await withPage(await htmlReport(report), async (page) => {
    await page.until("document.documentElement.dataset.mapStep");
    for (const chart of ["memory", "latency", "ways", "calls"]) {
      await page.point(`chart-${chart}`, 0.5, 0.3);
      await page.until(
        `document.querySelector("#chart-${chart} > div:not(:has(svg[width]))")?.textContent`,
      );
    }
    await assertNoErrors(page);
    assertEquals(
      await page.evaluate("document.title"),
      `${evil} – MoonBright memory replay`,
    );
    assertEquals(await page.evaluate("document.images.length"), 0);
    assertEquals(
      await page.evaluate("document.querySelector('h1').textContent"),
      evil,
    );
  });
});

browserTest(
  "whatever gets into the page can run and load nothing",
  async () => {
    await withPage(await htmlReport(emptyReport()), async (page) => {
      await assertNoErrors(page);
      const title = await page.evaluate("document.title");
      const rename = "document.title = 'broken'";
      await page.evaluate(`(() => {
        const script = document.createElement("script");
        script.textContent = "${rename}";
        const button = document.createElement("button");
        button.setAttribute("onclick", "${rename}");
        document.body.append(script, button);
        button.click();
      })()`);
      assertEquals(
        await page.evaluate(`fetch("http://127.0.0.1:9/").catch(String)`),
        "TypeError: Failed to fetch",
      );
      assertEquals(await page.evaluate("document.title"), title);
      const blocked = page.complaints.join("\n");
      for (
        const what of ["inline script", "inline event handler", "Fetch API"]
      ) {
        assert(blocked.includes(what), blocked);
      }
    });
  },
);

browserTest("a report of nothing shows without an error", async () => {
  await withPage(await htmlReport(emptyReport()), async (page) => {
    await assertNoErrors(page);
    assertEquals(await page.data("ready"), "true");
    assertEquals(await page.data("charts"), "0");
  });
});

browserTest("a report of one step, and one without maps, show", async () => {
  await withPage(await htmlReport(oneStepReport()), async (page) => {
    await page.until("document.documentElement.dataset.mapStep === '0'");
    await assertNoErrors(page);
    assertEquals(await page.data("charts"), "5");
    assertMatch(await page.text("map-summary"), / live in 1 block, /);
  });
  const bare = sampleReport({ blocks: 300 });
  bare.runs[0]!.map = undefined;
  await withPage(await htmlReport(bare), async (page) => {
    await assertNoErrors(page);
    assertEquals(await page.data("ready"), "true");
    assertEquals(await page.data("charts"), "5");
  });
});

browserTest(
  "browsers read the picture as SVG, whatever the names",
  async () => {
    const report = sampleReport({ blocks: 300, name: `</svg>&"'\0<b>` });
    report.runs[0]!.policy = `]]><script>&amp;`;
    const svg = await svgReport(report);
    await withPage(await htmlReport(emptyReport()), async (page) => {
      assertEquals(
        await page.evaluate(`(() => {
        const parsed = new DOMParser().parseFromString(
          ${JSON.stringify(svg)}, "image/svg+xml",
        );
        return [
          parsed.documentElement.tagName,
          parsed.querySelectorAll("parsererror, script, b").length,
          parsed.title,
        ];
      })()`),
        ["svg", 0, `Memory replay of </svg>&"'\ufffd<b>`],
      );
    });
  },
);

browserTest("charts keep their size while the page has none", async () => {
  await withPage(await htmlReport(sampleReport()), async (page) => {
    const width = () =>
      page.evaluate(
        "document.querySelector('#chart-memory svg').getAttribute('width')",
      );
    const before = await width();
    // Browsers do this to take a picture of a whole page.
    await page.send("Emulation.setDeviceMetricsOverride", {
      width: 1,
      height: 1,
      deviceScaleFactor: 1,
      mobile: false,
    });
    await page.until(
      "document.querySelector('#chart-memory').clientWidth === 0",
    );
    assertEquals(await width(), before);
    await assertNoErrors(page);
  });
});

browserTest("nothing sticks out of a narrow window", async () => {
  await withPage(await htmlReport(sampleReport()), async (page) => {
    await page.send("Emulation.setDeviceMetricsOverride", {
      width: 600,
      height: 900,
      deviceScaleFactor: 1,
      mobile: false,
    });
    await page.until("document.documentElement.clientWidth <= 600");
    // Charts learn of it with the next frame.
    await page.until(
      "document.documentElement.scrollWidth <= document.documentElement.clientWidth",
    );
    await page.until(
      "document.querySelector('#chart-memory svg').clientWidth <= 600",
    );
    await assertNoErrors(page);
  });
});
