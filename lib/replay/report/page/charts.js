// The page's charts.

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
        document.getElementById(`chart-${name}`)
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
   * @param {string} axis `step` or `timeUs`
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
    const list = document.getElementById(`legend-${name}`);
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
