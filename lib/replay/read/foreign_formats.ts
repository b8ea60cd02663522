/**
 * Files that people may take for a recorded workload, told by how they begin.
 *
 * @module
 */

interface ForeignFormat {
  /** First bytes, as Latin-1 text. */
  begins: string;
  /** What it is, and what to do instead. */
  is: string;
}

const RECORD =
  "of PyTorch, give the file that torch.cuda.memory._dump_snapshot(path) writes";
const UNPACK = "unpack it first, or pack it with gzip";

const FORMATS: readonly ForeignFormat[] = [
  {
    begins: "PK\x03\x04",
    is: `it is a zip archive, such as torch.save writes; ${RECORD}`,
  },
  { begins: "\x89PNG", is: "it is a PNG picture" },
  { begins: "GIF8", is: "it is a GIF picture" },
  { begins: "\xff\xd8\xff", is: "it is a JPEG picture" },
  { begins: "%PDF", is: "it is a PDF document" },
  { begins: "\x7fELF", is: "it is a program" },
  { begins: "\x28\xb5\x2f\xfd", is: `it is packed with zstd; ${UNPACK}` },
  { begins: "\xfd7zXZ\x00", is: `it is packed with xz; ${UNPACK}` },
  { begins: "BZh", is: `it is packed with bzip2; ${UNPACK}` },
  { begins: "\x04\x22\x4d\x18", is: `it is packed with lz4; ${UNPACK}` },
  { begins: "7z\xbc\xaf", is: `it is packed with 7-Zip; ${UNPACK}` },
  {
    begins: "SQLite format 3\x00",
    is: `it is an SQLite database, such as Nsight Systems exports; ${RECORD}`,
  },
  { begins: "\x89HDF", is: "it is an HDF5 file" },
  { begins: "\x93NUMPY", is: "it is a NumPy array" },
  { begins: "PAR1", is: "it is a Parquet table" },
  {
    begins: "<",
    is: `it is a web page or XML; if PyTorch's memory_viz made it, ${RECORD}`,
  },
];

/** Bytes that have to be at hand to tell. */
export const LONGEST_MAGIC: number = Math.max(
  ...FORMATS.map(({ begins }) => begins.length),
);

/** What a file is that begins like this, undefined if nothing is known of it. */
export function foreignFormat(head: Uint8Array): string | undefined {
  return FORMATS.find(({ begins }) => {
    for (let i = 0; i < begins.length; i++) {
      if (head[i] !== begins.charCodeAt(i)) return false;
    }
    return true;
  })?.is;
}
