/**
 * A stream of bytes that can be looked at piece by piece.
 *
 * @module
 */

import { TraceFormatError, type TracePlace } from "./trace_format_error.ts";

/** Bytes of a file, and where in it a reader is. */
export class ByteSource {
  /** The file's name, for errors. */
  readonly name: string;
  /** What has been read and not been dropped yet. */
  bytes: Uint8Array = new Uint8Array(0);
  /** Index in `bytes` of the next byte; beyond their end if what follows is to be skipped. */
  at = 0;
  /** Offset in the file of `bytes[0]`. */
  base = 0;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  /** Reads from a stream, which it locks. */
  constructor(name: string, data: ReadableStream<Uint8Array>) {
    this.name = name;
    this.#reader = data.getReader();
  }

  /** Offset in the file of the next byte. */
  get offset(): number {
    return this.base + this.at;
  }

  /** Waits until `count` bytes lie ahead; false if the file ends before that. */
  async fill(count: number): Promise<boolean> {
    while (this.bytes.length - this.at < count) {
      const { done, value } = await this.#reader.read();
      if (done) return false;
      this.#append(value);
    }
    return true;
  }

  /** The bytes that lie ahead, or the next ones to come; undefined at the end. */
  async take(): Promise<Uint8Array | undefined> {
    if (!await this.fill(1)) return undefined;
    const taken = this.bytes.subarray(this.at);
    this.at = this.bytes.length;
    return taken;
  }

  /** Gives the stream back to its owner, read or not. */
  async cancel(): Promise<void> {
    // An error of the stream has been told by `fill` already.
    await this.#reader.cancel().catch(() => {});
    this.#reader.releaseLock();
  }

  /** Makes an error at a place, by default the one that has been reached. */
  error(
    problem: string,
    place: TracePlace = { offset: this.offset },
  ): TraceFormatError {
    return new TraceFormatError(this.name, problem, place);
  }

  /** Forgets what has been passed, and puts a chunk behind the rest. */
  #append(chunk: Uint8Array): void {
    const passed = Math.min(this.at, this.bytes.length);
    const rest = this.bytes.subarray(passed);
    this.base += passed;
    this.at -= passed;
    if (rest.length === 0) {
      this.bytes = chunk;
      return;
    }
    this.bytes = new Uint8Array(rest.length + chunk.length);
    this.bytes.set(rest);
    this.bytes.set(chunk, rest.length);
  }
}
