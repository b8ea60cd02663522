// Legends of charts: buttons that hide and show series. Unlike those that ECharts draws,
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
  const id = `legend-pattern-${++patterns}`;
  const dots = decal.symbol === "circle";
  const [thick, gap] = dots ? [3, 3] : decal.dashArrayY;
  const side = thick + gap;
  const pattern = shape("pattern", {
    id,
    width: side,
    height: side,
    patternUnits: "userSpaceOnUse",
    patternTransform: `rotate(${(decal.rotation ?? 0) * 180 / Math.PI})`,
  });
  pattern.append(
    dots
      ? shape("circle", { cx: side / 2, cy: side / 2, r: thick / 2 })
      : shape("rect", { width: side, height: thick }),
  );
  pattern.setAttribute("fill", decal.color);
  const patterned = shape("rect", { ...bar, fill: `url(#${id})` });
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
