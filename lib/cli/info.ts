/**
 * `moonbright info`: what there is to work with, and what is missing.
 *
 * @module
 */

import { renderBugReport } from "./bug_report.ts";
import type { Command } from "./command.ts";
import { DEVICE_FLAG, deviceOf } from "./device_flag.ts";
import { ExitCode } from "./exit_codes.ts";
import { renderInfo, takeInfo } from "./info_report.ts";

/** The command. */
export const infoCommand: Command = {
  name: "info",
  summary: "show devices, the library, and what is missing",
  usage: "",
  details:
    `Exit code 3 says that no device can be used, or not the one asked for with
--device.`,
  flags: [
    DEVICE_FLAG,
    { name: "report", summary: "print all of it as Markdown, for bug reports" },
  ],
  examples: [
    { args: "info", what: "all devices and backends" },
    { args: "info --device cuda:0 --json", what: "one device, as JSON" },
    { args: "info --report", what: "what a bug report should begin with" },
  ],
  run(context) {
    const device = deviceOf(context.flags);
    context.progress.update("looking for devices");
    const report = takeInfo(context.host, device);
    if (context.json) context.printJson(report);
    else if (context.flags.on("report")) {
      context.print(renderBugReport(report, context.host.machine()));
    } else context.print(renderInfo(report, context.style));
    const usable = report.backends.some(({ devices }) =>
      devices.some(({ freeMemory }) => freeMemory !== null)
    );
    return usable ? ExitCode.OK : ExitCode.NO_DEVICE;
  },
};
