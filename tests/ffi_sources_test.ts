import { assertEquals } from "@std/assert";
import { KERNEL_SOURCES, SHIM_SOURCES, type Sources } from "../ffi/sources.ts";

/** The C files of a folder by name. */
async function readSources(folder: string): Promise<Sources> {
  const url = new URL(`../${folder}/`, import.meta.url);
  const sources: Record<string, string> = {};
  for await (const { name } of Deno.readDir(url)) {
    if (/\.[ch]$/.test(name)) {
      sources[name] = await Deno.readTextFile(new URL(name, url));
    }
  }
  return sources;
}

for (
  const [folder, listed] of [
    ["native", SHIM_SOURCES],
    ["kernels", KERNEL_SOURCES],
  ] as const
) {
  Deno.test(`every C file of ${folder}/ travels as text`, async () => {
    const inFolder = await readSources(folder);
    assertEquals(Object.keys(listed).sort(), Object.keys(inFolder).sort());
    for (const [name, text] of Object.entries(inFolder)) {
      assertEquals(listed[name], text, `${name} holds another file's text`);
    }
  });
}
