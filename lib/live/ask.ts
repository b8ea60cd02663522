/**
 * Asking programs that publish their memory.
 *
 * @module
 */

import { MoonBrightError } from "../errors.ts";
import {
  liveFolders,
  notAllowed,
  type SocketName,
  socketsIn,
} from "./live_folder.ts";
import type { LiveRequest } from "./publication.ts";

/** A program that publishes, or an instance of it where it has several. */
export interface Published extends SocketName {
  /** Its socket. */
  path: string;
}

/** A socket that refuses is removed, unless it is so new that its owner may not listen yet. */
const YOUNG_MS = 1000;

/** How long an answer may take: the program answers between its own doings. */
const PATIENCE_MS = 5000;

/**
 * All that publish, by process. Sockets whose process has died are removed.
 *
 * @param pid looks for this process only
 */
export async function listPublished(pid?: number): Promise<Published[]> {
  const found = liveFolders().flatMap(socketsIn)
    .filter((one) => pid === undefined || one.pid === pid);
  const alive = await Promise.all(found.map(({ path }) => isAlive(path)));
  return found.filter((_, index) => alive[index]);
}

/** Whether somebody listens; removes the socket if nobody does. */
async function isAlive(path: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path })).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) throw notAllowed(error);
    if (error instanceof Deno.errors.ConnectionRefused) removeStale(path);
    return false;
  }
}

function removeStale(path: string): void {
  try {
    const { mtime } = Deno.lstatSync(path);
    if (Date.now() - (mtime?.getTime() ?? 0) > YOUNG_MS) Deno.removeSync(path);
  } catch {
    // Someone else has removed it, or it is not ours to remove.
  }
}

/**
 * Asks one question.
 *
 * @throws {MoonBrightError} code `no-answer` if the process has ended, does not answer in
 *   time because its event loop is busy, or answers something else
 */
export async function ask(
  { path, pid }: Published,
  request: LiveRequest,
  patienceMs: number = PATIENCE_MS,
): Promise<unknown> {
  const fail = (why: string, cause?: unknown) =>
    new MoonBrightError(
      "no-answer",
      "ask",
      `Cannot ask process ${pid} for its ${request}: ${why}`,
      { cause },
    );
  let late = false;
  let connection: Deno.UnixConn | undefined;
  const patience = setTimeout(() => {
    late = true;
    connection?.close();
  }, patienceMs);
  let text: string;
  try {
    connection = await Deno.connect({ transport: "unix", path });
    await connection.write(new TextEncoder().encode(`${request}\n`));
    text = await readAll(connection);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) throw notAllowed(cause);
    throw fail(
      late
        ? `no answer in ${patienceMs} ms; its event loop is busy, or it is stopped`
        : "it has ended",
      cause,
    );
  } finally {
    clearTimeout(patience);
    if (!late) connection?.close();
  }
  if (!text.endsWith("\n")) throw fail("it ended within its answer");
  let answer: { schemaVersion?: unknown; error?: unknown };
  try {
    answer = JSON.parse(text);
  } catch (cause) {
    throw fail("its answer is no JSON", cause);
  }
  if (answer.error !== undefined) throw fail(String(answer.error));
  if (answer.schemaVersion !== 1) {
    throw fail("its answer is of another version; use the same MoonBright");
  }
  return answer;
}

async function readAll(connection: Deno.UnixConn): Promise<string> {
  const decoder = new TextDecoder();
  const bytes = new Uint8Array(64 * 1024);
  let text = "";
  for (;;) {
    const read = await connection.read(bytes);
    if (read === null) return text + decoder.decode();
    text += decoder.decode(bytes.subarray(0, read), { stream: true });
  }
}
