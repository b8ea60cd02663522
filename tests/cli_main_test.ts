import { assert, assertEquals } from "@std/assert";
import { type Command, COMMON_FLAGS } from "../lib/cli/command.ts";
import { COMMANDS } from "../lib/cli/commands.ts";
import { EXIT_CODE_MEANINGS, ExitCode } from "../lib/cli/exit_codes.ts";
import { runCli } from "../lib/cli/main.ts";
import { type ErrorCode, MoonBrightError } from "../lib/errors.ts";
import { FakeHost, type Outcome } from "./cli/fake_host.ts";

/** A command that only does what the test gives it. */
function commandThat(run: Command["run"]): Command {
  return {
    name: "act",
    summary: "act as the test says",
    usage: "",
    flags: [{ name: "loud", summary: "" }],
    examples: [],
    run,
  };
}

async function act(
  run: Command["run"],
  host = new FakeHost(),
  ...args: string[]
): Promise<Outcome> {
  const code = await runCli(["act", ...args], host, [commandThat(run)]);
  return { code, stdout: host.stdout.text, stderr: host.stderr.text };
}

Deno.test("help lists every command, flag and exit code", async () => {
  const host = new FakeHost();
  for (const args of [["help"], ["--help"], ["-h"]]) {
    const { code, stdout, stderr } = await host.run(...args);
    assertEquals([code, stderr], [0, ""]);
    for (const { name, summary } of COMMANDS) {
      assert(
        stdout.split("\n").some((line) =>
          line.trim().startsWith(name) && line.endsWith(summary)
        ),
        name,
      );
    }
    for (const { name } of COMMON_FLAGS) assert(stdout.includes(`--${name}`));
    for (const code of Object.values(ExitCode)) {
      assert(new RegExp(`^ +${code} +\\w`, "m").test(stdout), String(code));
    }
  }
});

for (const command of COMMANDS) {
  Deno.test(`help of ${command.name} lists its flags and examples`, async () => {
    const host = new FakeHost();
    const asked = await host.run("help", command.name);
    const flagged = await host.run(command.name, "--help");
    assertEquals(asked, flagged);
    assertEquals(asked.code, 0);
    for (const { name, letter, value } of [...command.flags, ...COMMON_FLAGS]) {
      assert(asked.stdout.includes(value ? `--${name} ${value}` : `--${name}`));
      if (letter) assert(asked.stdout.includes(`-${letter}, --${name}`));
    }
    assert(command.examples.length > 0);
    for (const { args } of command.examples) {
      assert(asked.stdout.includes(`moonbright ${args}\n`));
    }
    for (const line of asked.stdout.split("\n")) {
      assert(line.length <= 80, `longer than 80 letters: ${line}`);
    }
  });

  Deno.test(`${command.name} names the nearest flag`, async () => {
    const { code, stderr } = await new FakeHost().run(command.name, "--jsno");
    assertEquals(code, 2);
    assertEquals(
      stderr,
      `moonbright: Unknown flag "--jsno"; did you mean "--json"?\n` +
        `Try "moonbright ${command.name} --help"\n`,
    );
  });
}

Deno.test("help and version come as JSON too", async () => {
  const host = new FakeHost();
  const help = JSON.parse((await host.run("help", "--json")).stdout);
  assertEquals(help.schemaVersion, 1);
  assertEquals(
    help.commands.map(({ name }: Command) => name),
    COMMANDS.map(({ name }) => name),
  );
  const one = JSON.parse((await host.run("alloc", "-h", "--json")).stdout);
  assertEquals(one.commands.length, 1);
  const version = await host.run("--version", "--json");
  assertEquals(JSON.parse(version.stdout), {
    schemaVersion: 1,
    version: "1.2.3-test",
  });
  assertEquals((await host.run("--version")).stdout, "moonbright 1.2.3-test\n");
});

for (
  const [args, message] of [
    [["aloc"], `Unknown command "aloc"; did you mean "alloc"?`],
    [["ifno", "--json"], `Unknown command "ifno"; did you mean "info"?`],
    [["help", "hlep"], `Unknown command "hlep"; did you mean "help"?`],
    [["help", "info", "alloc"], `help takes one command`],
    [["frobnicate"], `Unknown command "frobnicate"\n`],
    [["--vresion"], `Unknown flag "--vresion"; did you mean "--version"?`],
    [["info", "extra"], `Unexpected argument "extra"`],
    [["info", "--device", "cuda:x"], `"cuda:x" is not auto, host, cuda:N`],
    [["info", "--device=cdua:0"], `did you mean "cuda"?`],
    [["alloc"], "Cannot allocate nothing"],
    [["alloc", "12QB"], `Cannot read the size "12QB"`],
    [["alloc", "-5"], `Unknown flag "-5"`],
    [["alloc", "1", "--budget", "much"], "Cannot use --budget"],
    [["alloc", "1", "--seed=-1"], "Cannot use --seed"],
    [["alloc", "1", "--order", "fif"], `did you mean "fifo"?`],
    [["--json"], "no command is given"],
  ] as [string[], string][]
) {
  Deno.test(`"${args.join(" ")}" is wrong usage`, async () => {
    const host = new FakeHost();
    const { code, stdout, stderr } = await host.run(...args);
    assertEquals(code, 2);
    assert(stderr.startsWith("moonbright: "), stderr);
    assert(stderr.includes(message), stderr);
    if (args.includes("--json")) {
      assertEquals(JSON.parse(stdout).error.exitCode, 2);
    } else assertEquals(stdout, "");
    assertEquals(host.opened.length, 0);
  });
}

