import { assertGreater } from "@std/assert";
import { join } from "@std/path";

let copies = 0;

/** A copy of a library in which the functions named go by other names; returns its path. */
export function libraryWithout(
  dir: string,
  library: string,
  ...names: string[]
): string {
  const bytes = Deno.readFileSync(library);
  for (const name of names) {
    const text = new TextEncoder().encode(`\0${name}\0`);
    let found = 0;
    for (let at = 0; at <= bytes.length - text.length; at++) {
      if (text.some((byte, offset) => bytes[at + offset] !== byte)) continue;
      bytes[at + 1] = "x".charCodeAt(0);
      found++;
    }
    assertGreater(found, 0, name);
  }
  const path = join(dir, `without-${copies++}.so`);
  Deno.writeFileSync(path, bytes);
  return path;
}
