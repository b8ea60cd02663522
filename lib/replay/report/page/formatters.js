// What charts write on axes and in tooltips. Runs in pages and for pictures alike;
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
  return `${value.toFixed(digits)} ${units[unit]}`;
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
      return `${size === 0 ? "0" : digits} ${unit}`;
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
  return `+0x${address.toString(16)}`;
}

/**
 * How values of a unit are written on axes: without needless digits.
 *
 * @param {string} unit
 * @returns {(value: number) => string}
 */
function axisFormatter(unit) {
  const short = (/** @type {string} */ text) =>
    text.replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
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
        return `step ${formatCount(value)}`;
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
