// Starts the page.

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
