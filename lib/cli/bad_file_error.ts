/** A file is not what it should be. The message says what it should be. */
export class BadFileError extends Error {
  override name = "BadFileError";
}
