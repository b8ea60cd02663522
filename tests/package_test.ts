import {
  assert,
  assertEquals,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { fromFileUrl, join, relative } from "@std/path";
import config from "../deno.json" with { type: "json" };

const ROOT = fromFileUrl(new URL("../", import.meta.url));

/** Files that publishing would take, by path within the repository. */
async function publishedFiles(): Promise<string[]> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["publish", "--dry-run", "--allow-dirty", "--no-check"],
    cwd: ROOT,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder();
  const output = text.decode(stdout) + text.decode(stderr);
  assert(success, output);
  return [...output.matchAll(/^\s+(file:\S+) \(.*\)$/gm)]
    .map(([, url]) => relative(ROOT, fromFileUrl(url!)));
}

const files = await publishedFiles();

Deno.test("what is published is what users need, and nothing else", () => {
  const needed = [
    ...["mod.ts", "cli.ts", "deno.json", "README.md", "LICENSE"],
    ...["native/moonbright.h", "kernels/moonbright.h", "kernels/target.h"],
  ];
  for (const file of needed) assert(files.includes(file), file);
  for (const file of files) {
    assert(!/_test\.|(^|\/)tests?\/|\.so$/.test(file), file);
  }
});

Deno.test("published modules import nothing as text or bytes", async () => {
  for (const file of files.filter((name) => /\.[jt]s$/.test(name))) {
    const source = await Deno.readTextFile(join(ROOT, file));
    const found = /\bwith\s*\{\s*type:\s*"(text|bytes)"/.exec(
      // Texts that are embedded may say anything.
      file.includes("/embedded/") ? "" : source.replace(/^ \*.*$/gm, ""),
    );
    assertEquals(found?.[0], undefined, file);
  }
});

/** Runs deno in the folder of a user who has the package from a server of modules. */
async function asUser(
  use: (
    deno: (...args: string[]) => Promise<string>,
    cache: string,
  ) => Promise<void>,
): Promise<void> {
  const temporary = await Deno.makeTempDir({ prefix: "moonbright-package-" });
  const copy = join(temporary, "registry", config.name, config.version);
  const user = join(temporary, "user");
  for (const file of files) {
    await Deno.mkdir(join(copy, file, ".."), { recursive: true });
    await Deno.copyFile(join(ROOT, file), join(copy, file));
  }
  await using server = Deno.serve(
    { port: 0, onListen: () => {} },
    (request) => serveFile(join(temporary, "registry"), request),
  );
  const base =
    `http://localhost:${server.addr.port}/${config.name}/${config.version}`;
  // In place of what a registry writes into modules: the packages behind bare names.
  const imports = Object.fromEntries(
    Object.entries(config.imports).filter(([name]) => name.startsWith("@std/")),
  );
  await Deno.mkdir(user, { recursive: true });
  await Deno.writeTextFile(
    join(user, "deno.json"),
    JSON.stringify({
      vendor: true, // what is fetched stays in this folder
      nodeModulesDir: "none",
      lock: false,
      imports: { ...imports, [config.name]: `${base}/mod.ts` },
    }),
  );
  await copyFolder(join(ROOT, "vendor"), join(user, "vendor"));
  try {
    await use(async (...args) => {
      const { code, stdout, stderr } = await new Deno.Command(
        Deno.execPath(),
        {
          args: args.map((arg) => arg.replace("BASE", base)),
          cwd: user,
          env: { NO_COLOR: "1", MOONBRIGHT_CACHE: join(temporary, "cache") },
        },
      ).output();
      assertEquals(code, 0, new TextDecoder().decode(stderr));
      return new TextDecoder().decode(stdout);
    }, join(temporary, "cache"));
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
}

async function serveFile(folder: string, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  try {
    const body = await Deno.readFile(join(folder, pathname));
    const type = pathname.endsWith(".ts")
      ? "application/typescript"
      : pathname.endsWith(".js")
      ? "text/javascript"
      : pathname.endsWith(".json")
      ? "application/json"
      : "text/plain";
    return new Response(body, { headers: { "content-type": type } });
  } catch {
    return new Response("none", { status: 404 });
  }
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}

// Of a module from elsewhere, deno does not look for the folder's configuration by itself.
const CLI = ["run", "--quiet", "-A", "--config=deno.json", "BASE/cli.ts"];

const PROGRAM = `
import { kernelImage, MoonBright } from "@moonbright/moonbright";

using mb = MoonBright.open({ device: "host" });
using block = mb.alloc(1024);
using module = mb.loadModule(kernelImage("pattern", mb.device));
module.kernel("mb_pattern_fill").launch({ grid: [1], block: [64] }, [
  block, { u64: 128 }, { u64: 5 },
]);
console.log(new Set(new BigUint64Array(block.read().buffer)).size);
`;

Deno.test("from a registry, the shim and the kernels are built on first use", async () => {
  await asUser(async (deno, cache) => {
    assertEquals(
      await deno("eval", "--ext=ts", PROGRAM.replaceAll("\n", " ")),
      "128\n",
    );
    const built: string[] = [];
    for (const { name, isDirectory } of Deno.readDirSync(cache)) {
      if (!isDirectory) continue;
      for (const file of Deno.readDirSync(join(cache, name))) {
        built.push(file.name);
      }
    }
    assertEquals(built.sort(), ["libmoonbright.so", "pattern.so"]);
  });
});

Deno.test("from a registry, the command line works, reports included", async () => {
  await asUser(async (deno) => {
    const info = JSON.parse(
      await deno(...CLI, "info", "--json"),
    );
    assertEquals(info.library.origin, "cache");
    assertMatch(
      await deno(...CLI, "alloc", "1MiB", "--device", "host"),
      /1 MiB/,
    );
    const trace = await Deno.makeTempFile({ suffix: ".csv" });
    const page = `${trace}.html`;
    await Deno.writeTextFile(
      trace,
      "Thread,Time,Action,Pointer,Size,Stream\n" +
        "0,00:00:00.000001,allocate,0x10,1000,0\n" +
        "0,00:00:00.000002,free,0x10,1000,0\n",
    );
    try {
      await deno(
        ...[...CLI, "replay", trace, "--model"],
        ...["--html", page],
      );
      assertStringIncludes(await Deno.readTextFile(page), "echarts");
    } finally {
      await Deno.remove(trace);
      await Deno.remove(page);
    }
  });
});

Deno.test("a program and the command line's start need no chart library", async () => {
  for (const module of ["mod.ts", "cli.ts"]) {
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", module],
      cwd: ROOT,
    }).output();
    const { modules, npmPackages } = JSON.parse(
      new TextDecoder().decode(stdout),
    );
    assert(modules.length > 30);
    const packages = Object.keys(npmPackages ?? {});
    assertEquals(packages.filter((name) => name.startsWith("echarts")), []);
  }
});
