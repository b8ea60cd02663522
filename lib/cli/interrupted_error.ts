/** The user pressed Ctrl-C. */
export class InterruptedError extends Error {
  override name = "InterruptedError";

  /** Makes the error. */
  constructor() {
    super("interrupted");
  }
}
