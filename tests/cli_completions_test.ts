import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { COMMON_FLAGS } from "../lib/cli/command.ts";
import { COMMANDS } from "../lib/cli/commands.ts";
import { FakeHost } from "./cli/fake_host.ts";

const NAMES = COMMANDS.map(({ name }) => name);

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout, stderr } = await new FakeHost().run(
    "completions",
    shell,
  );
  assertEquals([code, stderr], [0, ""]);
  return stdout;
}

/** Whether a shell is installed, and the end of a test's name if it is not. */
function need(shell: string): { ignore: boolean; reason: string } {
  try {
    new Deno.Command(shell, { args: ["--version"] }).outputSync();
    return { ignore: false, reason: "" };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return { ignore: true, reason: ` (ignored: ${shell} not installed)` };
  }
}

/** Runs a script in a shell that reads no files of the user's. */
async function runIn(shell: string, script: string): Promise<string> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/a file`, "");
    const quiet: Record<string, string[]> = {
      bash: ["--norc"],
      zsh: ["-f"],
      fish: ["--no-config"],
    };
    const { code, stdout, stderr } = await new Deno.Command(shell, {
      args: [...quiet[shell]!, "-c", script],
      cwd: folder,
      env: { HOME: folder, TERM: "dumb" },
    }).output();
    const decoder = new TextDecoder();
    assertEquals([code, decoder.decode(stderr)], [0, ""]);
    return decoder.decode(stdout);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const bash = need("bash");

/** What bash offers for a command line whose words are given as bash cuts them. */
async function bashOffers(...words: string[]): Promise<string[]> {
  const quoted = ["moonbright", ...words].map((word) => `'${word}'`).join(" ");
  const text = await runIn(
    "bash",
    `${await scriptFor("bash")}
COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}
_moonbright
printf '%s\\n' "\${COMPREPLY[@]}"`,
  );
  return text.split("\n").filter(Boolean);
}

Deno.test({
  name: `bash completes commands, flags, choices and files${bash.reason}`,
  ignore: bash.ignore,
  async fn() {
    assertEquals(await bashOffers(""), NAMES);
    assertEquals(await bashOffers("re"), ["replay"]);
    assertEquals(await bashOffers("--json", "in"), ["info"]);
    assertEquals(await bashOffers("replay", "--pol"), ["--policy"]);
    assertEquals(await bashOffers("replay", "--policy", ""), [
      "default",
      "latency",
    ]);
    assertEquals(await bashOffers("replay", "--policy", "=", "la"), [
      "latency",
    ]);
    assertEquals(await bashOffers("replay", "--policy", "="), [
      "default",
      "latency",
    ]);
    assertEquals(await bashOffers("replay", "--budget", ""), []);
    assertEquals(await bashOffers("replay", "a"), ["a file"]);
    assertEquals(await bashOffers("replay", "--html", ""), ["a file"]);
    assertEquals(await bashOffers("info", ""), []);
    assertEquals(await bashOffers("help", "to"), ["top"]);
    assertEquals(await bashOffers("completions", ""), ["bash", "zsh", "fish"]);
    assertEquals(await bashOffers("--device", "h"), ["host", "hip:0"]);
    for (const { name, flags } of COMMANDS) {
      const offered = await bashOffers(name, "--");
      assertEquals(
        offered,
        [...flags, ...COMMON_FLAGS].map((flag) => `--${flag.name}`),
      );
    }
  },
});

const fish = need("fish");

Deno.test({
  name: `fish completes commands, flags, choices and files${fish.reason}`,
  ignore: fish.ignore,
  async fn() {
    const offers = async (line: string) => {
      const text = await runIn(
        "fish",
        `${await scriptFor("fish")}\ncomplete -C '${line}'`,
      );
      return text.split("\n").filter(Boolean).map((one) => one.split("\t"));
    };
    const commands = await offers("moonbright ");
    assertEquals(commands.map(([name]) => name).sort(), NAMES.toSorted());
    const summary = COMMANDS.find(({ name }) => name === "top")!.summary;
    assertEquals(await offers("moonbright to"), [["top", summary]]);
    assertEquals(
      (await offers("moonbright replay --policy ")).map(([name]) => name),
      ["default", "latency"],
    );
    const flags = (await offers("moonbright map --")).map(([name]) => name);
    for (const name of ["--svg", "--html", "--list", "--json"]) {
      assert(flags.includes(name), name);
    }
    assertEquals((await offers("moonbright replay a")).flat(), ["a file"]);
    assertEquals(await offers("moonbright info a"), []);
    assertEquals((await offers("moonbright help inf"))[0]![0], "info");
  },
});

const zsh = need("zsh");

Deno.test({
  name:
    `zsh reads its completions and has a case for each command${zsh.reason}`,
  ignore: zsh.ignore,
  async fn() {
    const script = await scriptFor("zsh");
    // As sourced; what completes a line needs a terminal.
    const text = await runIn(
      "zsh",
      `autoload -Uz compinit; compinit -u -D\n${script}\nprint $_comps[moonbright]; whence -w _moonbright`,
    );
    assertEquals(text, "_moonbright\n_moonbright: function\n");
    assert(script.startsWith("#compdef moonbright\n"));
    for (const name of NAMES) {
      assertStringIncludes(script, `        ${name})\n`);
    }
  },
});

Deno.test("a shell that is none is refused", async () => {
  const { code, stderr } = await new FakeHost().run("completions", "fihs");
  assertEquals(code, 2);
  assertStringIncludes(stderr, `did you mean "fish"?`);
  assertEquals((await new FakeHost().run("completions")).code, 2);
  assertEquals(
    (await new FakeHost().run("completions", "bash", "zsh")).code,
    2,
  );
  const json = await new FakeHost().run("completions", "zsh", "--json");
  assertEquals(JSON.parse(json.stdout).script, await scriptFor("zsh"));
});
