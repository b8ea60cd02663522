/**
 * The command line of MoonBright. The commands are in `lib/cli/`.
 *
 * @module
 */

import config from "./deno.json" with { type: "json" };
import { cacheFolder } from "./ffi/build.ts";
import { probeBackends } from "./ffi/devices.ts";
import { kernelImage } from "./ffi/kernels.ts";
import { MoonBright } from "./ffi/moonbright.ts";
import { ABI_VERSION } from "./ffi/symbols.ts";
import { runCli } from "./lib/cli/main.ts";
import { processHost } from "./lib/cli/process_host.ts";

if (import.meta.main) {
  const host = processHost(config.version, {
    abiVersion: ABI_VERSION,
    open: (options) => MoonBright.open(options),
    probe: () => probeBackends(),
    cacheFolder,
    kernelImage,
  });
  Deno.exit(await runCli(Deno.args, host));
}
