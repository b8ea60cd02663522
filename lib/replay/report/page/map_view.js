// The section with the memory map: its controls, its texts, its canvas.

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
        element(`map-${index}-${what}`).textContent,
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
      `step ${formatCount(step)}`,
    );
    if (document.activeElement !== element("map-step")) {
      element("map-step").value = String(step);
    }
    element("map-summary").textContent = `Step ${formatCount(step)}: ${
      formatSize(blocks.bytes)
    } live in ${formatCount(blocks.count)} ${
      blocks.count === 1 ? "block" : "blocks"
    }, ${formatSize(extents.bytes)} mapped in ${formatCount(extents.count)} ${
      extents.count === 1 ? "extent" : "extents"
    }. A row is ${formatSize(this.layout.rowBytes)}.`;
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
      : `${formatAddress(address[row])}: ${formatSize(bytes[row])} (${
        formatCount(bytes[row])
      } bytes), live from step ${formatCount(from[row])} ${
        to[row] >= this.map.steps
          ? "to the end"
          : `until step ${formatCount(to[row])}`
      }`;
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
