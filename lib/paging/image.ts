/**
 * Images of the vendors' multi-level page tables: directories above leaf tables, as the
 * hardware walks them, built in plain memory, and a walker that translates through them.
 *
 * They are for checking entries and for systems where an operating system installs them:
 * the stock drivers let no process hand the hardware page tables of its own.
 *
 * Every table takes a multiple of 4 KiB and all are in video memory.
 *
 * @module
 */

import {
  bits,
  decode,
  type EntryFormat,
  type FormatName,
  FORMATS,
  MAX_PAGE_SIZE,
} from "./formats.ts";

/** The layouts that hardware walks. */
export type ImageFormat = Exclude<FormatName, "moonbright">;

/** Bits of a virtual address that pick an entry of a table. */
interface Field {
  /** The lowest. */
  shift: number;
  /** How many. */
  bits: number;
}

/** Where a kind of page has its entries. */
interface LeafTable extends Field {
  /** Bytes of a page. */
  pageSize: number;
  /** Which 8-byte half of a directory's entry points to the table. */
  half: 0 | 1;
}

/** How a virtual address is walked. */
interface Layout {
  format: EntryFormat;
  /** Bits of a virtual address. */
  addressBits: number;
  /** From the root down. Entries of the last name leaf tables, or are pages of 2 MiB. */
  directories: readonly Field[];
  /** 8-byte halves of an entry of the last directory. */
  halves: 1 | 2;
  /** The walk takes the first that has a valid entry. */
  leafTables: readonly LeafTable[];
  /** Tells that a half of a directory's entry points to a table. */
  isPointer(entry: bigint): boolean;
  /** The half of a directory's entry that points to a table. */
  pointer(table: bigint): bigint;
  /** The table that it points to. */
  table(entry: bigint): bigint;
  /** An entry that ends the walk although other leaf tables may have the page. */
  unmapped?: bigint;
}

/** A page of an image. */
export interface ImagePage {
  /** Number of the virtual page, in pages of its own size. */
  page: number;
  /** Bytes of the page. */
  pageSize: number;
  /** Its entry, as `encode` gives it. */
  entry: bigint;
}

/** Page tables in memory. */
export interface TableImage {
  /** Its layout. */
  format: ImageFormat;
  /** Physical address that the words are meant for. */
  base: bigint;
  /** Physical address of the uppermost table: `base`. */
  root: bigint;
  /** All tables. */
  words: BigUint64Array<ArrayBuffer>;
}

/** What a walk found. */
export interface Translation {
  /** The entry. */
  entry: bigint;
  /** Bytes that the entry is for. */
  span: number;
  /** Physical address. */
  address: bigint;
  /** Whether writing is forbidden. */
  readOnly: boolean;
}

const TABLE_WORDS = 512;

/** Aperture of a directory's entry: video memory. 0 would say that it points to nothing. */
const APERTURE_MASK = bits(2, 1);
const APERTURE_VIDEO = 1n << 1n;

const NVIDIA_LEAF_TABLES: readonly LeafTable[] = [
  { pageSize: 65536, shift: 16, bits: 5, half: 0 },
  { pageSize: 4096, shift: 12, bits: 9, half: 1 },
];

const NVIDIA_LOWER_DIRECTORIES: readonly Field[] = [
  { shift: 38, bits: 9 },
  { shift: 29, bits: 9 },
  { shift: 21, bits: 8 },
];

/** Bit 0 would make a directory's entry a page. */
function isNvidiaPointer(entry: bigint): boolean {
  return (entry & 1n) === 0n && (entry & APERTURE_MASK) !== 0n;
}

const NVIDIA_V2: Layout = {
  format: FORMATS["nvidia-v2"],
  addressBits: 49,
  directories: [{ shift: 47, bits: 2 }, ...NVIDIA_LOWER_DIRECTORIES],
  halves: 2,
  leafTables: NVIDIA_LEAF_TABLES,
  isPointer: isNvidiaPointer,
  pointer: (table) => table >> 4n | APERTURE_VIDEO,
  table: (entry) => (entry & bits(32, 8)) << 4n,
  unmapped: 0x20n,
};

const NVIDIA_V3: Layout = {
  format: FORMATS["nvidia-v3"],
  addressBits: 57,
  directories: [
    { shift: 56, bits: 1 },
    { shift: 47, bits: 9 },
    ...NVIDIA_LOWER_DIRECTORIES,
  ],
  halves: 2,
  leafTables: NVIDIA_LEAF_TABLES,
  isPointer: isNvidiaPointer,
  pointer: (table) => table | APERTURE_VIDEO,
  table: (entry) => entry & bits(51, 12),
  unmapped: 0x18n,
};

