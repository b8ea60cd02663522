// Says so when the page fails.

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
    "\n",
  );
  const box = /** @type {HTMLElement} */ (document.getElementById("failure"));
  box.hidden = false;
  box.textContent =
    `Part of this page could not be drawn: ${page.dataset.errors}`;
}
