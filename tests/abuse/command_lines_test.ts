/**
 * Random command lines, in process: whatever is typed ends soon, with an exit code of the
 * documented ones that is not "internal failure", and says what to do.
 */

import { assert, assertEquals } from "@std/assert";
import { join } from "@std/path";
import fc from "fast-check";
import { openDriver } from "../../ffi/devices.ts";
import { kernelImage } from "../../ffi/kernels.ts";
import {
  type Command,
  COMMON_FLAGS,
  type Flag,
  VERSION_FLAG,
} from "../../lib/cli/command.ts";
import { COMMANDS } from "../../lib/cli/commands.ts";
import { DEVICE_FLAG } from "../../lib/cli/device_flag.ts";
import { ExitCode } from "../../lib/cli/exit_codes.ts";
import type { CliOpenOptions, KernelImageName } from "../../lib/cli/host.ts";
import type { DeviceInfo, Driver } from "../../lib/driver.ts";
import { MoonBrightError } from "../../lib/errors.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import { writeTrace } from "../../lib/replay/write_trace.ts";
import { FakeHost, type Outcome } from "../cli/fake_host.ts";
import { makeTrace } from "../replay/make_trace.ts";

/** Ctrl-C comes after this long: none of these lines need be waited for. */
const PATIENCE_MS = 25;
/** What takes this long after Ctrl-C hangs. */
const HANG_MS = 60_000;

const SIZES = [
  "0",
  "1",
  "512",
  "4KiB",
  "64 KiB",
  "1MiB",
  "1.5mib",
  "2g",
  "1TiB",
];
const BAD_SIZES = [
  "",
  "-1",
  "1e9",
  "0x10",
  "0.1",
  "NaN",
  "99999999999999999999",
  "9007199254740993",
  "1PiB",
  "1 2 3",
  "∞",
  "１",
];
const FORMATS = [
  "moonbright",
  "nvidia-v2",
  "amd-gfx9",
  "MOONBRIGHT",
  "toString",
];
const WORDS = [
  "reuse",
  "first",
  "memory",
  "x",
  "64KiBx3",
  "512 x 100",
  "1MiB,",
  ",",
  "x5",
  "512x",
  "512x0",
  "512x-1",
  "512x99999999999",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "--",
  "-",
  "---",
  "-h",
  "-hh",
  "-x=1",
  "--=",
  "--=x",
  "--no-json",
  "--no-",
  "--json=false",
  "--json=yes",
  "\u0000",
  "\x1b[31m",
  "\ud800",
  "a\nb",
  "../..",
  "1",
  "4294967295",
];

/** Host over the host backend, for what the model lacks: baselines, paging kernels. */
class NativeHost extends FakeHost {
  override makeDriver = (): Driver => openDriver({ device: "host" });

  override kernelImage(name: KernelImageName, device: DeviceInfo): Uint8Array {
    return kernelImage(name, device);
  }
}

/** Host without a library. */
class BareHost extends FakeHost {
  override open(_options: CliOpenOptions): MoonBright {
    throw new MoonBrightError("no-device", "open", "Cannot open: no device");
  }

  override probe(): never {
    throw new MoonBrightError("no-library", "open", "Cannot open: no library");
  }
}

/** A folder of recordings, good and bad, in which relative paths are. */
async function inFolder(body: (files: string[]) => Promise<void>) {
  const before = Deno.cwd();
  const folder = await Deno.makeTempDir({ prefix: "moonbright-lines-" });
  const deep = join(folder, "a", "b", "c", "d");
  await Deno.mkdir(join(deep, "folder"), { recursive: true });
  const trace = makeTrace(
    [
      ["ALLOC", 0x1000, 5000, 0, 10],
      ["ALLOC", 0x8000, 700, 1, 20],
      ["FREE", 0x1000, 5000, 0, 30],
    ],
    [],
    ["0", "7"],
  );
  await Deno.writeFile(join(deep, "good.trace"), writeTrace(trace));
  const bytes = await Deno.readFile(join(deep, "good.trace"));
  const half = bytes.subarray(0, bytes.length >> 1);
  await Deno.writeFile(join(deep, "cut.trace"), half);
  await Deno.writeTextFile(join(deep, "empty"), "");
  await Deno.writeTextFile(join(deep, "text"), "no recording\n".repeat(99));
  Deno.chdir(deep);
  try {
    await body([
      ...["good.trace", "good.trace", "cut.trace", "empty", "text", "folder"],
      ...["absent", "absent/file", "folder/new", join(deep, "new")],
    ]);
  } finally {
    Deno.chdir(before);
    await Deno.remove(folder, { recursive: true });
  }
}

