import { assert, assertEquals } from "@std/assert";
import { embed, EMBEDDINGS } from "../tools/embed.ts";

const ROOT = new URL("../", import.meta.url);

for (const embedding of EMBEDDINGS) {
  const { module, name, folder, files, key, binary } = embedding;

  Deno.test(`${module} holds the files of ${folder}`, async () => {
    assert(
      await Deno.readTextFile(new URL(module, ROOT)) === embed(embedding),
      `${module} is out of date: run "deno task embed"`,
    );
    const texts = (await import(new URL(module, ROOT).href))[name];
    const expected: Record<string, string> = {};
    for await (const { name: file } of Deno.readDir(new URL(folder, ROOT))) {
      if (!files.test(file)) continue;
      const path = new URL(folder + file, ROOT);
      expected[key?.(file) ?? file] = binary
        ? (await Deno.readFile(path)).toBase64()
        : await Deno.readTextFile(path);
    }
    assert(Object.keys(expected).length > 3);
    assertEquals(Object.keys(texts).sort(), Object.keys(expected).sort());
    for (const [file, text] of Object.entries(expected)) {
      // Long: a difference shown in full would help nobody.
      assert(texts[file] === text, `${file} differs`);
    }
  });
}
