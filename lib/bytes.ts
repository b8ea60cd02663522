/**
 * Host data that users pass, as bytes.
 *
 * @module
 */

/**
 * The bytes of a typed array, DataView or ArrayBuffer; the same memory, not a copy.
 *
 * @throws {TypeError} if it is none of them
 */
export function bytesOf(data: ArrayBufferView | ArrayBuffer): Uint8Array {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) {
    return new Uint8Array(
      data.buffer as ArrayBuffer,
      data.byteOffset,
      data.byteLength,
    );
  }
  throw new TypeError(
    `Cannot copy: expected a typed array, DataView or ArrayBuffer, got ${typeof data}`,
  );
}
