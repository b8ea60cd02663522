/**
 * Layouts of page-table entries, as data: MoonBright's own and the vendors' leaf entries.
 * All of them are written by one kernel, from a shift, a mask and flags, and read through
 * one header.
 *
 * Bits are counted from 0, the least significant.
 *
 * @module
 */

/** Names of the layouts. */
export type FormatName =
  | "moonbright"
  | "nvidia-v2"
  | "nvidia-v3"
  | "amd-gfx9"
  | "amd-gfx10"
  | "amd-gfx12";

/** A layout: `entry = ((address >> addressShift) & addressMask) | flags`. */
export interface EntryFormat {
  /** Its name. */
  readonly name: FormatName;
  /** Bits that an address moves to the right. */
  readonly addressShift: number;
  /** The entry's address bits. */
  readonly addressMask: bigint;
  /** By page size in bytes: all other bits of a valid entry that allows reading and writing. */
  readonly flags: ReadonlyMap<number, bigint>;
  /** The bit of an entry that may be read. */
  readonly validMask: bigint;
  /** Bits that are set in an entry that forbids writing. */
  readonly readOnlySet: bigint;
  /** Bits that are clear in an entry that forbids writing, set in one that allows it. */
  readonly readOnlyClear: bigint;
  /** The entry of a page without a frame. */
  readonly invalid: bigint;
  /** Lowest bit of the version. */
  readonly versionShift: number;
  /** The entry's version bits; 0 if the layout has none. */
  readonly versionMask: bigint;
  /**
   * Bits of the largest page's flags that tell a directory's entry to be a page; they are
   * left out where such a page's entry stands in a leaf table.
   */
  readonly directoryPageMask: bigint;
}

/** What all pages written together have in common. */
export interface PageKind {
  /** Bytes of a page. */
  pageSize: number;
  /** Whether writing is forbidden; `false` if left out. */
  readOnly?: boolean;
  /**
   * Its lowest bits are kept in the entry where the layout has a version (12 bits in
   * `moonbright`), and none elsewhere; 0 if left out.
   */
  version?: number;
  /** Whether a page as large as a leaf table's span stands in one: see `directoryPageMask`. */
  inLeafTable?: boolean;
}

/** What an entry says. */
export interface DecodedEntry {
  /** Whether the page has a frame. */
  valid: boolean;
  /** Address of the frame. */
  address: bigint;
  /** Whether writing is forbidden. */
  readOnly: boolean;
  /** The version; 0 if the layout has none. */
  version: number;
}

/** The smallest page in bytes. */
export const MIN_PAGE_SIZE = 4096;

/** The largest page in bytes. */
export const MAX_PAGE_SIZE: number = 2 ** 21;

/** Bits from `low` to `high`, both included. */
export function bits(high: number, low: number): bigint {
  return (1n << BigInt(high + 1)) - (1n << BigInt(low));
}

function bit(number: number): bigint {
  return 1n << BigInt(number);
}

const PAGE_SIZES: readonly number[] = Array.from(
  { length: Math.log2(MAX_PAGE_SIZE / MIN_PAGE_SIZE) + 1 },
  (_, i) => MIN_PAGE_SIZE * 2 ** i,
);

const NO_VERSION = { versionShift: 0, versionMask: 0n };

const MOONBRIGHT: EntryFormat = {
  name: "moonbright",
  addressShift: 0,
  addressMask: bits(51, 12),
  flags: new Map(PAGE_SIZES.map((size) => [size, bit(0)])),
  validMask: bit(0),
  readOnlySet: bit(1),
  readOnlyClear: 0n,
  invalid: 0n,
  versionShift: 52,
  versionMask: bits(63, 52),
  directoryPageMask: 0n,
};

const NVIDIA_PAGE_SIZES = [4096, 64 * 1024, 2 ** 21];

/** Generic memory, the kind of everything that is neither compressed nor a texture. */
const NVIDIA_GENERIC = 6n;

/** Valid, aperture 0: video memory. */
const NVIDIA_V2: EntryFormat = {
  name: "nvidia-v2",
  addressShift: 4,
  addressMask: bits(32, 8),
  flags: new Map(
    NVIDIA_PAGE_SIZES.map((size) => [size, NVIDIA_GENERIC << 56n | bit(0)]),
  ),
  validMask: bit(0),
  readOnlySet: bit(6),
  readOnlyClear: 0n,
  invalid: 0n,
  ...NO_VERSION,
  directoryPageMask: 0n,
};

