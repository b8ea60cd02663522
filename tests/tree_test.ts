import { assert, assertEquals } from "@std/assert";

const ROOT = new URL("../", import.meta.url);

/** Folders that are not part of the project, or explain themselves. */
const SKIPPED = new Set(["vendor", "node_modules", "shared"]);

function read(path: string): string {
  return Deno.readTextFileSync(new URL(path, ROOT));
}

/** Names in a folder: those of folders end in a slash. */
function namesIn(folder: string): string[] {
  return [...Deno.readDirSync(new URL(folder, ROOT))]
    .map(({ name, isDirectory }) => isDirectory ? `${name}/` : name);
}

/** What stands in a page in backticks. */
function quoted(page: string): Set<string> {
  return new Set(
    [...read(page).matchAll(/`([^`\n]+)`/g)].map(([, text]) => text!),
  );
}

/** The first cells of a page's tables, in backticks: one name or several. */
function listed(page: string): string[] {
  return [...read(page).matchAll(/^\| (`[^|]+`) +\|/gm)]
    .flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)])
    .map(([, name]) => name!);
}

/** All names below a folder, without the paths to them. */
function namesBelow(folder: string): Set<string> {
  const names = new Set<string>();
  for (const name of namesIn(folder)) {
    names.add(name);
    if (!name.endsWith("/")) continue;
    for (const below of namesBelow(folder + name)) names.add(below);
  }
  return names;
}

for (const folder of ["lib/", "ffi/"]) {
  Deno.test(`${folder}README.md lists every file and folder there, and no other`, () => {
    const there = namesIn(folder).filter((name) => /\.ts$|\/$/.test(name));
    assert(there.length > 5);
    assertEquals(listed(`${folder}README.md`).sort(), there.sort());
  });
}

Deno.test("what lib/README.md names is there", () => {
  const below = namesBelow("lib/");
  const gone = [...quoted("lib/README.md")].filter((name) =>
    /^[\w./-]+(\.ts|\/)$/.test(name) &&
    !below.has(name) && !namesIn("").includes(name) &&
    !exists(`lib/${name}`) && !exists(name)
  );
  assertEquals(gone, []);
});

Deno.test("lib/README.md says what every folder below it is for", () => {
  const names = quoted("lib/README.md");
  for (const name of namesBelow("lib/")) {
    if (name.endsWith("/")) assert(names.has(name), name);
  }
});

Deno.test("tests/README.md lists every folder of tests, and no other", () => {
  const there = namesIn("tests/").filter((name) => name.endsWith("/"));
  assertEquals(listed("tests/README.md").sort(), there.sort());
});

Deno.test("README.md says what every folder of the project is for", () => {
  const section = read("README.md").split("\n## Working on it\n")[1]!;
  const folders = [...section.matchAll(/^\| (?:\[)?`([^`]+\/)`/gm)]
    .map(([, name]) => name!);
  const there = namesIn("").filter((name) =>
    name.endsWith("/") && !name.startsWith(".") &&
    !SKIPPED.has(name.slice(0, -1))
  );
  assertEquals(folders.sort(), there.sort());
});

function exists(path: string): boolean {
  try {
    Deno.statSync(new URL(path, ROOT));
    return true;
  } catch {
    return false;
  }
}
