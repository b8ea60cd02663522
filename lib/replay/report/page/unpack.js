// Reads what pack_placements.ts packed.

/**
 * Rows sorted by `from`; the meaning of the columns is that of `Placements`.
 *
 * @typedef {object} Rows
 * @property {number} count
 * @property {Float64Array} address
 * @property {Float64Array} bytes
 * @property {Uint32Array} from
 * @property {Uint32Array} to
 */

/**
 * Unpacks placements.
 *
 * @param {{rows: number, unit: number, planes: number[]}} shape
 * @param {string} data gzip in base64
 * @returns {Promise<Rows>}
 */
export async function unpackPlacements({ rows, unit, planes }, data) {
  const packed = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(
    new DecompressionStream("gzip"),
  );
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  let at = 0;
  const columns = planes.map((count) => {
    const column = new Float64Array(rows);
    for (let plane = 0; plane < count; plane++) {
      const place = 256 ** plane;
      for (let row = 0; row < rows; row++) column[row] += raw[at++] * place;
    }
    return column;
  });
  const [address, bytes, delta, stay] = columns;
  const from = new Uint32Array(rows);
  const to = new Uint32Array(rows);
  let step = 0;
  for (let row = 0; row < rows; row++) {
    address[row] *= unit;
    bytes[row] *= unit;
    step += delta[row];
    from[row] = step;
    to[row] = step + stay[row];
  }
  return { count: rows, address, bytes, from, to };
}
