/**
 * Unpacking gzip.
 *
 * @module
 */

import type { ByteSource } from "./byte_source.ts";
import { TraceFormatError } from "./trace_format_error.ts";

/**
 * Bytes given to the decompressor at a time. It answers each piece as a whole, and a
 * byte can become a thousand.
 */
const PIECE = 4096;

/** Whether what lies ahead is gzip data. */
export async function isGzip(source: ByteSource): Promise<boolean> {
  await source.fill(2);
  const { bytes, at } = source;
  return bytes[at] === 0x1f && bytes[at + 1] === 0x8b;
}

/** What the gzip data ahead unpack to; fails with a `TraceFormatError` if they are damaged. */
export function gunzip(source: ByteSource): ReadableStream<Uint8Array> {
  let sourceError: { error: unknown } | undefined;
  const pieces = new ReadableStream<BufferSource>({
    async pull(controller) {
      try {
        const bytes = await source.take();
        if (bytes === undefined) return controller.close();
        for (let at = 0; at < bytes.length; at += PIECE) {
          controller.enqueue(
            bytes.slice(at, at + PIECE) as Uint8Array<ArrayBuffer>,
          );
        }
      } catch (error) {
        sourceError = { error };
        controller.error(error);
      }
    },
    cancel: () => source.cancel(),
  }, { highWaterMark: 0 });
  const reader = pieces.pipeThrough(new DecompressionStream("gzip"))
    .getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (cause) {
        if (sourceError) throw sourceError.error;
        throw new TraceFormatError(
          source.name,
          "its gzip data are damaged, cut short, or followed by something else; " +
            'test it with "gzip -t", and copy or record it again',
          {},
          { cause },
        );
      }
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}
