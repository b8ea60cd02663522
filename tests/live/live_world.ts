// A folder of sockets of a test's own, and programs that publish.

/** Runs a test with an empty folder for sockets; returns what the test returns. */
export async function withLiveFolder<T>(
  body: (runtime: string) => Promise<T>,
): Promise<T> {
  const runtime = await Deno.makeTempDir({ prefix: "mb-live-" });
  const before = Deno.env.get("XDG_RUNTIME_DIR");
  const temporary = Deno.env.get("TMPDIR");
  Deno.env.set("XDG_RUNTIME_DIR", runtime);
  // The second place to look: programs of other tests must not show.
  Deno.env.set("TMPDIR", runtime);
  try {
    return await body(runtime);
  } finally {
    restore("XDG_RUNTIME_DIR", before);
    restore("TMPDIR", temporary);
    await Deno.remove(runtime, { recursive: true });
  }
}

function restore(name: string, value: string | undefined): void {
  if (value === undefined) Deno.env.delete(name);
  else Deno.env.set(name, value);
}

/** A program that publishes and then does what it is told, until it is killed. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Ends it at once, so that it can't tidy up. */
  kill(): Promise<void>;
}

/** Starts a program on a model device; it publishes when this resolves. */
export async function startProgram(
  body: string,
  permissions: readonly string[] = ["-A"],
): Promise<Program> {
  const at = (path: string) =>
    JSON.stringify(new URL(`../../${path}`, import.meta.url).href);
  const script = `
    import { MoonBright } from ${at("lib/moonbright.ts")};
    import { ModelDriver } from ${at("tests/model/model_driver.ts")};
    const mb = new MoonBright(new ModelDriver(), { publish: true });
    ${body}
    console.log("ready");
    setInterval(() => {}, 1000);
  `;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", ...permissions, "-"],
    cwd: new URL("../../", import.meta.url),
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(script));
  await writer.close();
  const said = child.stdout.getReader();
  const first = await said.read();
  const kill = async () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await said.cancel();
    await child.status;
  };
  if (first.done) {
    await kill();
    throw new Error("The program ended before it published");
  }
  return { pid: child.pid, kill, [Symbol.asyncDispose]: kill };
}
