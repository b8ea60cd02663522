// Light and dark.

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
