// Draws the memory map.

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
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(this.width * scale);
    canvas.height = Math.round(height * scale);
    const context = /** @type {CanvasRenderingContext2D} */ (
      canvas.getContext("2d")
    );
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, height);
    context.font = `11px ${getComputedStyle(canvas).fontFamily}`;
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
