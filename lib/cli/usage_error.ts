/** The command line makes no sense. The message says what would. */
export class UsageError extends Error {
  override name = "UsageError";
  /** The command whose help would explain it, if it is one command's. */
  command: string | undefined;
}