/** Four levels of 9 bits. A larger page is a run of leaf entries that say how long it is. */
function amdLayout(name: ImageFormat): Layout {
  const format = FORMATS[name];
  return {
    format,
    addressBits: 48,
    directories: [
      { shift: 39, bits: 9 },
      { shift: 30, bits: 9 },
      { shift: 21, bits: 9 },
    ],
    halves: 1,
    leafTables: [{ pageSize: 4096, shift: 12, bits: 9, half: 0 }],
    isPointer: (entry) =>
      (entry & format.validMask) !== 0n &&
      (entry & format.directoryPageMask) === 0n,
    pointer: (table) => table | format.validMask,
    table: (entry) => entry & bits(47, 12),
  };
}

const LAYOUTS: Readonly<Record<ImageFormat, Layout>> = {
  "nvidia-v2": NVIDIA_V2,
  "nvidia-v3": NVIDIA_V3,
  "amd-gfx9": amdLayout("amd-gfx9"),
  "amd-gfx10": amdLayout("amd-gfx10"),
  "amd-gfx12": amdLayout("amd-gfx12"),
};

/**
 * Builds page tables that map the given pages, for memory that begins at `base`.
 *
 * @throws {RangeError} if a page is out of range, has a size that the layout lacks, or
 * overlaps another, or if `base` is no multiple of 4 KiB or leaves no room for the tables
 */
export function buildImage(
  format: ImageFormat,
  base: bigint,
  pages: Iterable<ImagePage>,
): TableImage {
  const builder = new ImageBuilder(layoutOf(format), base);
  for (const page of pages) builder.add(page);
  return { format, base, root: base, words: builder.words() };
}

/**
 * Translates a virtual address as the hardware would; undefined if it is not mapped.
 *
 * @throws {RangeError} if the address has more bits than the layout, or a pointer leads
 * out of the image
 */
export function walk(
  image: TableImage,
  virtualAddress: bigint,
): Translation | undefined {
  const layout = layoutOf(image.format);
  checkAddress(layout, virtualAddress);
  const read = (table: bigint, index: number): bigint => {
    const word = image.words[Number((table - image.base) / 8n) + index];
    if (word === undefined) {
      throw new RangeError(
        `Cannot walk: the table at 0x${
          table.toString(16)
        } is not in the image, which begins at 0x${image.base.toString(16)}`,
      );
    }
    return word;
  };
  const last = layout.directories.length - 1;
  let table = image.root;
  for (const field of layout.directories.slice(0, last)) {
    const entry = read(table, indexIn(field, virtualAddress));
    if (!layout.isPointer(entry)) return undefined;
    table = layout.table(entry);
  }
  const field = layout.directories[last]!;
  const slot = layout.halves * indexIn(field, virtualAddress);
  const first = read(table, slot);
  if (isDirectoryPage(layout, first)) {
    return translation(layout, first, MAX_PAGE_SIZE, virtualAddress);
  }
  for (const leaf of layout.leafTables) {
    const pointer = read(table, slot + leaf.half);
    if (!layout.isPointer(pointer)) continue;
    const entry = read(layout.table(pointer), indexIn(leaf, virtualAddress));
    if ((entry & layout.format.validMask) !== 0n) {
      return translation(layout, entry, leaf.pageSize, virtualAddress);
    }
    if (entry !== 0n && entry === layout.unmapped) return undefined;
  }
  return undefined;
}

/** Tables under construction; they follow each other as they are first needed. */
class ImageBuilder {
  readonly #layout: Layout;
  readonly #base: bigint;
  readonly #tables: BigUint64Array[] = [];

  constructor(layout: Layout, base: bigint) {
    if (base < 0n || base % 4096n !== 0n) {
      throw new RangeError(
        `Cannot build page tables: 0x${
          base.toString(16)
        } is not a multiple of 4 KiB`,
      );
    }
    this.#layout = layout;
    this.#base = base;
    this.#newTable();
  }

