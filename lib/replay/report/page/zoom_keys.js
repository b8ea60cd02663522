// Zooming charts by keyboard.

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
