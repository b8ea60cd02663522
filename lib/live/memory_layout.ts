/**
 * Where extents and blocks lie, ready to be drawn: stretches of mapped addresses, and a
 * letter for each name.
 *
 * @module
 */

import type { BlockSnapshot } from "../snapshot.ts";
import type { MappedSnapshot } from "./read_snapshot.ts";

/** Addresses without a hole, all mapped. */
export interface Stretch {
  /** First byte. */
  address: number;
  /** Bytes. */
  size: number;
  /** Its extents, by address. */
  extents: { address: number; size: number }[];
  /** Its blocks, by address; they cover it. */
  blocks: BlockSnapshot[];
}

/** Live blocks of one name. */
export interface NamedBlocks {
  /** A letter that stands for the name: A to Z, a to z, then `*` for all others. */
  letter: string;
  /** The name. */
  name: string;
  /** Number of blocks. */
  blocks: number;
  /** Bytes of all of them. */
  bytes: number;
}

/** A snapshot as it is drawn. Sizes in bytes. */
export interface MemoryLayout {
  /** The device and when. */
  device: MappedSnapshot["device"];
  /** When it was, ISO 8601. */
  time: string;
  /** What is mapped, by address. */
  stretches: Stretch[];
  /** Sizes of the extents that are mapped nowhere. */
  loose: number[];
  /** Retired mappings that are still installed, by address. */
  retired: { address: number; size: number }[];
  /** Names, those that take most first. */
  names: NamedBlocks[];
  /** Places in `names` by name. */
  places: Map<string, number>;
  /** Bytes by what they are. */
  totals: {
    mapped: number;
    named: number;
    unnamed: number;
    free: number;
    pending: number;
  };
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Lays a snapshot out. Takes time in proportion to its extents and blocks. */
export function layOut(snapshot: MappedSnapshot): MemoryLayout {
  const { device, time, extents, blocks } = snapshot;
  const mapped = extents.filter(({ address }) => address !== null)
    .map(({ address, size }) => ({ address: address!, size }))
    .sort((a, b) => a.address - b.address);
  const names = namesOf(blocks);
  const bytesOf = (wanted: (block: BlockSnapshot) => boolean) =>
    blocks.filter(wanted).reduce((sum, { size }) => sum + size, 0);
  return {
    device,
    time,
    stretches: stretchesOf(mapped, blocks),
    loose: extents.filter(({ address }) => address === null)
      .map(({ size }) => size).sort((a, b) => b - a),
    retired: snapshot.retired.map(({ address, size }) => ({ address, size }))
      .sort((a, b) => a.address - b.address),
    names,
    places: new Map(names.map(({ name }, place) => [name, place])),
    totals: {
      mapped: extents.reduce((sum, { size }) => sum + size, 0),
      named: names.reduce((sum, { bytes }) => sum + bytes, 0),
      unnamed: bytesOf((one) => one.state === "live" && one.name === undefined),
      free: bytesOf(({ state }) => state === "free"),
      pending: bytesOf(({ state }) => state === "pending"),
    },
  };
}

function stretchesOf(
  extents: readonly { address: number; size: number }[],
  blocks: readonly BlockSnapshot[],
): Stretch[] {
  const stretches: Stretch[] = [];
  let block = 0;
  for (const extent of extents) {
    let last = stretches.at(-1);
    if (!last || last.address + last.size !== extent.address) {
      last = { address: extent.address, size: 0, extents: [], blocks: [] };
      stretches.push(last);
    }
    last.extents.push(extent);
    last.size += extent.size;
  }
  for (const stretch of stretches) {
    const end = stretch.address + stretch.size;
    while (block < blocks.length && blocks[block]!.address < end) {
      if (blocks[block]!.address >= stretch.address) {
        stretch.blocks.push(blocks[block]!);
      }
      block++;
    }
  }
  return stretches;
}

function namesOf(blocks: readonly BlockSnapshot[]): NamedBlocks[] {
  const byName = new Map<string, NamedBlocks>();
  for (const { state, name, size } of blocks) {
    if (state !== "live" || name === undefined) continue;
    const named = byName.get(name) ??
      { letter: "*", name, blocks: 0, bytes: 0 };
    named.blocks++;
    named.bytes += size;
    byName.set(name, named);
  }
  const names = [...byName.values()].sort((a, b) => b.bytes - a.bytes);
  names.forEach((named, place) => named.letter = LETTERS[place] ?? "*");
  return names;
}

/**
 * The sizes of a row and of all that is drawn: a power of two of bytes a row with which
 * everything takes no more than about `mostRows`.
 *
 * @param least bytes of a row at least
 */
export function bytesPerRow(
  stretches: readonly Stretch[],
  mostRows: number,
  least: number,
): number {
  let bytes = least;
  const rows = () =>
    stretches.reduce((sum, { size }) => sum + Math.ceil(size / bytes), 0);
  // Each stretch takes a row, however small it is.
  while (rows() > Math.max(mostRows, stretches.length)) bytes *= 2;
  return bytes;
}

/** Cuts a stretch into rows, each with the blocks and extents that touch it. */
export function* rowsOf(
  stretch: Stretch,
  rowBytes: number,
): Generator<Stretch> {
  const end = stretch.address + stretch.size;
  let block = 0;
  let extent = 0;
  for (let address = stretch.address; address < end; address += rowBytes) {
    const rowEnd = Math.min(end, address + rowBytes);
    const blocks: BlockSnapshot[] = [];
    const extents: Stretch["extents"] = [];
    block = take(stretch.blocks, block, rowEnd, blocks);
    extent = take(stretch.extents, extent, rowEnd, extents);
    yield { address, size: rowEnd - address, blocks, extents };
  }
}

/** Takes what begins before an end; returns the first that goes on behind it. */
function take<T extends { address: number; size: number }>(
  all: readonly T[],
  from: number,
  end: number,
  taken: T[],
): number {
  let next = from;
  while (next < all.length && all[next]!.address < end) {
    taken.push(all[next]!);
    if (all[next]!.address + all[next]!.size > end) return next;
    next++;
  }
  return next;
}