/** Anything, but no path out of the folder. */
const anything = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom(...WORDS, ...SIZES, ...BAD_SIZES, ...FORMATS),
  fc.integer().map(String),
  fc.double().map(String),
  fc.constantFrom("x".repeat(5000), "1".repeat(400), "☾".repeat(300)),
).map((text) => text.replaceAll("/", ".").replaceAll("..", "."));

function fittingValue(
  flag: Flag,
  files: readonly string[],
): fc.Arbitrary<string> {
  const fitting: fc.Arbitrary<string>[] = [];
  if (flag.choices) fitting.push(fc.constantFrom(...flag.choices));
  if (flag.default) fitting.push(fc.constant(flag.default));
  if (flag.value === "SIZE") fitting.push(fc.constantFrom(...SIZES));
  if (flag.value === "FILE") fitting.push(fc.constantFrom(...files));
  if (flag.value === "DEVICE") {
    fitting.push(
      fc.constantFrom("auto", "host", "cuda:0", "hip:1", "cuda:9999"),
    );
  }
  if (fitting.length === 0 || flag.value === "NUMBER") {
    fitting.push(fc.integer({ min: 0, max: 40 }).map(String));
  }
  return fc.oneof(...fitting);
}

function valueOf(flag: Flag, files: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fittingValue(flag, files) },
    { weight: 1, arbitrary: anything },
  );
}

/** What a command wants to be told besides flags, or nothing. */
function wordsOf(
  { usage }: Command,
  files: readonly string[],
): fc.Arbitrary<string[]> {
  const wanted = usage.startsWith("SPEC")
    ? fc.constantFrom(...SIZES, "4KiB x 10", "512x100")
    : usage.includes("FILE")
    ? fc.constantFrom(...files)
    : undefined;
  if (!wanted) return fc.constant<string[]>([]);
  const most = usage.split(" ").length;
  return fc.oneof(
    {
      weight: 5,
      arbitrary: fc.array(wanted, { minLength: 1, maxLength: most }),
    },
    { weight: 1, arbitrary: fc.constant<string[]>([]) },
  );
}

/** A flag in one of the ways to write it; now and then without its value, unless `right`. */
function written(
  flag: Flag,
  files: readonly string[],
  right = false,
): fc.Arbitrary<string[]> {
  const { name, letter, value } = flag;
  if (right) {
    return value === undefined
      ? fc.constant([`--${name}`])
      : fittingValue(flag, files).map((text) => [`--${name}=${text}`]);
  }
  if (value === undefined) {
    return fc.constantFrom(
      [`--${name}`],
      [`--${name}`],
      ...(letter ? [[`-${letter}`]] : []),
      [`--${name}=true`],
      [`--${name}=${name}`],
    );
  }
  return fc.tuple(valueOf(flag, files), fc.nat(9)).map(([text, way]) =>
    way === 0
      ? [`--${name}`]
      : way === 1
      ? [`--${name}=`]
      : way < 5
      ? [`--${name}=${text}`]
      : [`--${name}`, text]
  );
}

function lineOf(files: readonly string[]): fc.Arbitrary<string[]> {
  const leading = fc.oneof(
    ...[...COMMON_FLAGS, VERSION_FLAG, DEVICE_FLAG].map((flag) =>
      written(flag, files)
    ),
  );
  const word = fc.oneof(
    fc.constantFrom(...WORDS, ...SIZES),
    fc.constantFrom(...files),
    anything,
  );
  const ofCommand = fc.constantFrom(...COMMANDS).chain((command) => {
    const flags = [...command.flags, ...COMMON_FLAGS];
    // Of some lines all may be right: else few would get as far as a device.
    const right = fc.oneof(
      ...flags.filter(({ name }) => name !== "help").map((f) =>
        written(f, files, true)
      ),
    );
    const part = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.oneof(...flags.map((f) => written(f, files))),
      },
      { weight: 2, arbitrary: word.map((one) => [one]) },
      { weight: 1, arbitrary: leading },
    );
    return fc.tuple(
      fc.oneof(
        { weight: 9, arbitrary: fc.constant(command.name) },
        { weight: 1, arbitrary: fc.constantFrom(`${command.name}s`, "") },
      ),
      wordsOf(command, files),
      fc.oneof(
        fc.array(part, { maxLength: 6 }),
        fc.array(right, { maxLength: 3 }),
      ),
    ).map(([name, words, parts]) => [name, ...words, ...parts.flat()]);
  });
  return fc.tuple(
    fc.oneof(
      { weight: 4, arbitrary: fc.constant<string[][]>([]) },
      { weight: 1, arbitrary: fc.array(leading, { maxLength: 2 }) },
    ),
    fc.oneof(
      { weight: 8, arbitrary: ofCommand },
      { weight: 1, arbitrary: fc.array(anything, { maxLength: 5 }) },
    ),
  ).map(([before, line]) => [...before.flat(), ...line]);
}

