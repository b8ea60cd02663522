import { assertEquals, assertThrows } from "@std/assert";
import type { Flag } from "../lib/cli/command.ts";
import { parseFlags } from "../lib/cli/flags.ts";
import { UsageError } from "../lib/cli/usage_error.ts";

const FLAGS: Flag[] = [
  { name: "json", summary: "" },
  { name: "no-color", summary: "" },
  { name: "help", letter: "h", summary: "" },
  { name: "budget", value: "SIZE", summary: "" },
  { name: "seed", value: "NUMBER", summary: "" },
  { name: "order", value: "ORDER", choices: ["fifo", "lifo"], summary: "" },
];

Deno.test("flags and positionals are told apart, numbers stay text", () => {
  const flags = parseFlags(
    ["512", "--json", "x", "10", "--budget=1.5GiB", "--seed", "7", "1e3"],
    FLAGS,
  );
  assertEquals(flags.positionals, ["512", "x", "10", "1e3"]);
  assertEquals(flags.on("json"), true);
  assertEquals(flags.on("no-color"), false);
  assertEquals(flags.size("budget"), 1.5 * 2 ** 30);
  assertEquals(flags.integer("seed", 0, 10), 7);
  assertEquals(flags.text("order"), undefined);
  assertEquals(flags.size("order"), undefined);
});

Deno.test("letters, on and off, and what follows --", () => {
  assertEquals(parseFlags(["-h"], FLAGS).on("help"), true);
  assertEquals(parseFlags(["--no-color"], FLAGS).on("no-color"), true);
  assertEquals(parseFlags(["--json=false"], FLAGS).on("json"), false);
  assertEquals(
    parseFlags(["--json", "--", "--seed"], FLAGS).positionals,
    ["--seed"],
  );
});

Deno.test("stopEarly leaves everything from the first positional on", () => {
  const flags = parseFlags(
    ["--budget", "1MiB", "alloc", "--unknown", "-x"],
    FLAGS,
    true,
  );
  assertEquals(flags.positionals, ["alloc", "--unknown", "-x"]);
  assertEquals(flags.text("budget"), "1MiB");
});

for (
  const [args, message] of [
    [["--sede", "1"], `Unknown flag "--sede"; did you mean "--seed"?`],
    [["--sede=1"], `Unknown flag "--sede"; did you mean "--seed"?`],
    [["--frobnicate"], `Unknown flag "--frobnicate"`],
    [["-x"], `Unknown flag "-x"`],
    [["-hx"], `Unknown flag "-hx"`],
    [["--no-json"], `Unknown flag "--no-json"`],
    [["--__proto__", "1"], `Unknown flag "--__proto__"`],
    [["--seed"], "Cannot use --seed: it needs a value, NUMBER"],
    [["--seed", "--json"], "Cannot use --seed: it needs a value, NUMBER"],
    [["--seed="], "Cannot use --seed: it needs a value, NUMBER"],
    [["--json=maybe"], `Cannot use --json: it is on or off`],
    [
      ["--order", "fifi"],
      `"fifi" is none of fifo, lifo; did you mean "fifo"?`,
    ],
  ] as [string[], string][]
) {
  Deno.test(`"${args.join(" ")}" is refused`, () => {
    assertThrows(() => parseFlags(args, FLAGS), UsageError, message);
  });
}

Deno.test("values that are no sizes or numbers are refused, with the flag's name", () => {
  const bad = (name: string, value: string) =>
    parseFlags([`--${name}=${value}`], FLAGS);
  for (const value of ["lots", "1.5", "-1", "0.1KiB", "99999999TiB", "1 2"]) {
    const flags = bad("budget", value);
    assertThrows(() => flags.size("budget"), UsageError, "--budget");
  }
  for (const value of ["x", "1.5", "-1", "11", "1e1", "0x5", " 5"]) {
    const flags = bad("seed", value);
    assertThrows(
      () => flags.integer("seed", 0, 10),
      UsageError,
      "is not a whole number between 0 and 10",
    );
  }
});
