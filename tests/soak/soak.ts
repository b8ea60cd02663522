/**
 * `deno task soak`: a minute of checked random use of the host's memory, and as long of
 * hostile calls of the shim, both with address and undefined-behaviour checks in the shim.
 *
 *     deno task soak [MINUTES]
 *
 * @module
 */

import { fromFileUrl } from "@std/path";
import { buildFakeCuda, buildFakeHip } from "../fake/build.ts";
import { buildSanitizedShim } from "./sanitizers.ts";

const script = (path: string) => fromFileUrl(new URL(path, import.meta.url));

if (import.meta.main) {
  const minutes = Number(Deno.args[0] ?? 1);
  if (!(minutes > 0)) {
    console.error("Give a number of minutes");
    Deno.exit(2);
  }
  const folder = await Deno.makeTempDir({ prefix: "moonbright-soak-" });
  let failed = false;
  try {
    const shim = await buildSanitizedShim(folder);
    if (!shim) console.error("cc has no sanitizers: soaking without them");
    const targets = ["host", await buildFakeCuda(), await buildFakeHip()];
    const ms = `${minutes * 60_000 / targets.length}`;
    const hostile = script("../abuse/hostile_calls.ts");
    const runs = [
      [script("load.ts"), "--device", "host", "--minutes", `${minutes}`],
      ...targets.map((target) => [hostile, target, "--ms", ms]),
    ];
    for (const args of runs) {
      const { success } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", ...args],
        env: shim?.env ?? {},
        stdout: "inherit",
        stderr: "inherit",
      }).output();
      failed ||= !success;
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  Deno.exit(failed ? 1 : 0);
}
