/**
 * Placements in little text, for pages.
 *
 * Four columns one after another: address, bytes, step it came (as the difference to
 * the row before, rows being sorted by it) and steps it stayed. Each column is split
 * into planes, the lowest bytes of all rows first, since the upper ones hardly change
 * and so compress to nearly nothing. All of it is compressed by gzip and written in
 * base64. page/unpack.js reads it.
 *
 * @module
 */

import type { Placements } from "../report_data.ts";

/** Packed placements. */
export interface PackedPlacements {
  /** Number of rows. */
  rows: number;
  /** Addresses and bytes are counted in this many bytes. */
  unit: number;
  /** Planes of each of the four columns. */
  planes: number[];
  /** The columns: gzip in base64. */
  data: string;
}

/** Packs placements; their order is lost. Numbers may be up to 2^53. */
export async function packPlacements(
  placements: Placements,
): Promise<PackedPlacements> {
  const { address, bytes, from, to } = placements;
  const order = Uint32Array.from(from.keys()).sort((a, b) =>
    from[a]! - from[b]! || address[a]! - address[b]!
  );
  const unit = commonUnit(address, bytes);
  let last = 0;
  const columns = [
    Float64Array.from(order, (row) => address[row]! / unit),
    Float64Array.from(order, (row) => bytes[row]! / unit),
    Float64Array.from(order, (row) => {
      const delta = from[row]! - last;
      last = from[row]!;
      return delta;
    }),
    Float64Array.from(order, (row) => to[row]! - from[row]!),
  ];
  const planes = columns.map(planesNeeded);
  const rows = order.length;
  const raw = new Uint8Array(rows * planes.reduce((sum, n) => sum + n, 0));
  let at = 0;
  columns.forEach((column, index) => {
    for (let plane = 0; plane < planes[index]!; plane++) {
      const place = 256 ** plane;
      for (const value of column) raw[at++] = Math.floor(value / place) % 256;
    }
  });
  return { rows, unit, planes, data: (await gzip(raw)).toBase64() };
}

/** The largest power of two up to 2^21 that divides all values. */
function commonUnit(...columns: Float64Array[]): number {
  let unit = 2 ** 21;
  for (const column of columns) {
    for (const value of column) while (value % unit !== 0) unit /= 2;
  }
  return unit;
}

function planesNeeded(column: Float64Array): number {
  const max = column.reduce((a, b) => Math.max(a, b), 0);
  let planes = 0;
  while (256 ** planes <= max) planes++;
  return planes;
}

async function gzip(raw: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const packed = new Blob([raw]).stream().pipeThrough(
    new CompressionStream("gzip"),
  );
  return new Uint8Array(await new Response(packed).arrayBuffer());
}