  add({ page, pageSize, entry }: ImagePage): void {
    const layout = this.#layout;
    if (!Number.isSafeInteger(page) || !layout.format.flags.has(pageSize)) {
      throw new RangeError(
        `Cannot build page tables: "${layout.format.name}" has no page ${page} of ${pageSize} bytes`,
      );
    }
    const address = BigInt(page) * BigInt(pageSize);
    checkAddress(layout, address);
    const { table, slot } = this.#lastDirectory(address);
    if (pageSize === MAX_PAGE_SIZE && isDirectoryPage(layout, entry)) {
      const taken = table.subarray(slot, slot + layout.halves);
      if (taken.some((half) => half !== 0n)) overlap(address);
      table[slot] = entry;
      return;
    }
    const leaf = layout.leafTables.find((one) => one.pageSize === pageSize) ??
      layout.leafTables[layout.leafTables.length - 1]!;
    if (isDirectoryPage(layout, table[slot]!)) overlap(address);
    this.#checkOtherLeaves(table, slot, leaf, address, pageSize);
    const entries = this.#follow(table, slot + leaf.half);
    const first = indexIn(leaf, address);
    for (let i = 0; i < pageSize / leaf.pageSize; i++) {
      // Address bits are in place wherever a page has several entries.
      const step = BigInt(i * leaf.pageSize);
      if (entries[first + i] !== 0n) overlap(address);
      entries[first + i] = entry + step;
    }
  }

  words(): BigUint64Array<ArrayBuffer> {
    const words = new BigUint64Array(this.#tables.length * TABLE_WORDS);
    this.#tables.forEach((table, i) => words.set(table, i * TABLE_WORDS));
    return words;
  }

  #lastDirectory(address: bigint): { table: BigUint64Array; slot: number } {
    const { directories, halves } = this.#layout;
    const last = directories.length - 1;
    let table = this.#tables[0]!;
    for (const field of directories.slice(0, last)) {
      table = this.#follow(table, indexIn(field, address));
    }
    return { table, slot: halves * indexIn(directories[last]!, address) };
  }

  /** The table that a directory's entry points to, made if there is none. */
  #follow(directory: BigUint64Array, index: number): BigUint64Array {
    const entry = directory[index]!;
    if (this.#layout.isPointer(entry)) {
      const offset = this.#layout.table(entry) - this.#base;
      return this.#tables[Number(offset) / (8 * TABLE_WORDS)]!;
    }
    const address = this.#newTable();
    const pointer = this.#layout.pointer(address);
    if (this.#layout.table(pointer) !== address) {
      throw new RangeError(
        `Cannot build page tables: 0x${
          address.toString(16)
        } is too high for a table of "${this.#layout.format.name}"`,
      );
    }
    directory[index] = pointer;
    return this.#tables[this.#tables.length - 1]!;
  }

  #newTable(): bigint {
    const address = this.#base + BigInt(this.#tables.length * 8 * TABLE_WORDS);
    this.#tables.push(new BigUint64Array(TABLE_WORDS));
    return address;
  }

  /** No leaf table of another page size may have entries for the page's addresses. */
  #checkOtherLeaves(
    directory: BigUint64Array,
    slot: number,
    leaf: LeafTable,
    address: bigint,
    pageSize: number,
  ): void {
    for (const other of this.#layout.leafTables) {
      const pointer = directory[slot + other.half]!;
      if (other === leaf || !this.#layout.isPointer(pointer)) continue;
      const entries = this.#follow(directory, slot + other.half);
      const first = indexIn(other, address);
      const count = Math.max(1, pageSize / other.pageSize);
      if (entries.subarray(first, first + count).some((one) => one !== 0n)) {
        overlap(address);
      }
    }
  }
}

function overlap(address: bigint): never {
  throw new RangeError(
    `Cannot build page tables: two pages are at 0x${address.toString(16)}`,
  );
}

/** Whether an entry of the last directory is a page. */
function isDirectoryPage({ format }: Layout, entry: bigint): boolean {
  const mask = format.validMask | format.directoryPageMask;
  return (entry & mask) === mask;
}

function translation(
  { format }: Layout,
  entry: bigint,
  span: number,
  virtualAddress: bigint,
): Translation {
  const { address, readOnly } = decode(format, entry);
  const within = virtualAddress & BigInt(span - 1);
  return { entry, span, address: address + within, readOnly };
}

function indexIn({ shift, bits: count }: Field, address: bigint): number {
  return Number(address >> BigInt(shift) & (1n << BigInt(count)) - 1n);
}

function checkAddress(layout: Layout, address: bigint): void {
  if (address < 0n || address >> BigInt(layout.addressBits) !== 0n) {
    throw new RangeError(
      `Cannot use the virtual address 0x${
        address.toString(16)
      }: "${layout.format.name}" has ${layout.addressBits} bits`,
    );
  }
}

function layoutOf(format: ImageFormat): Layout {
  const layout = LAYOUTS[format];
  if (!layout) {
    throw new RangeError(
      `Cannot use page tables of "${format}": known are ${
        Object.keys(LAYOUTS).map((name) => `"${name}"`).join(", ")
      }`,
    );
  }
  return layout;
}
