/**
 * Files that users name on the command line.
 *
 * @module
 */

import { UsageError } from "./usage_error.ts";

/**
 * Writes text to a file.
 *
 * @throws {UsageError} if it can't be written
 */
export function writeTextFile(path: string, text: string): void {
  try {
    Deno.writeTextFileSync(path, text);
  } catch (cause) {
    throw new UsageError(
      `Cannot write to "${path}": ${(cause as Error).message}`,
      { cause },
    );
  }
}

/**
 * Opens a file to be read; reading it to the end or cancelling closes it.
 *
 * @throws {UsageError} if it can't be opened
 */
export async function openFile(
  path: string,
): Promise<ReadableStream<Uint8Array>> {
  try {
    if ((await Deno.stat(path)).isDirectory) throw new Error("a folder");
    const file = await Deno.open(path);
    return file.readable;
  } catch (cause) {
    throw new UsageError(
      `Cannot read "${path}": ${(cause as Error).message}`,
      { cause },
    );
  }
}

/**
 * Writes a stream of bytes to a file.
 *
 * @throws {UsageError} if it can't be written; errors of the stream are passed on
 */
export async function writeStream(
  path: string,
  data: ReadableStream<Uint8Array>,
): Promise<void> {
  let file: Deno.FsFile;
  try {
    file = await Deno.create(path);
  } catch (cause) {
    await data.cancel();
    throw new UsageError(
      `Cannot write to "${path}": ${(cause as Error).message}`,
      { cause },
    );
  }
  await data.pipeTo(file.writable);
}
