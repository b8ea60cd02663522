/**
 * Where programs that publish their memory are found: a folder of sockets that only
 * their own user can enter.
 *
 * @module
 */

import { MoonBrightError } from "../errors.ts";

/** What the name of a socket tells. */
export interface SocketName {
  /** Number of the process. */
  pid: number;
  /** The device, such as `cuda:0`. */
  device: string;
  /** Tells apart instances of one process on one device; the first is 1. */
  instance: number;
}

const NAME = /^(\d+)-([a-z]+)-(\d+)-(\d+)\.sock$/;

/**
 * The folders to look for sockets in, the one to publish in first: `moonbright` in
 * `XDG_RUNTIME_DIR`, where that is set and there, then `moonbright-<user id>` in `TMPDIR`
 * or `/tmp`. A program may have been started without the variable that its watcher has.
 */
export function liveFolders(): string[] {
  return asking(() => {
    const folders: string[] = [];
    const runtime = Deno.env.get("XDG_RUNTIME_DIR");
    if (runtime !== undefined && isFolder(runtime)) {
      folders.push(`${runtime}/moonbright`);
    }
    const temporary = Deno.env.get("TMPDIR") || "/tmp";
    folders.push(`${temporary}/moonbright-${Deno.uid()}`);
    return folders;
  });
}

/**
 * Makes the folder if there is none, readable by its owner alone.
 *
 * @throws {MoonBrightError} code `permission` if it belongs to someone else, others can
 *   enter it, or Deno may not touch it
 */
export function openLiveFolder(path: string): void {
  asking(() => {
    try {
      Deno.mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    }
    const problem = problemOf(path);
    if (problem !== undefined) {
      throw new MoonBrightError(
        "permission",
        "publish",
        `Cannot publish in "${path}": ${problem}; remove it, or set XDG_RUNTIME_DIR to a folder of your own`,
      );
    }
  });
}

/**
 * Names of the sockets in a folder; none if the folder is not there, is someone else's,
 * or could be entered by others, who might have put anything there.
 */
export function socketsIn(folder: string): (SocketName & { path: string })[] {
  return asking(() => {
    if (!isFolder(folder) || problemOf(folder) !== undefined) return [];
    const found: (SocketName & { path: string })[] = [];
    for (const { name } of Deno.readDirSync(folder)) {
      const [, pid, backend, ordinal, instance] = NAME.exec(name) ?? [];
      if (pid === undefined) continue;
      found.push({
        pid: Number(pid),
        device: `${backend}:${ordinal}`,
        instance: Number(instance),
        path: `${folder}/${name}`,
      });
    }
    return found.sort((a, b) =>
      a.pid - b.pid || a.device.localeCompare(b.device) ||
      a.instance - b.instance
    );
  });
}

/** File name of a socket. */
export function socketFile({ pid, device, instance }: SocketName): string {
  return `${pid}-${device.replace(":", "-")}-${instance}.sock`;
}

/**
 * Does what needs permissions of Deno.
 *
 * @throws {MoonBrightError} code `permission`, saying which to grant
 */
export function asking<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) throw notAllowed(error);
    if (error instanceof Deno.errors.PermissionDenied) {
      throw new MoonBrightError(
        "permission",
        "publish",
        `Cannot publish: ${error.message}; set XDG_RUNTIME_DIR to a folder of your own`,
        { cause: error },
      );
    }
    throw error;
  }
}

/** The error for a permission that Deno was not given. */
export function notAllowed(cause: Error): MoonBrightError {
  return new MoonBrightError(
    "permission",
    "publish",
    `Cannot reach the sockets of the live view: ${cause.message}. ` +
      "It needs --allow-net, --allow-read and --allow-write for the folder, " +
      "--allow-env=XDG_RUNTIME_DIR,TMPDIR and --allow-sys=uid",
    { cause },
  );
}

/** Why a folder can't be trusted. */
function problemOf(path: string): string | undefined {
  const { isDirectory, uid, mode } = Deno.lstatSync(path);
  if (!isDirectory) return "it is no folder";
  if (uid !== Deno.uid()) return `it belongs to user ${uid}`;
  if (mode === null || (mode & 0o077) !== 0) {
    return "other users can enter it";
  }
  return undefined;
}

function isFolder(path: string): boolean {
  try {
    return Deno.lstatSync(path).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) throw error;
    return false;
  }
}
