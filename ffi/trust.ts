/**
 * Whether a file can be loaded as code: nobody but its user and the system's
 * administrator may have written it, or may replace it.
 *
 * The rule, for the file and for every folder above it, all links followed: it belongs to
 * the user or to root, and only they may write to it. Members of its group may too, since
 * many systems give each user a group of their own. Others may write to a folder only if
 * it is sticky, as `/tmp` is: what lies in it is still safe from them.
 *
 * To look at all that, a program needs `--allow-read` and `--allow-sys=uid`. One that may
 * load only files that its flags name (`--allow-ffi=FILE`) does without: who wrote the
 * flags vouches for the files, and only what may be looked at is checked.
 *
 * @module
 */

import { dirname, relative, resolve } from "@std/path";
import { MoonBrightError } from "../lib/errors.ts";
import { readEnv } from "./env.ts";

const ROOT = 0;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/** Links that are followed one after the other; systems give up at 40. */
const MOST_LINKS = 40;

/** Set to 1, it has files loaded whoever may have written them. */
export const OVERRIDE = "MOONBRIGHT_TRUST_ANYONE";

/** What of a file or folder matters here. */
export interface Ownership {
  /** Its owner; `null` where the system has none. */
  uid: number | null;
  /** Its kind and permission bits; `null` where the system has none. */
  mode: number | null;
  /** Whether it is a folder. */
  isDirectory: boolean;
}

/** Why what lies at a place may be another's work, for a user; undefined if it may not. */
export function distrust(
  { uid, mode, isDirectory }: Ownership,
  user: number | null,
): string | undefined {
  if (user !== null && uid !== null && uid !== user && uid !== ROOT) {
    return `belongs to user ${uid}, neither to this one (${user}) nor to root`;
  }
  if (mode === null || (mode & OTHERS_WRITE) === 0) return undefined;
  if (isDirectory && (mode & STICKY) !== 0) return undefined;
  return "can be written to by every user";
}

/**
 * Asserts that a file that is about to be loaded can be trusted. A path of which nothing
 * is there yet is judged by the folders above it.
 *
 * @throws {MoonBrightError} code `untrusted` if another user may have written it, or
 *   `permission` if that can't be found out; the message says what to do
 */
export function assertTrusted(path: string): void {
  if (Deno.build.os === "windows" || readEnv(OVERRIDE) === "1") return;
  const vouched = Deno.permissions.querySync({ name: "ffi" }).state !==
    "granted";
  const looker = { path, user: userId(path, vouched), vouched };
  checkChain(looker, resolve(path), MOST_LINKS);
}

interface Looker {
  /** The file, as it was asked for. */
  path: string;
  user: number | null;
  /** Whether flags vouch for what can't be looked at. */
  vouched: boolean;
}

/** Checks a place and all folders above it, and where the links among them lead. */
function checkChain(looker: Looker, place: string, linksLeft: number): void {
  for (let at = place, above; at !== above; above = at, at = dirname(at)) {
    const info = lookAt(looker, at, () => Deno.lstatSync(at));
    if (!info) continue;
    // A link has an owner, who decides where it leads; its mode says nothing.
    const mode = info.isSymlink ? null : info.mode;
    const why = linksLeft === 0
      ? "is a link among too many"
      : distrust({ ...info, mode }, looker.user);
    if (why !== undefined) throw untrusted(looker.path, at, why);
    if (!info.isSymlink) continue;
    const target = lookAt(looker, at, () => Deno.readLinkSync(at));
    if (target === undefined) continue;
    const led = resolve(dirname(at), target, relative(at, place));
    checkChain(looker, led, linksLeft - 1);
  }
}

/** What a look at a place gives; undefined if nothing is there or flags vouch for it. */
function lookAt<T>(
  { vouched }: Looker,
  at: string,
  look: () => T,
): T | undefined {
  try {
    return look();
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    // A file where a folder should be: whoever opens it will say so.
    if (cause instanceof Deno.errors.NotADirectory) return undefined;
    if (!(cause instanceof Deno.errors.NotCapable)) throw cause;
    if (vouched) return undefined;
    throw new MoonBrightError(
      "permission",
      "open",
      `Cannot find out who may write to "${at}": that needs --allow-read; or name the library's file in --allow-ffi`,
      { cause },
    );
  }
}

function userId(path: string, vouched: boolean): number | null {
  try {
    return Deno.uid();
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotCapable)) throw cause;
    if (vouched) return null;
    throw new MoonBrightError(
      "permission",
      "open",
      `Cannot find out whose "${path}" is: that needs --allow-sys=uid; or name the library's file in --allow-ffi`,
      { cause },
    );
  }
}

function untrusted(path: string, at: string, why: string): MoonBrightError {
  return new MoonBrightError(
    "untrusted",
    "open",
    `Cannot trust "${path}": "${at}" ${why}; change its owner or mode, name another place with MOONBRIGHT_CACHE or MOONBRIGHT_LIB, or set ${OVERRIDE}=1 to load it all the same`,
  );
}
