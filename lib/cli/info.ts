/**
 * `moonbright info`: what there is to work with, and what is missing.
 *
 * @module
 */

import { formatSize } from "../sizes.ts";
import type { Command } from "./command.ts";
import { DEVICE_FLAG, deviceOf } from "./device_flag.ts";
import { ExitCode } from "./exit_codes.ts";
import type { DeviceReport, ProbeReport } from "./host.ts";
import type { Style } from "./style.ts";
import { renderPairs, renderTable } from "./table.ts";

/** The command. */
export const infoCommand: Command = {
  name: "info",
  summary: "show devices, the library, and what is missing",
  usage: "",
  details:
    `Exit code 3 says that no device can be used, or not the one asked for with
--device.`,
  flags: [DEVICE_FLAG],
  examples: [
    { args: "info", what: "all devices and backends" },
    { args: "info --device cuda:0 --json", what: "one device, as JSON" },
  ],
  run(context) {
    const device = deviceOf(context.flags);
    context.progress.update("looking for devices");
    const report = chosen(context.host.probe(), device);
    if (context.json) {
      context.printJson({
        command: "info",
        version: context.host.version,
        ...report,
      });
    } else {
      context.print(renderInfo(report, context.host.version, context.style));
    }
    return report.backends.some(({ devices }) => devices.length > 0)
      ? ExitCode.OK
      : ExitCode.NO_DEVICE;
  },
};

/** The part of a report that is about the chosen device and its backend. */
function chosen(report: ProbeReport, device: string): ProbeReport {
  if (device === "auto") return report;
  const [name, ordinal = "0"] = device.split(":");
  return {
    ...report,
    backends: report.backends.filter((backend) => backend.name === name)
      .map((backend) => {
        const devices = backend.devices.filter(({ info }) =>
          info.ordinal === Number(ordinal)
        );
        const missing = devices.length === 0 && backend.problem === null;
        return {
          ...backend,
          devices,
          problem: missing
            ? `there is no ${device}: ${backend.devices.length} devices of this kind were found`
            : backend.problem,
        };
      }),
  };
}

function renderInfo(
  { library, backends }: ProbeReport,
  version: string,
  style: Style,
): string {
  const devices = backends.flatMap((backend) => backend.devices);
  const problems = backends.flatMap(({ name, problem }) =>
    problem === null ? [] : [[name, problem] as const]
  );
  const about: [string, string][] = [
    ["moonbright", version],
    ["library", library.path ?? "none"],
    ...(library.origin === null
      ? []
      : [["found", library.origin] as [string, string]]),
    ["ABI version", String(library.abiVersion ?? "unknown")],
    ["cache folder", library.cacheFolder ?? "none"],
  ];
  return renderPairs(about) +
    (library.problem === null
      ? ""
      : `\n${style.red("No library can be used")}\n  ${library.problem}\n`) +
    (devices.length === 0 ? "" : `\n${renderDevices(devices, style)}`) +
    (problems.length === 0
      ? ""
      : `\n${style.bold("Not usable")}\n${renderPairs(problems)}`);
}

function renderDevices(
  devices: readonly DeviceReport[],
  style: Style,
): string {
  return renderTable(
    [
      { title: "device" },
      { title: "name" },
      { title: "architecture" },
      { title: "memory", align: "right" },
      { title: "free", align: "right" },
      { title: "granularity", align: "right" },
      { title: "driver", align: "right" },
    ],
    devices.map(({ id, info, freeMemory }) => [
      id,
      info.name,
      info.architecture,
      formatSize(info.totalMemory),
      freeMemory === null ? "unknown" : formatSize(freeMemory),
      formatSize(info.granularity),
      info.driverVersion === 0 ? "none" : String(info.driverVersion),
    ]),
    style,
  );
}
