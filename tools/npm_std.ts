// Lets this project run where npm is reachable but jsr.io is not.
//
// deno.json takes the standard library from JSR and has Deno keep remote modules in
// vendor/. If jsr.io does not answer, this script writes the four @std packages there
// itself: each module re-exports the same code from npm's `deno-std`, typed by the
// declarations in tools/npm_std/. Delete vendor/ to go back to JSR.

/** Any version within deno.json's ^1 will do. */
const VERSION = "1.4.0";
const NPM = `npm:deno-std@${VERSION}`;
/** Entry points by package: what they are called on JSR, and their file on npm. */
const PACKAGES: Record<string, Record<string, string>> = {
  assert: { ".": "assert/mod.js" },
  cli: { "./parse-args": "cli/parse_args.js" },
  fmt: { "./colors": "fmt/colors.js" },
  path: { ".": "path/mod.js" },
};

async function jsrAnswers(): Promise<boolean> {
  try {
    const response = await fetch("https://jsr.io/@std/path/meta.json", {
      signal: AbortSignal.timeout(5000),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

function writePackage(
  folder: URL,
  name: string,
  modules: Record<string, string>,
): void {
  const dir = new URL(`jsr.io/@std/${name}/`, folder);
  Deno.mkdirSync(new URL(VERSION, dir), { recursive: true });
  const write = (path: string, text: string) =>
    Deno.writeTextFileSync(new URL(path, dir), text);
  Deno.copyFileSync(
    new URL(`npm_std/${name}.d.ts`, import.meta.url),
    new URL(`${VERSION}/types.d.ts`, dir),
  );
  const exports: Record<string, string> = {};
  for (const [entry, source] of Object.entries(modules)) {
    exports[entry] = `./${source.split("/")[1]!.replace(".js", ".ts")}`;
    write(
      `${VERSION}/${exports[entry]}`,
      `// @ts-types="./types.d.ts"\nexport * from "${NPM}/${source}";\n`,
    );
  }
  write("meta.json", JSON.stringify({ versions: { [VERSION]: {} } }));
  write(`${VERSION}_meta.json`, JSON.stringify({ exports, manifest: {} }));
}

if (!await jsrAnswers()) {
  const vendor = new URL("../vendor/", import.meta.url);
  // Written aside and renamed: a run that is cut off must not leave half a folder.
  const aside = new URL(`../vendor.${Deno.pid}/`, import.meta.url);
  for (const [name, modules] of Object.entries(PACKAGES)) {
    writePackage(aside, name, modules);
  }
  try {
    Deno.renameSync(aside, vendor);
    console.error(
      "jsr.io is out of reach: vendor/ now takes @std from npm's deno-std",
    );
  } catch {
    // Another first run was quicker.
    Deno.removeSync(aside, { recursive: true });
  }
}
