/**
 * Benchmark runs in files: a folder for each machine, in it one for each device.
 *
 * @module
 */

import { join } from "@std/path";
import type { BenchEnvironment, BenchReport } from "../bench/report.ts";
import { BadFileError } from "./bad_file_error.ts";
import { writeTextFile } from "./files.ts";
import { UsageError } from "./usage_error.ts";

/** The folder of an environment's runs, within the one given. */
export function runsFolder(
  folder: string,
  { platform, processor, device }: BenchEnvironment,
): string {
  return join(
    folder,
    fileName(`${platform} ${processor ?? ""}`),
    fileName(`${device.backend} ${device.name}`),
  );
}

/**
 * Writes a run into its folder, under its time and commit. Returns the file.
 *
 * @throws {UsageError} if it can't be written
 */
export function saveRun(folder: string, report: BenchReport): string {
  const { environment } = report;
  const place = runsFolder(folder, environment);
  try {
    Deno.mkdirSync(place, { recursive: true });
  } catch (cause) {
    throw new UsageError(
      `Cannot make the folder "${place}": ${(cause as Error).message}`,
      { cause },
    );
  }
  const commit = environment.commit?.slice(0, 12) ?? environment.version;
  // Names in the order of time: the last one is the newest.
  const file = join(place, `${fileName(environment.time)}-${commit}.json`);
  writeTextFile(file, JSON.stringify(report));
  return file;
}

/**
 * Reads a run: of a folder of saved runs the newest one of this machine and device.
 *
 * @throws {UsageError} if there is none, or it was on another device
 * @throws {BadFileError} if the file is no run
 */
export function readRun(path: string, here: BenchEnvironment): BenchReport {
  const file = isFolder(path) ? newestIn(runsFolder(path, here)) : path;
  const run = parseRun(file);
  const { device } = run.environment;
  if (
    device.name !== here.device.name || device.backend !== here.device.backend
  ) {
    throw new UsageError(
      `Cannot compare with "${file}": it was on ${device.name} (${device.backend}), this is ${here.device.name} (${here.device.backend})`,
    );
  }
  return run;
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch (cause) {
    throw new UsageError(
      `Cannot read "${path}": ${(cause as Error).message}`,
      { cause },
    );
  }
}

function newestIn(folder: string): string {
  let newest = "";
  try {
    for (const { name, isFile } of Deno.readDirSync(folder)) {
      if (isFile && name.endsWith(".json") && name > newest) newest = name;
    }
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotFound)) throw cause;
  }
  if (newest === "") {
    throw new UsageError(
      `Cannot compare: no run of this machine and device is saved in "${folder}"; make one with --save`,
    );
  }
  return join(folder, newest);
}

function parseRun(file: string): BenchReport {
  let run: BenchReport;
  try {
    run = JSON.parse(Deno.readTextFileSync(file));
  } catch (cause) {
    throw new BadFileError(
      `Cannot read "${file}": ${(cause as Error).message}`,
      { cause },
    );
  }
  if (!isRun(run)) {
    throw new BadFileError(
      `Cannot read "${file}": it is no benchmark run of this version, such as "bench --out" and "--save" write`,
    );
  }
  return run;
}

function isRun(run: BenchReport): boolean {
  return run?.schemaVersion === 1 &&
    typeof run.environment?.device?.name === "string" &&
    Array.isArray(run.series) &&
    run.series.every((one) =>
      typeof one?.group === "string" && typeof one.subject === "string" &&
      typeof one.size === "number" && Array.isArray(one.samples) &&
      one.samples.every((sample) => typeof sample === "number")
    );
}

/** A text in letters that every file system takes. */
function fileName(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9.]+/g, "-")
    .replace(/^-+|-+$/g, "") || "unknown";
}