Deno.test("no command at all prints the help where errors go", async () => {
  const { code, stdout, stderr } = await new FakeHost().run();
  assertEquals([code, stdout], [2, ""]);
  assert(stderr.includes("moonbright COMMAND"));
});

Deno.test("flags may stand before the command, and -- ends them", async () => {
  const host = new FakeHost();
  const { code, stdout } = await host.run("--json", "alloc", "512", "--", "1k");
  assertEquals(code, 0);
  assertEquals(JSON.parse(stdout).specs.length, 2);
});

Deno.test("every error code has its exit code", async () => {
  const expected: Record<ErrorCode, number> = {
    "bad-trace": 6,
    "untrusted": 3,
    "canary": 1,
    "no-answer": 7,
    "out-of-memory": 4,
    "out-of-addresses": 4,
    "no-library": 3,
    "library-mismatch": 3,
    "no-compiler": 3,
    "permission": 3,
    "no-device": 3,
    "unsupported": 3,
    "invalid-block": 1,
    "invalid-handle": 1,
    "closed": 1,
    "lost": 1,
    "limit": 1,
    "not-found": 1,
    "not-mapped": 1,
    "cannot-grow": 1,
    "busy": 1,
    "driver": 1,
  };
  for (const [code, exitCode] of Object.entries(expected)) {
    const { code: got, stdout, stderr } = await act(() => {
      throw new MoonBrightError(code as ErrorCode, "act", "Cannot act: why");
    });
    assertEquals([got, stdout], [exitCode, ""], code);
    assertEquals(stderr, "moonbright: Cannot act: why\n");
    assert(exitCode in EXIT_CODE_MEANINGS);
  }
});

Deno.test("an unexpected error comes with its stack and exit code 1", async () => {
  const { code, stdout, stderr } = await act(() => {
    throw new TypeError("nobody expected this");
  });
  assertEquals([code, stdout], [1, ""]);
  assert(stderr.startsWith("moonbright: TypeError: nobody expected this\n"));
  assert(stderr.includes("cli_main_test.ts"), stderr);
});

Deno.test("a refused permission is told without a stack", async () => {
  const { code, stderr } = await act(() => {
    throw new Deno.errors.NotCapable("Requires ffi access");
  });
  assertEquals([code, stderr], [3, "moonbright: Requires ffi access\n"]);
});

Deno.test("colour shows only on a terminal that takes it", async () => {
  const fail: Command["run"] = (context) => {
    context.warn("careful");
    context.print(`${context.style.bold("title")}\n`);
    throw new MoonBrightError("driver", "act", "Cannot act");
  };
  const on = (stdout: boolean, stderr: boolean, noColor = false) => {
    const host = new FakeHost();
    host.stdout.isTerminal = stdout;
    host.stderr.isTerminal = stderr;
    host.noColor = noColor;
    return host;
  };
  const both = await act(fail, on(true, true));
  assertEquals(both.stdout, "\x1b[1mtitle\x1b[22m\n");
  assertEquals(
    both.stderr,
    "\x1b[33mmoonbright: warning:\x1b[39m careful\n" +
      "\x1b[31mmoonbright: Cannot act\x1b[39m\n",
  );
  const piped = await act(fail, on(false, true));
  assert(!piped.stdout.includes("\x1b") && piped.stderr.includes("\x1b[31m"));
  for (
    const outcome of [
      await act(fail, on(true, true, true)),
      await act(fail, on(true, true), "--no-color"),
      await act(fail, on(false, false)),
    ]
  ) {
    assertEquals(outcome.stdout, "title\n");
    assertEquals(
      outcome.stderr,
      "moonbright: warning: careful\nmoonbright: Cannot act\n",
    );
  }
});

Deno.test("progress goes to a terminal's standard error and leaves nothing", async () => {
  const run: Command["run"] = (context) => {
    context.progress.update("working");
    context.printJson({ done: true });
    return ExitCode.OK;
  };
  const host = new FakeHost();
  host.stderr.isTerminal = true;
  const watched = await act(run, host);
  assertEquals(watched.stderr, "\rworking\r       \r");
  const unwatched = await act(run);
  assertEquals(unwatched.stderr, "");
  assertEquals(watched.stdout, unwatched.stdout);
  assertEquals(JSON.parse(watched.stdout), { schemaVersion: 1, done: true });
});
