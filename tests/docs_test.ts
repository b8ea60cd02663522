import { assert, assertEquals, assertMatch } from "@std/assert";
import { fromFileUrl, join, relative } from "@std/path";

const ROOT = fromFileUrl(new URL("../", import.meta.url));
const SKIPPED = new Set([
  ...[".git", ".denow", ".offline", ".work", "vendor", "node_modules"],
  "shared",
]);

/** All pages of the repository, by path within it. */
function* pages(folder = ROOT): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (SKIPPED.has(name)) continue;
    const path = join(folder, name);
    if (isDirectory) yield* pages(path);
    else if (name.endsWith(".md")) yield relative(ROOT, path);
  }
}

/** A page without its code: what looks like a link or heading there is none. */
function prose(page: string): string {
  return Deno.readTextFileSync(join(ROOT, page))
    .replace(/^```[^]*?^```$/gm, "");
}

/** What a link names a heading by, as GitHub makes it. */
function slug(heading: string): string {
  return heading.trim().toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

function headings(page: string): string[] {
  return [...prose(page).matchAll(/^#+ (.*)$/gm)].map(([, text]) => text!);
}

/** Links of a page to files of the repository: target and heading, either may be empty. */
function* links(page: string): Generator<{ file: string; heading: string }> {
  for (const [, target] of prose(page).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target!)) continue;
    const [file = "", heading = ""] = target!.split("#");
    yield { file, heading };
  }
}

Deno.test("links between pages lead to files and headings that are there", () => {
  let found = 0;
  const broken: string[] = [];
  for (const page of pages()) {
    for (const { file, heading } of links(page)) {
      found++;
      const target = file === "" ? page : relative(
        ROOT,
        join(ROOT, page, "..", file),
      );
      try {
        Deno.statSync(join(ROOT, target));
        if (heading === "") continue;
        if (headings(target).map(slug).includes(heading)) continue;
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
      broken.push(`${page}: ${file}#${heading}`);
    }
  }
  assertEquals(broken, []);
  assert(found > 20);
});

Deno.test("the guide's index names every page of it", () => {
  const listed = [...links("docs/README.md")].map(({ file }) => file);
  for (const page of pages(join(ROOT, "docs"))) {
    if (page === "docs/README.md") continue;
    assert(listed.includes(page.slice("docs/".length)), page);
  }
});

Deno.test("every error code has a section that says what to do", () => {
  const source = Deno.readTextFileSync(join(ROOT, "lib/errors.ts"));
  const union = /export type ErrorCode =([^;]*);/.exec(source)![1]!;
  const codes = [...union.matchAll(/"([a-z-]+)"/g)].map(([, code]) => code!);
  assert(codes.length > 10);
  const [, ...sections] = prose("docs/errors.md").split(/^## /m);
  assertEquals(sections.map((text) => text.split("\n", 1)[0]!), codes);
  for (const section of sections) assertMatch(section, /What\s+to\s+do:/);
});