/** Valid, aperture 0: video memory, PCF 0: cached, writable, atomics allowed. */
const NVIDIA_V3: EntryFormat = {
  name: "nvidia-v3",
  addressShift: 0,
  addressMask: bits(51, 12),
  flags: new Map(
    NVIDIA_PAGE_SIZES.map((size) => [size, NVIDIA_GENERIC << 8n | bit(0)]),
  ),
  validMask: bit(0),
  readOnlySet: bit(5),
  readOnlyClear: 0n,
  invalid: 0n,
  ...NO_VERSION,
  directoryPageMask: 0n,
};

/** Valid, executable, readable, writeable, memory type 0; fragments are log2 of 4 KiB. */
function amdFormat(name: FormatName, directoryPageBit: number): EntryFormat {
  const flagsOf = (size: number) => {
    const fragment = BigInt(Math.log2(size / 4096));
    const page = bit(0) | bit(4) | bit(5) | bit(6) | fragment << 7n;
    return size === MAX_PAGE_SIZE ? page | bit(directoryPageBit) : page;
  };
  return {
    name,
    addressShift: 0,
    addressMask: bits(47, 12),
    flags: new Map(PAGE_SIZES.map((size) => [size, flagsOf(size)])),
    validMask: bit(0),
    readOnlySet: 0n,
    readOnlyClear: bit(6),
    invalid: 0n,
    ...NO_VERSION,
    directoryPageMask: bit(directoryPageBit),
  };
}

/** All layouts by name. `amd-gfx10` is also that of GFX11. */
export const FORMATS: Readonly<Record<FormatName, EntryFormat>> = {
  "moonbright": MOONBRIGHT,
  "nvidia-v2": NVIDIA_V2,
  "nvidia-v3": NVIDIA_V3,
  "amd-gfx9": amdFormat("amd-gfx9", 54),
  "amd-gfx10": amdFormat("amd-gfx10", 54),
  "amd-gfx12": amdFormat("amd-gfx12", 63),
};

/**
 * All bits of an entry but the address.
 *
 * @throws {RangeError} if the layout has no such page size, or the version is no whole
 * number from 0 on
 */
export function entryFlags(format: EntryFormat, kind: PageKind): bigint {
  const base = format.flags.get(kind.pageSize);
  if (base === undefined) {
    throw new RangeError(
      `Cannot encode an entry: "${format.name}" has no pages of ${kind.pageSize} bytes; it has ${
        [...format.flags.keys()].join(", ")
      }`,
    );
  }
  const placed = kind.inLeafTable ? base & ~format.directoryPageMask : base;
  const allowed = kind.readOnly
    ? placed & ~format.readOnlyClear | format.readOnlySet
    : placed;
  return allowed | versionBits(format, kind.version ?? 0);
}

/**
 * The entry of a page: what the kernels write for it.
 *
 * @throws {RangeError} if the address is no multiple of the page size or does not fit, or
 * as {@linkcode entryFlags}
 */
export function encode(
  format: EntryFormat,
  page: PageKind & { address: bigint | number },
): bigint {
  const flags = entryFlags(format, page);
  const address = BigInt(page.address);
  const field = address >> BigInt(format.addressShift);
  if (
    address % BigInt(page.pageSize) !== 0n ||
    (field & format.addressMask) !== field
  ) {
    throw new RangeError(
      `Cannot encode an entry: 0x${
        address.toString(16)
      } is not an address of a page of ${page.pageSize} bytes in "${format.name}"`,
    );
  }
  return field | flags;
}

/** What an entry says. That of an invalid entry is its bits' meaning had it been valid. */
export function decode(format: EntryFormat, entry: bigint): DecodedEntry {
  return {
    valid: (entry & format.validMask) === format.validMask,
    address: (entry & format.addressMask) << BigInt(format.addressShift),
    readOnly: (entry & format.readOnlySet) !== 0n ||
      (entry & format.readOnlyClear) !== format.readOnlyClear,
    version: Number(
      (entry & format.versionMask) >> BigInt(format.versionShift),
    ),
  };
}

/** Bits to clear in a valid entry, then bits to set, to change what it allows. */
export function protectBits(
  format: EntryFormat,
  readOnly: boolean,
  version?: number,
): { clear: bigint; set: bigint } {
  const both = format.readOnlySet | format.readOnlyClear;
  const set = readOnly ? format.readOnlySet : format.readOnlyClear;
  return version === undefined ? { clear: both, set } : {
    clear: both | format.versionMask,
    set: set | versionBits(format, version),
  };
}

function versionBits(format: EntryFormat, version: number): bigint {
  if (!(Number.isSafeInteger(version) && version >= 0)) {
    throw new RangeError(
      `Cannot encode an entry: the version ${version} is not a whole number from 0 on`,
    );
  }
  return BigInt(version) << BigInt(format.versionShift) & format.versionMask;
}
