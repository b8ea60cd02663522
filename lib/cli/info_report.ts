/**
 * What `info` found, for programs and for people.
 *
 * @module
 */

import type { DeviceInfo } from "../driver.ts";
import { MoonBrightError } from "../errors.ts";
import { formatSize } from "../sizes.ts";
import type { CliHost, Found, FoundBackend, FoundDevice } from "./host.ts";
import type { Style } from "./style.ts";
import { renderPairs, renderTable } from "./table.ts";

/** A device. */
export interface DeviceReport extends FoundDevice {
  /** Bytes free now, `null` if it can't be opened. */
  freeMemory: number | null;
}

/** A backend. */
export interface BackendReport extends FoundBackend {
  /** Its devices. */
  devices: DeviceReport[];
}

/** Everything that a run of `info` found. Sizes in bytes. */
export interface InfoReport {
  /** Always `info`. */
  command: "info";
  /** Version of MoonBright. */
  version: string;
  /** The shim library. */
  library: {
    /** Its file, `null` if none can be used. */
    path: string | null;
    /** How it was come by. */
    origin: string | null;
    /** Version of its binary interface. */
    abiVersion: number | null;
    /** Where built libraries are kept, `null` if there is no such place. */
    cacheFolder: string | null;
    /** Why none can be used and what to do about it. */
    problem: string | null;
  };
  /** The backends, usable or not. */
  backends: BackendReport[];
}

/** Looks for everything, or only for one device other than `auto`. */
export function takeInfo(host: CliHost, device: string): InfoReport {
  let found: Found | undefined;
  let problem: string | null = null;
  try {
    found = host.probe();
  } catch (error) {
    if (!(error instanceof MoonBrightError)) throw error;
    problem = error.message;
  }
  return {
    command: "info",
    version: host.version,
    library: {
      path: found?.library.path ?? null,
      origin: found?.library.origin ?? null,
      abiVersion: found ? host.abiVersion : null,
      cacheFolder: host.cacheFolder() ?? null,
      problem,
    },
    backends: chosen(found?.backends ?? [], device).map((backend) =>
      withFreeMemory(host, backend)
    ),
  };
}

/** The backend of the chosen device with that device alone; all for `auto`. */
function chosen(
  backends: readonly FoundBackend[],
  device: string,
): readonly FoundBackend[] {
  if (device === "auto") return backends;
  const [name, ordinal = "0"] = device.split(":");
  return backends.filter((backend) => backend.name === name)
    .map(({ name, devices, problem }) => {
      const wanted = devices.filter(({ info }) =>
        info.ordinal === Number(ordinal)
      );
      const numbers = devices.map(({ id }) => id).join(", ");
      return {
        name,
        devices: wanted,
        problem: wanted.length > 0
          ? null
          : problem ?? `there is no ${device}, only ${numbers}`,
      };
    });
}

/** Only an open device tells how much is free. */
function withFreeMemory(host: CliHost, backend: FoundBackend): BackendReport {
  let { problem } = backend;
  const devices = backend.devices.map(({ id, info }) => {
    try {
      using mb = host.open({ device: id });
      return { id, info, freeMemory: mb.driver.memoryInfo().free };
    } catch (error) {
      if (!(error instanceof MoonBrightError)) throw error;
      problem = error.message;
      return { id, info, freeMemory: null };
    }
  });
  return { name: backend.name, devices, problem };
}

/** The report as text. */
export function renderInfo(report: InfoReport, style: Style): string {
  const { version, library, backends } = report;
  const devices = backends.flatMap((backend) => backend.devices);
  const limited = devices.filter(({ info }) => info.plainReason !== undefined);
  const problems = backends.filter(({ problem }) => problem !== null);
  const facts: [string, string][] = [["moonbright", version]];
  if (library.path !== null) {
    facts.push(
      ["library", library.path],
      ["found", library.origin ?? "unknown"],
      ["ABI version", String(library.abiVersion)],
    );
  }
  facts.push(["cache folder", library.cacheFolder ?? "none"]);
  return [
    renderPairs(facts),
    library.problem === null
      ? ""
      : `${style.red("no library can be used")}\n  ${library.problem}\n`,
    devices.length === 0 ? "" : renderDevices(devices, style),
    limited.length === 0 ? "" : style.bold("can't map memory") + "\n" +
      renderPairs(limited.map(({ id, info }) => [id, info.plainReason!])),
    problems.length === 0 ? "" : style.bold("missing") + "\n" +
      renderPairs(problems.map(({ name, problem }) => [name, problem!])),
  ].filter(Boolean).join("\n");
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
      formatDriverVersion(info),
    ]),
    style,
  );
}

/** Versions as the vendors print them: 13.0 for CUDA's 13000, 6.4.43483 for HIP's 60443483. */
function formatDriverVersion({ backend, driverVersion }: DeviceInfo): string {
  if (driverVersion === 0) return "none";
  switch (backend) {
    case "cuda": {
      const major = Math.floor(driverVersion / 1000);
      return `${major}.${(driverVersion % 1000) / 10}`;
    }
    case "hip": {
      const major = Math.floor(driverVersion / 10_000_000);
      const minor = Math.floor(driverVersion / 100_000) % 100;
      return `${major}.${minor}.${driverVersion % 100_000}`;
    }
    default:
      return String(driverVersion);
  }
}
