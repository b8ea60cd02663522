// Written by "deno task embed" from lib/replay/report/page/: change the files there, not this one.

/** Texts of files of `lib/replay/report/page/`, by name. */
export const PAGE = {
  "charts.js": `// The page's charts.

import { addFormatters } from "./formatters.js";
import { drawLegend } from "./legend.js";
import { lastAtOrBefore } from "./map_layout.js";
import { listenForZoomKeys } from "./zoom_keys.js";

/** The chart draws all its lines anew for one that moves: too slow for every step of a slider. */
const CURSOR_MS = 100;
/** Pixels that fit on A4 and Letter within usual margins. */
const PAPER_WIDTH = 680;

/** All charts of the page. */
export class Charts {
  /**
   * @param {any} echarts
   * @param {any} data the page's
   */
  constructor(echarts, data) {
    /** @type {any} */
    this.data = data;
    this.axis = "step";
    this.theme = "light";
    /** @type {number | undefined} */
    this.step = undefined;
    this.cursorDue = false;
    /** @type {Map<string, any>} */
    this.charts = new Map();
    for (const name of Object.keys(data.charts.light)) {
      const box = /** @type {HTMLElement} */ (
        document.getElementById(\`chart-\${name}\`)
      );
      const chart = echarts.init(box, null, { renderer: "svg" });
      this.charts.set(name, chart);
      // Of no width while a browser lays the page out for a picture of all of it.
      new ResizeObserver(() => box.clientWidth > 0 && chart.resize()).observe(
        box,
      );
      if (this.#overTime(name)) listenForZoomKeys(box, chart);
    }
  }

  /**
   * Draws everything in a theme.
   *
   * @param {string} theme
   */
  draw(theme) {
    this.theme = theme;
    for (const [name, chart] of this.charts) this.#drawOne(name, chart);
    document.documentElement.dataset.charts = String(this.charts.size);
  }

  /**
   * Makes the charts as wide as paper, or again as wide as the window: when a page is
   * printed, nothing else tells them.
   *
   * @param {boolean} printing
   */
  fitToPaper(printing) {
    for (const chart of this.charts.values()) {
      chart.resize({ width: printing ? PAPER_WIDTH : "auto" });
      // Not with the next frame: that comes after the print.
      chart.getZr().flush();
    }
  }

  /**
   * Lays time or steps along the charts.
   *
   * @param {string} axis \`step\` or \`timeUs\`
   */
  setAxis(axis) {
    this.axis = axis;
    this.draw(this.theme);
  }

  /**
   * Marks the step that the map shows.
   *
   * @param {number} step
   */
  showStep(step) {
    this.step = step;
    if (this.cursorDue) return;
    this.cursorDue = true;
    setTimeout(() => {
      this.cursorDue = false;
      this.charts.get("memory")?.setOption({ series: [this.#cursor()] });
    }, CURSOR_MS);
  }

  /**
   * Tells when someone clicks at a step.
   *
   * @param {(step: number) => void} listener
   */
  onPick(listener) {
    const chart = this.charts.get("memory");
    chart?.getZr().on("click", (/** @type {any} */ event) => {
      const point = [event.offsetX, event.offsetY];
      if (!chart.containPixel("grid", point)) return;
      const x = chart.convertFromPixel({ xAxisIndex: 0 }, point[0]);
      listener(this.#stepAt(x));
    });
  }

  /** @param {string} name */
  #overTime(name) {
    return this.data.charts.light[name].xAxis.unit === "step";
  }

  /**
   * @param {string} name
   * @param {any} chart
   */
  #drawOne(name, chart) {
    const option = structuredClone(this.data.charts[this.theme][name]);
    const before = chart.getOption();
    if (this.#overTime(name)) {
      option.dataset = this.data.datasets.map((/** @type {any} */ source) => ({
        source,
      }));
      this.#layAlong(option);
      option.dataZoom = this.#zoom(before);
      option.grid.bottom = 92;
      if (name === "memory") option.series.push(this.#cursor());
    }
    if (before) option.legend.selected = before.legend[0].selected;
    chart.setOption(addFormatters(option), { notMerge: true });
    const list = document.getElementById(\`legend-\${name}\`);
    if (list) drawLegend(list, chart, option.series);
  }

  /** @param {any} option */
  #layAlong(option) {
    if (this.axis === "step") return;
    option.xAxis.unit = "us";
    option.xAxis.name = "Recorded time";
    for (const series of option.series) series.encode.x = this.axis;
  }

  /** @param {any} before the option drawn so far, if any */
  #zoom(before) {
    const { start, end } = before?.dataZoom[0] ?? { start: 0, end: 100 };
    const { ink, rule, accent } = this.data.themes[this.theme];
    const common = { start, end, filterMode: "none" };
    return [
      {
        ...common,
        type: "slider",
        height: 22,
        bottom: 10,
        left: 84,
        right: 24,
        borderColor: rule,
        fillerColor: accent + "33",
        handleStyle: { color: accent, borderColor: accent },
        moveHandleStyle: { color: accent, opacity: 0.5 },
        dataBackground: {
          lineStyle: { color: ink, opacity: 0.4 },
          areaStyle: { color: ink, opacity: 0.1 },
        },
        selectedDataBackground: {
          lineStyle: { color: accent },
          areaStyle: { color: accent, opacity: 0.2 },
        },
        showDetail: false,
        brushSelect: false,
      },
      // The wheel alone must go on scrolling the page.
      { ...common, type: "inside", zoomOnMouseWheel: "ctrl" },
    ];
  }

  #cursor() {
    const { accent } = this.data.themes[this.theme];
    return {
      id: "cursor",
      type: "line",
      data: [],
      encode: {},
      tooltip: { show: false },
      markLine: {
        silent: true,
        symbol: "none",
        animation: false,
        label: { show: false },
        lineStyle: { color: accent, width: 1.5, type: "solid" },
        data: this.step === undefined
          ? []
          : [{ xAxis: this.#place(this.step) }],
      },
    };
  }

  /** @param {number} step */
  #place(step) {
    if (this.axis === "step") return step;
    const { step: steps, timeUs } = this.#columns();
    return timeUs[Math.max(0, lastAtOrBefore(steps, step))] ?? 0;
  }

  /** @param {number} x */
  #stepAt(x) {
    if (this.axis === "step") return x;
    const { step: steps, timeUs } = this.#columns();
    return steps[Math.max(0, lastAtOrBefore(timeUs, x))] ?? 0;
  }

  /** The points of all runs lie at the same steps, or nearly so: any will do. */
  #columns() {
    return this.data.datasets[0] ?? { step: [], timeUs: [] };
  }
}
`,
  "failures.js": `// Says so when the page fails.

/** Shows every error from now on. */
export function reportFailures() {
  addEventListener("error", ({ message }) => showFailure(message));
  addEventListener(
    "unhandledrejection",
    ({ reason }) => showFailure(String(reason?.message ?? reason)),
  );
}

/**
 * Shows an error.
 *
 * @param {string} message
 */
export function showFailure(message) {
  const page = document.documentElement;
  page.dataset.errors = [page.dataset.errors, message].filter(Boolean).join(
    "\\n",
  );
  const box = /** @type {HTMLElement} */ (document.getElementById("failure"));
  box.hidden = false;
  box.textContent =
    \`Part of this page could not be drawn: \${page.dataset.errors}\`;
}
`,
  "formatters.js": `// What charts write on axes and in tooltips. Runs in pages and for pictures alike;
// formatSize and formatDuration write what lib/sizes.ts and lib/cli/duration.ts do.

/**
 * Writes a size with a binary unit.
 *
 * @param {number} bytes
 * @returns {string}
 */
export function formatSize(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = Number.isInteger(value) ? 0 : value < 10 ? 2 : 1;
  return \`\${value.toFixed(digits)} \${units[unit]}\`;
}

/**
 * Writes nanoseconds with three significant digits.
 *
 * @param {number} ns
 * @returns {string}
 */
export function formatDuration(ns) {
  const units = ["ns", "µs", "ms", "s"];
  let value = ns;
  for (const unit of units) {
    const size = Math.abs(value);
    const places = size === 0 ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    const digits = value.toFixed(places);
    if (Math.abs(Number(digits)) < 1000 || unit === "s") {
      return \`\${size === 0 ? "0" : digits} \${unit}\`;
    }
    value /= 1000;
  }
  return "";
}

/**
 * Writes a number with commas between thousands, rounded to a whole one.
 *
 * @param {number} count
 * @returns {string}
 */
export function formatCount(count) {
  return Math.round(count).toLocaleString("en-US");
}

/**
 * Writes an address, which counts from the lowest one in use.
 *
 * @param {number} address
 * @returns {string}
 */
export function formatAddress(address) {
  return \`+0x\${address.toString(16)}\`;
}

/**
 * How values of a unit are written on axes: without needless digits.
 *
 * @param {string} unit
 * @returns {(value: number) => string}
 */
function axisFormatter(unit) {
  const short = (/** @type {string} */ text) =>
    text.replace(/(\\.\\d*?)0+ /, "$1 ").replace(". ", " ");
  switch (unit) {
    case "bytes":
      return (value) => value === 0 ? "0" : short(formatSize(value));
    case "ns":
      return (value) => value === 0 ? "0" : short(formatDuration(value));
    case "us":
      return (value) => value === 0 ? "0" : short(formatDuration(value * 1e3));
    default:
      // A logarithmic axis of counts begins below 1, where there is nothing to count.
      return (value) => value > 0 && value < 1 ? "" : formatCount(value);
  }
}

/**
 * How values of a unit are written where one is looked at.
 *
 * @param {string} unit
 * @returns {(value: number | undefined) => string}
 */
function valueFormatter(unit) {
  const exact = (/** @type {number} */ value) => {
    switch (unit) {
      case "bytes":
        return formatSize(value);
      case "ns":
        return formatDuration(value);
      case "us":
        return formatDuration(value * 1e3);
      case "step":
        return \`step \${formatCount(value)}\`;
      default:
        return formatCount(value);
    }
  };
  return (value) => typeof value === "number" ? exact(value) : "–";
}

/**
 * Gives axes and series that name a unit the functions that write it.
 *
 * @template {Record<string, any>} Option
 * @param {Option} option a chart's option; changed in place
 * @returns {Option} the same
 */
export function addFormatters(option) {
  for (const axis of [option.xAxis, option.yAxis].flat()) {
    if (!axis?.unit) continue;
    axis.axisLabel.formatter = axisFormatter(axis.unit);
    const write = valueFormatter(axis.unit);
    axis.axisPointer = {
      label: {
        formatter: (/** @type {{value: number}} */ { value }) => write(value),
      },
    };
  }
  for (const series of option.series) {
    if (series.unit) {
      series.tooltip = { valueFormatter: valueFormatter(series.unit) };
    }
  }
  return option;
}
`,
  "legend.js": `// Legends of charts: buttons that hide and show series. Unlike those that ECharts draws,
// they wrap in narrow windows and work by keyboard.

const SVG = "http://www.w3.org/2000/svg";
/** @type {Record<string, string>} */
const SHAPES = {
  circle: "M17 1.5a4.5 4.5 0 1 0 .01 0z",
  rect: "M13 2h8v8h-8z",
  triangle: "M17 1l5 9.5h-10z",
  diamond: "M17 0.5l5 5.5l-5 5.5l-5 -5.5z",
};

/**
 * Draws a chart's legend anew.
 *
 * @param {HTMLElement} list
 * @param {any} chart
 * @param {any[]} series
 */
export function drawLegend(list, chart, series) {
  const { selected } = chart.getOption().legend[0];
  list.replaceChildren(
    ...series.filter(({ name }) => name).map((one) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(selected[one.name] !== false));
      const draw = one.type === "bar" ? barSample : lineSample;
      button.append(draw(one), one.name);
      button.addEventListener("click", () => {
        chart.dispatchAction({ type: "legendToggleSelect", name: one.name });
        const shown = chart.getOption().legend[0].selected[one.name] !== false;
        button.setAttribute("aria-pressed", String(shown));
      });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
}

/** @param {any} series */
function lineSample({ color, lineStyle, symbol }) {
  return sample(
    34,
    shape("path", {
      d: "M0 6h34",
      stroke: color,
      "stroke-width": 2,
      ...(Array.isArray(lineStyle.type)
        ? { "stroke-dasharray": lineStyle.type.join(" ") }
        : {}),
    }),
    shape("path", { d: SHAPES[symbol], fill: color }),
  );
}

let patterns = 0;

/** @param {any} series */
function barSample({ itemStyle: { color, decal } }) {
  const bar = { width: 20, height: 12 };
  const plain = shape("rect", { ...bar, fill: color });
  if (!decal) return sample(bar.width, plain);
  const id = \`legend-pattern-\${++patterns}\`;
  const dots = decal.symbol === "circle";
  const [thick, gap] = dots ? [3, 3] : decal.dashArrayY;
  const side = thick + gap;
  const pattern = shape("pattern", {
    id,
    width: side,
    height: side,
    patternUnits: "userSpaceOnUse",
    patternTransform: \`rotate(\${(decal.rotation ?? 0) * 180 / Math.PI})\`,
  });
  pattern.append(
    dots
      ? shape("circle", { cx: side / 2, cy: side / 2, r: thick / 2 })
      : shape("rect", { width: side, height: thick }),
  );
  pattern.setAttribute("fill", decal.color);
  const patterned = shape("rect", { ...bar, fill: \`url(#\${id})\` });
  return sample(bar.width, pattern, plain, patterned);
}

/**
 * @param {number} width
 * @param {Element[]} shapes
 */
function sample(width, ...shapes) {
  const svg = shape("svg", { width, height: 12, "aria-hidden": "true" });
  svg.append(...shapes);
  return svg;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 */
function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, String(value));
  }
  return element;
}
`,
  "main.js": `// Starts the page.

import { Charts } from "./charts.js";
import { reportFailures, showFailure } from "./failures.js";
import { MapView } from "./map_view.js";
import { followTheme } from "./theme.js";

/** Draws everything and listens to the user. */
async function start() {
  reportFailures();
  const echarts = /** @type {any} */ (globalThis).echarts;
  if (!echarts) return showFailure("the chart library did not load");
  const data = JSON.parse(
    /** @type {HTMLElement} */ (document.getElementById("report-data"))
      .textContent ?? "",
  );
  const charts = new Charts(echarts, data);
  const map = data.maps.length === 0 ? undefined : new MapView(
    data.maps,
    data.sizeClasses,
    (step) => charts.showStep(step),
  );
  followTheme((theme, printing) => {
    charts.draw(theme);
    charts.fitToPaper(printing);
    // At once: no frame comes between the wish to print and the print.
    map?.draw();
  });
  for (const choice of document.querySelectorAll("input[name=axis]")) {
    const input = /** @type {HTMLInputElement} */ (choice);
    input.addEventListener("change", () => charts.setAxis(input.value));
  }
  if (map) {
    charts.onPick((step) => map.moveTo(step));
    await map.show(0);
  }
  document.documentElement.dataset.ready = "true";
}

// A failure to start reaches the listener above as an unhandled rejection.
start();
`,
  "map_canvas.js": `// Draws the memory map.

import { formatAddress } from "./formatters.js";
import { MapLayout } from "./map_layout.js";

const ROW_HEIGHT = 15;
const ROW_GAP = 4;
const TOP = 2;
/** Between a row and its address. */
const LABEL_GAP = 8;

/** Draws blocks and extents on a canvas. */
export class MapCanvas {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.width = 0;
    /** Width of the column of addresses. */
    this.gutter = 0;
    this.layout = new MapLayout([], 1);
  }

  /**
   * Draws what is there.
   *
   * @param {MapLayout} layout
   * @param {import("./present.js").Present} blocks
   * @param {import("./present.js").Present} extents
   * @param {number} marked row of the block to outline, or -1
   * @param {{below: number, color: string}[]} classes
   */
  draw(layout, blocks, extents, marked, classes) {
    const style = getComputedStyle(document.documentElement);
    const color = (/** @type {string} */ name) => style.getPropertyValue(name);
    const context = this.#resize(layout);
    context.fillStyle = color("--unmapped");
    this.#eachPiece(0, layout.total, (x, y, width) => {
      context.fillRect(x, y, width, ROW_HEIGHT);
    });
    context.fillStyle = stripes(
      context,
      color("--free"),
      color("--free-stripe"),
    );
    this.#fill(context, extents, () => true);
    classes.forEach(({ color: base }, index) => {
      context.fillStyle = pattern(context, base, index);
      const above = index === 0 ? 0 : classes[index - 1].below;
      const below = classes[index].below;
      this.#fill(context, blocks, (bytes) => bytes >= above && bytes < below);
    });
    this.#separate(context, blocks, color("--panel"));
    this.#cuts(context, color("--panel"), color("--ink"));
    this.#labels(context, color("--quiet-ink"));
    if (marked >= 0) this.#mark(context, blocks.rows, marked, color("--ink"));
  }

  /**
   * The address under a point of the canvas, or -1.
   *
   * @param {number} x
   * @param {number} y
   * @returns {number}
   */
  addressUnder(x, y) {
    const { layout } = this;
    const line = Math.floor((y - TOP) / (ROW_HEIGHT + ROW_GAP));
    const along = (x - this.gutter) / (this.width - this.gutter);
    if (along < 0 || along >= 1 || line < 0 || line >= layout.rows) return -1;
    const offset = (line + along) * layout.rowBytes;
    return offset < layout.total ? layout.addressAt(offset) : -1;
  }

  /** @param {MapLayout} layout */
  #resize(layout) {
    this.layout = layout;
    const { canvas } = this;
    this.width = Math.max(200, canvas.clientWidth);
    const height = TOP + layout.rows * (ROW_HEIGHT + ROW_GAP);
    const scale = globalThis.devicePixelRatio || 1;
    canvas.style.height = \`\${height}px\`;
    canvas.width = Math.round(this.width * scale);
    canvas.height = Math.round(height * scale);
    const context = /** @type {CanvasRenderingContext2D} */ (
      canvas.getContext("2d")
    );
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, height);
    context.font = \`11px \${getComputedStyle(canvas).fontFamily}\`;
    this.gutter = LABEL_GAP + Math.max(
      ...Array.from(
        { length: layout.rows },
        (_, row) => Math.ceil(context.measureText(label(layout, row)).width),
      ),
    );
    return context;
  }

  /**
   * Calls with each row's piece of a range of offsets.
   *
   * @param {number} offset
   * @param {number} bytes
   * @param {(x: number, y: number, width: number) => void} visit
   */
  #eachPiece(offset, bytes, visit) {
    const { rowBytes } = this.layout;
    const scale = (this.width - this.gutter) / rowBytes;
    const end = offset + bytes;
    for (let at = offset; at < end;) {
      const line = Math.floor(at / rowBytes);
      const until = Math.min(end, (line + 1) * rowBytes);
      const left = Math.floor(this.gutter + (at - line * rowBytes) * scale);
      const right = Math.round(this.gutter + (until - line * rowBytes) * scale);
      // However small, it shows.
      visit(
        left,
        TOP + line * (ROW_HEIGHT + ROW_GAP),
        Math.max(1, right - left),
      );
      at = until;
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./present.js").Present} present
   * @param {(bytes: number) => boolean} wanted
   */
  #fill(context, present, wanted) {
    const { address, bytes } = present.rows;
    const paint = (
      /** @type {number} */ x,
      /** @type {number} */ y,
      /** @type {number} */ width,
    ) => context.fillRect(x, y, width, ROW_HEIGHT);
    for (let i = 0; i < present.count; i++) {
      const row = present.row[i];
      if (!wanted(bytes[row])) continue;
      this.#eachPiece(this.layout.offsetOf(address[row]), bytes[row], paint);
    }
  }

  /**
   * Draws the edges of blocks wide enough to have some.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {import("./present.js").Present} present
   * @param {string} color
   */
  #separate(context, present, color) {
    context.fillStyle = color;
    const { address, bytes } = present.rows;
    for (let i = 0; i < present.count; i++) {
      const row = present.row[i];
      let first = true;
      this.#eachPiece(
        this.layout.offsetOf(address[row]),
        bytes[row],
        (x, y, width) => {
          if (first && width > 3) context.fillRect(x, y, 1, ROW_HEIGHT);
          first = false;
        },
      );
    }
  }

  /**
   * Marks where unmapped addresses were cut out.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {string} paper
   * @param {string} ink
   */
  #cuts(context, paper, ink) {
    for (const offset of this.layout.offsets.slice(1)) {
      this.#eachPiece(offset, 1, (x, y) => {
        context.fillStyle = paper;
        context.fillRect(x - 2, y - 1, 4, ROW_HEIGHT + 2);
        context.fillStyle = ink;
        context.fillRect(x - 2, y - 1, 1, ROW_HEIGHT + 2);
        context.fillRect(x + 1, y - 1, 1, ROW_HEIGHT + 2);
      });
    }
  }

  /**
   * Writes each row's first address.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {string} color
   */
  #labels(context, color) {
    const { layout } = this;
    context.fillStyle = color;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let line = 0; line < layout.rows; line++) {
      context.fillText(
        label(layout, line),
        this.gutter - LABEL_GAP,
        TOP + line * (ROW_HEIGHT + ROW_GAP) + ROW_HEIGHT / 2,
      );
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./unpack.js").Rows} rows
   * @param {number} row
   * @param {string} color
   */
  #mark(context, rows, row, color) {
    context.strokeStyle = color;
    context.lineWidth = 2;
    this.#eachPiece(
      this.layout.offsetOf(rows.address[row]),
      rows.bytes[row],
      (x, y, width) => {
        context.strokeRect(
          x,
          y - 1,
          width,
          ROW_HEIGHT + 2,
        );
      },
    );
  }
}

/**
 * The address at which a row begins.
 *
 * @param {MapLayout} layout
 * @param {number} row
 */
function label(layout, row) {
  return formatAddress(layout.addressAt(row * layout.rowBytes));
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} base
 * @param {string} line
 */
function stripes(context, base, line) {
  return tile(context, 6, base, (tileContext) => {
    tileContext.strokeStyle = line;
    diagonal(tileContext, 6, true);
  });
}

/**
 * A class's colour with a pattern of its own, for those who can't tell the colours apart.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} base
 * @param {number} index
 */
export function pattern(context, base, index) {
  if (index === 0) return base;
  return tile(context, 8, base, (tileContext) => {
    tileContext.strokeStyle = tileContext.fillStyle = "rgba(0, 0, 0, 0.28)";
    if (index === 1) tileContext.fillRect(3, 3, 2, 2);
    if (index === 2 || index === 4) diagonal(tileContext, 8, true);
    if (index === 3 || index === 4) diagonal(tileContext, 8, false);
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} size
 * @param {string} base
 * @param {(context: CanvasRenderingContext2D) => void} decorate
 */
function tile(context, size, base, decorate) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const tileContext = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext("2d")
  );
  tileContext.fillStyle = base;
  tileContext.fillRect(0, 0, size, size);
  decorate(tileContext);
  return /** @type {CanvasPattern} */ (context.createPattern(canvas, "repeat"));
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} size
 * @param {boolean} rising
 */
function diagonal(context, size, rising) {
  context.lineWidth = 1;
  context.beginPath();
  // Three lines, so that the corners of tiles meet.
  for (const shift of [-size, 0, size]) {
    context.moveTo(shift, rising ? size : 0);
    context.lineTo(shift + size, rising ? 0 : size);
  }
  context.stroke();
}
`,
  "map_layout.js": `// Where addresses lie on the memory map: the stretches in use one after another, the
// gaps between them cut out, broken into rows of one length.

/** No row is shorter than a page. */
const SHORTEST_ROW = 4096;

/** Where addresses lie on the memory map. */
export class MapLayout {
  /**
   * @param {number[]} stretches pairs of first byte and length, in order
   * @param {number} mostRows
   */
  constructor(stretches, mostRows) {
    /** First bytes of the stretches. */
    this.starts = stretches.filter((_, i) => i % 2 === 0);
    const lengths = stretches.filter((_, i) => i % 2 === 1);
    /** Where stretches begin once the gaps are cut out. */
    this.offsets = [];
    /** Bytes of all stretches. */
    this.total = 0;
    for (const length of lengths) {
      this.offsets.push(this.total);
      this.total += length;
    }
    /** Bytes in a row. */
    this.rowBytes = SHORTEST_ROW;
    while (this.rowBytes * mostRows < this.total) this.rowBytes *= 2;
    /** Number of rows, at least one. */
    this.rows = Math.max(1, Math.ceil(this.total / this.rowBytes));
  }

  /**
   * Where an address in a stretch lies once the gaps are cut out.
   *
   * @param {number} address
   * @returns {number}
   */
  offsetOf(address) {
    const i = lastAtOrBefore(this.starts, address);
    return i < 0 ? 0 : this.offsets[i] + (address - this.starts[i]);
  }

  /**
   * The address that lies there.
   *
   * @param {number} offset
   * @returns {number}
   */
  addressAt(offset) {
    const i = lastAtOrBefore(this.offsets, offset);
    return i < 0 ? 0 : this.starts[i] + (offset - this.offsets[i]);
  }
}

/**
 * Index of the last value that is not above another, in ascending order; -1 if all are.
 *
 * @param {ArrayLike<number>} values
 * @param {number} value
 * @returns {number}
 */
export function lastAtOrBefore(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
`,
  "map_view.js": `// The section with the memory map: its controls, its texts, its canvas.

import { formatAddress, formatCount, formatSize } from "./formatters.js";
import { MapCanvas, pattern } from "./map_canvas.js";
import { MapLayout } from "./map_layout.js";
import { NO_ROWS, Present } from "./present.js";
import { unpackPlacements } from "./unpack.js";

const MOST_ROWS = 40;
const LARGEST_SHOWN = 10;

/** The memory map and all that belongs to it. */
export class MapView {
  /**
   * @param {any[]} maps as in the page's data
   * @param {{below: number, color: string}[]} classes
   * @param {(step: number) => void} onStep told of the step shown
   */
  constructor(maps, classes, onStep) {
    this.maps = maps;
    this.classes = classes;
    this.onStep = onStep;
    this.map = maps[0];
    this.blocks = new Present(NO_ROWS);
    this.extents = new Present(NO_ROWS);
    this.layout = new MapLayout([], MOST_ROWS);
    this.step = 0;
    this.marked = -1;
    /** Whether a run's placements are unpacked. */
    this.ready = false;
    this.waiting = false;
    /** Index of the run last asked for. */
    this.wanted = -1;
    this.canvas = new MapCanvas(element("map-canvas"));
    this.#listen();
    this.#drawKeys();
  }

  /**
   * Shows a run's map at the step of its live peak.
   *
   * @param {number} index
   */
  async show(index) {
    this.wanted = index;
    const map = this.maps[index];
    const read = (/** @type {string} */ what) =>
      unpackPlacements(
        map[what],
        element(\`map-\${index}-\${what}\`).textContent,
      );
    const [blocks, extents] = await Promise.all([
      read("blocks"),
      read("extents"),
    ]);
    // Another run may have been chosen meanwhile.
    if (this.wanted !== index) return;
    this.map = map;
    this.ready = true;
    this.blocks = new Present(blocks);
    this.extents = new Present(extents);
    this.layout = new MapLayout(map.stretches, MOST_ROWS);
    const last = String(Math.max(0, map.steps - 1));
    element("map-slider").max = last;
    element("map-step").max = last;
    element("map-mapped-peak").hidden = map.mappedPeakStep === null;
    document.documentElement.dataset.mapBlocks = String(blocks.count);
    this.moveTo(map.livePeakStep);
  }

  /**
   * Moves to a step; draws it with the next frame.
   *
   * @param {number} step
   */
  moveTo(step) {
    if (!this.ready) return;
    this.step = Math.min(Math.max(0, Math.round(step)), this.map.steps - 1);
    if (this.step < 0) this.step = 0;
    this.marked = -1;
    this.redraw();
  }

  /** Draws with the next frame, however often it is asked to until then. */
  redraw() {
    if (this.waiting || !this.ready) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** Draws at once. */
  draw() {
    if (!this.ready) return;
    const { blocks, extents, step } = this;
    blocks.moveTo(step);
    extents.moveTo(step);
    element("map-slider").value = String(step);
    element("map-slider").setAttribute(
      "aria-valuetext",
      \`step \${formatCount(step)}\`,
    );
    if (document.activeElement !== element("map-step")) {
      element("map-step").value = String(step);
    }
    element("map-summary").textContent = \`Step \${formatCount(step)}: \${
      formatSize(blocks.bytes)
    } live in \${formatCount(blocks.count)} \${
      blocks.count === 1 ? "block" : "blocks"
    }, \${formatSize(extents.bytes)} mapped in \${formatCount(extents.count)} \${
      extents.count === 1 ? "extent" : "extents"
    }. A row is \${formatSize(this.layout.rowBytes)}.\`;
    this.#describe();
    this.#listLargest();
    this.#paint();
    document.documentElement.dataset.mapStep = String(step);
    this.onStep(step);
  }

  #paint() {
    this.canvas.draw(
      this.layout,
      this.blocks,
      this.extents,
      this.marked,
      this.classes,
    );
  }

  /** @param {number} row a block's, or -1 */
  #mark(row) {
    if (row === this.marked) return;
    this.marked = row;
    this.#describe();
    this.#paint();
  }

  #describe() {
    const { address, bytes, from, to } = this.blocks.rows;
    const row = this.marked;
    element("map-block").textContent = row < 0
      ? "Point at a block, or press the arrow keys on the map, to see what it is."
      : \`\${formatAddress(address[row])}: \${formatSize(bytes[row])} (\${
        formatCount(bytes[row])
      } bytes), live from step \${formatCount(from[row])} \${
        to[row] >= this.map.steps
          ? "to the end"
          : \`until step \${formatCount(to[row])}\`
      }\`;
  }

  #listLargest() {
    const { address, bytes, from, to } = this.blocks.rows;
    element("map-largest").replaceChildren(
      ...this.blocks.largest(LARGEST_SHOWN).map((row) => {
        const line = document.createElement("tr");
        const cells = [
          formatAddress(address[row]),
          formatSize(bytes[row]),
          formatCount(from[row]),
          to[row] >= this.map.steps ? "stays" : formatCount(to[row]),
        ];
        for (const text of cells) {
          line.append(
            Object.assign(document.createElement("td"), { textContent: text }),
          );
        }
        return line;
      }),
    );
  }

  #listen() {
    const slider = element("map-slider");
    slider.addEventListener("input", () => this.moveTo(Number(slider.value)));
    const number = element("map-step");
    number.addEventListener("input", () => {
      if (number.value !== "") this.moveTo(Number(number.value));
    });
    number.addEventListener("blur", () => {
      number.value = String(this.step);
    });
    element("map-live-peak").addEventListener(
      "click",
      () => this.moveTo(this.map.livePeakStep),
    );
    element("map-mapped-peak").addEventListener(
      "click",
      () => this.moveTo(this.map.mappedPeakStep),
    );
    const run = document.getElementById("map-run");
    run?.addEventListener(
      "change",
      () => this.show(Number(/** @type {HTMLSelectElement} */ (run).value)),
    );
    const canvas = /** @type {HTMLCanvasElement} */ (element("map-canvas"));
    canvas.addEventListener("pointermove", (event) => {
      const where = this.canvas.addressUnder(event.offsetX, event.offsetY);
      this.#mark(where < 0 ? -1 : this.blocks.at(where));
    });
    canvas.addEventListener("keydown", (event) => {
      const forward = event.key === "ArrowRight" || event.key === "ArrowDown";
      const back = event.key === "ArrowLeft" || event.key === "ArrowUp";
      if (!(forward || back)) return;
      event.preventDefault();
      const next = this.blocks.beside(this.marked, forward);
      if (next >= 0) this.#mark(next);
    });
    const frame = element("map-frame");
    new ResizeObserver(() => frame.clientWidth > 0 && this.redraw()).observe(
      frame,
    );
  }

  #drawKeys() {
    for (const key of document.querySelectorAll("canvas[data-class]")) {
      const canvas = /** @type {HTMLCanvasElement} */ (key);
      const context = /** @type {CanvasRenderingContext2D} */ (
        canvas.getContext("2d")
      );
      const index = Number(canvas.dataset.class);
      context.fillStyle = pattern(context, this.classes[index].color, index);
      context.fillRect(0, 0, canvas.width, canvas.height);
    }
  }
}

/**
 * @param {string} id of an element that the page has
 * @returns {any}
 */
function element(id) {
  return document.getElementById(id);
}
`,
  "page.css": `* {
  box-sizing: border-box;
}
[hidden] {
  display: none !important;
}
body {
  margin: 0 auto;
  max-width: 1320px;
  padding: 24px;
  background: var(--paper);
  color: var(--ink);
  font: 14px/1.5 var(--font);
}
h1,
h2,
h3,
p,
ul,
dl,
dd {
  margin: 0;
}
h1 {
  font-size: 26px;
  line-height: 1.25;
  overflow-wrap: anywhere;
}
h2 {
  margin-bottom: 12px;
  font-size: 18px;
}
h3 {
  margin-bottom: 8px;
  font-size: 15px;
}
.kind,
.hint,
dt,
footer,
caption {
  color: var(--quiet-ink);
}
.kind {
  font-weight: 600;
  letter-spacing: 0.02em;
}
.title {
  display: flex;
  gap: 16px;
  align-items: flex-start;
  justify-content: space-between;
}
.title > div {
  min-width: 0;
}
.verdict {
  margin: 12px 0 16px;
  font-size: 17px;
}
.facts {
  display: flex;
  flex-wrap: wrap;
  gap: 12px 36px;
}
dt {
  font-size: 12px;
}
dd {
  font-weight: 600;
  font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere;
}
header,
section {
  margin-bottom: 20px;
  padding: 20px;
  border: 1px solid var(--rule);
  border-radius: 8px;
  background: var(--panel);
}
.scroll {
  overflow: auto;
}
.scroll + .hint,
.chart + .hint,
details + .hint {
  margin-top: 8px;
}
table {
  width: 100%;
  border-collapse: collapse;
  font-variant-numeric: tabular-nums;
}
caption {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
}
th,
td {
  padding: 6px 8px;
  border-bottom: 1px solid var(--rule);
  text-align: left;
  vertical-align: top;
  white-space: nowrap;
}
thead th {
  color: var(--quiet-ink);
  font-size: 12px;
  vertical-align: bottom;
}
thead th.group {
  border-bottom-color: var(--quiet-ink);
  text-align: center;
}
tbody th {
  min-width: 10em;
  font-weight: 600;
  overflow-wrap: break-word;
  white-space: normal;
}
#runs table {
  font-size: 13px;
}
#runs td:nth-child(2) {
  min-width: 8em;
  white-space: normal;
}
.number,
.numbers th,
.numbers td {
  text-align: right;
}
#unserved .scroll {
  max-height: 30em;
}
#unserved thead th {
  position: sticky;
  top: 0;
  background: var(--panel);
}
#unserved td:last-child {
  min-width: min(20em, 45vw);
  white-space: normal;
}
#unserved tbody th {
  width: 6em;
  min-width: 0;
  text-align: right;
}
.chart {
  width: 100%;
  height: 340px;
  overflow: hidden;
}
.chart.tall {
  height: 420px;
}
.halves {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 500px), 1fr));
  gap: 24px 32px;
}
.halves > div {
  min-width: 0;
}
.controls {
  display: flex;
  flex-wrap: wrap;
  gap: 8px 16px;
  align-items: center;
  margin-bottom: 12px;
}
.controls .wide {
  display: flex;
  flex: 1 1 240px;
  gap: 8px;
  align-items: center;
}
.wide input {
  flex: 1;
  min-width: 0;
}
fieldset {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 16px;
  margin: 0;
  padding: 0;
  border: 0;
}
fieldset legend {
  float: left;
  margin-right: 16px;
  padding: 0;
  color: var(--quiet-ink);
}
input,
select,
button {
  font: inherit;
  accent-color: var(--accent);
}
input[type="number"] {
  width: 8em;
}
input[type="number"],
select,
button {
  padding: 4px 10px;
  border: 1px solid var(--quiet-ink);
  border-radius: 6px;
  background: var(--panel);
  color: var(--ink);
}
button {
  flex: none;
  cursor: pointer;
}
button:hover {
  border-color: var(--accent);
  color: var(--accent);
}
#theme-button[aria-pressed="true"] {
  background: var(--ink);
  color: var(--panel);
}
:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
}
.legend,
.keys {
  display: flex;
  flex-wrap: wrap;
  gap: 4px 16px;
  margin-bottom: 8px;
  padding: 0;
  list-style: none;
}
.legend button {
  display: flex;
  gap: 8px;
  align-items: center;
  padding: 2px 4px;
  border-color: transparent;
  text-align: left;
  flex: initial;
}
.legend button[aria-pressed="false"] {
  color: var(--quiet-ink);
  text-decoration: line-through;
}
.legend button[aria-pressed="false"] svg {
  opacity: 0.35;
}
.legend svg {
  flex: none;
}
.keys {
  margin-top: 8px;
}
.keys li {
  display: flex;
  gap: 6px;
  align-items: center;
}
.key {
  display: inline-block;
  width: 24px;
  height: 14px;
}
.key.free {
  background: repeating-linear-gradient(
    -45deg,
    var(--free-stripe) 0 1px,
    var(--free) 1px 4px
  );
}
.key.unmapped {
  border: 1px solid var(--rule);
  background: var(--unmapped);
}
.key.cut {
  width: 5px;
  border: solid var(--ink);
  border-width: 0 1px;
}
#map-summary {
  font-weight: 600;
  font-variant-numeric: tabular-nums;
}
#map-canvas {
  display: block;
  width: 100%;
}
#map-block {
  min-height: 3em;
  margin-top: 8px;
  font-variant-numeric: tabular-nums;
}
summary {
  cursor: pointer;
  font-weight: 600;
}
details {
  margin-bottom: 8px;
}
#failure,
.failure {
  margin-bottom: 20px;
  padding: 12px 20px;
  border: 2px solid var(--alarm);
  border-radius: 8px;
  color: var(--alarm);
  white-space: pre-line;
}
.skip {
  position: absolute;
  left: -999px;
}
.skip:focus {
  left: 24px;
  top: 4px;
}
@media (max-width: 640px) {
  body {
    padding: 8px;
  }
  header,
  section {
    padding: 12px;
  }
}
@media print {
  body {
    max-width: none;
    padding: 0;
    background: none;
    font-size: 11px;
  }
  header,
  section {
    border: 0;
    padding: 0;
  }
  .controls,
  .hint,
  .skip,
  #theme-button,
  #map-block {
    display: none;
  }
  .chart,
  .legend,
  #map-canvas,
  tr {
    break-inside: avoid;
  }
  h2,
  h3,
  .legend {
    break-after: avoid;
  }
  .key {
    print-color-adjust: exact;
  }
  .scroll,
  #unserved .scroll {
    max-height: none;
    overflow: visible;
  }
  th,
  td {
    padding: 3px 4px;
    white-space: normal;
  }
  tbody th {
    min-width: 6em;
  }
  #runs table,
  thead th {
    font-size: 10px;
  }
  td.number {
    white-space: nowrap;
  }
}
`,
  "present.js": `// Which rows of placements are there at a step.

/** @type {import("./unpack.js").Rows} */
export const NO_ROWS = {
  count: 0,
  address: new Float64Array(0),
  bytes: new Float64Array(0),
  from: new Uint32Array(0),
  to: new Uint32Array(0),
};

/** The rows of placements that are there at one step. */
export class Present {
  /** @param {import("./unpack.js").Rows} rows */
  constructor(rows) {
    this.rows = rows;
    /** Number of rows there. */
    this.count = 0;
    /** Which, in the order in which they came, from 0 to \`count\`. */
    this.row = new Uint32Array(rows.count);
    /** Bytes of them all. */
    this.bytes = 0;
  }

  /**
   * Moves to a step.
   *
   * @param {number} step
   */
  moveTo(step) {
    const { count, from, to, bytes } = this.rows;
    let found = 0;
    let sum = 0;
    // Sorted by \`from\`: nothing after the first later row has come yet.
    for (let row = 0; row < count && from[row] <= step; row++) {
      if (to[row] <= step) continue;
      this.row[found++] = row;
      sum += bytes[row];
    }
    this.count = found;
    this.bytes = sum;
  }

  /**
   * The row that covers an address, or -1.
   *
   * @param {number} where
   * @returns {number}
   */
  at(where) {
    const { address, bytes } = this.rows;
    for (let i = 0; i < this.count; i++) {
      const row = this.row[i];
      if (where >= address[row] && where < address[row] + bytes[row]) {
        return row;
      }
    }
    return -1;
  }

  /**
   * The row that follows another one by address, or precedes it, or -1.
   *
   * @param {number} row -1 for the first or last of all
   * @param {boolean} forward
   * @returns {number}
   */
  beside(row, forward) {
    const { address } = this.rows;
    const here = row >= 0 ? address[row] : forward ? -1 : Infinity;
    let best = -1;
    for (let i = 0; i < this.count; i++) {
      const other = this.row[i];
      const there = address[other];
      if (forward ? there <= here : there >= here) continue;
      if (
        best < 0 || (forward ? there < address[best] : there > address[best])
      ) best = other;
    }
    return best;
  }

  /**
   * The rows with the most bytes, largest first.
   *
   * @param {number} limit
   * @returns {number[]}
   */
  largest(limit) {
    const { address, bytes } = this.rows;
    return Array.from(this.row.subarray(0, this.count)).sort((a, b) =>
      bytes[b] - bytes[a] || address[a] - address[b]
    ).slice(0, limit);
  }
}
`,
  "theme.js": `// Light and dark.

/**
 * Keeps the page in the system's theme, or in the one chosen by the button; printed
 * pages are light.
 *
 * @param {(theme: string, printing: boolean) => void} onChange told of the theme, first at once
 */
export function followTheme(onChange) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = /** @type {HTMLElement} */ (
    document.getElementById("theme-button")
  );
  /** @type {string | undefined} */
  let chosen;
  let printing = false;
  const wanted = () => chosen ?? (system.matches ? "dark" : "light");
  const apply = () => {
    const theme = printing ? "light" : wanted();
    document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-pressed", String(theme === "dark"));
    onChange(theme, printing);
  };
  const print = (/** @type {boolean} */ now) => () => {
    printing = now;
    apply();
  };
  button.addEventListener("click", () => {
    chosen = wanted() === "dark" ? "light" : "dark";
    apply();
  });
  system.addEventListener("change", apply);
  addEventListener("beforeprint", print(true));
  addEventListener("afterprint", print(false));
  button.hidden = false;
  apply();
}
`,
  "unpack.js": `// Reads what pack_placements.ts packed.

/**
 * Rows sorted by \`from\`; the meaning of the columns is that of \`Placements\`.
 *
 * @typedef {object} Rows
 * @property {number} count
 * @property {Float64Array} address
 * @property {Float64Array} bytes
 * @property {Uint32Array} from
 * @property {Uint32Array} to
 */

/**
 * Unpacks placements.
 *
 * @param {{rows: number, unit: number, planes: number[]}} shape
 * @param {string} data gzip in base64
 * @returns {Promise<Rows>}
 */
export async function unpackPlacements({ rows, unit, planes }, data) {
  const packed = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(
    new DecompressionStream("gzip"),
  );
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  let at = 0;
  const columns = planes.map((count) => {
    const column = new Float64Array(rows);
    for (let plane = 0; plane < count; plane++) {
      const place = 256 ** plane;
      for (let row = 0; row < rows; row++) column[row] += raw[at++] * place;
    }
    return column;
  });
  const [address, bytes, delta, stay] = columns;
  const from = new Uint32Array(rows);
  const to = new Uint32Array(rows);
  let step = 0;
  for (let row = 0; row < rows; row++) {
    address[row] *= unit;
    bytes[row] *= unit;
    step += delta[row];
    from[row] = step;
    to[row] = step + stay[row];
  }
  return { count: rows, address, bytes, from, to };
}
`,
  "zoom_keys.js": `// Zooming charts by keyboard.

const STEP = 0.2;

/**
 * Makes a focused chart answer to + and − (closer, farther), arrows (earlier, later)
 * and 0 (everything).
 *
 * @param {HTMLElement} box
 * @param {any} chart
 */
export function listenForZoomKeys(box, chart) {
  box.addEventListener("keydown", (event) => {
    const { start, end } = chart.getOption().dataZoom[0];
    const range = zoomed(event.key, start, end);
    if (!range) return;
    event.preventDefault();
    chart.dispatchAction({ type: "dataZoom", start: range[0], end: range[1] });
  });
}

/**
 * The range in percent after a key, or undefined for other keys.
 *
 * @param {string} key
 * @param {number} start
 * @param {number} end
 * @returns {[number, number] | undefined}
 */
export function zoomed(key, start, end) {
  const length = end - start;
  const change = length * STEP;
  switch (key) {
    case "+":
    case "=":
      return length < 0.5 ? [start, end] : [start + change, end - change];
    case "-":
      return [Math.max(0, start - change), Math.min(100, end + change)];
    case "ArrowLeft":
      return [Math.max(0, start - change), Math.max(length, end - change)];
    case "ArrowRight":
      return [
        Math.min(100 - length, start + change),
        Math.min(100, end + change),
      ];
    case "0":
      return [0, 100];
    default:
      return undefined;
  }
}
`,
};
