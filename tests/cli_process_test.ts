import { assert, assertEquals } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import config from "../deno.json" with { type: "json" };
import { buildHostKernels, buildShim, cacheFolder } from "../ffi/build.ts";

const CLI = fromFileUrl(new URL("../cli.ts", import.meta.url));

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

function command(
  permissions: string[],
  args: string[],
  options: Deno.CommandOptions = {},
): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", ...permissions, CLI, ...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    ...options,
  });
}

async function run(
  args: string[],
  { permissions = ["-A"], env = {} }: {
    permissions?: string[];
    env?: Record<string, string>;
  } = {},
): Promise<Outcome> {
  const { code, stdout, stderr } = await command(permissions, args, { env })
    .output();
  const decoder = new TextDecoder();
  return {
    code,
    stdout: decoder.decode(stdout),
    stderr: decoder.decode(stderr),
  };
}

Deno.test("the process ends with the exit code of its command", async () => {
  const version = await run(["--version"]);
  assertEquals(version, {
    code: 0,
    stdout: `moonbright ${config.version}\n`,
    stderr: "",
  });
  const unknown = await run(["aloc"]);
  assertEquals([unknown.code, unknown.stdout], [2, ""]);
  assert(unknown.stderr.includes(`did you mean "alloc"?`));
  const absent = await run(["alloc", "1", "--device=host:99"]);
  assertEquals(absent.code, 3, absent.stderr);
  const large = await run(
    ["alloc", "8MiB", "--budget=4MiB", "--device=host", "--json"],
  );
  assertEquals(large.code, 4, large.stderr);
  assertEquals(JSON.parse(large.stdout).error.code, "out-of-memory");
});

Deno.test("help and version need no permission and write no escapes", async () => {
  for (const args of [["help"], ["alloc", "--help"], ["--version"]]) {
    const { code, stdout, stderr } = await run(args, {
      permissions: [],
      env: { NO_COLOR: "1" },
    });
    assertEquals([code, stderr], [0, ""]);
    assert(stdout.length > 0 && !stdout.includes("\x1b"));
  }
});

Deno.test("info finds the host's device and its library", async () => {
  const { code, stdout, stderr } = await run(["info", "--json"]);
  assertEquals([code, stderr], [0, ""]);
  const { schemaVersion, library, backends } = JSON.parse(stdout);
  assertEquals([schemaVersion, library.problem], [1, null]);
  assert(Deno.statSync(library.path).isFile);
  const host = backends.find(({ name }: { name: string }) => name === "host");
  assertEquals(host.devices.length, 1);
  const [{ info, freeMemory }] = host.devices;
  assert(freeMemory > 0 && freeMemory <= info.totalMemory);
});

for (const verify of ["kernel", "host"]) {
  Deno.test(`alloc on the host's real memory, verified by ${verify}`, async () => {
    const { code, stdout, stderr } = await run([
      ...["alloc", "--device", "host", "--verify", verify, "--json"],
      ...["4MiB", "x", "4", "700 x 300", "3"],
    ]);
    assertEquals([code, stderr], [0, ""]);
    const { specs, verification, release } = JSON.parse(stdout);
    assertEquals(specs.length, 3);
    assertEquals(verification.mode, verify);
    assertEquals(verification.blocks, 305);
    assertEquals(verification.mismatches, []);
    assertEquals(release.complete, true);
    assertEquals(release.after.live, 0);
  });
}

Deno.test("alloc runs with no more permissions than it needs", async () => {
  const library = buildShim();
  buildHostKernels("pattern");
  const folder = cacheFolder()!;
  const permissions = [
    `--allow-ffi=${library}`,
    `--allow-read=${folder}`,
    `--allow-env`,
  ];
  const args = ["alloc", "1MiBx3", "--device=host", "--verify=host"];
  const { code, stderr } = await run(args, { permissions });
  assertEquals([code, stderr], [0, ""]);
  const refused = await run(args, { permissions: permissions.slice(1) });
  assertEquals(refused.code, 3);
  assert(refused.stderr.includes("--allow-ffi"), refused.stderr);
  assert(!refused.stderr.includes("    at "), refused.stderr);
});

Deno.test("a library that is none ends with 3 and its path", async () => {
  const dir = await Deno.makeTempDir({ prefix: "moonbright-cli-" });
  try {
    const path = join(dir, "libmoonbright.so");
    await Deno.writeTextFile(path, "not a library");
    const env = { MOONBRIGHT_LIB: path };
    const alloc = await run(["alloc", "1", "--device=host"], { env });
    assertEquals([alloc.code, alloc.stdout], [3, ""]);
    assert(alloc.stderr.includes(path), alloc.stderr);
    const info = await run(["info"], { env });
    assertEquals(info.code, 3);
    assert(info.stdout.includes(path), info.stdout);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("output that nobody reads is no reason for noise", async () => {
  const child = command(["-A"], ["help"]).spawn();
  await child.stdout.cancel();
  const { code, stderr } = await child.output().catch(async () => ({
    code: (await child.status).code,
    stderr: new Uint8Array(await new Response(child.stderr).arrayBuffer()),
  }));
  // The text may fit the pipe before it is closed.
  assert(code === 0 || code === 1, String(code));
  assertEquals(new TextDecoder().decode(stderr), "");
});

Deno.test("SIGINT ends the process with 130", async () => {
  const child = command(["-A"], [
    ...["alloc", "512 x 5000000", "--device=host", "--verify=host"],
  ]).spawn();
  const timer = setInterval(() => {
    try {
      child.kill("SIGINT");
    } catch {
      // It has ended.
    }
  }, 700);
  const { code, signal, stdout, stderr } = await child.output();
  clearInterval(timer);
  assertEquals(code, 130);
  assertEquals(new TextDecoder().decode(stdout), "");
  // On a busy machine the signal may come before anything listens for it.
  if (signal === null) {
    assertEquals(new TextDecoder().decode(stderr), "moonbright: interrupted\n");
  }
});
