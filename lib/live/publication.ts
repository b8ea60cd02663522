/**
 * Publishing an instance: a socket that answers questions about its memory.
 *
 * A client connects, writes one of the words below and a line feed, and gets one line of
 * JSON. Answers are given when the program's event loop turns; nothing is done between.
 *
 * @module
 */

import { MoonBrightError } from "../errors.ts";
import type { MoonBright } from "../moonbright.ts";
import {
  asking,
  liveFolders,
  openLiveFolder,
  socketFile,
} from "./live_folder.ts";
import { takeSummary } from "./summary.ts";

/** What can be asked: `stats()`, `snapshot()`, or a summary of both that stays small. */
export type LiveRequest = "stats" | "snapshot" | "summary";

const ANSWERS: Record<LiveRequest, (mb: MoonBright) => unknown> = {
  stats: (mb) => mb.stats(),
  snapshot: (mb) => mb.snapshot(),
  summary: takeSummary,
};

/** Longest request that is read, in bytes. */
const LONGEST_REQUEST = 64;
/** A client that has not asked and read its answer by then is dropped. */
const PATIENCE_MS = 10_000;
/** Clients at a time; more are dropped. */
const MOST_CLIENTS = 16;
/** `sun_path` of a Unix socket address has room for 108 bytes with its final zero. */
const LONGEST_PATH = 107;

/** An instance that is being published. Ends by `close()`, or when the instance is closed. */
export class Publication implements Disposable {
  /** The socket. */
  readonly path: string;
  readonly #mb: MoonBright;
  readonly #listener: Deno.UnixListener;
  readonly #clients = new Set<Deno.UnixConn>();
  #open = true;

  /** Made by {@linkcode MoonBright.publish}. */
  constructor(mb: MoonBright) {
    this.#mb = mb;
    [this.path, this.#listener] = asking(() => listen(mb));
    // A program must end as if it were not being watched.
    this.#listener.unref();
    this.#serve();
  }

  /** Whether it still answers. */
  get open(): boolean {
    return this.#open;
  }

  /** Stops answering and removes the socket. Does nothing the second time. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#listener.close();
    for (const client of this.#clients) drop(client);
    remove(this.path);
  }

  /** Closes the publication. */
  [Symbol.dispose](): void {
    this.close();
  }

  async #serve(): Promise<void> {
    while (this.#open) {
      let client: Deno.UnixConn;
      try {
        client = await this.#listener.accept();
      } catch {
        // Closed; or a client that had gone again.
        continue;
      }
      if (!this.#open || this.#clients.size >= MOST_CLIENTS) drop(client);
      else this.#answer(client);
    }
  }

  async #answer(client: Deno.UnixConn): Promise<void> {
    this.#clients.add(client);
    client.unref();
    const patience = setTimeout(() => drop(client), PATIENCE_MS);
    Deno.unrefTimer(patience);
    try {
      const request = await readLine(client);
      if (request !== undefined && this.#open) {
        await writeAll(client, `${JSON.stringify(this.#reply(request))}\n`);
      }
    } catch {
      // The client has gone or was dropped: nobody is left to tell.
    } finally {
      clearTimeout(patience);
      this.#clients.delete(client);
      drop(client);
    }
  }

  #reply(request: string): unknown {
    if (!Object.hasOwn(ANSWERS, request)) {
      return { error: `ask for one of ${Object.keys(ANSWERS).join(", ")}` };
    }
    try {
      return ANSWERS[request as LiveRequest](this.#mb);
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
}

/** Listens under the first name that no other instance of the process has. */
function listen(mb: MoonBright): [string, Deno.UnixListener] {
  const { backend, ordinal } = mb.device;
  const [folder] = liveFolders() as [string];
  openLiveFolder(folder);
  for (let instance = 1;; instance++) {
    const file = socketFile({
      pid: Deno.pid,
      device: `${backend}:${ordinal}`,
      instance,
    });
    const path = `${folder}/${file}`;
    if (new TextEncoder().encode(path).length > LONGEST_PATH) {
      throw new MoonBrightError(
        "limit",
        "publish",
        `Cannot publish at "${path}": a socket's path has at most ${LONGEST_PATH} bytes; set XDG_RUNTIME_DIR to a shorter folder`,
      );
    }
    try {
      return [path, Deno.listen({ transport: "unix", path })];
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

/** A client's request without its line feed; nothing if it went without asking. */
async function readLine(client: Deno.UnixConn): Promise<string | undefined> {
  const bytes = new Uint8Array(LONGEST_REQUEST);
  const newline = 10;
  for (let length = 0; length < bytes.length;) {
    const read = await client.read(bytes.subarray(length));
    if (read === null) return undefined;
    length += read;
    const end = bytes.subarray(0, length).indexOf(newline);
    if (end >= 0) return new TextDecoder().decode(bytes.subarray(0, end));
  }
  return "";
}

async function writeAll(client: Deno.UnixConn, text: string): Promise<void> {
  let rest = new TextEncoder().encode(text);
  while (rest.length > 0) rest = rest.subarray(await client.write(rest));
}

function drop(client: Deno.UnixConn): void {
  try {
    client.close();
  } catch {
    // Dropped already.
  }
}

/** Removes a socket that closing has not: not all versions of Deno do. */
function remove(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // It is gone.
  }
}
