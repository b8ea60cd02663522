/**
 * Writes TypeScript modules that hold other files: sources of the shim and of the kernels,
 * PTX, AMD code objects, and what runs in the page of a report.
 *
 *     deno task embed            after changing one of those files
 *
 * They could be imported as text (`with { type: "text" }`), but JSR's analysis of packages
 * has refused such imports, which a dry run of publishing does not show. A test compares
 * the modules with the files.
 *
 * @module
 */

const ROOT = new URL("../", import.meta.url);

/** A module to write. */
export interface Embedding {
  /** The module, within the repository. */
  module: string;
  /** What it exports: texts by file name. */
  name: string;
  /** The folder whose files it holds. */
  folder: string;
  /** Which of them. */
  files: RegExp;
  /** Makes the name that a text goes by; the file's own if left out. */
  key?: (file: string) => string;
  /** Whether they are no texts: they are held in base64. */
  binary?: boolean;
}

/** All modules that are written. */
export const EMBEDDINGS: readonly Embedding[] = [
  {
    module: "ffi/embedded/shim.ts",
    name: "SHIM",
    folder: "native/",
    files: /\.[ch]$/,
  },
  {
    module: "ffi/embedded/kernels.ts",
    name: "KERNELS",
    folder: "kernels/",
    files: /\.[ch]$/,
  },
  {
    module: "ffi/embedded/ptx.ts",
    name: "PTX",
    folder: "kernels/build/",
    files: /\.ptx$/,
    key: (file) => file.replace(/\.ptx$/, ""),
  },
  {
    module: "ffi/embedded/code_objects.ts",
    name: "CODE_OBJECTS",
    folder: "kernels/build/",
    files: /\.hsaco$/,
    key: (file) => file.replace(/\.hsaco$/, ""),
    binary: true,
  },
  {
    module: "lib/replay/report/embedded/page.ts",
    name: "PAGE",
    folder: "lib/replay/report/page/",
    files: /\.(js|css)$/,
  },
];

/** The text of a module. */
export function embed(
  { name, folder, files, key, binary = false }: Embedding,
): string {
  const found = [...Deno.readDirSync(new URL(folder, ROOT))]
    .map((entry) => entry.name)
    .filter((file) => files.test(file))
    .sort();
  const members = found.map((file) => {
    const path = new URL(folder + file, ROOT);
    const value = binary
      ? JSON.stringify(Deno.readFileSync(path).toBase64())
      : literal(Deno.readTextFileSync(path));
    return `  ${JSON.stringify(key?.(file) ?? file)}: ${value},\n`;
  });
  return `// Written by "deno task embed" from ${folder}: change the files there, not this one.

/** ${binary ? "Files" : "Texts of files"} of \`${folder}\`${
    binary ? " in base64" : ""
  }, by name. */
export const ${name} = {
${members.join("")}};
`;
}

/** A text as a template literal, so that its lines stay lines. */
function literal(text: string): string {
  const escaped = text.replace(/[\\`]|\$(?=\{)/g, "\\$&")
    // A literal carriage return would become a newline.
    .replaceAll("\r", "\\r");
  return `\`${escaped}\``;
}

if (import.meta.main) {
  for (const embedding of EMBEDDINGS) {
    const url = new URL(embedding.module, ROOT);
    Deno.mkdirSync(new URL(".", url), { recursive: true });
    Deno.writeTextFileSync(url, embed(embedding));
    console.log(embedding.module);
  }
}