const hostOf = fc.record({
  kind: fc.constantFrom("model", "model", "native", "bare"),
  terminal: fc.boolean(),
  width: fc.constantFrom(0, 1, 20, 80, 400),
}).map(({ kind, terminal, width }) => {
  const host = kind === "native"
    ? new NativeHost()
    : kind === "bare"
    ? new BareHost()
    : new FakeHost();
  host.interactive = terminal;
  host.stdout.isTerminal = terminal;
  host.stderr.isTerminal = terminal;
  host.stdout.width = width;
  return host;
});

/** Runs a line, with Ctrl-C soon, and fails if it goes on after that. */
async function runLine(host: FakeHost, line: string[]): Promise<Outcome> {
  const interrupts = setInterval(() => host.interrupt?.(), PATIENCE_MS);
  let hang: ReturnType<typeof setTimeout> | undefined;
  try {
    return await Promise.race([
      host.run(...line),
      new Promise<never>((_, reject) => {
        hang = setTimeout(() => reject(new Error("it hangs")), HANG_MS);
      }),
    ]);
  } finally {
    clearInterval(interrupts);
    clearTimeout(hang);
  }
}

function check(host: FakeHost, line: string[], outcome: Outcome): void {
  const { code, stdout, stderr } = outcome;
  const codes: number[] = Object.values(ExitCode);
  assert(codes.includes(code), `exit code ${code}`);
  // The model device has no kernels for page tables.
  const lacking = stderr.includes('no kernel "mb_materialize"; register it');
  assert(code !== ExitCode.FAILURE || lacking, stderr);
  assert(!/^ {4}at /m.test(stderr), stderr);
  assert(host.opened.every(({ closed }) => closed), "left an instance open");
  if (code === ExitCode.USAGE) assert(/Try "|moonbright/.test(stderr), stderr);
  if (code !== ExitCode.OK) assert(stderr + stdout !== "", "says nothing");
  // `top` prints a document a line.
  if (stdout.startsWith("{") && !line.includes("top")) JSON.parse(stdout);
}

/** So that what other programs publish on this machine has no say. */
function withoutOthers<T>(body: () => Promise<T>): Promise<T> {
  const names = ["XDG_RUNTIME_DIR", "TMPDIR"];
  const before = names.map((name) => Deno.env.get(name));
  const nowhere = join(Deno.cwd(), "nowhere");
  for (const name of names) Deno.env.set(name, nowhere);
  return body().finally(() => {
    names.forEach((name, index) => {
      const value = before[index];
      if (value === undefined) Deno.env.delete(name);
      else Deno.env.set(name, value);
    });
  });
}

// Opened before any test: the library stays open for the life of the process.
openDriver({ device: "host" }).close();

const LINES = Number(Deno.env.get("MOONBRIGHT_LINES") ?? 600);

Deno.test(`${LINES} random command lines end as documented`, async () => {
  const reached = new Set<number>();
  await inFolder((files) =>
    withoutOthers(() =>
      fc.assert(
        fc.asyncProperty(hostOf, lineOf(files), async (host, line) => {
          const outcome = await runLine(host, line);
          check(host, line, outcome);
          reached.add(outcome.code);
        }),
        { numRuns: LINES },
      )
    )
  );
  for (const code of [0, 2, 3, 4, 6]) {
    assert(reached.has(code), `never ${code}`);
  }
});

Deno.test("words that are no commands are refused, whatever they are", async () => {
  const host = new FakeHost();
  for (const word of WORDS) {
    const { code } = await host.run(word);
    const fine = ["-h", "-hh", "--no-json", "--json=false", "--", "-"];
    if (!fine.includes(word)) assertEquals(code, ExitCode.USAGE, word);
  }
});
